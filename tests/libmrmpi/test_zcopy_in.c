/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages as datagrams, the receiver: the subchannels and blocks of clearances, the waits for queue pairs,
 * reordered and lost datagrams, silent senders.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/net/zcopy/repair.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_bulk.h"

enum { SIZE = FAKE_MTU, DEPTH = 16, NUM = 11, SHORT = 100, LEN = (NUM - 1) * SIZE + SHORT };
#define SILENCE_NS 2000000u

static unsigned char *buf;
static struct mr_peer *peer;
static struct mr_bulk_region region[4];
static struct mr_remote remote;

/* One subchannel and its rail, unless a test wants both. */
static void setup(void)
{
    fake_setup(MR_LINK_UD);
    peer = &fake.peer->base;
    peer->num_now = peer->num_subs = 1;
    buf = calloc(1, 1 << 20);
}

static void open_recv(unsigned r, size_t len)
{
    region[r] = (struct mr_bulk_region){.rank = 1, .addr = buf, .len = len, .is_target = true};
    region[r].reg = calloc(1, sizeof *region[r].reg);
    ck_assert_int_eq(mr_zcopy_open(&region[r], peer, &remote), 0);
    ck_assert_uint_eq(remote.token, SIZE);
    ck_assert_uint_eq(remote.serial, region[r].dgrams->serial);
}

static void close_first(void)
{
    mr_zcopy_close(&region[0]);
}

static void is_control(unsigned n, unsigned kind, uint32_t serial)
{
    ck_assert_uint_eq(fake.num_controls, n);
    ck_assert_uint_eq(fake.control[n - 1].hdr.kind, kind);
    ck_assert_uint_eq(fake.control[n - 1].hdr.ctx, serial);
}

static void is_clear(unsigned n, const struct fake_qp *q, uint32_t first, uint32_t num)
{
    const struct fake_control *c = &fake.control[n - 1];

    ck_assert_uint_le(n, fake.num_controls);
    ck_assert_uint_eq(c->hdr.kind, MR_ZCOPY_CLEAR);
    ck_assert_uint_eq(c->clear.qpn, q->base.qpn);
    ck_assert_uint_eq(c->clear.qkey, q->base.qkey);
    ck_assert_uint_eq(c->clear.turn, q->base.turn);
    ck_assert_uint_eq(c->clear.num_runs, 1);
    ck_assert_uint_eq(c->clear.run[0].first, first);
    ck_assert_uint_eq(c->clear.run[0].num, num);
}

static uint32_t size_of(unsigned block)
{
    return block == NUM - 1 ? SHORT : SIZE;
}

/* Datagram number n of the batch, with this block. */
static void deliver(struct fake_qp *q, unsigned n, unsigned block)
{
    fake_deliver(q, mr_place_imm(q->base.turn, n), size_of(block), (unsigned char)(block + 1));
}

static void hear_written(const struct fake_qp *q, uint32_t serial)
{
    struct mr_hdr hdr = {.kind = MR_ZCOPY_WRITTEN, .ctx = serial, .tag = q->base.turn, .rreq = q->base.qpn};

    ck_assert(mr_zcopy_in_control(peer, &hdr));
}

static void is_whole(void)
{
    for (unsigned i = 0; i < LEN; i++)
        ck_assert_uint_eq(buf[i], i / SIZE + 1);
    ck_assert_uint_eq(buf[LEN], 0);
}

/* ---- one message ------------------------------------------------------------------------------------------------- */

static struct fake_qp *begin_recv(void)
{
    open_recv(0, LEN);
    ck_assert_uint_eq(fake.num_controls, 0); /* waits for a poll */
    ck_assert_uint_eq(mr_bulk.starving, 1);
    mr_zcopy_serve();
    ck_assert_uint_eq(mr_bulk.starving, 0);
    is_clear(1, &fake.qp[0][0], 0, NUM);
    ck_assert_uint_eq(fake.qp[0][0].base.posted, NUM);
    ck_assert_uint_eq(peer->num_pending, 1);
    ck_assert_uint_eq(fake.peer->sub[0].flows, 1);
    return &fake.qp[0][0];
}

/* LANDED when all have come. The queue pair is as good as before. */
static void is_landed(unsigned n, const struct fake_qp *q, bool clean)
{
    is_control(n, MR_ZCOPY_LANDED, remote.serial);
    ck_assert_uint_eq(fake.landed, 1);
    ck_assert(!q->taken);
    ck_assert_uint_eq(clean ? q->unclean : !q->unclean, 0);
    ck_assert_uint_eq(peer->num_pending + fake.peer->sub[0].flows + fake.peer->num_late_batches + mr_bulk.num_late, 0);
    is_whole();
}

START_TEST(in_order)
{
    struct fake_qp *q = begin_recv();

    fake.at_landed = close_first;
    for (unsigned i = 0; i < NUM; i++) {
        ck_assert_uint_eq(fake.landed, 0);
        deliver(q, i, i);
    }
    is_landed(2, q, true);
    ck_assert_ptr_null(fake.peer->dgram_recvs);
}
END_TEST

/* The short last block lies in another's place meanwhile, but no whole one in its place. */
START_TEST(out_of_order)
{
    static const unsigned order[NUM] = {3, 10, 0, 1, 2, 9, 4, 8, 5, 6, 7};
    struct fake_qp *q = begin_recv();

    for (unsigned i = 0; i < NUM; i++)
        deliver(q, order[i], order[i]);
    /* block 7 came to the last place, which is too short */
    is_clear(2, q, 7, 1);
    ck_assert_uint_eq(fake.landed, 0);
    ck_assert_uint_eq(q->unclean, 1); /* lost datagrams may still be under way */
    deliver(q, 0, 7);
    is_control(3, MR_ZCOPY_LANDED, remote.serial);
    is_whole();
    close_first();
}
END_TEST

/* Two datagrams change places. */
START_TEST(overtaken)
{
    static const unsigned order[NUM] = {1, 0, 2, 3, 6, 4, 5, 7, 8, 9, 10};
    struct fake_qp *q = begin_recv();

    for (unsigned i = 0; i < NUM; i++)
        deliver(q, order[i], order[i]);
    is_landed(2, q, true);
    close_first();
}
END_TEST

/*
 * After WRITTEN, late datagrams are waited for; then the queue pair is stopped, and missing blocks are cleared again.
 */
START_TEST(lost)
{
    struct fake_qp *q = begin_recv();
    uint64_t hold = mr_track_hold(peer);
    uint32_t key = q->base.qkey;

    for (unsigned i = 0; i < NUM; i++)
        if (i != 2 && i != 10)
            deliver(q, i, i);
    mr_zcopy_poll(peer, UINT64_MAX); /* not all has left the sender */
    ck_assert(!q->stopped);
    hear_written(q, remote.serial + 1);
    ck_assert_uint_eq(mr_bulk.num_late, 0);
    hear_written(q, remote.serial);
    hear_written(q, remote.serial);
    ck_assert_uint_eq(mr_bulk.num_late, 1);
    ck_assert_uint_eq(fake.peer->num_late_batches, 1);
    mr_zcopy_poll(peer, fake.now_ns + hold - 1);
    ck_assert(!q->stopped);
    fake.now_ns += hold - 1;
    deliver(q, 10, 10); /* the time begins anew */
    mr_zcopy_poll(peer, ++fake.now_ns);
    ck_assert(!q->stopped);
    mr_zcopy_poll(peer, UINT64_MAX);
    ck_assert(q->stopped);
    ck_assert_uint_eq(fake.num_controls, 1); /* nothing is moved before the stop */
    ck_assert_uint_eq(buf[2 * SIZE], 4);
    fake_stop(q);
    ck_assert_uint_ne(q->base.qkey, key); /* the adapter drops late datagrams */
    is_clear(2, q, 2, 1);
    ck_assert_ptr_eq(q->place[0].at, buf + 2 * SIZE);
    deliver(q, 0, 2);
    is_landed(3, q, false);
    close_first();
}
END_TEST

/* Others write to the memory, too: blocks in wrong places are sent again, because part of them may be the others'. */
START_TEST(others_write_there)
{
    struct fake_qp *q;

    open_recv(0, LEN);
    region[0].stays = true;
    mr_zcopy_serve();
    q = &fake.qp[0][0];
    for (unsigned i = 0; i < NUM; i++)
        if (i != 2)
            deliver(q, i, i);
    ck_assert_uint_eq(buf[3 * SIZE], 5);
    buf[3 * SIZE] = 4; /* as if another had put the same value there */
    hear_written(q, remote.serial);
    mr_zcopy_poll(peer, UINT64_MAX);
    fake_stop(q);
    is_clear(2, q, 2, NUM - 2);
    for (unsigned i = 2; i < NUM; i++)
        deliver(q, i - 2, i);
    is_landed(3, q, false);
    close_first();
}
END_TEST

/* The last one comes after all, while the queue pair stops: the message ends after the stop. */
START_TEST(late_but_not_lost)
{
    struct fake_qp *q = begin_recv();

    for (unsigned i = 0; i < NUM - 1; i++)
        deliver(q, i, i);
    hear_written(q, remote.serial);
    mr_zcopy_poll(peer, UINT64_MAX);
    ck_assert(q->stopped);
    deliver(q, NUM - 1, NUM - 1);
    ck_assert_uint_eq(fake.landed, 0);
    fake_stop(q);
    is_landed(2, q, false);
    close_first();
}
END_TEST

/* Datagrams of another turn, or that the batch does not have, or of another length, count for nothing. */
START_TEST(strays)
{
    struct fake_qp *q = begin_recv();

    fake_deliver(q, mr_place_imm((uint16_t)(q->base.turn - 1), 0), SIZE, 99);
    fake_deliver(q, mr_place_imm(q->base.turn, NUM), SIZE, 99);
    fake_deliver(q, mr_place_imm(q->base.turn, 2), SIZE - 1, 99);
    for (unsigned i = 3; i < NUM; i++)
        deliver(q, i, i);
    is_clear(2, q, 0, 3);
    ck_assert_uint_eq(q->unclean, 1);
    for (unsigned i = 0; i < 3; i++)
        deliver(q, i, i);
    is_control(3, MR_ZCOPY_LANDED, remote.serial);
    is_whole();
    close_first();
}
END_TEST

/* The queue pair is stopped, and given back when nothing is posted to it any more. */
START_TEST(closed_before_it_has_come)
{
    struct fake_qp *q = begin_recv();

    deliver(q, 0, 0);
    close_first();
    ck_assert(q->stopped && q->taken);
    ck_assert_uint_eq(peer->num_pending, 1);
    fake_stop(q);
    ck_assert(!q->taken);
    ck_assert_uint_eq(q->unclean, 1);
    ck_assert_uint_eq(peer->num_pending, 0);
    ck_assert_uint_eq(fake.num_controls, 1);
    ck_assert_uint_eq(fake.landed, 0);
}
END_TEST

/* Blocks of a broken subchannel come over another. */
START_TEST(a_subchannel_breaks)
{
    struct fake_qp *q = begin_recv();

    peer->num_now = peer->num_subs = 2;
    for (unsigned i = 0; i < 4; i++)
        deliver(q, i, i);
    fake_break(0);
    mr_zcopy_sub_broken(&peer->sub[0]);
    ck_assert(q->stopped);
    fake_stop(q);
    ck_assert(!q->taken);
    ck_assert_uint_eq(mr_bulk.starving, 1);
    mr_zcopy_serve();
    is_clear(2, &fake.qp[1][0], 4, NUM - 4);
    for (unsigned i = 4; i < NUM; i++)
        deliver(&fake.qp[1][0], i - 4, i);
    is_control(3, MR_ZCOPY_LANDED, remote.serial);
    is_whole();
    close_first();
}
END_TEST

/* A lost peer is not cleared again. */
START_TEST(a_peer_is_lost)
{
    struct fake_qp *q = begin_recv();

    mr_zcopy_peer_lost(peer);
    ck_assert(q->stopped);
    peer->error = -EIO;
    fake_stop(q);
    ck_assert_uint_eq(peer->num_pending, 0);
    mr_zcopy_serve();
    ck_assert_uint_eq(fake.num_controls, 1);
    mr_zcopy_free_peer(peer);
    ck_assert_ptr_null(fake.peer->dgram_recvs);
    ck_assert_uint_eq(mr_bulk.starving, 0);
}
END_TEST

/* A subchannel is given up after twenty sent batches of which nothing came. */
START_TEST(fruitless_subchannels)
{
    struct fake_qp *q = begin_recv();

    for (unsigned i = 1; i <= 5; i++) {
        q = q->taken ? q : &fake.qp[0][1];
        hear_written(q, remote.serial);
        mr_zcopy_poll(peer, UINT64_MAX);
        fake_stop(q);
        ck_assert_uint_eq(fake.peer->sub[0].fruitless, i);
        ck_assert_uint_eq(fake.peer->spurious, i);
        mr_zcopy_serve();
    }
    q = q->taken ? q : &fake.qp[0][1];
    deliver(q, 0, 0); /* something comes */
    hear_written(q, remote.serial);
    mr_zcopy_poll(peer, UINT64_MAX);
    fake_stop(q);
    ck_assert_uint_eq(fake.peer->sub[0].fruitless, 0);
    ck_assert_uint_eq(fake.peer->spurious, 0);
    for (unsigned i = 1; i <= 20; i++) {
        mr_zcopy_serve();
        q = q->taken ? q : &fake.qp[0][1];
        q = q->taken ? q : &fake.qp[0][0];
        ck_assert_uint_eq(fake.breaks, 0);
        hear_written(q, remote.serial);
        mr_zcopy_poll(peer, UINT64_MAX);
        fake_stop(q);
    }
    ck_assert_uint_eq(fake.breaks, 1);
    ck_assert_ptr_eq(fake.broken, &peer->sub[0]);
    close_first();
}
END_TEST

/* Receives that cannot be posted: nobody is cleared for them. */
START_TEST(posting_fails)
{
    fake.post_error = -ENOMEM;
    open_recv(0, LEN);
    mr_zcopy_serve();
    ck_assert_uint_eq(fake.num_controls, 0);
    ck_assert(fake.qp[0][0].stopped);
    fake.post_error = 0;
    fake_stop(&fake.qp[0][0]);
    ck_assert_uint_eq(fake.peer->num_late_batches, 0);
    mr_zcopy_serve();
    ck_assert_uint_eq(fake.num_controls, 1);
    close_first();
}
END_TEST

/* ---- the owners of queue pairs ----------------------------------------------------------------------------------- */

/* Messages are served in order; when a message is complete, its queue pair goes to the next waiting message. */
START_TEST(served_in_order)
{
    struct fake_qp *q = &fake.qp[0][0];
    uint32_t serial[3];

    fake.num_qps[0] = 1;
    for (unsigned r = 0; r < 3; r++) {
        open_recv(r, LEN);
        serial[r] = remote.serial;
    }
    ck_assert_uint_eq(mr_bulk.starving, 3);
    ck_assert_uint_eq(fake.peer->num_starving, 3);
    mr_zcopy_serve();
    is_control(1, MR_ZCOPY_CLEAR, serial[0]);
    ck_assert_uint_eq(mr_bulk.starving, 2);
    mr_zcopy_close(&region[1]); /* gives its place in the list back */
    ck_assert_uint_eq(mr_bulk.starving, 1);
    for (unsigned i = 0; i < NUM; i++)
        deliver(q, i, i);
    is_control(2, MR_ZCOPY_LANDED, serial[0]);
    ck_assert(mr_bulk.serve_due);
    mr_zcopy_serve();
    is_control(3, MR_ZCOPY_CLEAR, serial[2]);
    ck_assert_uint_eq(mr_bulk.starving, 0);
    ck_assert_ptr_null(mr_bulk.starved);
    mr_zcopy_close(&region[0]);
    mr_zcopy_close(&region[2]);
}
END_TEST

/* A silent sender loses its queue pair to another; its messages wait until it answers. */
START_TEST(recalled)
{
    struct fake_qp *q = &fake.qp[0][0];
    uint32_t serial[2];
    uint16_t turn;

    fake.num_qps[0] = 1;
    for (unsigned r = 0; r < 2; r++) {
        open_recv(r, LEN);
        serial[r] = remote.serial;
    }
    peer->heard_ns = fake.now_ns;
    mr_zcopy_serve();
    is_control(1, MR_ZCOPY_CLEAR, serial[0]);
    turn = q->base.turn;
    fake.now_ns += SILENCE_NS - 1;
    mr_zcopy_serve();
    ck_assert(!q->stopped);
    fake.now_ns += SILENCE_NS;
    mr_zcopy_serve();
    is_control(2, MR_ZCOPY_RECALL, serial[0]);
    ck_assert_int_eq(fake.control[1].hdr.tag, turn);
    ck_assert_uint_eq(fake.control[1].hdr.rreq, q->base.qpn);
    ck_assert(q->stopped);
    ck_assert(region[1].dgrams->asleep);
    fake_stop(q);
    ck_assert(region[0].dgrams->asleep);
    ck_assert_uint_eq(fake.peer->sub[0].fruitless, 0); /* nothing was sent */
    mr_zcopy_serve();
    ck_assert_uint_eq(fake.num_controls, 2); /* both are of the same sender */
    ck_assert_uint_eq(mr_bulk.starving, 0);
    ck_assert(!q->taken);
    hear_written(q, serial[0]);
    ck_assert_uint_eq(mr_bulk.starving, 2);
    mr_zcopy_serve();
    ck_assert_uint_eq(fake.num_controls, 3);
    mr_zcopy_close(&region[0]);
    mr_zcopy_close(&region[1]);
}
END_TEST

/* Nothing is taken from a sender that is heard, or whose datagrams come. */
START_TEST(not_recalled)
{
    fake.num_qps[0] = 1;
    open_recv(0, LEN);
    open_recv(1, LEN);
    mr_zcopy_serve();
    for (unsigned n = 0; n < 10; n++) {
        peer->heard_ns = fake.now_ns += SILENCE_NS;
        mr_zcopy_serve();
    }
    deliver(&fake.qp[0][0], 0, 0);
    for (unsigned n = 0; n < 10; n++) {
        fake.now_ns += SILENCE_NS;
        mr_zcopy_serve();
    }
    ck_assert(!fake.qp[0][0].stopped);
    ck_assert_uint_eq(fake.num_controls, 1);
    mr_zcopy_close(&region[0]);
    mr_zcopy_close(&region[1]);
}
END_TEST

/* Conditions for datagrams. */
START_TEST(which_messages)
{
    ck_assert(!mr_zcopy_can(peer, 16383));
    ck_assert(mr_zcopy_can(peer, 16384));
    peer->up = false;
    ck_assert(!mr_zcopy_can(peer, 16384));
    peer->up = true;
    fake.qp[0][0].taken = fake.qp[0][1].taken = true;
    ck_assert(!mr_zcopy_can(peer, 128 * 1024 - 1)); /* sent in packets */
    ck_assert(mr_zcopy_can(peer, 128 * 1024));      /* waits */
    fake.num_qps[0] = 1;
    ck_assert(!mr_zcopy_can(peer, 128 * 1024));
    fake.qp[0][0].taken = false;
    ck_assert(mr_zcopy_can(peer, 16384));
    mr_bulk.starving = 1; /* another message waits for that one */
    ck_assert(!mr_zcopy_can(peer, 16384));
    mr_bulk.starving = 0;
    peer->sub[0].closing = true;
    ck_assert(!mr_zcopy_can(peer, 1 << 20));
}
END_TEST

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

/* The size supported by all subchannels. */
START_TEST(size_of_datagrams)
{
    peer->num_now = 2;
    ck_assert_uint_eq(mr_zcopy_datagram_size(peer), SIZE);
    mr_verbs.rail[1].addr.mtu = 2;
    mr_verbs.rail[0].addr.mtu = 3;
    ck_assert_uint_eq(mr_zcopy_datagram_size(peer), 2048);
    mr_verbs.rail[0].addr.mtu = mr_verbs.rail[1].addr.mtu = 5;
    ck_assert_uint_eq(mr_zcopy_datagram_size(peer), MR_ZCOPY_SIZE_MAX);
    peer->num_now = 0;
    ck_assert_uint_eq(mr_zcopy_datagram_size(peer), 0);
    ck_assert_int_eq(mr_zcopy_open(&region[0], peer, &remote), -EAGAIN);
}
END_TEST

/* Each subchannel has its half of the message, and helps the other when its own is cleared. */
START_TEST(parts_of_two_subchannels)
{
    const struct mr_dgram_recv *recv;
    uint32_t from, to, most, half;
    unsigned other;

    peer->num_now = peer->num_subs = 2;
    open_recv(0, 256 * SIZE);
    recv = region[0].dgrams;
    half = 128;
    ck_assert_uint_eq(recv->parts, 2);
    ck_assert_uint_eq(recv->part[0].offset, 0);
    ck_assert_uint_eq(recv->part[0].len, half);
    ck_assert_uint_eq(recv->part[1].offset, half);
    ck_assert_uint_eq(recv->part[1].len, half);
    other = recv->part[1].sub;
    ck_assert(mr_dgram_recv_choose(recv, &peer->sub[other], &from, &to, &most));
    ck_assert_uint_eq(from, half);
    ck_assert_uint_eq(to, 2 * half);
    ck_assert_uint_eq(most, DEPTH);
    mr_blocks_remove(&region[0].dgrams->todo, (struct mr_block_run){half, half});
    ck_assert(mr_dgram_recv_choose(recv, &peer->sub[other], &from, &to, &most));
    ck_assert_uint_eq(from, 0);
    ck_assert_uint_eq(to, 2 * half);
    /* while a batch is under way, no more than half of the rest is taken, and nothing of a small rest */
    mr_zcopy_serve();
    ck_assert_ptr_nonnull(recv->batches);
    region[0].dgrams->todo.count = DEPTH;
    mr_config.stripe_min = DEPTH * SIZE / 4;
    ck_assert(mr_dgram_recv_choose(recv, &peer->sub[other], &from, &to, &most));
    ck_assert_uint_eq(most, DEPTH / 2);
    mr_config.stripe_min++;
    ck_assert(!mr_dgram_recv_choose(recv, &peer->sub[other], &from, &to, &most));
    close_first();
}
END_TEST

/* A batch has no more blocks than a queue pair has receives; a message has two batches on a subchannel. */
START_TEST(batches)
{
    fake.num_qps[0] = 4;
    mr_config.ud_pool = 8;
    open_recv(0, 64 * SIZE);
    mr_zcopy_serve();
    ck_assert_uint_eq(fake.num_controls, 2);
    is_clear(1, &fake.qp[0][0], 0, DEPTH);
    is_clear(2, &fake.qp[0][1], DEPTH, DEPTH);
    ck_assert_uint_eq(mr_dgram_batches_on(region[0].dgrams, &peer->sub[0]), 2);
    for (unsigned i = 0; i < DEPTH; i++)
        fake_deliver(&fake.qp[0][0], mr_place_imm(fake.qp[0][0].base.turn, i), SIZE, 1);
    ck_assert_uint_eq(fake.qp[0][0].clean, 1);
    is_clear(3, &fake.qp[0][0], 2 * DEPTH, DEPTH);
    /* while others wait for the last queue pair, the message has one */
    mr_config.ud_pool = 2;
    mr_bulk.starving++;
    for (unsigned i = 0; i < DEPTH; i++)
        fake_deliver(&fake.qp[0][1], mr_place_imm(fake.qp[0][1].base.turn, i), SIZE, 1);
    ck_assert(!fake.qp[0][1].taken);
    ck_assert_uint_eq(mr_dgram_batches_on(region[0].dgrams, &peer->sub[0]), 1);
    mr_bulk.starving--;
    close_first();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("zcopy_in");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, in_order);
    tcase_add_test(c, out_of_order);
    tcase_add_test(c, overtaken);
    tcase_add_test(c, lost);
    tcase_add_test(c, others_write_there);
    tcase_add_test(c, late_but_not_lost);
    tcase_add_test(c, strays);
    tcase_add_test(c, closed_before_it_has_come);
    tcase_add_test(c, a_subchannel_breaks);
    tcase_add_test(c, a_peer_is_lost);
    tcase_add_test(c, fruitless_subchannels);
    tcase_add_test(c, posting_fails);
    tcase_add_test(c, served_in_order);
    tcase_add_test(c, recalled);
    tcase_add_test(c, not_recalled);
    tcase_add_test(c, which_messages);
    tcase_add_test(c, size_of_datagrams);
    tcase_add_test(c, parts_of_two_subchannels);
    tcase_add_test(c, batches);
    return check_run(c, NULL);
}
