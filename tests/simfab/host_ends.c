/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening HCAs, connecting queue pairs, posting and waiting, without any choice that a caller does not need. */
#include "tests/simfab/host_ends.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QKEY 0x1234u

void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static void *need(void *p, const char *what)
{
    if (!p)
        die("%s failed", what);
    return p;
}

static void must(int err, const char *what)
{
    if (err)
        die("%s: %s", what, strerror(err > 0 ? err : -err));
}

static uint64_t rate_of(const struct ibv_port_attr *p)
{
    uint64_t lanes = p->active_width == 1 ? 1 : p->active_width == 2 ? 4 : 0;

    switch (p->active_speed) {
    case 1:
        return lanes * 2000000000ull;
    case 2:
        return lanes * 4000000000ull;
    case 4:
        return lanes * 8000000000ull;
    case 64:
        return lanes * 50000000000ull;
    }
    die("no rate for width %u, speed %u", p->active_width, p->active_speed);
}

void end_open(struct hca_end *e, int device, size_t bytes)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
        n;
    struct ibv_device **list = need(ibv_get_device_list(&n), "ibv_get_device_list");
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
    struct ibv_port_attr port;

    if (device >= n)
        die("this host has no HCA number %d", device);
    e->ctx = need(ibv_open_device(list[device]), "ibv_open_device");
    ibv_free_device_list(list);
    must(ibv_query_port(e->ctx, 1, &port), "ibv_query_port");
    e->lid = port.lid;
    e->mtu = port.active_mtu;
    e->rate_bps = rate_of(&port);
    e->pd = need(ibv_alloc_pd(e->ctx), "ibv_alloc_pd");
    e->send_cq = need(ibv_create_cq(e->ctx, 4 * DEPTH, NULL, NULL, 0), "ibv_create_cq");
    e->recv_cq = need(ibv_create_cq(e->ctx, 4 * DEPTH, NULL, NULL, 0), "ibv_create_cq");
    e->srq = need(ibv_create_srq(e->pd, &srq), "ibv_create_srq");
    e->buf = need(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), "aligned_alloc");
    memset(e->buf, 0, bytes);
    e->mr = need(ibv_reg_mr(e->pd, e->buf, bytes, access), "ibv_reg_mr");
}

struct ibv_qp *end_qp(struct hca_end *e, enum ibv_qp_type type, bool shared)
{
    struct ibv_qp_init_attr init = {
        .send_cq = e->send_cq,
        .recv_cq = e->recv_cq,
        .srq = shared ? e->srq : NULL,
        .cap = {.max_send_wr = shared ? SHARED_DEPTH : DEPTH,
                .max_recv_wr = DEPTH,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 64},
        .qp_type = type,
    };
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qkey = QKEY,
                             .qp_access_flags =
                                 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    struct ibv_qp *qp = need(ibv_create_qp(e->pd, &init), "ibv_create_qp");

    must(ibv_modify_qp(qp, &at,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                           (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
         "ibv_modify_qp to INIT");
    return qp;
}

void end_connect_to(struct hca_end *e, struct ibv_qp *qp, uint16_t lid, uint32_t remote_qpn)
{
    struct ibv_qp_attr at = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = e->mtu,
        .dest_qp_num = remote_qpn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.dlid = lid, .port_num = 1},
    };
    int mask = IBV_QP_STATE;

    if (qp->qp_type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp->qp_type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    must(ibv_modify_qp(qp, &at, mask), "ibv_modify_qp to RTR");
    at = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 2, .rnr_retry = 0, .max_rd_atomic = 4};
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qp->qp_type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    must(ibv_modify_qp(qp, &at, mask), "ibv_modify_qp to RTS");
}

void end_connect(struct hca_end *a, struct ibv_qp *qa, struct hca_end *b, struct ibv_qp *qb)
{
    end_connect_to(a, qa, b->lid, qb->qp_num);
    end_connect_to(b, qb, a->lid, qa->qp_num);
}

void end_post_recv(struct hca_end *e, struct ibv_qp *qp, unsigned n, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)e->buf, bytes, e->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    while (n--)
        must(qp ? ibv_post_recv(qp, &wr, &bad) : ibv_post_srq_recv(e->srq, &wr, &bad), "posting a receive");
}

void end_post(struct hca_end *from, struct ibv_qp *qp, const struct hca_end *to, enum ibv_wr_opcode op, uint32_t bytes,
              unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)from->buf, bytes, from->mr->lkey};
    struct ibv_send_wr wr = {.opcode = op,
                             .send_flags = flags | IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = bytes != 0},
                       *bad;

    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)to->buf;
        wr.wr.atomic.compare_add = 7;
        wr.wr.atomic.rkey = to->mr->rkey;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)to->buf;
        wr.wr.rdma.rkey = to->mr->rkey;
    }
    must(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

void end_post_ud(struct hca_end *from, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)from->buf, bytes, from->mr->lkey};
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = bytes != 0};
    struct ibv_send_wr *bad;

    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = remote_qpn;
    wr.wr.ud.remote_qkey = QKEY;
    must(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

unsigned end_take(struct ibv_cq *cq, unsigned n)
{
    struct ibv_wc wc[16];
    int got;

    do
        got = ibv_poll_cq(cq, (int)(n < 16 ? n : 16), wc);
    while (!got);
    if (got < 0)
        die("ibv_poll_cq failed");
    for (int i = 0; i < got; i++)
        if (wc[i].status)
            die("a completion says: %s", ibv_wc_status_str(wc[i].status));
    return (unsigned)got;
}

void end_wait(struct ibv_cq *cq, unsigned n)
{
    while (n)
        n -= end_take(cq, n);
}

uint64_t clock_ps(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec) * 1000;
}
