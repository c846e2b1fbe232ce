/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages over links that lose writes: rounds, missing writes, late writes, dead links. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/libmrmpi/fake_bulk.h"

enum { LEN = 1 << 20, BLOCK = 4096, BLOCKS = LEN / BLOCK, HALF = BLOCKS / 2, TOKEN = 5, SERIAL = 77 };

static unsigned char *buf;
static struct mr_peer *peer;

static void setup(void)
{
    fake_setup(MR_LINK_UC);
    peer = &fake.peer->base;
    buf = calloc(1, LEN);
}

static struct fake_control *last_control(void)
{
    ck_assert_uint_gt(fake.num_controls, 0);
    return &fake.control[fake.num_controls - 1];
}

static void hear(struct mr_hdr hdr, const void *payload, size_t len)
{
    ck_assert(mr_track_control(peer, &hdr, payload, len));
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static void begin_transfer(void)
{
    const struct mr_remote to = {.addr = 0x100000, .len = LEN, .num_keys = 2, .token = TOKEN, .serial = SERIAL};

    ck_assert_int_eq(transfer_to(peer, buf, LEN, &to, false), 0);
}

static void complete_all(unsigned from)
{
    for (unsigned n = fake.num_posts; from < n; from++)
        fake_complete(from);
}

static void hear_landed(uint32_t serial)
{
    hear((struct mr_hdr){.kind = MR_TRACK_LANDED, .ctx = TOKEN, .rreq = serial}, NULL, 0);
}

static void hear_missing(unsigned round, bool more, struct mr_missing_run run)
{
    hear(
        (struct mr_hdr){
            .kind = MR_TRACK_MISSING, .tag = (int32_t)round, .rank = more, .sreq = last_control()->hdr.sreq},
        &run, sizeof run);
}

static void is_write(unsigned i, unsigned round, uint32_t first, uint32_t num)
{
    struct mr_block_run run = mr_run_of(fake.post[i].imm);

    ck_assert_uint_lt(i, fake.num_posts);
    ck_assert(fake.post[i].has_imm && mr_imm_is_run(fake.post[i].imm) && !fake.post[i].read);
    ck_assert_uint_eq(mr_run_index(fake.post[i].imm), TOKEN);
    ck_assert_uint_eq(mr_run_round(fake.post[i].imm), round);
    ck_assert_uint_eq(run.first, first);
    ck_assert_uint_eq(run.num, num);
    ck_assert_uint_eq(fake.post[i].raddr, 0x100000 + (uint64_t)first * BLOCK);
    ck_assert_uint_eq(fake.post[i].len, (uint64_t)num * BLOCK);
}

/* WRITTEN goes when the writes of all stripes have left, and only then can LANDED end the put. */
START_TEST(one_round)
{
    const struct fake_control *written;

    begin_transfer();
    ck_assert_uint_eq(fake.num_posts, 2);
    is_write(0, 0, 0, HALF);
    is_write(1, 0, HALF, HALF);
    fake_complete(0);
    ck_assert_uint_eq(fake.num_controls, 0);
    fake_complete(1);
    ck_assert_uint_eq(fake.num_controls, 1);
    written = last_control();
    ck_assert_uint_eq(written->hdr.kind, MR_TRACK_WRITTEN);
    ck_assert_uint_eq(written->hdr.ctx, TOKEN);
    ck_assert_uint_eq(written->hdr.rreq, SERIAL);
    ck_assert_int_eq(written->hdr.tag, 0);
    ck_assert_int_eq(written->hdr.rank, 0);
    hear_landed(SERIAL + 1); /* of another message */
    ck_assert_uint_eq(fake.puts_sent, 0);
    hear_landed(SERIAL);
    ck_assert_uint_eq(fake.puts_sent, 1);
    ck_assert_ptr_null(fake.peer->transfers);
    hear_landed(SERIAL); /* late: finds nothing */
    ck_assert_uint_eq(fake.puts_sent, 1);
}
END_TEST

/* A missing write is repeated over the same link, in the next round. */
START_TEST(missing_is_written_again)
{
    unsigned sub;

    begin_transfer();
    complete_all(0);
    sub = fake.post[0].sub;
    hear_missing(1, true, (struct mr_missing_run){3, 2});
    ck_assert_uint_eq(fake.num_posts, 2); /* there is another message */
    hear_missing(1, false, (struct mr_missing_run){200, 1});
    ck_assert_uint_eq(fake.num_posts, 5);
    is_write(2, 1, 3, 1); /* runs lie at multiples of their length */
    is_write(3, 1, 4, 1);
    is_write(4, 1, 200, 1);
    ck_assert_uint_eq(fake.post[2].sub, sub);
    ck_assert_uint_eq(fake.post[3].sub, sub);
    ck_assert_uint_eq(fake.post[4].sub, fake.post[1].sub);
    ck_assert_uint_eq(fake.num_controls, 1);
    complete_all(2);
    ck_assert_uint_eq(fake.num_controls, 2);
    ck_assert_int_eq(last_control()->hdr.tag, 1);
    hear_landed(SERIAL);
    ck_assert_uint_eq(fake.puts_sent, 1);
}
END_TEST

/* An unrequested MISSING changes nothing. */
START_TEST(missing_unasked)
{
    const struct mr_missing_run run = {0, 1};

    begin_transfer();
    hear((struct mr_hdr){.kind = MR_TRACK_MISSING, .tag = 1, .sreq = (uintptr_t)fake.peer->transfers}, &run,
         sizeof run);
    complete_all(0);
    ck_assert_int_eq(last_control()->hdr.tag, 0);
    hear((struct mr_hdr){.kind = MR_TRACK_MISSING, .tag = 1, .sreq = 12345}, &run, sizeof run);
    ck_assert_uint_eq(fake.num_posts, 2);
}
END_TEST

/* The receiver has all before the adapter has given the last write back: the put ends with a second LANDED. */
START_TEST(landed_early)
{
    begin_transfer();
    fake_complete(0);
    hear_landed(SERIAL);
    ck_assert_uint_eq(fake.puts_sent, 0);
    fake_complete(1);
    ck_assert_uint_eq(last_control()->hdr.kind, MR_TRACK_WRITTEN);
    ck_assert_int_eq(last_control()->hdr.rank, 1);
    hear_landed(SERIAL);
    ck_assert_uint_eq(fake.puts_sent, 1);
}
END_TEST

/* Writes get shorter when many are lost. */
START_TEST(lengths_follow_losses)
{
    begin_transfer();
    complete_all(0);
    ck_assert_uint_eq(fake.peer->write_shift, 20);
    hear_missing(1, false, (struct mr_missing_run){0, HALF + 2});
    ck_assert_uint_eq(fake.peer->write_shift, 18);
    ck_assert_uint_eq(fake.post[2].len, 1 << 18);
    ck_assert_uint_eq(fake.post[3].len, 1 << 18);
    is_write(4, 1, HALF, 2);
}
END_TEST

/* A link is given up after twenty rounds in a row in which its first write has not landed. */
START_TEST(fruitless_links)
{
    begin_transfer();
    for (unsigned round = 1; round < 60; round++) {
        complete_all(round > 1 ? fake.num_posts - 1 : 0);
        ck_assert_uint_eq(fake.num_controls, round);
        ck_assert_int_eq(last_control()->hdr.tag, (int)round - 1);
        ck_assert_uint_eq(fake.breaks, 0);
        if (round == 15) { /* the other half of the blocks has a working link of its own; and so has this half now */
            hear_missing(round, false, (struct mr_missing_run){1, 1});
            continue;
        }
        hear_missing(round, false, (struct mr_missing_run){0, 1});
        if (fake.breaks) {
            ck_assert_uint_eq(round, 15 + 1 + 20);
            break;
        }
    }
    ck_assert_uint_eq(fake.breaks, 1);
    ck_assert_ptr_eq(fake.broken, &peer->sub[fake.post[0].sub]);
}
END_TEST

/* Over a subchannel that broke nothing is written again, and over others only when the peer's end is gone. */
START_TEST(a_break_waits_for_the_peers_end)
{
    struct mr_sub *sub;

    begin_transfer();
    complete_all(0);
    sub = &peer->sub[fake.post[0].sub];
    fake_break(fake.post[0].sub);
    mr_stripes_drained(sub);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 1);
    hear_missing(1, false, (struct mr_missing_run){8, 1});
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert(mr_stripes_confirm(sub));
    ck_assert_uint_eq(fake.num_posts, 2);
    sub->peer_from = (uint8_t)(sub->generation + 1);
    ck_assert(mr_stripes_confirm(sub));
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 0);
    ck_assert_uint_eq(fake.num_posts, 3);
    is_write(2, 1, 8, 1);
    ck_assert_uint_eq(fake.post[2].sub, fake.post[1].sub);
    complete_all(2);
    ck_assert_int_eq(last_control()->hdr.tag, 1);
    hear_landed(SERIAL);
    ck_assert_uint_eq(fake.puts_sent, 1);
}
END_TEST

/*
 * The message had landed when both subchannels broke; this is reported while the stripes wait for another subchannel.
 */
START_TEST(landed_while_stripes_wait)
{
    begin_transfer();
    complete_all(0);
    for (int i = 0; i < 2; i++)
        fake_break(fake.post[i].sub);
    for (int i = 0; i < 2; i++) {
        struct mr_sub *sub = &peer->sub[fake.post[i].sub];

        mr_stripes_drained(sub);
        sub->peer_from = (uint8_t)(sub->generation + 1);
        ck_assert(mr_stripes_confirm(sub));
    }
    ck_assert_ptr_nonnull(fake.peer->unassigned);
    hear_landed(SERIAL);
    ck_assert_uint_eq(fake.puts_sent, 1);
    ck_assert_ptr_null(fake.peer->unassigned);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 0);
    ck_assert(!mr_stripes_resume(peer));
}
END_TEST

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static struct mr_bulk_region region;
static struct mr_remote remote;

static void open_recv(size_t len)
{
    region = (struct mr_bulk_region){.rank = 1, .addr = buf, .len = len, .is_target = true};
    ck_assert_int_eq(mr_track_open(&region, len, &remote), 0);
    ck_assert_uint_ne(remote.serial, 0);
}

static void hear_written(unsigned round, bool early)
{
    hear((struct mr_hdr){.kind = MR_TRACK_WRITTEN,
                         .ctx = remote.token,
                         .rreq = remote.serial,
                         .tag = (int32_t)round,
                         .rank = early,
                         .sreq = 4711},
         NULL, 0);
}

static void land(unsigned round, uint32_t first, uint32_t num)
{
    mr_track_landed(mr_run_imm(remote.token, (struct mr_block_run){first, num}, round));
}

static void is_missing(const struct fake_control *c, unsigned round, bool more)
{
    ck_assert_uint_eq(c->hdr.kind, MR_TRACK_MISSING);
    ck_assert_int_eq(c->hdr.tag, (int)round);
    ck_assert_int_eq(c->hdr.rank, more);
    ck_assert_uint_eq(c->hdr.sreq, 4711);
}

/* MISSING goes when nothing has come for some time after WRITTEN; then only the new round counts. */
START_TEST(a_receive_of_two_rounds)
{
    uint64_t hold = mr_track_hold(peer);

    open_recv(16 * BLOCK);
    land(0, 0, 8);
    mr_track_poll(peer, fake.now_ns + hold);
    ck_assert_uint_eq(fake.num_controls, 0); /* not all has left the sender */
    hear_written(0, false);
    ck_assert_uint_eq(mr_bulk.num_late, 1);
    ck_assert_uint_eq(fake.watches, 1);
    fake.now_ns += hold - 1;
    mr_track_poll(peer, fake.now_ns);
    land(0, 12, 2); /* something comes: the time begins anew */
    fake.now_ns += hold - 1;
    mr_track_poll(peer, fake.now_ns);
    ck_assert_uint_eq(fake.num_controls, 0);
    mr_track_poll(peer, ++fake.now_ns);
    ck_assert_uint_eq(fake.num_controls, 1);
    is_missing(last_control(), 1, false);
    ck_assert_uint_eq(last_control()->len, 2 * sizeof(struct mr_missing_run));
    ck_assert_uint_eq(last_control()->missing[0].first, 8);
    ck_assert_uint_eq(last_control()->missing[0].num, 4);
    ck_assert_uint_eq(last_control()->missing[1].first, 14);
    ck_assert_uint_eq(last_control()->missing[1].num, 2);
    ck_assert_ptr_null(fake.peer->late_recvs);
    ck_assert_uint_eq(mr_bulk.num_late, 0);
    land(0, 8, 4); /* was late, not lost; and does not count */
    land(0, 14, 2);
    ck_assert_uint_eq(fake.peer->spurious, 1);
    ck_assert_uint_eq(fake.landed, 0);
    hear_written(0, false); /* of the round before */
    ck_assert_uint_eq(mr_bulk.num_late, 0);
    land(1, 8, 4);
    ck_assert_uint_eq(fake.landed, 0);
    land(1, 14, 2);
    ck_assert_uint_eq(fake.landed, 1);
    ck_assert_uint_eq(last_control()->hdr.kind, MR_TRACK_LANDED);
    ck_assert_uint_eq(last_control()->hdr.ctx, remote.token);
    ck_assert_uint_eq(last_control()->hdr.rreq, remote.serial);
    mr_track_close(&region);
}
END_TEST

/* LANDED does not wait for WRITTEN, which causes another LANDED only if the first came early. */
START_TEST(landed_before_written)
{
    open_recv(16 * BLOCK);
    land(0, 0, 16);
    ck_assert_uint_eq(fake.landed, 1);
    ck_assert_uint_eq(fake.num_controls, 1);
    mr_track_close(&region);
    hear_written(0, false);
    ck_assert_uint_eq(fake.num_controls, 1);
    hear_written(0, true);
    ck_assert_uint_eq(fake.num_controls, 2);
    ck_assert_uint_eq(last_control()->hdr.kind, MR_TRACK_LANDED);
    ck_assert_uint_eq(last_control()->hdr.rreq, remote.serial);
    land(0, 0, 16); /* finds nothing */
    ck_assert_uint_eq(fake.landed, 1);
}
END_TEST

/* A WRITTEN for another receive in the same entry is answered at once, and touches this one not. */
START_TEST(another_serial)
{
    open_recv(16 * BLOCK);
    remote.serial += 3;
    hear_written(0, false);
    ck_assert_uint_eq(last_control()->hdr.kind, MR_TRACK_LANDED);
    ck_assert_uint_eq(last_control()->hdr.rreq, remote.serial);
    ck_assert_uint_eq(mr_bulk.num_late, 0);
    mr_track_close(&region);
}
END_TEST

/* More runs than a message has room for go in several. */
START_TEST(many_runs_are_missing)
{
    unsigned runs = 0;

    fake.eager_max = 2 * sizeof(struct mr_missing_run);
    open_recv(10 * BLOCK);
    for (uint32_t i = 1; i < 10; i += 2)
        land(0, i, 1);
    hear_written(0, false);
    mr_track_poll(peer, UINT64_MAX);
    ck_assert_uint_eq(fake.num_controls, 3);
    for (unsigned c = 0; c < 3; c++) {
        is_missing(&fake.control[c], 1, c < 2);
        for (unsigned i = 0; i < fake.control[c].len / sizeof(struct mr_missing_run); i++, runs++) {
            ck_assert_uint_eq(fake.control[c].missing[i].first, 2 * runs);
            ck_assert_uint_eq(fake.control[c].missing[i].num, 1);
        }
    }
    ck_assert_uint_eq(runs, 5);
    mr_track_close(&region);
}
END_TEST

/* The time follows the round-trip time and spurious requests, within bounds. */
START_TEST(how_long_late_data_is_waited_for)
{
    uint64_t first = mr_track_hold(peer);

    fake.peer->spurious = 2;
    ck_assert_uint_eq(mr_track_hold(peer), 4 * first);
    fake.peer->spurious = 8;
    ck_assert_uint_eq(mr_track_hold(peer), 10000000);
    fake.peer->spurious = 0;
    peer->out.rtt.srtt_ns = 400000;
    ck_assert_uint_eq(mr_track_hold(peer), 200000);
    peer->out.rtt.srtt_ns = 1;
    ck_assert_uint_eq(mr_track_hold(peer), 50000);
    peer->out.rtt.srtt_ns = 1000000000;
    ck_assert_uint_eq(mr_track_hold(peer), 1000000);
    fake.peer->spurious = 3;
    open_recv(2 * BLOCK);
    hear_written(0, false);
    ck_assert_uint_eq(fake.peer->spurious, 3); /* nothing was requested yet */
    mr_track_poll(peer, UINT64_MAX);
    hear_written(1, false); /* and nothing late came after that request */
    ck_assert_uint_eq(fake.peer->spurious, 2);
    mr_track_close(&region);
    ck_assert_uint_eq(mr_bulk.num_late, 0);
    ck_assert_ptr_null(fake.peer->late_recvs);
}
END_TEST

START_TEST(open_receives_are_few)
{
    static struct mr_bulk_region all[1024];
    struct mr_bulk_region one = {.rank = 1};
    uint32_t serial = 0;

    for (unsigned i = 0; i < 1024; i++) {
        all[i].rank = 1;
        ck_assert_int_eq(mr_track_open(&all[i], BLOCK, &remote), 0);
        ck_assert_uint_ne(remote.serial, serial);
        serial = remote.serial;
    }
    ck_assert_int_eq(mr_track_open(&one, BLOCK, &remote), -EAGAIN);
    mr_track_close(&all[500]);
    ck_assert_int_eq(mr_track_open(&one, BLOCK, &remote), 0);
    mr_track_close(&one);
    for (unsigned i = 0; i < 1024; i++)
        if (i != 500)
            mr_track_close(&all[i]);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("track");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, one_round);
    tcase_add_test(c, missing_is_written_again);
    tcase_add_test(c, missing_unasked);
    tcase_add_test(c, landed_early);
    tcase_add_test(c, landed_while_stripes_wait);
    tcase_add_test(c, lengths_follow_losses);
    tcase_add_test(c, fruitless_links);
    tcase_add_test(c, a_break_waits_for_the_peers_end);
    tcase_add_test(c, a_receive_of_two_rounds);
    tcase_add_test(c, landed_before_written);
    tcase_add_test(c, another_serial);
    tcase_add_test(c, many_runs_are_missing);
    tcase_add_test(c, how_long_late_data_is_waited_for);
    tcase_add_test(c, open_receives_are_few);
    return check_run(c, NULL);
}
