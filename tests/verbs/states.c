/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine of queue pairs: the specification's 10.3.1 and the table of MODIFY QP in 11.2.5.2. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/verbs/suite.h"

enum {
    PKEY = IBV_QP_PKEY_INDEX,
    PORT = IBV_QP_PORT,
    ACCESS = IBV_QP_ACCESS_FLAGS,
    ROUTE = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    CUR = IBV_QP_CUR_STATE,
    RNR = IBV_QP_MIN_RNR_TIMER,
    KEEP = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
    DEST = IBV_QP_MAX_DEST_RD_ATOMIC,
    NOTIFY = IBV_QP_EN_SQD_ASYNC_NOTIFY,
    MIGRATE = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, /* left out: whether they are right depends on the paths too */
};

/*
 * Required and optional attributes. Between other states there is no transition, except to RESET from all and to ERR
 * from all others.
 */
static const struct step {
    enum ibv_qp_type type;
    enum ibv_qp_state from, to;
    int must, may;
} steps[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, ROUTE | DEST | RNR, ACCESS | PKEY},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | KEEP, CUR | ACCESS | RNR},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | RNR},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0, PORT | IBV_QP_AV | KEEP | DEST | ACCESS | PKEY | RNR},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS | RNR},
    {IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, ROUTE, ACCESS | PKEY},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, CUR | ACCESS},
    {IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS},
    {IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY},
    {IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, ACCESS | PKEY} /* and the path: a case of its own */,
    {IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | IBV_QP_QKEY, 0},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, CUR | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY},
    {IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | IBV_QP_QKEY},
};

static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                           IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};

static const struct step *find(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
    for (size_t i = 0; i < COUNT(steps); i++)
        if (steps[i].type == type && steps[i].from == from && steps[i].to == to)
            return &steps[i];
    return NULL;
}

static bool allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int given)
{
    const struct step *s = find(type, from, to);

    if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
        return !given;
    return s && (given & s->must) == s->must && !(given & ~(s->must | s->may));
}

static void loop_to(struct end *e, enum ibv_qp_state state)
{
    static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};

    CHECK(!end_modify(e, IBV_QPS_RESET), "to RESET");
    if (state == IBV_QPS_ERR)
        CHECK(!end_modify(e, IBV_QPS_INIT), "to INIT");
    if (state == IBV_QPS_ERR)
        CHECK(!end_modify(e, IBV_QPS_ERR), "to ERR");
    for (size_t i = 0; i < COUNT(way) && state != IBV_QPS_RESET && state != IBV_QPS_ERR; i++) {
        CHECK(!end_modify(e, way[i]), "to state %d", (int)way[i]);
        if (way[i] == state)
            break;
    }
}

/* A try; then the queue pair must be in the expected state, and is brought back. */
static void try_step(struct end *e, enum ibv_qp_state from, enum ibv_qp_state to, int given)
{
    bool good = allowed(e->options.type, from, to, given);
    enum ibv_qp_state now;
    struct ibv_qp_attr a;
    int err;

    end_attributes(e, to, &a);
    a.cur_qp_state = from;
    err = ibv_modify_qp(e->qp, &a, given | IBV_QP_STATE);
    now = end_state(e);
    CHECK(good ? !err : err == EINVAL, "type %d, %d to %d with %#x: error %d", (int)e->options.type, (int)from, (int)to,
          (unsigned)given, err);
    CHECK(now == (good ? to : from), "type %d, %d to %d with %#x: then in state %d", (int)e->options.type, (int)from,
          (int)to, (unsigned)given, (int)now);
    if (now != from)
        loop_to(e, from);
}

/* Every pair of states: the least attributes, all, each missing, each too many. */
static void every_transition(struct side *s, enum ibv_qp_type type)
{
    struct end_options o = {.type = type};
    struct end e;

    end_make(&e, s, &o);
    e.remote = e.local;
    for (size_t i = 0; i < COUNT(states); i++) {
        loop_to(&e, states[i]);
        for (size_t j = 0; j < COUNT(states); j++) {
            const struct step *step = find(type, states[i], states[j]);
            int must = step ? step->must : 0, may = step ? step->may : 0;

            try_step(&e, states[i], states[j], must);
            if (may)
                try_step(&e, states[i], states[j], must | may);
            for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1)
                if (!(bit & MIGRATE) && !(type == IBV_QPT_UC && states[j] == IBV_QPS_SQD && bit == IBV_QP_AV))
                    try_step(&e, states[i], states[j], must & bit ? must & ~bit : must | bit);
        }
    }
}

static void rc_table(struct side *s)
{
    every_transition(s, IBV_QPT_RC);
}

static void uc_table(struct side *s)
{
    every_transition(s, IBV_QPT_UC);
}

static void ud_table(struct side *s)
{
    every_transition(s, IBV_QPT_UD);
}

/* In SQD the path may change. */
static void uc_path(struct side *s)
{
    struct end_options o = {.type = IBV_QPT_UC};
    struct ibv_qp_attr a;
    struct end e;
    int err;

    end_make(&e, s, &o);
    e.remote = e.local;
    loop_to(&e, IBV_QPS_SQD);
    end_attributes(&e, IBV_QPS_SQD, &a);
    err = ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_AV);
    CHECK(!err, "%s", strerror(err));
    a.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(e.qp, &a, IBV_QP_STATE), "back to RTS");
}

/* A value out of range is refused and nothing is changed. */
static void bad_values(struct side *s)
{
    struct bad {
        const char *name;
        enum ibv_qp_state to;
        int bit;
    };
    static const struct bad bads[] = {
        {"port 0", IBV_QPS_INIT, IBV_QP_PORT},
        {"a port too high", IBV_QPS_INIT, IBV_QP_PORT},
        {"an MTU above the port's", IBV_QPS_RTR, IBV_QP_PATH_MTU},
        {"too many reads to answer", IBV_QPS_RTR, IBV_QP_MAX_DEST_RD_ATOMIC},
        {"too many reads", IBV_QPS_RTS, IBV_QP_MAX_QP_RD_ATOMIC},
        {"an impossible current state", IBV_QPS_RTS, IBV_QP_CUR_STATE},
    };
    struct end e;

    end_make(&e, s, NULL);
    e.remote = e.local;
    for (size_t i = 0; i < COUNT(bads); i++) {
        const struct bad *b = &bads[i];
        enum ibv_qp_state from = b->to - 1;
        struct ibv_qp_attr a;
        int mask, err;

        if (b->bit == IBV_QP_PATH_MTU && s->port.active_mtu == IBV_MTU_4096)
            continue; /* nothing is above */
        if (b->bit == IBV_QP_MAX_DEST_RD_ATOMIC && s->attr.max_qp_rd_atom > 254)
            continue;
        loop_to(&e, from);
        mask = end_attributes(&e, b->to, &a) | b->bit;
        a.cur_qp_state = IBV_QPS_SQE;
        if (b->bit == IBV_QP_PORT)
            a.port_num = i ? s->attr.phys_port_cnt + 1 : 0;
        if (b->bit == IBV_QP_PATH_MTU)
            a.path_mtu = s->port.active_mtu + 1;
        if (b->bit == IBV_QP_MAX_DEST_RD_ATOMIC)
            a.max_dest_rd_atomic = (uint8_t)(s->attr.max_qp_rd_atom + 1);
        if (b->bit == IBV_QP_MAX_QP_RD_ATOMIC)
            a.max_rd_atomic = (uint8_t)(s->attr.max_qp_init_rd_atom + 1);
        err = ibv_modify_qp(e.qp, &a, mask);
        CHECK(err == EINVAL, "%s: error %d", b->name, err);
        CHECK_IS(end_state(&e), from, b->name);
    }
}

static void bad_pkey(struct side *s)
{
    struct ibv_qp_attr a;
    struct end e;
    int mask;

    end_make(&e, s, NULL);
    mask = end_attributes(&e, IBV_QPS_INIT, &a);
    a.pkey_index = s->port.pkey_tbl_len;
    CHECK_IS(ibv_modify_qp(e.qp, &a, mask), EINVAL, "error");
    CHECK_IS(end_state(&e), IBV_QPS_RESET, "state");
}

static void query_tells(struct side *s)
{
    struct end_options o = {
        .timeout = 17, .retry_cnt = 5, .rnr_retry = 3, .rnr_time = 21, .rd_atomic = 2, .send_wr = 20};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    struct end e;

    end_make(&e, s, &o);
    CHECK_IS(e.qp->state, IBV_QPS_RESET, "a new queue pair's state");
    e.remote = e.local;
    end_connect(&e);
    CHECK_IS(e.qp->state, IBV_QPS_RTS, "the state in struct ibv_qp");
    CHECK(!ibv_query_qp(e.qp, &a, (IBV_QP_DEST_QPN << 1) - 1, &init), "%s", strerror(errno));
    CHECK_IS(a.qp_state, IBV_QPS_RTS, "state");
    CHECK_IS(a.timeout, 17, "timeout");
    CHECK_IS(a.retry_cnt, 5, "retry_cnt");
    CHECK_IS(a.rnr_retry, 3, "rnr_retry");
    CHECK_IS(a.min_rnr_timer, 21, "min_rnr_timer");
    CHECK_IS(a.max_rd_atomic, 2, "max_rd_atomic");
    CHECK_IS(a.max_dest_rd_atomic, 2, "max_dest_rd_atomic");
    CHECK_IS(a.dest_qp_num, e.local.qpn, "dest_qp_num");
    CHECK_IS(a.port_num, s->port_num, "port_num");
    CHECK_IS(a.sq_psn, FIRST_PSN, "sq_psn");
    CHECK_IS(a.rq_psn, FIRST_PSN, "rq_psn");
    CHECK_IS(a.ah_attr.dlid, e.remote.lid, "dlid");
    CHECK_IS(a.ah_attr.is_global, s->gid_index >= 0, "is_global");
    CHECK(a.qp_access_flags & IBV_ACCESS_REMOTE_WRITE, "rights %#x", a.qp_access_flags);
    CHECK(a.cap.max_send_wr >= 20 && init.cap.max_send_wr == a.cap.max_send_wr, "%u requests", a.cap.max_send_wr);
    CHECK(init.send_cq == e.cq && init.recv_cq == e.cq && !init.srq, "the queues");
    CHECK_IS(init.qp_type, IBV_QPT_RC, "type");
    CHECK_IS(init.sq_sig_all, 1, "sq_sig_all");
}

/* Where requests may be posted; chapter 10.3.1 */
static void where_to_post(struct side *s)
{
    static const struct {
        enum ibv_qp_state state;
        bool send, recv;
    } rows[] = {{IBV_QPS_RESET, false, false}, {IBV_QPS_INIT, false, true}, {IBV_QPS_RTR, false, true}};
    struct request r;
    struct end e;

    end_make(&e, s, NULL);
    e.remote = e.local;
    for (size_t i = 0; i < COUNT(rows); i++) {
        loop_to(&e, rows[i].state);
        request_make(&r, &e, IBV_WR_SEND, 1, 0, 8);
        CHECK(!request_post(&e, &r) == rows[i].send, "sending in state %d", (int)rows[i].state);
        CHECK(!recv_try(&e, 1, 0, 8, e.mr->lkey) == rows[i].recv, "receiving in state %d", (int)rows[i].state);
    }
}

/* In RTR a queue pair receives; the first packet causes COMM_EST or not; then the queue pair sends. */
static void rtr_receives(struct side *s)
{
    struct end e;

    end_make(&e, s, NULL);
    end_exchange(&e);
    for (enum ibv_qp_state to = IBV_QPS_INIT; to <= (s->index == FIRST ? IBV_QPS_RTS : IBV_QPS_RTR); to++)
        CHECK(!end_modify(&e, to), "to %d", (int)to);
    if (s->index == SECOND)
        recv_post(&e, 5, 0, 64);
    sync_sides(s);
    if (s->index == FIRST)
        send_post(&e, IBV_WR_SEND, 6, 0, 64);
    EXPECT(e.cq, s->index == FIRST ? 6 : 5, IBV_WC_SUCCESS);
    sync_sides(s);
    if (s->index == SECOND)
        CHECK(!end_modify(&e, IBV_QPS_RTS), "to RTS");
    else
        recv_post(&e, 7, 0, 64);
    sync_sides(s);
    if (s->index == SECOND)
        send_post(&e, IBV_WR_SEND, 7, 0, 64);
    EXPECT(e.cq, 7, IBV_WC_SUCCESS);
    sync_sides(s);
}

/* SQD: begun requests end, with an event; later posts wait for RTS. */
static void sqd_drains(struct side *s)
{
    struct ibv_async_event ev;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct end e;

    end_open(&e, s, NULL);
    if (s->index == SECOND) {
        for (int i = 0; i < 3; i++)
            recv_post(&e, 10 + (uint64_t)i, 0, 4096);
        sync_sides(s);
        for (int i = 0; i < 3; i++)
            wc_wait(e.cq, 10 + (uint64_t)i, IBV_WC_SUCCESS, "of the receiver");
        sync_sides(s);
        return;
    }
    sync_sides(s);
    send_post(&e, IBV_WR_SEND, 1, 0, 4096);
    EXPECT(e.cq, 1, IBV_WC_SUCCESS);
    CHECK(!ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), "to SQD");
    ev = event_wait(s, IBV_EVENT_SQ_DRAINED);
    CHECK(ev.element.qp == e.qp, "the event is about something else");
    ibv_ack_async_event(&ev);
    CHECK_IS(end_state(&e), IBV_QPS_SQD, "state");
    send_post(&e, IBV_WR_SEND, 2, 0, 4096);
    wc_none(e.cq, 50);
    a.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(e.qp, &a, IBV_QP_STATE), "back to RTS");
    EXPECT(e.cq, 2, IBV_WC_SUCCESS);
    send_post(&e, IBV_WR_SEND, 3, 0, 4096);
    EXPECT(e.cq, 3, IBV_WC_SUCCESS);
    sync_sides(s);
}

/* Through RESET a queue pair becomes as new: no former completion comes back, and the queue pair works again. */
static void reset_and_again(struct side *s)
{
    struct end e;

    end_make(&e, s, NULL);
    end_exchange(&e);
    for (int round = 0; round < 3; round++) {
        end_connect(&e);
        if (s->index == SECOND)
            recv_post(&e, 20, 0, 1024);
        if (s->index == SECOND)
            recv_post(&e, 21, 0, 1024); /* is never used, nor completed */
        sync_sides(s);
        if (s->index == FIRST)
            send_post(&e, IBV_WR_SEND, 20, 0, 1024);
        EXPECT(e.cq, 20, IBV_WC_SUCCESS);
        sync_sides(s);
        CHECK(!end_modify(&e, IBV_QPS_RESET), "to RESET");
        wc_none(e.cq, 2);
        sync_sides(s);
    }
}

static const struct test_case cases[] = {
    {"every transition of RC", rc_table, false},          {"every transition of UC", uc_table, false},
    {"every transition of UD", ud_table, false},          {"the path of UC in SQD", uc_path, false},
    {"a P_Key index out of range", bad_pkey, false},      {"values out of range", bad_values, false},
    {"a query tells what was set", query_tells, false},   {"where requests may be posted", where_to_post, false},
    {"a queue pair in RTR receives", rtr_receives, true}, {"SQD drains, tells, and waits", sqd_drains, true},
    {"RESET, and again", reset_and_again, true},
};
const struct theme theme_states = {"states", cases, COUNT(cases)};
