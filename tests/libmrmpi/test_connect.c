/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting, over a network that loses, doubles and delays datagrams: both sides end up connected to each other's
 * queue pairs, once, whichever began. Time is a number moved by the test.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/conn/cm/conn.h"
#include "tests/check.h"

#define MS 1000000ull

struct side {
    struct mr_cm_conn c;
    unsigned prepared, connected, established, failed, handshakes;
    int error, refuse, refuse_req, refuse_connect;
    unsigned later; /* number of requests answered with -EAGAIN */
    unsigned first; /* first rail requested or offered */
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
static unsigned sent, rejections, full;

static struct side *side_of(struct mr_cm_conn *c)
{
    return (struct side *)c;
}

static int prepare(struct mr_cm_conn *c, const struct mr_cm_msg *req, struct mr_cm_msg *out)
{
    struct side *s = side_of(c);

    if (s->refuse)
        return s->refuse;
    if (req && s->later) {
        s->later--;
        return -EAGAIN;
    }
    if (req && s->refuse_req)
        return s->refuse_req;
    if (req && s->established == s->handshakes)
        return -EAGAIN; /* nothing is closed: a request of an earlier handshake came late */
    s->prepared++;
    out->num_subs = 2;
    out->psn = 100 + c->self;
    for (unsigned i = 0; i < 2; i++)
        out->sub[i] = (struct mr_cm_sub){.rail = (uint8_t)(s->first + i),
                                         .remote = (uint8_t)(s->first + i),
                                         .level = {{.qpn = 10 * c->self + i, .sl = (uint8_t)(c->self + 1)}}};
    return 0;
}

static int connect_qps(struct mr_cm_conn *c, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls)
{
    struct side *s = side_of(c);

    if (s->refuse_connect)
        return s->refuse_connect;
    s->connected++;
    s->remote_qpn = remote->sub[1].level[0].qpn;
    s->remote_psn = remote->psn;
    s->sl = sls->sub[0].level[0].sl;
    return 0;
}

static int transmit(struct mr_cm_conn *c, const struct mr_cm_msg *msg, unsigned attempt)
{
    unsigned copies = (rand() % 100 >= loss_percent) + (rand() % 100 < double_percent);

    if (full) {
        full--;
        return -EAGAIN;
    }
    sent++;
    rejections += msg->type == MR_CM_REJ;
    while (copies-- && num_air < 64)
        air[num_air++] = (struct flying){.to = msg->to, .at = now + (uint64_t)(rand() % 5000) * 1000, .msg = *msg};
    return 0;
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

static const struct mr_cm_ops ops = {prepare, connect_qps, transmit, established, failed};

static void begin(int loss, int twice)
{
    for (unsigned i = 0; i < 2; i++)
        mr_cm_free(&side[i].c);
    memset(side, 0, sizeof side);
    num_air = sent = rejections = full = 0;
    now = 0;
    loss_percent = loss;
    double_percent = twice;
    side[0].handshakes = side[1].handshakes = 1;
    for (uint32_t i = 0; i < 2; i++)
        mr_cm_init(&side[i].c, &ops, 77, i, 1 - i, 10 * MS, 200);
}

/*
 * Delivers due datagrams, in any order of sending, and runs timers, until nothing is in flight and no side waits, or
 * the limit.
 */
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
        ck_assert_uint_ge(side[i].prepared, side[i].handshakes); /* the higher rank's once more where both began */
        ck_assert_uint_eq(side[i].connected, side[i].handshakes);
        ck_assert_uint_eq(side[i].established, side[i].handshakes);
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

/* The lower rank's request took a dead way; the higher one's comes later, over another, and is answered. */
START_TEST(request_that_yields)
{
    struct mr_cm_msg req = {.magic = MR_CM_MAGIC,
                            .version = MR_CM_VERSION,
                            .type = MR_CM_REQ,
                            .num_subs = 1,
                            .job = 77,
                            .from = 1,
                            .to = 0,
                            .id = 9};

    begin(0, 0);
    side[0].c.yields = _i;
    mr_cm_start(&side[0].c, 5, now);
    num_air = 0;
    mr_cm_receive(&side[0].c, &req, now + 10000); /* both began at the same time */
    ck_assert_int_eq(side[0].c.state, MR_CM_REQ_SENT);
    num_air = 0;
    req.id++;
    mr_cm_receive(&side[0].c, &req, now + 2 * MS);
    ck_assert_int_eq(side[0].c.state, _i ? MR_CM_REP_SENT : MR_CM_REQ_SENT);
    begin(0, 0);
    side[0].c.yields = _i;
    mr_cm_start(&side[0].c, 5, now);
    mr_cm_receive(&side[0].c, &req, now + 10000);
    ck_assert_int_eq(side[0].c.state, MR_CM_REQ_SENT);
    mr_cm_receive(&side[0].c, &req, now + 20000); /* the same again: ours has not come there */
    ck_assert_int_eq(side[0].c.state, _i ? MR_CM_REP_SENT : MR_CM_REQ_SENT);
    begin(0, 0);
    side[0].c.heard = true; /* of a finished handshake */
    side[0].c.heard_id = req.id;
    side[0].c.yields = _i;
    mr_cm_start(&side[0].c, 5, now);
    mr_cm_receive(&side[0].c, &req, now + 10000);
    ck_assert_int_eq(side[0].c.state, MR_CM_REQ_SENT);
    begin(0, 0);
    mr_cm_start(&side[0].c, 5, now);
    mr_cm_abandon(&side[0].c);
    ck_assert_int_eq(side[0].c.state, MR_CM_FAILED);
    ck_assert_uint_eq(side[0].failed, 1);
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

/* A closed subchannel is opened again, by either side or by both, over the same bad network. */
START_TEST(handshakes)
{
    srand((unsigned)_i + 2000);
    begin(40, 40);
    for (unsigned n = 1; n <= 10; n++) {
        side[0].handshakes = side[1].handshakes = n;
        for (unsigned i = 0; i < 2; i++) {
            mr_cm_again(&side[i].c, 200);
            if (rand() % 2 || (i == 1 && side[0].c.state == MR_CM_IDLE))
                mr_cm_start(&side[i].c, 10 * n, now);
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

/* Side 0 is connected, its RTU is lost. */
static void connect_without_rtu(void)
{
    begin(0, 0);
    mr_cm_start(&side[0].c, 1, 0);
    while (side[0].c.state != MR_CM_CONNECTED && now < 1000 * MS) {
        loss_percent = side[1].c.state == MR_CM_REP_SENT ? 100 : 0;
        run(now + MS / 2);
    }
    ck_assert_int_eq(side[1].c.state, MR_CM_REP_SENT);
    num_air = 0;
    loss_percent = 0;
}

/* The RTU of the first handshake is lost; the next one, for other rails, says as much, and may be refused. */
START_TEST(the_next_handshake_stands_for_rtu)
{
    connect_without_rtu();
    side[0].handshakes = side[1].handshakes = 2;
    side[0].first = side[1].first = 2;
    side[1].refuse_req = -EDQUOT;
    mr_cm_again(&side[0].c, 200);
    mr_cm_start(&side[0].c, 2, now);
    run(now + 1000 * MS);
    ck_assert_uint_eq(side[1].established, 1);
    ck_assert_uint_eq(side[1].failed, 1);
    ck_assert_uint_eq(side[0].failed, 1);
    ck_assert_uint_eq(side[0].c.reason, MR_CM_ENOUGH);
}
END_TEST

/* The way of the next handshake is dead: the answer to the first is repeated, and gets its RTU again. */
START_TEST(rtu_of_the_one_before)
{
    connect_without_rtu();
    side[0].handshakes = 2;
    mr_cm_again(&side[0].c, 200);
    mr_cm_start(&side[0].c, 2, now);
    while (side[1].c.state == MR_CM_REP_SENT && now < 1000 * MS) {
        for (unsigned i = 0; i < num_air;)
            if (air[i].msg.type == MR_CM_REQ)
                air[i] = air[--num_air];
            else
                i++;
        run(now + MS / 2);
    }
    ck_assert_uint_eq(side[1].established, 1);
    ck_assert_uint_eq(side[1].failed, 0);
    ck_assert_uint_eq(rejections, 0);
}
END_TEST

/* After a handshake was given up, the next request does not confirm it, whether for the same rails or for others. */
START_TEST(a_request_after_one_given_up_is_no_rtu)
{
    begin(0, 0);
    mr_cm_start(&side[0].c, 1, 0);
    loss_percent = 0;
    while (side[1].c.state != MR_CM_REP_SENT && now < 1000 * MS)
        run(now + MS / 2);
    num_air = 0;
    ck_assert_uint_eq(side[0].established, 0);
    mr_cm_free(&side[0].c);
    mr_cm_init(&side[0].c, &ops, 77, 0, 1, 10 * MS, 200);
    side[0].handshakes = side[1].handshakes = 2;
    side[0].first = side[1].first = _i ? 2 : 0;
    mr_cm_start(&side[0].c, 2, now);
    run(now + 1000 * MS);
    ck_assert_uint_eq(side[0].established, 1);
    ck_assert_uint_eq(side[1].established, 1);
    ck_assert_uint_eq(side[1].connected, 2);
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
    mr_cm_start(&side[1].c, 2, now); /* asked to come later, though the lower rank's request would count */
    run(now + 5 * MS);
    ck_assert_uint_le(sent, 3);
    side[0].refuse = 0;
    if (_i)
        mr_cm_resume(&side[0].c, now);
    run(now + 20 * MS);
    ck_assert_uint_le(sent, 12);
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

/* The responder says why, and the initiator knows it long before its attempts are used up, whatever is
 * lost or doubled. */
START_TEST(rejected)
{
    static const struct {
        int error;
        enum mr_cm_reason reason;
        int told;
    } cases[] = {
        {-EHOSTUNREACH, MR_CM_NO_RAIL, -EHOSTUNREACH},
        {-ENOMEM, MR_CM_NO_ROOM, -ENOMEM},
        {-EMFILE, MR_CM_NO_ROOM, -ENOMEM},
        {-ENETDOWN, MR_CM_PORT_DOWN, -ENETDOWN},
        {-ECONNREFUSED, MR_CM_GIVEN_UP, -ECONNREFUSED},
        {-EIO, MR_CM_OTHER, -ECONNREFUSED},
        {-EDQUOT, MR_CM_ENOUGH, -EDQUOT},
    };
    unsigned k = (unsigned)_i % 7, from = (unsigned)_i & 1;

    srand((unsigned)_i + 3000);
    begin(_i < 14 ? 0 : 50, _i < 14 ? 0 : 50);
    side[!from].refuse_req = cases[k].error;
    mr_cm_start(&side[from].c, 5, now);
    run(100000 * MS);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(side[i].c.state, MR_CM_FAILED);
        ck_assert_uint_eq(side[i].failed, 1);
        ck_assert_uint_eq(side[i].c.reason, cases[k].reason);
        ck_assert_uint_eq(side[i].c.detail, (unsigned)-cases[k].error);
        ck_assert_uint_eq(side[i].connected + side[i].established, 0);
    }
    ck_assert_int_eq(side[from].error, cases[k].told);
    ck_assert(side[from].c.rejected && !side[!from].c.rejected);
    ck_assert_int_eq(side[!from].error, cases[k].error);
    if (_i < 12)
        ck_assert_uint_eq(sent, 2);
}
END_TEST

/* Both begin, and the side in charge cannot: the higher rank's message counts. */
START_TEST(rejected_when_both_begin)
{
    srand((unsigned)_i + 4000);
    begin(_i ? 40 : 0, _i ? 40 : 0);
    side[1].refuse_req = -ENOMEM;
    mr_cm_start(&side[0].c, 5, now);
    mr_cm_start(&side[1].c, 9, now);
    run(100000 * MS);
    ck_assert_int_eq(side[0].c.state, MR_CM_FAILED);
    ck_assert_int_eq(side[1].c.state, MR_CM_FAILED);
    ck_assert_uint_ge(side[0].failed, 1); /* a request that came late was a handshake of its own */
    ck_assert_uint_ge(side[1].failed, 1);
    if (!_i)
        ck_assert_int_eq(side[0].error, -ENOMEM);
}
END_TEST

/* The initiator cannot use the answer: the responder stops waiting. */
START_TEST(initiator_cannot_connect)
{
    srand((unsigned)_i + 5000);
    begin(_i ? 40 : 0, _i ? 40 : 0);
    side[0].refuse_connect = -ENOMEM;
    mr_cm_start(&side[0].c, 5, now);
    run(100000 * MS);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(side[i].c.state, MR_CM_FAILED);
        ck_assert_int_eq(side[i].error, -ENOMEM);
        ck_assert_uint_eq(side[i].failed, 1);
    }
    ck_assert(side[1].c.rejected);
}
END_TEST

/* "Later" costs no attempt, and only as long as the pauses take; with bad luck on both sides at once too. */
START_TEST(later)
{
    srand((unsigned)_i + 6000);
    begin(_i < 2 ? 0 : 40, _i < 2 ? 0 : 40);
    for (unsigned i = 0; i < 2; i++)
        side[i].c.attempts_max = _i < 2 ? 1 : 200;
    side[0].later = side[1].later = 5;
    mr_cm_start(&side[_i & 1].c, 5, now);
    if (_i % 3 == 2)
        mr_cm_start(&side[!(_i & 1)].c, 9, now);
    run(100000 * MS);
    expect_connected();
    if (_i < 2) {
        ck_assert_uint_eq(rejections, 5);
        ck_assert_uint_lt(now, 100 * MS);
    }
}
END_TEST

/* A bounded handshake does not go on without end. */
START_TEST(later_for_ever)
{
    srand(7);
    begin(0, 0);
    side[1].later = 1000000;
    mr_cm_start(&side[0].c, 5, now);
    run(100000 * MS);
    ck_assert_int_eq(side[0].c.state, MR_CM_FAILED);
    ck_assert_int_eq(side[0].error, -ETIMEDOUT);
    ck_assert_uint_lt(now, 5000 * MS);
    ck_assert_int_eq(side[1].c.state, MR_CM_IDLE);
}
END_TEST

/* A rejection of an earlier handshake, or an unrequested rejection, changes nothing. */
START_TEST(late_rejection)
{
    struct mr_cm_msg rej = {.magic = MR_CM_MAGIC,
                            .version = MR_CM_VERSION,
                            .type = MR_CM_REJ,
                            .job = 77,
                            .from = 1,
                            .to = 0,
                            .id = 4,
                            .reason = MR_CM_NO_ROOM};

    srand(8);
    begin(0, 0);
    mr_cm_receive(&side[0].c, &rej, now);
    ck_assert_int_eq(side[0].c.state, MR_CM_IDLE);
    mr_cm_start(&side[0].c, 5, now);
    mr_cm_receive(&side[0].c, &rej, now);
    ck_assert_int_eq(side[0].c.state, MR_CM_REQ_SENT);
    run(100000 * MS);
    rej.id = 5;
    mr_cm_receive(&side[0].c, &rej, now);
    rej.reason = MR_CM_LATER;
    mr_cm_receive(&side[0].c, &rej, now);
    expect_connected();
}
END_TEST

/* No room to send is no attempt: the datagram goes at the next tick, not after the time-out. */
START_TEST(no_room_to_send)
{
    srand(9);
    begin(0, 0);
    side[0].c.attempts_max = side[1].c.attempts_max = 1;
    full = 6;
    mr_cm_start(&side[0].c, 5, now);
    run(1000 * MS);
    expect_connected();
    ck_assert_uint_lt(now, 20 * MS);
    ck_assert(!side[0].c.smooth);
    begin(0, 0);
    mr_cm_start(&side[0].c, 5, now);
    run(1000 * MS);
    ck_assert(side[0].c.smooth);
}
END_TEST

/* A request that went to a place where the peer is no longer. */
START_TEST(astray)
{
    srand(11);
    begin(100, 0);
    side[0].c.attempts_max = side[1].c.attempts_max = 1;
    mr_cm_repeat(&side[0].c);
    ck_assert_int_eq(side[0].c.state, MR_CM_IDLE);
    mr_cm_start(&side[0].c, 5, now);
    loss_percent = 0;
    mr_cm_repeat(&side[0].c);
    run(1000 * MS);
    expect_connected();
    mr_cm_repeat(&side[0].c);
    mr_cm_tick(&side[0].c, now);
    ck_assert_int_eq(side[0].c.state, MR_CM_CONNECTED);
    ck_assert_uint_eq(sent, 4);
}
END_TEST

/* Without a bound a peer that computes for an hour is waited for; no more than the slowest pace asks. */
START_TEST(silent_for_an_hour)
{
    srand(10);
    begin(0, 0);
    side[0].c.attempts_max = 0;
    loss_percent = 100;
    mr_cm_start(&side[0].c, 5, now);
    run(3600 * 1000 * MS);
    ck_assert_int_eq(side[0].c.state, MR_CM_REQ_SENT);
    ck_assert_uint_lt(sent, 3600 * 1000 / 160 + 20);
    loss_percent = 0;
    run(now + 200 * MS);
    expect_connected();
}
END_TEST

/* Each side tells the other that their versions differ, and both give up at once. */
START_TEST(other_version)
{
    struct mr_cm_msg req = {.magic = MR_CM_MAGIC,
                            .version = MR_CM_VERSION + 1,
                            .type = MR_CM_REQ,
                            .num_subs = 900,
                            .job = 77,
                            .from = 1,
                            .to = 0,
                            .id = 3},
                     out;

    begin(0, 0);
    ck_assert(!mr_cm_check(&req, 24, 77, 0, 2, &out));
    ck_assert(mr_cm_check_foreign(&req, 24, 77, 0, 2, &out));
    ck_assert(mr_cm_check_foreign(&req, sizeof req, 77, 0, 2, &out));
    ck_assert(!mr_cm_check_foreign(&req, 23, 77, 0, 2, &out));
    ck_assert(!mr_cm_check_foreign(&req, 24, 78, 0, 2, &out));
    ck_assert(!mr_cm_check_foreign(&req, 24, 77, 1, 2, &out));
    mr_cm_receive_foreign(&side[0].c, &out);
    mr_cm_receive_foreign(&side[0].c, &out); /* asks again: our answer was lost */
    ck_assert_int_eq(side[0].c.state, MR_CM_FAILED);
    ck_assert_int_eq(side[0].error, -EPROTONOSUPPORT);
    ck_assert_uint_eq(side[0].failed, 1);
    ck_assert_uint_eq(side[0].c.detail, MR_CM_VERSION + 1);
    ck_assert_uint_eq(rejections, 2);
    ck_assert_uint_eq(air[0].msg.id, 3);
    ck_assert_uint_eq(air[0].msg.detail, MR_CM_VERSION);
    out.type = MR_CM_REJ;
    mr_cm_receive_foreign(&side[0].c, &out); /* no answer to an answer */
    ck_assert_uint_eq(rejections, 2);
    req.version = MR_CM_VERSION;
    ck_assert(!mr_cm_check_foreign(&req, 24, 77, 0, 2, &out));
}
END_TEST

START_TEST(strangers_are_not_heard)
{
    struct mr_cm_msg m = {.magic = MR_CM_MAGIC,
                          .version = MR_CM_VERSION,
                          .type = MR_CM_REQ,
                          .num_subs = 1,
                          .job = 77,
                          .from = 1,
                          .to = 0},
                     out, bad;

    ck_assert(mr_cm_check(&m, MR_CM_LENGTH(1), 77, 0, 2, &out));
    m.done = 4;
    m.id = 5;
    ck_assert(mr_cm_check(&m, MR_CM_LENGTH(1), 77, 0, 2, &out));
    m.done = 5; /* cannot have been established before its beginning */
    ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(1), 77, 0, 2, &out));
    m.done = 4;
    m.type = MR_CM_REP;
    ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(1), 77, 0, 2, &out));
    m.type = MR_CM_REQ;
    m.done = m.id = 0;
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
    bad.type = MR_CM_HERE + 1;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(1), 77, 0, 2, &out));
    bad = m;
    bad.reason = MR_CM_NO_ROOM;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(1), 77, 0, 2, &out));
    bad = m;
    bad.type = MR_CM_REJ;
    bad.num_subs = 0;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(0), 77, 0, 2, &out));
    bad.reason = MR_CM_REASONS;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(0), 77, 0, 2, &out));
    bad.reason = MR_CM_LATER;
    ck_assert(mr_cm_check(&bad, MR_CM_LENGTH(0), 77, 0, 2, &out));
    bad.by_initiator = 2;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(0), 77, 0, 2, &out));
    bad.by_initiator = 0;
    bad.detail = 4096;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(0), 77, 0, 2, &out));
    bad = m;
    bad.num_subs = 33;
    ck_assert(!mr_cm_check(&bad, sizeof bad, 77, 0, 2, &out));
    bad = m;
    bad.num_subs = 0;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(0), 77, 0, 2, &out));
    bad = m;
    bad.rail = MR_CM_PORTS_MAX;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(1), 77, 0, 2, &out));
    bad = m;
    bad.version = MR_CM_VERSION + 1;
    ck_assert(!mr_cm_check(&bad, MR_CM_LENGTH(1), 77, 0, 2, &out));
}
END_TEST

/* Questions and answers name one subchannel, questions also ways in doubt. They concern no handshake. */
START_TEST(questions_are_no_part_of_a_handshake)
{
    struct mr_cm_sub way = {.rail = 1, .remote = 2, .path = 3, .kind = 4};
    struct mr_cm_msg m, out;

    for (enum mr_cm_type type = MR_CM_ASK; type <= MR_CM_HERE; type++) {
        mr_cm_make_question(&m, type, 77, 1, 0, 9, &way);
        ck_assert(mr_cm_check(&m, MR_CM_LENGTH(1), 77, 0, 2, &out));
        ck_assert_uint_eq(out.type, type);
        ck_assert_uint_eq(out.id, 9);
        ck_assert_mem_eq(&out.sub[0], &way, sizeof way);
        m.num_subs = 1 + MR_CM_DOUBTS_MAX;
        ck_assert_int_eq(mr_cm_check(&m, MR_CM_LENGTH(m.num_subs), 77, 0, 2, &out), type == MR_CM_ASK);
        m.num_subs++;
        ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(m.num_subs), 77, 0, 2, &out));
        m.num_subs = 0;
        ck_assert(!mr_cm_check(&m, MR_CM_LENGTH(0), 77, 0, 2, &out));
    }
    /* a question with the number of a handshake does not end the handshake */
    begin(0, 0);
    mr_cm_start(&side[0].c, 5, 0);
    mr_cm_receive(&side[1].c, &air[0].msg, 0);
    ck_assert(side[1].c.state == MR_CM_REP_SENT);
    mr_cm_make_question(&m, MR_CM_HERE, 77, 0, 1, 5, &way);
    mr_cm_receive(&side[1].c, &m, 0);
    ck_assert(side[1].c.state == MR_CM_REP_SENT);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("connect");

    tcase_add_loop_test(t, plain, 0, 2);
    tcase_add_test(t, simultaneous);
    tcase_add_loop_test(t, bad_network, 0, 100);
    tcase_add_loop_test(t, request_that_yields, 0, 2);
    tcase_add_loop_test(t, both_begin_at_different_times, 0, 50);
    tcase_add_loop_test(t, handshakes, 0, 100);
    tcase_add_test(t, traffic_stands_for_rtu);
    tcase_add_test(t, the_next_handshake_stands_for_rtu);
    tcase_add_test(t, rtu_of_the_one_before);
    tcase_add_loop_test(t, a_request_after_one_given_up_is_no_rtu, 0, 2);
    tcase_add_test(t, nobody_there);
    tcase_add_loop_test(t, not_now, 0, 2);
    tcase_add_test(t, no_queue_pairs);
    tcase_add_loop_test(t, rejected, 0, 100);
    tcase_add_loop_test(t, rejected_when_both_begin, 0, 50);
    tcase_add_loop_test(t, initiator_cannot_connect, 0, 50);
    tcase_add_loop_test(t, later, 0, 100);
    tcase_add_test(t, later_for_ever);
    tcase_add_test(t, late_rejection);
    tcase_add_test(t, no_room_to_send);
    tcase_add_test(t, astray);
    tcase_add_test(t, silent_for_an_hour);
    tcase_add_test(t, other_version);
    tcase_add_test(t, strangers_are_not_heard);
    tcase_add_test(t, questions_are_no_part_of_a_handshake);
    return check_run(t, NULL);
}
