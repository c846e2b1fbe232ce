/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the sender: cleared blocks are posted, and each CLEAR ends with WRITTEN. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/net/zcopy/repair.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_bulk.h"

enum { SIZE = 1024, BLOCKS = 100, LEN = BLOCKS * SIZE - 24, SERIAL = 9, QPN = 55, QKEY = 66 };

static unsigned char *buf;
static struct mr_peer *peer;

static void setup(void)
{
    fake_setup(MR_LINK_UD);
    peer = &fake.peer->base;
    buf = calloc(1, LEN);
}

static int begin_transfer(uint32_t size)
{
    const struct mr_remote to = {.len = LEN, .token = size, .serial = SERIAL};

    return transfer_to(peer, buf, LEN, &to, false);
}

static void hear_clear(unsigned sub, uint32_t serial, uint16_t turn, unsigned num, const struct mr_block_run *run)
{
    struct mr_hdr hdr = {.kind = MR_ZCOPY_CLEAR, .ctx = serial, .tag = (int32_t)sub};
    struct mr_zcopy_clear *clear = malloc(sizeof *clear + num * sizeof *run);

    *clear = (struct mr_zcopy_clear){.qpn = QPN, .qkey = QKEY, .turn = turn, .num_runs = (uint16_t)num};
    memcpy(clear->run, run, num * sizeof *run);
    ck_assert(mr_zcopy_out_control(peer, &hdr, clear, sizeof *clear + num * sizeof *run));
    free(clear);
}

static void clear_one(unsigned sub, uint16_t turn, uint32_t first, uint32_t num)
{
    hear_clear(sub, SERIAL, turn, 1, &(struct mr_block_run){first, num});
}

static void hear(uint8_t kind, uint16_t turn)
{
    struct mr_hdr hdr = {.kind = kind, .ctx = SERIAL, .tag = turn, .rreq = QPN};

    ck_assert(mr_zcopy_out_control(peer, &hdr, NULL, 0));
}

static void is_post(unsigned i, unsigned sub, uint16_t turn, unsigned number, uint32_t block, uint64_t len)
{
    const struct mr_link_datagram *d = &fake.post[i].datagram;

    ck_assert_uint_lt(i, fake.num_posts);
    ck_assert_uint_eq(fake.post[i].sub, sub);
    ck_assert_uint_eq(d->imm, mr_place_imm(turn, number));
    ck_assert_uint_eq(d->qpn, QPN);
    ck_assert_uint_eq(d->qkey, QKEY);
    ck_assert_uint_eq(d->size, SIZE);
    ck_assert_ptr_eq(d->data.data, buf + (size_t)block * SIZE);
    ck_assert_uint_eq(fake.post[i].len, len);
}

static void is_written(unsigned n, uint16_t turn)
{
    ck_assert_uint_eq(fake.num_controls, n);
    ck_assert_uint_eq(fake.control[n - 1].hdr.kind, MR_ZCOPY_WRITTEN);
    ck_assert_uint_eq(fake.control[n - 1].hdr.ctx, SERIAL);
    ck_assert_int_eq(fake.control[n - 1].hdr.tag, turn);
    ck_assert_uint_eq(fake.control[n - 1].hdr.rreq, QPN);
}

/* Nothing is posted before CLEAR; the last block is short; LANDED ends the put. */
START_TEST(cleared_written_landed)
{
    const struct mr_block_run runs[2] = {{97, 3}, {0, 4}};

    ck_assert_int_eq(begin_transfer(SIZE), 0);
    ck_assert(!mr_zcopy_resume(peer));
    ck_assert_uint_eq(fake.num_posts, 0);
    hear_clear(1, SERIAL, 4, 2, runs);
    ck_assert_uint_eq(fake.backlogs, 1);
    ck_assert_uint_eq(fake.peer->sub[1].flows, 1);
    ck_assert(mr_stripes_use(&peer->sub[1]));
    while (mr_zcopy_resume(peer))
        ;
    ck_assert_uint_eq(fake.num_posts, 2);
    is_post(0, 1, 4, 0, 97, 3 * SIZE - 24);
    is_post(1, 1, 4, 3, 0, 4 * SIZE);
    fake_complete(0);
    ck_assert_uint_eq(fake.num_controls, 0); /* not all of it has left */
    fake_complete(1);
    is_written(1, 4);
    ck_assert_uint_eq(fake.peer->sub[1].flows, 0);
    ck_assert_uint_eq(fake.puts_sent, 0);
    hear(MR_ZCOPY_LANDED, 0);
    ck_assert_uint_eq(fake.puts_sent, 1);
    ck_assert_ptr_null(fake.peer->transfers);
}
END_TEST

/* The transfer does not end while the adapter reads its memory, and unposted blocks are dropped. */
START_TEST(landed_while_some_is_posted)
{
    begin_transfer(SIZE);
    fake.room[0] = 1;
    fake.run_max = 8;
    clear_one(0, 1, 0, 16);
    ck_assert(mr_zcopy_resume(peer));
    is_post(0, 0, 1, 0, 0, 8 * SIZE);
    hear(MR_ZCOPY_LANDED, 0);
    fake.room[0] = 10;
    ck_assert(!mr_zcopy_resume(peer));
    ck_assert_uint_eq(fake.num_posts, 1);
    ck_assert_uint_eq(fake.puts_sent, 0);
    fake_complete(0);
    ck_assert_uint_eq(fake.puts_sent, 1);
    ck_assert_uint_eq(fake.num_controls, 0); /* nobody needs WRITTEN */
}
END_TEST

/* Blocks without room wait; on each subchannel the first CLEAR goes first, and others are not delayed. */
START_TEST(room_and_order)
{
    begin_transfer(SIZE);
    fake.room[0] = 2;
    fake.run_max = 4;
    clear_one(0, 1, 0, 12);
    clear_one(0, 2, 12, 4);
    clear_one(1, 3, 16, 4);
    ck_assert(mr_zcopy_resume(peer));
    ck_assert_uint_eq(fake.num_posts, 3);
    is_post(0, 0, 1, 0, 0, 4 * SIZE);
    is_post(1, 1, 3, 0, 16, 4 * SIZE);
    is_post(2, 0, 1, 4, 4, 4 * SIZE);
    fake_complete(0);
    fake_complete(2);
    ck_assert_uint_eq(fake.num_controls, 0); /* some of it waits */
    fake.room[0] = 10;
    while (mr_zcopy_resume(peer))
        ;
    ck_assert_uint_eq(fake.num_posts, 5);
    is_post(3, 0, 1, 8, 8, 4 * SIZE);
    is_post(4, 0, 2, 0, 12, 4 * SIZE);
    fake_complete(1);
    is_written(1, 3);
}
END_TEST

/* Runs beyond the message, or a missing subchannel, are not posted. */
START_TEST(bad_runs)
{
    const struct mr_hdr hdr = {.kind = MR_ZCOPY_CLEAR, .ctx = SERIAL};
    const struct mr_block_run bad[] = {{0, 0}, {0, BLOCKS + 1}, {BLOCKS, 1}, {BLOCKS - 1, 2}, {UINT32_MAX, 2}};
    const struct mr_zcopy_clear more = {.num_runs = 2};
    static struct mr_block_run many[700];

    begin_transfer(SIZE);
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        hear_clear(0, SERIAL, 1, 1, &bad[i]);
    hear_clear(0, SERIAL, 1, 0, bad);
    clear_one(7, 1, 0, 1);
    for (unsigned i = 0; i < 700; i++) /* more blocks than a batch can number */
        many[i] = (struct mr_block_run){0, BLOCKS};
    hear_clear(0, SERIAL, 1, 700, many);
    ck_assert(mr_zcopy_out_control(peer, &hdr, &more, sizeof more)); /* shorter than its header says */
    ck_assert(mr_zcopy_out_control(peer, &hdr, &more, 3));
    ck_assert_ptr_null(fake.peer->dgram_sends);
    ck_assert_uint_eq(fake.peer->transfers->num_sends, 0);
    ck_assert_uint_eq(fake.backlogs, 0);
    clear_one(0, 1, BLOCKS - 1, 1);
    ck_assert_ptr_nonnull(fake.peer->dgram_sends);
}
END_TEST

/* A message that was not begun here: its receives come back by WRITTEN. */
START_TEST(clear_of_an_unknown_message)
{
    clear_one(0, 3, 0, 1);
    is_written(1, 3);
    ck_assert_ptr_null(fake.peer->dgram_sends);
    hear(MR_ZCOPY_LANDED, 0);
    hear(MR_ZCOPY_RECALL, 3);
    ck_assert_uint_eq(fake.num_controls, 1);
}
END_TEST

/* Blocks that have not left stay; WRITTEN goes when all posted blocks have left. */
START_TEST(recalled)
{
    begin_transfer(SIZE);
    fake.room[0] = 1;
    fake.run_max = 4;
    clear_one(0, 1, 0, 8);
    clear_one(0, 2, 8, 8);
    ck_assert(mr_zcopy_resume(peer));
    hear(MR_ZCOPY_RECALL, 7); /* another turn */
    hear(MR_ZCOPY_RECALL, 1);
    ck_assert(mr_zcopy_resume(peer));
    ck_assert_uint_eq(fake.num_controls, 0);
    fake_complete(0);
    is_written(1, 1);
    hear(MR_ZCOPY_RECALL, 2);
    ck_assert(!mr_zcopy_resume(peer));
    is_written(2, 2);
    ck_assert_uint_eq(fake.num_posts, 1);
    ck_assert_uint_eq(fake.puts_sent, 0);
}
END_TEST

/* Nothing is posted over a broken subchannel: the receiver clears the blocks again over another. */
START_TEST(a_subchannel_breaks)
{
    begin_transfer(SIZE);
    clear_one(0, 1, 0, 8);
    fake_break(0);
    ck_assert(!mr_zcopy_resume(peer));
    ck_assert_uint_eq(fake.num_posts, 0);
    is_written(1, 1);
}
END_TEST

START_TEST(a_peer_is_lost)
{
    begin_transfer(SIZE);
    clear_one(0, 1, 0, 8);
    clear_one(1, 2, 8, 8);
    mr_zcopy_peer_ended(peer);
    ck_assert_ptr_null(fake.peer->dgram_sends);
    ck_assert_uint_eq(fake.peer->transfers->num_sends, 0);
    ck_assert_uint_eq(fake.peer->sub[0].flows + fake.peer->sub[1].flows, 0);
    ck_assert_uint_eq(fake.num_controls, 0);
}
END_TEST

START_TEST(sizes_of_datagrams)
{
    ck_assert_int_eq(begin_transfer(255), -EPROTO);
    ck_assert_int_eq(begin_transfer(4097), -EPROTO);
    ck_assert_ptr_null(fake.peer->transfers);
    ck_assert_int_eq(begin_transfer(256), 0);
    ck_assert_int_eq(begin_transfer(4096), 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("zcopy_out");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, cleared_written_landed);
    tcase_add_test(c, landed_while_some_is_posted);
    tcase_add_test(c, room_and_order);
    tcase_add_test(c, bad_runs);
    tcase_add_test(c, clear_of_an_unknown_message);
    tcase_add_test(c, recalled);
    tcase_add_test(c, a_subchannel_breaks);
    tcase_add_test(c, a_peer_is_lost);
    tcase_add_test(c, sizes_of_datagrams);
    return check_run(c, NULL);
}
