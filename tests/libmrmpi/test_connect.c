/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting, over a network that loses, doubles and delays datagrams: both sides end up connected to each other's queue
 * pairs, once, whoever began. Time is a number that the test moves.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/verbs/connect.h"

#define MS 1000000ull

struct side {
    struct mr_cm_conn c;
    unsigned prepared, connected, established, failed, rounds;
    int error, refuse;
    uint32_t remote_qpn, remote_psn, sl;
};

struct flying {
    unsigned to;
    uint64_t at;
    struct mr_cm_msg msg;
};

static struct side side[2];
static struct flying air[64];
static unsigned num_air;
static uint64_t now;
static int loss_percent, double_percent;
static unsigned sent;

static struct side *side_of(struct mr_cm_conn *c)
{
    return (struct side *)c;
}

static int prepare(struct mr_cm_conn *c, const struct mr_cm_msg *req, struct mr_cm_msg *out)
{
    struct side *s = side_of(c);

    if (s->refuse)
        return s->refuse;
    if (req && s->established == s->rounds)
        return -EAGAIN; /* nothing is closed: a request of an earlier round came late */
    s->prepared++;
    out->num_subs = 2;
    out->psn = 100 + c->self;
    for (unsigned i = 0; i < 2; i++)
        out->sub[i] = (struct mr_cm_sub){ .rail = (uint8_t)i, .sl = { (uint8_t)(c->self + 1), 9 },
                                          .qpn = { 10 * c->self + i, 10 * c->self + i } };
    return 0;
}

static int connect_qps(struct mr_cm_conn *c, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls)
{
    struct side *s = side_of(c);

    s->connected++;
    s->remote_qpn = remote->sub[1].qpn[0];
    s->remote_psn = remote->psn;
    s->sl = sls->sub[0].sl[0];
    return 0;
}

static void transmit(struct mr_cm_conn *c, const struct mr_cm_msg *msg, unsigned attempt)
{
    unsigned copies = (rand() % 100 >= loss_percent) + (rand() % 100 < double_percent);

    sent++;
    while (copies-- && num_air < 64)
        air[num_air++] = (struct flying){ .to = msg->to, .at = now + (uint64_t)(rand() % 5000) * 1000, .msg = *msg };
}

static void established(struct mr_cm_conn *c)
{
    side_of(c)->established++;
}

static void failed(struct mr_cm_conn *c, int error)
{
    side_of(c)->failed++;
    side_of(c)->error = error;
}

static const struct mr_cm_ops ops = { prepare, connect_qps, transmit, established, failed };

static void begin(int loss, int twice)
{
    memset(side, 0, sizeof side);
    num_air = sent = 0;
    now = 0;
    loss_percent = loss;
    double_percent = twice;
    side[0].rounds = side[1].rounds = 1;
    for (uint32_t i = 0; i < 2; i++)
        mr_cm_init(&side[i].c, &ops, 77, i, 1 - i, 10 * MS, 200);
}

/* Deliver what is due, in any order of sending; let timers run; until nothing flies and nobody waits, or the limit. */
static void run(uint64_t limit)
{
    while (now < limit) {
        now += MS / 2;
        for (unsigned i = 0; i < num_air;) {
            struct flying f = air[i];
            struct mr_cm_msg checked;

            if (f.at > now) {
                i++;
                continue;
            }
            air[i] = air[--num_air];
            ck_assert(mr_cm_check(&f.msg, MR_CM_LENGTH(f.msg.num_subs), 77, f.to, 2, &checked));
            mr_cm_receive(&side[f.to].c, &checked, now);
        }
        for (unsigned i = 0; i < 2; i++)
            mr_cm_tick(&side[i].c, now);
        if (!num_air && !mr_cm_waiting(&side[0].c) && !mr_cm_waiting(&side[1].c))
            return;
    }
}

static void expect_connected(void)
{
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(side[i].c.state, MR_CM_CONNECTED);
        ck_assert_uint_ge(side[i].prepared, side[i].rounds); /* the higher rank's once more where both began */
        ck_assert_uint_eq(side[i].connected, side[i].rounds);
        ck_assert_uint_eq(side[i].established, side[i].rounds);
        ck_assert_uint_eq(side[i].failed, 0);
        ck_assert_uint_eq(side[i].remote_qpn, 10 * (1 - i) + 1);
        ck_assert_uint_eq(side[i].remote_psn, 100 + 1 - i);
    }
    ck_assert_uint_eq(side[0].sl, side[1].sl); /* the initiator's, on both sides */
}

START_TEST(plain)
{
    srand(1);
    begin(0, 0);
    mr_cm_start(&side[_i].c, 5, now);
    mr_cm_start(&side[_i].c, 6, now); /* asking again changes nothing */
    run(1000 * MS);
    expect_connected();
    ck_assert_uint_eq(sent, 3);
    ck_assert_uint_eq(side[0].sl, (uint32_t)_i + 1);
}
END_TEST

START_TEST(simultaneous)
{
    srand(2);
    begin(0, 0);
    mr_cm_start(&side[0].c, 5, now);
    mr_cm_start(&side[1].c, 9, now);
    run(1000 * MS);
    expect_connected();
    ck_assert_uint_eq(side[0].sl, 1); /* the lower rank's request counted */
}
END_TEST

START_TEST(bad_network)
{
    srand((unsigned)_i);
    begin(60, 40);
    mr_cm_start(&side[0].c, 5, now);
    if (_i % 3 == 0)
        mr_cm_start(&side[1].c, 9, now);
    run(100000 * MS);
    expect_connected();
}
END_TEST

START_TEST(both_begin_at_different_times)
{
    srand((unsigned)_i + 1000);
    begin(30, 30);
    mr_cm_start(&side[1].c, 9, now);
    run((uint64_t)_i * MS);
    mr_cm_start(&side[0].c, 5, now);
    run(100000 * MS);
    expect_connected();
}
END_TEST

/* What was closed is opened again, by either side or by both, over the same bad network. */
START_TEST(rounds)
{
    srand((unsigned)_i + 2000);
    begin(40, 40);
    for (unsigned round = 1; round <= 10; round++) {
        side[0].rounds = side[1].rounds = round;
        for (unsigned i = 0; i < 2; i++) {
            mr_cm_again(&side[i].c, 200);
            if (rand() % 2 || (i == 1 && side[0].c.state == MR_CM_IDLE))
                mr_cm_start(&side[i].c, 10 * round, now);
        }
        run(now + 100000 * MS);
        expect_connected();
    }
}
END_TEST

START_TEST(traffic_stands_for_rtu)
{
    srand(3);
    begin(0, 0);
    mr_cm_start(&side[0].c, 5, now);
    loss_percent = 0;
    while (side[1].c.state != MR_CM_REP_SENT)
        run(now + MS / 2);
    loss_percent = 100; /* REP is on its way, RTU will not come */
    mr_cm_traffic(&side[1].c);
    ck_assert_int_eq(side[1].c.state, MR_CM_CONNECTED);
    mr_cm_traffic(&side[1].c);
    ck_assert_uint_eq(side[1].established, 1);
}
END_TEST

START_TEST(nobody_there)
{
    srand(4);
    begin(100, 0);
    mr_cm_start(&side[0].c, 5, now);
    run(1000000 * MS);
    ck_assert_int_eq(side[0].c.state, MR_CM_FAILED);
    ck_assert_uint_eq(side[0].failed, 1);
    ck_assert_int_eq(side[0].error, -ETIMEDOUT);
    ck_assert_uint_eq(sent, 200);
}
END_TEST

START_TEST(not_now)
{
    srand(6);
    begin(0, 0);
    side[0].refuse = -EAGAIN; /* its ports are down */
    mr_cm_start(&side[0].c, 1, now);
    run(now + 25 * MS);
    ck_assert_uint_eq(sent, 0);
    ck_assert(mr_cm_waiting(&side[0].c));
    mr_cm_start(&side[1].c, 2, now); /* not answered, though the lower rank's request would count */
    run(now + 5 * MS);
    ck_assert_uint_eq(sent, 1);
    side[0].refuse = 0;
    if (_i)
        mr_cm_resume(&side[0].c, now);
    run(now + 20 * MS);
    ck_assert_uint_le(sent, 5);
    expect_connected();
    mr_cm_resume(&side[0].c, now); /* changes nothing */
    ck_assert_int_eq(side[0].c.state, MR_CM_CONNECTED);
}
END_TEST

START_TEST(no_queue_pairs)
{
    begin(0, 0);
    side[0].refuse = -ENOMEM;
    mr_cm_start(&side[0].c, 5, now);
    ck_assert_int_eq(side[0].error, -ENOMEM);
    ck_assert_uint_eq(sent, 0);
}
END_TEST

START_TEST(strangers_are_not_heard)
{
    struct mr_cm_msg m = { .magic = MR_CM_MAGIC, .version = MR_CM_VERSION, .type = MR_CM_REQ, .num_subs = 1, .job = 77,
                           .from = 1, .to = 0 }, out, bad;

    ck_assert(mr_cm_check(&m, MR_CM_LENGTH(1), 77, 0, 2, &out));
    ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(1) - 1, 77, 0, 2, &out));
    ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(2), 77, 0, 2, &out));
    ck_assert(!mr_cm_check(&m, 3, 77, 0, 2, &out));
    ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(1), 78, 0, 2, &out));
    ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(1), 77, 1, 2, &out));
    ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(1), 77, 0, 1, &out));
    bad = m;
    bad.from = 0;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(1), 77, 0, 2, &out));
    bad = m;
    bad.type = 4;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(1), 77, 0, 2, &out));
    bad = m;
    bad.num_subs = 33;
    ck_assert(!mr_cm_check(&bad, sizeof bad, 77, 0, 2, &out));
    bad = m;
    bad.num_subs = 0;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(0), 77, 0, 2, &out));
    bad = m;
    bad.version = MR_CM_VERSION + 1;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(1), 77, 0, 2, &out));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("connect");
    TCase *t = tcase_create("connect");
    SRunner *sr;
    int bad;

    tcase_add_loop_test(t, plain, 0, 2);
    tcase_add_test(t, simultaneous);
    tcase_add_loop_test(t, bad_network, 0, 100);
    tcase_add_loop_test(t, both_begin_at_different_times, 0, 50);
    tcase_add_loop_test(t, rounds, 0, 100);
    tcase_add_test(t, traffic_stands_for_rtu);
    tcase_add_test(t, nobody_there);
    tcase_add_loop_test(t, not_now, 0, 2);
    tcase_add_test(t, no_queue_pairs);
    tcase_add_test(t, strangers_are_not_heard);
    suite_add_tcase(s, t);
    sr = srunner_create(s);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    bad = srunner_ntests_failed(sr);
    srunner_free(sr);
    return bad != 0;
}
