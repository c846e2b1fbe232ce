/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failing requests: the first side asks for something that the second may not give. The reports to each side are in the
 * specification's 9.9 (errors of requester and responder), 10.10.3 and 11.6.2 (completion status).
 */
#include <errno.h>
#include <string.h>

#include "tests/verbs/suite.h"

enum fault {
    LOCAL_KEY = 1,
    LOCAL_BOUNDS,
    LOCAL_PD,
    LOCAL_RIGHTS, /* a read into memory without the right to write */
    REMOTE_KEY,
    REMOTE_BOUNDS,
    REMOTE_WRAP,
    REMOTE_PD,
    REMOTE_MR, /* the region gives no rights */
    REMOTE_QP, /* the queue pair gives none */
    UNALIGNED,
    RECV_SHORT,
    RECV_KEY,
    RECV_RIGHTS,
    RECV_NONE,
    NOBODY,
};

/* The responder's report: a completion of its receive request, an event, both or nothing. */
static const struct row {
    const char *name;
    enum ibv_wr_opcode op;
    enum fault fault;
    enum ibv_wc_status here, there; /* there 0: no completion but by flush, if a request is there */
    int event;                      /* -1: none */
} rows[] = {
    {"a wrong local key", IBV_WR_SEND, LOCAL_KEY, IBV_WC_LOC_PROT_ERR, 0, -1},
    {"beyond the local region", IBV_WR_RDMA_WRITE, LOCAL_BOUNDS, IBV_WC_LOC_PROT_ERR, 0, -1},
    {"a local key of another domain", IBV_WR_SEND, LOCAL_PD, IBV_WC_LOC_PROT_ERR, 0, -1},
    {"a read into memory without the right", IBV_WR_RDMA_READ, LOCAL_RIGHTS, IBV_WC_LOC_PROT_ERR, 0, -1},
    {"a write with a wrong key", IBV_WR_RDMA_WRITE, REMOTE_KEY, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR},
    {"a read with a wrong key", IBV_WR_RDMA_READ, REMOTE_KEY, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR},
    {"a write beyond the region", IBV_WR_RDMA_WRITE, REMOTE_BOUNDS, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR},
    {"a read beyond the region", IBV_WR_RDMA_READ, REMOTE_BOUNDS, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR},
    {"a write around the end of addresses", IBV_WR_RDMA_WRITE, REMOTE_WRAP, IBV_WC_REM_ACCESS_ERR, 0,
     IBV_EVENT_QP_ACCESS_ERR},
    {"a write to another domain", IBV_WR_RDMA_WRITE, REMOTE_PD, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR},
    {"a write that the region forbids", IBV_WR_RDMA_WRITE, REMOTE_MR, IBV_WC_REM_ACCESS_ERR, 0,
     IBV_EVENT_QP_ACCESS_ERR},
    {"a read that the region forbids", IBV_WR_RDMA_READ, REMOTE_MR, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR},
    {"an atomic that the region forbids", IBV_WR_ATOMIC_FETCH_AND_ADD, REMOTE_MR, IBV_WC_REM_ACCESS_ERR, 0,
     IBV_EVENT_QP_ACCESS_ERR},
    {"a write that the queue pair forbids", IBV_WR_RDMA_WRITE, REMOTE_QP, IBV_WC_REM_INV_REQ_ERR, 0,
     IBV_EVENT_QP_REQ_ERR},
    {"a read that the queue pair forbids", IBV_WR_RDMA_READ, REMOTE_QP, IBV_WC_REM_INV_REQ_ERR, 0,
     IBV_EVENT_QP_REQ_ERR},
    {"an atomic that the queue pair forbids", IBV_WR_ATOMIC_CMP_AND_SWP, REMOTE_QP, IBV_WC_REM_INV_REQ_ERR, 0,
     IBV_EVENT_QP_REQ_ERR},
    {"an atomic at an odd address", IBV_WR_ATOMIC_FETCH_AND_ADD, UNALIGNED, IBV_WC_REM_INV_REQ_ERR, 0,
     IBV_EVENT_QP_REQ_ERR},
    {"a message longer than the receive request", IBV_WR_SEND, RECV_SHORT, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR,
     -1},
    {"a receive request with a wrong key", IBV_WR_SEND, RECV_KEY, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, -1},
    {"a receive request without the right", IBV_WR_SEND, RECV_RIGHTS, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, -1},
    {"no receive request", IBV_WR_SEND, RECV_NONE, IBV_WC_RNR_RETRY_EXC_ERR, 0, -1},
    {"no receive request for a write with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, RECV_NONE, IBV_WC_RNR_RETRY_EXC_ERR,
     0, -1},
    {"nobody answers", IBV_WR_SEND, NOBODY, IBV_WC_RETRY_EXC_ERR, 0, -1},
};

static bool atomic(const struct row *w)
{
    return w->op == IBV_WR_ATOMIC_CMP_AND_SWP || w->op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Memory of another protection domain in place of the end's own. */
static void swap_domain(struct end *e, int access)
{
    struct ibv_pd *other = ibv_alloc_pd(e->side->ctx);

    CHECK(other, "%s", strerror(errno));
    e->mr = side_region(e->side, other, BUFFER, access);
    e->buf = e->mr->addr;
    e->local.addr = (uintptr_t)e->buf;
    e->local.rkey = e->mr->rkey;
}

static void spoil(struct request *r, struct end *e, enum fault f)
{
    uint64_t *addr = e->options.type && atomic(&(struct row){.op = r->wr.opcode}) ? &r->wr.wr.atomic.remote_addr
                                                                                  : &r->wr.wr.rdma.remote_addr;

    switch (f) {
    case LOCAL_KEY:
        r->sge.lkey ^= 0x5a0000;
        break;
    case LOCAL_BOUNDS:
        r->sge.addr += BUFFER - 4;
        break;
    case LOCAL_PD: {
        struct end other = *e;

        swap_domain(&other, side_mr_access(e->side));
        r->sge.addr = (uintptr_t)other.buf;
        r->sge.lkey = other.mr->lkey;
        break;
    }
    case LOCAL_RIGHTS: {
        struct ibv_mr *mr = side_region(e->side, NULL, BUFFER, 0);

        r->sge.addr = (uintptr_t)mr->addr;
        r->sge.lkey = mr->lkey;
        break;
    }
    case REMOTE_KEY:
        r->wr.wr.rdma.rkey ^= 0x5a0000;
        break;
    case REMOTE_BOUNDS:
        *addr += BUFFER - 4;
        break;
    case REMOTE_WRAP:
        *addr = UINT64_MAX - 3;
        break;
    case UNALIGNED:
        *addr += 4;
        break;
    default:
        break;
    }
}

static void requester(struct end *e, const struct row *w)
{
    struct request r;

    request_make(&r, e, w->op, 100, 0, 8);
    spoil(&r, e, w->fault);
    CHECK(!request_post(e, &r), "%s: refused when posted", w->name);
    request_make(&r, e, IBV_WR_RDMA_WRITE, 101, 0, 8);
    CHECK(!request_post(e, &r), "the request behind it");
    wc_wait(e->cq, 100, w->here, w->name);
    wc_wait(e->cq, 101, IBV_WC_WR_FLUSH_ERR, "the request behind it");
    CHECK_IS(end_state(e), IBV_QPS_ERR, "state after the error");
    send_post(e, IBV_WR_SEND, 102, 0, 8);
    wc_wait(e->cq, 102, IBV_WC_WR_FLUSH_ERR, "a request in ERR");
}

static void responder_ready(struct end *e, const struct row *w)
{
    struct ibv_mr *mr;

    switch (w->fault) {
    case RECV_SHORT:
        recv_post(e, 200, 0, 7);
        break;
    case RECV_KEY:
        CHECK(!recv_try(e, 200, 0, 64, e->mr->lkey ^ 0x5a0000), "post");
        break;
    case RECV_RIGHTS: {
        struct ibv_recv_wr wr = {.wr_id = 200, .num_sge = 1}, *bad;
        struct ibv_sge sge;

        mr = side_region(e->side, NULL, BUFFER, 0);
        sge = (struct ibv_sge){(uintptr_t)mr->addr, 64, mr->lkey};
        wr.sg_list = &sge;
        CHECK(!ibv_post_recv(e->qp, &wr, &bad), "post");
        break;
    }
    case RECV_NONE:
        return;
    default:
        recv_post(e, 200, 0, 64);
    }
    recv_post(e, 201, 0, 64);
}

static void responder_learns(struct end *e, const struct row *w)
{
    struct ibv_async_event ev;
    bool error = w->there || w->event >= 0;

    if (w->there)
        wc_wait(e->cq, 200, w->there, w->name);
    if (w->event >= 0) {
        ev = event_wait(e->side, (enum ibv_event_type)w->event);
        CHECK(ev.element.qp == e->qp, "the event is about something else");
        ibv_ack_async_event(&ev);
    }
    if (error) {
        CHECK_IS(end_state(e), IBV_QPS_ERR, "the responder's state");
        if (!w->there)
            wc_wait(e->cq, 200, IBV_WC_WR_FLUSH_ERR, "the responder's request");
        wc_wait(e->cq, 201, IBV_WC_WR_FLUSH_ERR, "the responder's next request");
    } else {
        CHECK_IS(end_state(e), IBV_QPS_RTS, "the responder's state");
        wc_none(e->cq, 1);
    }
}

static void fail_as(struct side *s, const struct row *w)
{
    bool no_rights = w->fault == REMOTE_MR && s->index == SECOND, second = s->index == SECOND;
    struct end_options o = {.rnr_retry = w->fault == RECV_NONE ? 2 : 7,
                            .retry_cnt = w->fault == NOBODY ? 1 : 7,
                            .timeout = w->fault == NOBODY ? 8 : 14,
                            .type = IBV_QPT_RC};
    struct end e;

    SKIP_UNLESS(!atomic(w) || s->attr.atomic_cap != IBV_ATOMIC_NONE, "no atomics on this device");
    if (no_rights)
        o.mr_access = IBV_ACCESS_LOCAL_WRITE;
    if (w->fault == REMOTE_QP && second)
        o.qp_access = NO_ACCESS;
    if (w->fault == NOBODY && !second)
        o.wrong_qpn = 0xfffff0;
    end_make(&e, s, &o);
    if (w->fault == REMOTE_PD && second)
        swap_domain(&e, side_mr_access(s));
    end_exchange(&e);
    end_connect(&e);
    if (second && w->fault != REMOTE_PD)
        responder_ready(&e, w);
    else if (second)
        for (uint64_t i = 200; i < 202; i++)
            CHECK(!recv_try(&e, i, 0, 64, e.mr->lkey), "post");
    sync_sides(s);
    if (!second)
        requester(&e, w);
    sync_sides(s);
    if (second)
        responder_learns(&e, w);
    sync_sides(s);
}

/* One case for each row: the table of cases is made of the table of faults. */
#define ROW(n)                                                                                                         \
    static void row_##n(struct side *s)                                                                                \
    {                                                                                                                  \
        fail_as(s, &rows[n]);                                                                                          \
    }
/* clang-format off */
#define ROWS(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16) F(17) F(18) F(19) \
    F(20) F(21) F(22)
/* clang-format on */
ROWS(ROW)

/* Without a byte there is nothing to check: zero-length operations need no key (9.7.4.1.5). */
static void zero_length_needs_no_key(struct side *s)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    struct end e;

    end_open(&e, s, NULL);
    for (uint64_t i = 0; s->index == FIRST && i < COUNT(ops); i++) {
        struct request r;

        request_make(&r, &e, ops[i], i, 0, 0);
        r.wr.wr.rdma.remote_addr = 0;
        r.wr.wr.rdma.rkey = 0;
        CHECK(!request_post(&e, &r), "post");
        wc_wait(e.cq, i, IBV_WC_SUCCESS, "of no bytes");
    }
    sync_sides(s);
}

/* The receive request comes while the sender waits. */
static void rnr_then_ready(struct side *s)
{
    struct end e;

    end_open(&e, s, NULL);
    sync_sides(s);
    if (s->index == FIRST) {
        send_post(&e, IBV_WR_SEND, 1, 0, 100);
        send_post(&e, IBV_WR_SEND, 2, 0, 100);
    } else {
        sleep_ms(20);
        recv_post(&e, 1, 0, 100);
        recv_post(&e, 2, 0, 100);
    }
    EXPECT(e.cq, 1, IBV_WC_SUCCESS);
    EXPECT(e.cq, 2, IBV_WC_SUCCESS);
    sync_sides(s);
}

/* Moved to ERR by its owner: everything comes back, in order. */
static void flush_in_order(struct side *s)
{
    struct end e;

    end_make(&e, s, NULL);
    e.remote = e.local;
    end_connect(&e);
    for (uint64_t i = 0; i < 5; i++)
        recv_post(&e, i, 0, 64);
    CHECK(!end_modify(&e, IBV_QPS_ERR), "to ERR");
    for (uint64_t i = 0; i < 5; i++)
        wc_wait(e.cq, i, IBV_WC_WR_FLUSH_ERR, "receive requests");
    for (uint64_t i = 10; i < 15; i++)
        send_post(&e, IBV_WR_SEND, i, 0, 64);
    for (uint64_t i = 10; i < 15; i++)
        CHECK_IS(wc_wait(e.cq, i, IBV_WC_WR_FLUSH_ERR, "requests").qp_num, e.qp->qp_num, "qp_num");
    wc_none(e.cq, 1);
}

/* A receive posted in ERR comes back at once, too. */
static void flush_late_receives(struct side *s)
{
    struct end e;

    end_make(&e, s, NULL);
    e.remote = e.local;
    end_connect(&e);
    CHECK(!end_modify(&e, IBV_QPS_ERR), "to ERR");
    for (uint64_t i = 0; i < 3; i++)
        recv_post(&e, i, 0, 64);
    for (uint64_t i = 0; i < 3; i++)
        wc_wait(e.cq, i, IBV_WC_WR_FLUSH_ERR, "receive requests in ERR");
}

/* Queue pairs and memory regions may be destroyed with requests outstanding; nothing comes of them. */
static void destroy_with_requests(struct side *s)
{
    struct end e;

    end_open(&e, s, NULL);
    for (uint64_t i = 0; i < 8; i++)
        recv_post(&e, i, 0, 64);
    sync_sides(s);
    CHECK(!ibv_destroy_qp(e.qp), "%s", strerror(errno));
    CHECK(!ibv_dereg_mr(e.mr), "%s", strerror(errno));
    wc_none(e.cq, 2);
    CHECK(!ibv_destroy_cq(e.cq), "%s", strerror(errno));
    sync_sides(s);
}

/* Objects in use cannot be destroyed. */
static void objects_in_use(struct side *s)
{
    struct ibv_ah_attr ah;
    struct ibv_ah *h;
    struct end e;

    end_make(&e, s, NULL);
    CHECK_IS(ibv_destroy_cq(e.cq), EBUSY, "a queue with a queue pair");
    CHECK_IS(ibv_dealloc_pd(s->pd), EBUSY, "a domain with a queue pair");
    CHECK(!ibv_destroy_qp(e.qp), "queue pair");
    CHECK(!ibv_destroy_cq(e.cq), "queue");
    CHECK_IS(ibv_dealloc_pd(s->pd), EBUSY, "a domain with a region");
    CHECK(!ibv_dereg_mr(e.mr), "region");
    ah = end_ah(s, &e.local);
    CHECK((h = ibv_create_ah(s->pd, &ah)), "%s", strerror(errno));
    CHECK_IS(ibv_dealloc_pd(s->pd), EBUSY, "a domain with an address handle");
    CHECK(!ibv_destroy_ah(h), "address handle");
    CHECK(!ibv_dealloc_pd(s->pd), "domain");
}

static const struct test_case cases[] = {
    {"a wrong local key", row_0, true},
    {"beyond the local region", row_1, true},
    {"a local key of another domain", row_2, true},
    {"a read into memory without the right", row_3, true},
    {"a write with a wrong key", row_4, true},
    {"a read with a wrong key", row_5, true},
    {"a write beyond the region", row_6, true},
    {"a read beyond the region", row_7, true},
    {"a write around the end of addresses", row_8, true},
    {"a write to another domain", row_9, true},
    {"a write that the region forbids", row_10, true},
    {"a read that the region forbids", row_11, true},
    {"an atomic that the region forbids", row_12, true},
    {"a write that the queue pair forbids", row_13, true},
    {"a read that the queue pair forbids", row_14, true},
    {"an atomic that the queue pair forbids", row_15, true},
    {"an atomic at an odd address", row_16, true},
    {"a message longer than the receive request", row_17, true},
    {"a receive request with a wrong key", row_18, true},
    {"a receive request without the right", row_19, true},
    {"no receive request", row_20, true},
    {"no receive request for a write with immediate", row_21, true},
    {"nobody answers", row_22, true},
    {"no bytes need no key", zero_length_needs_no_key, true},
    {"receiver not ready, then ready", rnr_then_ready, true},
    {"all is flushed in order", flush_in_order, false},
    {"receive requests posted in ERR are flushed", flush_late_receives, false},
    {"destroyed with requests", destroy_with_requests, true},
    {"objects in use", objects_in_use, false},
};
const struct theme theme_errors = {"errors", cases, COUNT(cases)};
