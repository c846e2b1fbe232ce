/* SPDX-License-Identifier: BSD-3-Clause */
/* Stripes with a subchannel that breaks, retires, or has no room. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/verbs/verbs.h"

#include "tests/check.h"
#include "tests/libmrmpi/fake_bulk.h"

enum { LEN = 1 << 20, HALF = LEN / 2 };

static unsigned char *buf;
static struct mr_peer *peer;

static void setup(void)
{
    fake_setup(MR_LINK_RC);
    peer = &fake.peer->base;
    buf = calloc(1, LEN);
}

static void begin(bool read)
{
    const struct mr_remote at = {.addr = 0x100000, .len = LEN, .num_keys = 2, .token = read ? 0 : 3};

    ck_assert_int_eq(transfer_to(peer, buf, LEN, &at, read), 0);
}

static void is_post(unsigned i, unsigned sub, uint64_t at, uint64_t len)
{
    ck_assert_uint_lt(i, fake.num_posts);
    ck_assert_uint_eq(fake.post[i].sub, sub);
    ck_assert_uint_eq(fake.post[i].raddr, 0x100000 + at);
    ck_assert_uint_eq(fake.post[i].len, len);
}

static void drain(unsigned sub)
{
    fake_break(sub);
    mr_stripes_drained(&peer->sub[sub]);
}

static void hear_told(uint64_t cookie, bool landed)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_TOLD, .rank = landed, .sreq = cookie};

    ck_assert(mr_stripes_control(peer, &hdr));
}

/* Data of a read before a break does not count: the read is repeated at once, in two steps. */
START_TEST(a_read_is_repeated_at_once)
{
    unsigned sub, other;

    begin(true);
    ck_assert_uint_eq(fake.num_posts, 2);
    sub = fake.post[0].sub;
    other = fake.post[1].sub;
    ck_assert_uint_ne(sub, other);
    is_post(0, sub, 0, HALF);
    is_post(1, other, HALF, HALF);
    ck_assert(!fake.post[0].has_imm && fake.post[0].read);
    drain(sub);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 0);
    ck_assert_uint_eq(fake.num_posts, 3);
    is_post(2, other, 0, HALF / 2);
    ck_assert(fake.post[2].read);
    fake_complete(2);
    ck_assert_uint_eq(fake.num_posts, 4);
    is_post(3, other, HALF / 2, HALF / 2);
    fake_complete(1);
    ck_assert_uint_eq(fake.reads_done, 0);
    fake_complete(3);
    ck_assert_uint_eq(fake.reads_done, 1);
    ck_assert_int_eq(fake.error, 0);
    ck_assert_uint_eq(fake.num_controls, 0);
}
END_TEST

/* Each break halves the steps, down to 64 KiB; a step that has arrived is not repeated. */
START_TEST(steps_get_shorter)
{
    static const struct {
        uint64_t at, len;
    } expected[] = {{0, HALF / 2}, {0, HALF / 4}, {HALF / 4, 65536}, {HALF / 4, 65536}};
    unsigned here, there;

    begin(true);
    here = fake.post[0].sub;
    there = fake.post[1].sub;
    fake_complete(1);
    for (unsigned n = 0; n < 4; n++) { /* to and fro */
        unsigned from = n & 1 ? there : here, to = n & 1 ? here : there;

        drain(from);
        is_post(fake.num_posts - 1, to, expected[n].at, expected[n].len);
        if (n == 1) { /* the first quarter is there, and the second one is posted */
            fake_complete(fake.num_posts - 1);
            is_post(fake.num_posts - 1, to, HALF / 4, HALF / 4);
        }
        peer->sub[from].state = MR_SUB_OPEN;
        peer->load[from].up = true;
    }
    for (uint64_t at = HALF / 4; at < HALF; at += 65536) {
        ck_assert_uint_eq(fake.reads_done, 0);
        is_post(fake.num_posts - 1, here, at, 65536);
        fake_complete(fake.num_posts - 1);
    }
    ck_assert_uint_eq(fake.reads_done, 1);
}
END_TEST

/* Half of a long stripe would be lost again by a rail that breaks often: steps have 64 MiB at most. */
START_TEST(steps_of_long_stripes)
{
    const uint64_t len = (uint64_t)1 << 30, step = 64 << 20;
    const struct mr_remote at = {.addr = 0x100000, .len = len, .num_keys = 2};
    unsigned other;

    ck_assert_int_eq(transfer_to(peer, buf, len, &at, true), 0);
    other = fake.post[1].sub;
    is_post(0, fake.post[0].sub, 0, len / 2);
    drain(fake.post[0].sub);
    for (uint64_t done = 0; done < len / 2; done += step) {
        is_post(fake.num_posts - 1, other, done, step);
        fake_complete(fake.num_posts - 1);
    }
    ck_assert_uint_eq(fake.reads_done, 0);
    fake_complete(1);
    ck_assert_uint_eq(fake.reads_done, 1);
}
END_TEST

/* A write may have landed: the peer is asked once its end is gone, and the stripe is written again if it has not. */
START_TEST(a_write_waits_for_gone_and_told)
{
    struct mr_sub *sub;
    struct mr_stripe_op *s;
    uint32_t imm;

    begin(false);
    ck_assert(fake.post[0].has_imm && fake.post[1].has_imm);
    sub = &peer->sub[fake.post[0].sub];
    imm = fake.post[0].imm;
    s = &fake.peer->transfers->stripe[0];
    drain(fake.post[0].sub);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 1);
    ck_assert_int_eq(s->state, MR_STRIPE_UNCONFIRMED);
    ck_assert(mr_stripes_use(sub));
    ck_assert(mr_stripes_confirm(sub)); /* the peer's end is not gone */
    ck_assert_uint_eq(fake.num_controls, 0);
    hear_told((uintptr_t)s, false); /* no question was asked */
    ck_assert_int_eq(s->state, MR_STRIPE_UNCONFIRMED);
    sub->peer_from = (uint8_t)(sub->generation + 1);
    ck_assert(mr_stripes_confirm(sub));
    ck_assert_uint_eq(fake.num_controls, 1);
    ck_assert_uint_eq(fake.control[0].hdr.kind, MR_CONTROL_ASK);
    ck_assert_uint_eq(fake.control[0].hdr.ctx, imm);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert(!mr_stripes_confirm(sub));
    ck_assert_uint_eq(fake.num_controls, 1); /* once */
    hear_told(fake.control[0].hdr.sreq, false);
    ck_assert_uint_eq(fake.num_posts, 3);
    is_post(2, fake.post[1].sub, 0, HALF / 2);
    ck_assert(!fake.post[2].has_imm); /* the notification comes with the last step */
    fake_complete(2);
    ck_assert_uint_eq(fake.num_posts, 4);
    ck_assert(fake.post[3].has_imm);
    ck_assert_uint_eq(fake.post[3].imm, imm);
    fake_complete(3);
    fake_complete(1);
    ck_assert_uint_eq(fake.puts_sent, 1);
    hear_told((uintptr_t)s, true); /* finds nothing */
    ck_assert_uint_eq(fake.puts_sent, 1);
}
END_TEST

START_TEST(a_write_that_has_landed)
{
    struct mr_sub *sub;

    begin(false);
    sub = &peer->sub[fake.post[0].sub];
    drain(fake.post[0].sub);
    sub->peer_from = (uint8_t)(sub->generation + 1);
    mr_stripes_confirm(sub);
    fake_complete(1);
    ck_assert_uint_eq(fake.puts_sent, 0);
    hear_told(fake.control[0].hdr.sreq, true);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.puts_sent, 1);
}
END_TEST

/* The other side of the question: a stripe that has come, or that no target awaits, has landed. */
START_TEST(an_answer)
{
    struct mr_hdr ask = {.kind = MR_CONTROL_ASK, .sreq = 99, .tag = 1};
    int owner;
    uint32_t token;
    bool stray;

    ck_assert_int_eq(mr_target_open(&mr_bulk.targets, &owner, &token), 0);
    ck_assert_ptr_null(mr_target_arrived(&mr_bulk.targets, mr_target_imm(token, 0, 2), &stray));
    for (unsigned i = 0; i < 3; i++) {
        if (i == 2)
            mr_target_close(&mr_bulk.targets, token);
        ask.ctx = mr_target_imm(token, i ? 1 : 0, 2);
        ck_assert(mr_stripes_control(peer, &ask));
        ck_assert_uint_eq(fake.control[i].hdr.kind, MR_CONTROL_TOLD);
        ck_assert_uint_eq(fake.control[i].hdr.sreq, 99);
        ck_assert_int_eq(fake.control[i].hdr.rank, i != 1);
    }
    ask.tag = 77; /* no such subchannel */
    ck_assert(mr_stripes_control(peer, &ask));
    ck_assert_uint_eq(fake.num_controls, 3);
    ask.kind = MR_CONTROL_GONE;
    ck_assert(!mr_stripes_control(peer, &ask));
    mr_targets_free(&mr_bulk.targets);
}
END_TEST

/* A stripe without any post moves without a question. */
START_TEST(what_waited_moves_at_once)
{
    fake.room[0] = 0;
    begin(false);
    ck_assert_uint_eq(fake.num_posts, 1);
    ck_assert_uint_eq(fake.backlogs, 1);
    ck_assert_ptr_nonnull(fake.peer->sub[0].waiting);
    drain(0);
    ck_assert_ptr_null(fake.peer->sub[0].waiting);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 0);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.post[1].sub, 1);
    ck_assert_uint_eq(fake.peer->sub[0].queued, 0);
    ck_assert_uint_eq(fake.peer->sub[1].queued, LEN);
}
END_TEST

/* The same from a retiring subchannel; but a partly posted stripe stays. */
START_TEST(a_subchannel_retires)
{
    mr_verbs.rail[0].max_msg = 65536;
    fake.room[0] = 1;
    begin(false);
    peer->sub[0].closing = true;
    mr_stripes_move(peer);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_ptr_nonnull(fake.peer->sub[0].waiting);
    fake.room[0] = 1000;
    ck_assert(!mr_stripes_resume(peer));
    ck_assert_uint_eq(fake.num_posts, 1 + HALF / 65536);
    fake.room[0] = 0;
    peer->sub[0].closing = false;
    begin(false);
    peer->sub[0].closing = true;
    peer->load[0].up = false;
    mr_stripes_move(peer);
    ck_assert_ptr_null(fake.peer->sub[0].waiting);
    ck_assert_uint_eq(fake.post[fake.num_posts - 1].sub, 1);
    ck_assert_uint_eq(fake.post[fake.num_posts - 2].sub, 1);
}
END_TEST

/* Without any subchannel stripes wait, unassigned, and the peer is connected for them. */
START_TEST(nothing_is_up)
{
    begin(false);
    fake_break(1);
    drain(0);
    mr_stripes_drained(&peer->sub[1]);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 2);
    for (unsigned i = 0; i < 2; i++)
        peer->sub[i].peer_from = (uint8_t)(peer->sub[i].generation + 1);
    mr_stripes_confirm(&peer->sub[0]);
    hear_told(fake.control[0].hdr.sreq, false);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_ptr_nonnull(fake.peer->unassigned);
    ck_assert(peer->needed);
    ck_assert_uint_eq(fake.needs, 1);
    peer->sub[1].state = MR_SUB_OPEN;
    peer->load[1].up = true;
    ck_assert(!mr_stripes_resume(peer));
    ck_assert(!peer->needed);
    ck_assert_ptr_null(fake.peer->unassigned);
    ck_assert_uint_eq(fake.num_posts, 3);
    is_post(2, 1, 0, HALF / 2);
}
END_TEST

/* ---- attached memory --------------------------------------------------------------------------------------------- */

static struct mr_vc_move move;
static unsigned moves_done;
static int move_error;

static void move_done(struct mr_vc_move *m, int error)
{
    ck_assert_ptr_eq(m, &move);
    moves_done++;
    move_error = error;
}

static void begin_move(bool write)
{
    const struct mr_remote at = {.addr = 0x200000, .len = LEN, .num_keys = 2};

    move = (struct mr_vc_move){.done = move_done, .attached = true};
    moves_done = 0;
    ck_assert_int_eq(mr_net_move(vc_to(peer), buf, LEN, &at, write, &move), 0);
}

static void refuse(unsigned sub)
{
    peer->sub[sub].refused = true;
    drain(sub);
    ck_assert(!peer->sub[sub].refused);
}

/* Withdrawn: nothing is repeated. Nothing of a write may be on its way any more at its end. */
START_TEST(withdrawn_memory)
{
    bool write = _i;
    struct mr_sub *sub;

    begin_move(write);
    ck_assert_uint_eq(fake.num_posts, 2);
    sub = &peer->sub[fake.post[0].sub];
    refuse(fake.post[0].sub);
    fake_complete(1);
    if (write) {
        ck_assert_uint_eq(moves_done, 0);
        ck_assert(mr_stripes_confirm(sub)); /* the peer's end is not gone */
        ck_assert_uint_eq(moves_done, 0);
        sub->peer_from = (uint8_t)(sub->generation + 1);
        mr_stripes_confirm(sub);
    }
    ck_assert_uint_eq(moves_done, 1);
    ck_assert_int_eq(move_error, -EACCES);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.lost, 0);
    ck_assert_uint_eq(fake.peer->num_refused, 0);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 0);
    ck_assert_ptr_null(fake.peer->transfers);
}
END_TEST

/* Other transfers over the subchannel are repeated. */
START_TEST(others_are_not_refused)
{
    unsigned sub, other;

    begin(true);
    begin_move(false);
    ck_assert_uint_eq(fake.num_posts, 4);
    sub = fake.post[0].sub;
    other = fake.post[1].sub;
    refuse(sub);
    ck_assert_uint_eq(fake.num_posts, 5);
    is_post(4, other, 0, HALF / 2);
    ck_assert_uint_eq(moves_done, 0);
    for (unsigned i = 1; i < fake.num_posts; i++)
        if (fake.post[i].sub == other)
            fake_complete(i);
    ck_assert_uint_eq(moves_done, 1);
    ck_assert_int_eq(move_error, -EACCES);
    ck_assert_uint_eq(fake.reads_done, 1);
    ck_assert_int_eq(fake.error, 0);
}
END_TEST

/* Nothing that may be refused was under way: an error that any other link would have, too. */
START_TEST(refused_for_no_reason)
{
    begin(true);
    refuse(fake.post[0].sub);
    ck_assert_uint_eq(fake.lost, 1);
    ck_assert_uint_eq(fake.num_posts, 2);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("moves");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, a_read_is_repeated_at_once);
    tcase_add_test(c, steps_get_shorter);
    tcase_add_test(c, steps_of_long_stripes);
    tcase_add_test(c, a_write_waits_for_gone_and_told);
    tcase_add_test(c, a_write_that_has_landed);
    tcase_add_test(c, an_answer);
    tcase_add_test(c, what_waited_moves_at_once);
    tcase_add_test(c, a_subchannel_retires);
    tcase_add_test(c, nothing_is_up);
    tcase_add_loop_test(c, withdrawn_memory, 0, 2);
    tcase_add_test(c, others_are_not_refused);
    tcase_add_test(c, refused_for_no_reason);
    return check_run(c, NULL);
}
