/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of connections, requests, completions and events, for the cases. */
#include "tests/verbs/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PATIENCE_MS = 10000 };

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

void fill(uint8_t *p, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

bool filled(const uint8_t *p, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != (uint8_t)(i * 7 + i / 251 + seed))
            return false;
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

int side_mr_access(const struct side *s)
{
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
           (s->attr.atomic_cap == IBV_ATOMIC_NONE ? 0 : IBV_ACCESS_REMOTE_ATOMIC);
}

struct ibv_mr *side_region(struct side *s, struct ibv_pd *pd, size_t len, int access)
{
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;

    CHECK(p != MAP_FAILED, "no memory");
    mr = ibv_reg_mr(pd ? pd : s->pd, p, len, access);
    CHECK(mr, "ibv_reg_mr of %zu bytes: %s", len, strerror(errno));
    return mr;
}

/* ---- ends ------------------------------------------------------------------------------------------------------ */

static struct ibv_qp *make_qp(struct end *e, struct ibv_qp_init_attr *init)
{
    struct ibv_qp_init_attr_ex ex = {.send_cq = init->send_cq,
                                     .recv_cq = init->recv_cq,
                                     .srq = init->srq,
                                     .cap = init->cap,
                                     .qp_type = init->qp_type,
                                     .sq_sig_all = init->sq_sig_all,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                     .pd = e->side->pd,
                                     .send_ops_flags = e->options.wr_ops};
    struct ibv_qp *qp;

    if (!e->options.wr_ops)
        return ibv_create_qp(e->side->pd, init);
    qp = ibv_create_qp_ex(e->side->ctx, &ex);
    init->cap = ex.cap;
    return qp;
}

void end_make(struct end *e, struct side *s, const struct end_options *o)
{
    struct ibv_qp_init_attr init = {0};

    *e = (struct end){.side = s};
    if (o)
        e->options = *o;
    o = &e->options;
    if (!o->type)
        e->options.type = IBV_QPT_RC;
    e->cq = o->cq ? o->cq : ibv_create_cq(s->ctx, o->cqe ? (int)o->cqe : 64, NULL, o->channel, 0);
    CHECK(e->cq, "ibv_create_cq: %s", strerror(errno));
    e->mr = side_region(s, NULL, BUFFER,
                        o->mr_access == NO_ACCESS ? 0
                        : o->mr_access            ? o->mr_access
                                                  : side_mr_access(s));
    e->buf = e->mr->addr;
    init.send_cq = init.recv_cq = e->cq;
    init.srq = o->srq;
    init.qp_type = o->type;
    init.sq_sig_all = !o->unsignalled;
    init.cap = (struct ibv_qp_cap){.max_send_wr = o->send_wr ? o->send_wr : 16,
                                   .max_recv_wr = o->srq       ? 0
                                                  : o->recv_wr ? o->recv_wr
                                                               : 16,
                                   .max_send_sge = 4,
                                   .max_recv_sge = o->srq ? 0 : 4,
                                   .max_inline_data = o->inline_data};
    e->qp = make_qp(e, &init);
    if (!e->qp)
        SKIP_IF_UNSUPPORTED(errno, "such queue pair");
    CHECK(e->qp, "ibv_create_qp: %s", strerror(errno));
    e->max_inline = init.cap.max_inline_data;
    e->local = (struct end_address){.qpn = e->qp->qp_num,
                                    .rkey = e->mr->rkey,
                                    .lid = s->port.lid,
                                    .mtu = s->port.active_mtu,
                                    .addr = (uintptr_t)e->buf,
                                    .gid = s->gid};
}

void end_exchange(struct end *e)
{
    exchange(e->side, &e->local, &e->remote, sizeof e->local);
}

void end_loop(struct end *a, struct end *b)
{
    a->remote = b->local;
    b->remote = a->local;
    end_connect(a);
    end_connect(b);
}

struct ibv_ah_attr end_ah(const struct side *s, const struct end_address *to)
{
    struct ibv_ah_attr ah = {.dlid = (uint16_t)to->lid, .port_num = s->port_num};

    if (s->gid_index >= 0) {
        ah.is_global = 1;
        ah.grh.dgid = to->gid;
        ah.grh.sgid_index = (uint8_t)s->gid_index;
        ah.grh.hop_limit = 64;
    }
    return ah;
}

static uint8_t or_usual(uint8_t value, uint8_t usual)
{
    return value == NO_RETRY ? 0 : value ? value : usual;
}

/* IBV_MTU_1024 if both ports support it. */
static enum ibv_mtu path_mtu(const struct end *e)
{
    uint32_t mtu = IBV_MTU_1024;

    if (e->local.mtu < mtu)
        mtu = e->local.mtu;
    if (e->remote.mtu && e->remote.mtu < mtu)
        mtu = e->remote.mtu;
    return mtu;
}

int end_attributes(const struct end *e, enum ibv_qp_state to, struct ibv_qp_attr *a)
{
    const struct end_options *o = &e->options;
    bool rc = o->type == IBV_QPT_RC, ud = o->type == IBV_QPT_UD;
    int all = IBV_ACCESS_REMOTE_WRITE | (rc ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0);

    *a = (struct ibv_qp_attr){.qp_state = to,
                              .port_num = e->side->port_num,
                              .alt_port_num = e->side->port_num,
                              .qkey = QKEY,
                              .qp_access_flags = o->qp_access == NO_ACCESS ? 0
                                                 : o->qp_access            ? (unsigned)o->qp_access
                                                                           : (unsigned)all,
                              .ah_attr = end_ah(e->side, &e->remote),
                              .path_mtu = path_mtu(e),
                              .dest_qp_num = o->wrong_qpn ? o->wrong_qpn : e->remote.qpn,
                              .rq_psn = FIRST_PSN,
                              .sq_psn = FIRST_PSN,
                              .max_rd_atomic = o->rd_atomic ? o->rd_atomic : 1,
                              .max_dest_rd_atomic = o->rd_atomic ? o->rd_atomic : 1,
                              .min_rnr_timer = o->rnr_time ? o->rnr_time : 12,
                              .timeout = o->timeout ? o->timeout : 14,
                              .retry_cnt = or_usual(o->retry_cnt, 7),
                              .rnr_retry = or_usual(o->rnr_retry, 7)};
    a->alt_ah_attr = a->ah_attr;
    switch (to) {
    case IBV_QPS_INIT:
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
        return IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
               (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
        return IBV_QP_STATE | IBV_QP_SQ_PSN |
               (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
    default:
        return IBV_QP_STATE;
    }
}

int end_modify(const struct end *e, enum ibv_qp_state to)
{
    struct ibv_qp_attr a;
    int mask = end_attributes(e, to, &a);

    return ibv_modify_qp(e->qp, &a, mask);
}

void end_connect(struct end *e)
{
    for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
        int err = end_modify(e, to);

        CHECK(!err, "to state %d: %s", (int)to, strerror(err));
    }
}

void end_open(struct end *e, struct side *s, const struct end_options *o)
{
    end_make(e, s, o);
    end_exchange(e);
    end_connect(e);
    sync_sides(s);
}

enum ibv_qp_state end_state(const struct end *e)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;

    CHECK(!ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init), "%s", strerror(errno));
    return a.qp_state;
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

void request_make(struct request *r, const struct end *e, enum ibv_wr_opcode op, uint64_t id, size_t offset,
                  uint32_t len)
{
    *r = (struct request){.sge = {.addr = (uintptr_t)e->buf + offset, .length = len, .lkey = e->mr->lkey}};
    r->wr = (struct ibv_send_wr){.wr_id = id, .opcode = op, .num_sge = len ? 1 : 0};
    if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        r->wr.wr.atomic.remote_addr = e->remote.addr + offset;
        r->wr.wr.atomic.rkey = e->remote.rkey;
    } else {
        r->wr.wr.rdma.remote_addr = e->remote.addr + offset;
        r->wr.wr.rdma.rkey = e->remote.rkey;
    }
}

int request_post(const struct end *e, struct request *r)
{
    struct ibv_send_wr *bad = NULL;

    r->wr.sg_list = &r->sge;
    return ibv_post_send(e->qp, &r->wr, &bad);
}

void send_post(const struct end *e, enum ibv_wr_opcode op, uint64_t id, size_t offset, uint32_t len)
{
    struct request r;
    int err;

    request_make(&r, e, op, id, offset, len);
    err = request_post(e, &r);
    CHECK(!err, "operation %d: %s", (int)op, strerror(err));
}

int recv_try(const struct end *e, uint64_t id, size_t offset, uint32_t len, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)e->buf + offset, len, lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = len ? 1 : 0}, *bad;

    return ibv_post_recv(e->qp, &wr, &bad);
}

void recv_post(const struct end *e, uint64_t id, size_t offset, uint32_t len)
{
    int err = recv_try(e, id, offset, len, e->mr->lkey);

    CHECK(!err, "%s", strerror(err));
}

int srq_try(const struct end *e, struct ibv_srq *srq, uint64_t id, size_t offset, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)e->buf + offset, len, e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_srq_recv(srq, &wr, &bad);
}

/* ---- completions and events ------------------------------------------------------------------------------------ */

struct ibv_wc wc_wait(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status, const char *what)
{
    uint64_t until = now_ms() + PATIENCE_MS;
    struct timespec pause = {0, 100000};
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(cq, 1, &wc))) {
        CHECK(now_ms() < until, "no completion of request %s", what);
        nanosleep(&pause, NULL);
    }
    CHECK(n == 1, "ibv_poll_cq: %d", n);
    CHECK(wc.wr_id == id && wc.status == status, "request %s: completed %#llx with %d (%s, vendor's %#x), not %d (%s)",
          what, (unsigned long long)wc.wr_id, (int)wc.status, ibv_wc_status_str(wc.status), wc.vendor_err, (int)status,
          ibv_wc_status_str(status));
    return wc;
}

void wc_none(struct ibv_cq *cq, unsigned ms)
{
    struct ibv_wc wc = {0};

    sleep_ms(ms);
    CHECK(!ibv_poll_cq(cq, 1, &wc), "a completion of %#llx with %s", (unsigned long long)wc.wr_id,
          ibv_wc_status_str(wc.status));
}

bool event_comes(struct side *s, enum ibv_event_type type, unsigned ms, struct ibv_async_event *ev)
{
    struct pollfd p = {.fd = s->ctx->async_fd, .events = POLLIN};
    uint64_t until = now_ms() + ms;

    for (uint64_t now; (now = now_ms()) <= until;) {
        if (poll(&p, 1, (int)(until - now)) <= 0)
            continue;
        CHECK(!ibv_get_async_event(s->ctx, ev), "%s", strerror(errno));
        if (ev->event_type == type)
            return true;
        ibv_ack_async_event(ev);
    }
    return false;
}

struct ibv_async_event event_wait(struct side *s, enum ibv_event_type type)
{
    struct ibv_async_event ev;

    CHECK(event_comes(s, type, 5000, &ev), "no event: %s", ibv_event_type_str(type));
    return ev;
}
