/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs of a simulated host, operation by operation and error by error, as the InfiniBand specification has them.
 * Runs on host h1 of two-hosts-two-rails (see verbs_api.sh): its HCAs mlx5_0 and mlx5_1 talk to each other through the
 * switch.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

#define SIZE (1u << 20)

struct end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *chan;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *buf;
    uint16_t lid;
};

static struct end a, b; /* a sends to b */

static void open_end(struct end *e, int device)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_port_attr port;

    ck_assert_ptr_nonnull(list);
    ck_assert_ptr_nonnull(list[0]);
    ck_assert_ptr_nonnull(list[1]);
    memset(e, 0, sizeof *e);
    e->ctx = ibv_open_device(list[device]);
    ck_assert_ptr_nonnull(e->ctx);
    ibv_free_device_list(list);
    ck_assert_int_eq(ibv_query_port(e->ctx, 1, &port), 0);
    ck_assert_int_eq(port.state, IBV_PORT_ACTIVE);
    e->lid = port.lid;
    e->pd = ibv_alloc_pd(e->ctx);
    e->chan = ibv_create_comp_channel(e->ctx);
    e->cq = ibv_create_cq(e->ctx, 100, e, e->chan, 0);
    e->buf = aligned_alloc(4096, SIZE);
    memset(e->buf, 0, SIZE);
    e->mr = ibv_reg_mr(e->pd, e->buf, SIZE,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC);
    ck_assert_ptr_nonnull(e->cq);
    ck_assert_ptr_nonnull(e->mr);
}

static void make_qp(struct end *e, enum ibv_qp_type type, bool with_srq)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 8, .max_sge = 2}};
    struct ibv_qp_init_attr init = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 32},
        .qp_type = type,
    };

    if (with_srq) {
        e->srq = ibv_create_srq(e->pd, &srq);
        ck_assert_ptr_nonnull(e->srq);
        init.srq = e->srq;
    }
    e->qp = ibv_create_qp(e->pd, &init);
    ck_assert_ptr_nonnull(e->qp);
}

static void to_init(struct end *e)
{
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qkey = 0x1234,
                             .qp_access_flags =
                                 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
               (e->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

    ck_assert_int_eq(ibv_modify_qp(e->qp, &at, mask), 0);
}

/* retry: how often a lost packet is sent again; rnr: how often after "receiver not ready" (7: for ever) */
static void to_rts(struct end *e, const struct end *peer, uint8_t retry, uint8_t rnr)
{
    struct ibv_qp_attr at = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qp->qp_num,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.dlid = peer->lid, .port_num = 1},
    };
    int mask = IBV_QP_STATE;

    if (e->qp->qp_type == IBV_QPT_RC)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                IBV_QP_MIN_RNR_TIMER;
    ck_assert_int_eq(ibv_modify_qp(e->qp, &at, mask), 0);
    at = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = retry, .rnr_retry = rnr, .max_rd_atomic = 4};
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (e->qp->qp_type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    ck_assert_int_eq(ibv_modify_qp(e->qp, &at, mask), 0);
}

static uint8_t rnr_retry = 1;

static void make_pair(enum ibv_qp_type type, bool srq)
{
    open_end(&a, 0);
    open_end(&b, 1);
    make_qp(&a, type, false);
    make_qp(&b, type, srq);
    to_init(&a);
    to_init(&b);
    to_rts(&a, &b, 2, rnr_retry);
    to_rts(&b, &a, 2, rnr_retry);
}

static int post_recv(struct end *e, uint64_t id, uint32_t offset, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)e->buf + offset, length, e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
}

static struct ibv_send_wr *request(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t offset, uint32_t length)
{
    static struct ibv_sge sge;
    static struct ibv_send_wr wr;

    sge = (struct ibv_sge){(uintptr_t)e->buf + offset, length, e->mr->lkey};
    wr =
        (struct ibv_send_wr){.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED};
    return &wr;
}

static struct ibv_send_wr *rdma(struct end *e, enum ibv_wr_opcode op, uint64_t id, uint32_t length)
{
    struct ibv_send_wr *wr = request(e, op, id, 0, length);

    wr->wr.rdma.remote_addr = (uintptr_t)b.buf;
    wr->wr.rdma.rkey = b.mr->rkey;
    return wr;
}

static int post(struct end *e, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int err = ibv_post_send(e->qp, wr, &bad);

    if (err)
        ck_assert_ptr_nonnull(bad);
    return err;
}

/* The next completion of e; fails the test if there is none in ten virtual seconds. */
static struct ibv_wc completion(struct end *e)
{
    struct timespec from, now;
    struct ibv_wc wc;
    int n;

    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        n = ibv_poll_cq(e->cq, 1, &wc);
        ck_assert_int_ge(n, 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!n && now.tv_sec - from.tv_sec < 10);
    ck_assert_msg(n == 1, "no completion");
    return wc;
}

static void fill(struct end *e, uint32_t n, uint8_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        e->buf[i] = (uint8_t)(i * 7 + seed);
}

static void expect(struct end *e, enum ibv_wc_status status, uint64_t id)
{
    struct ibv_wc wc = completion(e);

    ck_assert_str_eq(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    ck_assert_uint_eq(wc.wr_id, id);
}

static enum ibv_qp_state state_of(struct end *e)
{
    struct ibv_qp_attr at;
    struct ibv_qp_init_attr init;

    ck_assert_int_eq(ibv_query_qp(e->qp, &at, IBV_QP_STATE, &init), 0);
    return at.qp_state;
}

/* ---- successful operations --------------------------------------------------------------------------------------- */

START_TEST(rc_send)
{
    struct ibv_send_wr *wr;
    struct ibv_wc wc;

    make_pair(IBV_QPT_RC, false);
    fill(&a, 5000, 3);
    ck_assert_int_eq(post_recv(&b, 11, 0, 8192), 0);
    wr = request(&a, IBV_WR_SEND_WITH_IMM, 12, 0, 5000);
    wr->imm_data = htobe32(0xabcdef01);
    ck_assert_int_eq(post(&a, wr), 0);
    wc = completion(&b);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.wr_id, 11);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
    ck_assert_uint_eq(wc.byte_len, 5000);
    ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
    ck_assert_uint_eq(be32toh(wc.imm_data), 0xabcdef01);
    ck_assert_uint_eq(wc.qp_num, b.qp->qp_num);
    ck_assert_mem_eq(b.buf, a.buf, 5000);
    wc = completion(&a);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_SEND);
    ck_assert_uint_eq(wc.wr_id, 12);
}
END_TEST

START_TEST(rc_scatter_gather_and_inline)
{
    struct ibv_sge out[2] = {{0}}, in[2] = {{0}};
    struct ibv_recv_wr rwr = {.wr_id = 1, .sg_list = in, .num_sge = 2}, *bad_r;
    struct ibv_send_wr wr = {.wr_id = 2,
                             .sg_list = out,
                             .num_sge = 2,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};

    make_pair(IBV_QPT_RC, false);
    fill(&a, 100, 9);
    in[0] = (struct ibv_sge){(uintptr_t)b.buf, 7, b.mr->lkey};
    in[1] = (struct ibv_sge){(uintptr_t)b.buf + 1000, 100, b.mr->lkey};
    out[0] = (struct ibv_sge){(uintptr_t)a.buf, 10, 0}; /* inline data needs no key */
    out[1] = (struct ibv_sge){(uintptr_t)a.buf + 50, 20, 0};
    ck_assert_int_eq(ibv_post_recv(b.qp, &rwr, &bad_r), 0);
    ck_assert_int_eq(post(&a, &wr), 0);
    memset(a.buf, 0xee, 100); /* inline: already taken */
    expect(&b, IBV_WC_SUCCESS, 1);
    expect(&a, IBV_WC_SUCCESS, 2);
    for (unsigned i = 0; i < 30; i++) {
        uint8_t got = i < 7 ? b.buf[i] : b.buf[1000 + i - 7], want = (uint8_t)((i < 10 ? i : i + 40) * 7 + 9);

        ck_assert_uint_eq(got, want);
    }
    wr.sg_list[1].length = 23; /* 33 bytes: more than max_inline_data unless the HCA gave more */
    out[0].length = 1000;
    ck_assert_int_eq(post(&a, &wr), EINVAL);
}
END_TEST

START_TEST(rc_rdma_write_and_read)
{
    struct ibv_wc wc;

    make_pair(IBV_QPT_RC, false);
    fill(&a, SIZE, 1);
    ck_assert_int_eq(post(&a, rdma(&a, IBV_WR_RDMA_WRITE, 1, SIZE)), 0);
    wc = completion(&a);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_WRITE);
    ck_assert_mem_eq(a.buf, b.buf, SIZE);

    fill(&b, SIZE, 77);
    ck_assert_int_eq(post(&a, rdma(&a, IBV_WR_RDMA_READ, 2, SIZE)), 0);
    wc = completion(&a);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_READ);
    ck_assert_mem_eq(a.buf, b.buf, SIZE);

    fill(&a, 100, 5);
    ck_assert_int_eq(post_recv(&b, 3, 500000, 0), 0);
    struct ibv_send_wr *wr = rdma(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 100);
    wr->imm_data = htobe32(42);
    ck_assert_int_eq(post(&a, wr), 0);
    wc = completion(&b);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_eq(wc.byte_len, 100);
    ck_assert_uint_eq(be32toh(wc.imm_data), 42);
    ck_assert_mem_eq(a.buf, b.buf, 100);
}
END_TEST

/* Nanoseconds of a read of n bytes, with or without a message behind. */
static uint64_t time_read(uint32_t n, bool send)
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    ck_assert_int_eq(post(&a, rdma(&a, IBV_WR_RDMA_READ, 1, n)), 0);
    if (send)
        ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 2, n, 8)), 0);
    expect(&a, IBV_WC_SUCCESS, 1);
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (send)
        expect(&a, IBV_WC_SUCCESS, 2);
    return (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u + (uint64_t)to.tv_nsec - (uint64_t)from.tv_nsec;
}

/* The acknowledge of a message after a read does not overtake the read's responses, which would restart the read. */
START_TEST(rc_read_then_send)
{
    uint32_t n = SIZE / 2 - 4000;
    uint64_t alone, followed;

    make_pair(IBV_QPT_RC, false);
    ck_assert_int_eq(post_recv(&b, 3, n, 100), 0);
    alone = time_read(n, false);
    fill(&b, n, 9);
    followed = time_read(n, true);
    ck_assert_mem_eq(a.buf, b.buf, n);
    ck_assert_uint_lt(followed, alone + alone / 100);
}
END_TEST

START_TEST(rc_atomics)
{
    uint64_t *remote, *local;
    struct ibv_send_wr *wr;

    make_pair(IBV_QPT_RC, false);
    remote = (uint64_t *)b.buf;
    local = (uint64_t *)a.buf;
    *remote = 40;
    wr = request(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8);
    wr->wr.atomic.remote_addr = (uintptr_t)remote;
    wr->wr.atomic.rkey = b.mr->rkey;
    wr->wr.atomic.compare_add = 2;
    ck_assert_int_eq(post(&a, wr), 0);
    expect(&a, IBV_WC_SUCCESS, 1);
    ck_assert_uint_eq(*local, 40);
    ck_assert_uint_eq(*remote, 42);
    wr = request(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 0, 8);
    wr->wr.atomic.remote_addr = (uintptr_t)remote;
    wr->wr.atomic.rkey = b.mr->rkey;
    wr->wr.atomic.compare_add = 42;
    wr->wr.atomic.swap = 7;
    ck_assert_int_eq(post(&a, wr), 0);
    expect(&a, IBV_WC_SUCCESS, 2);
    ck_assert_uint_eq(*local, 42);
    ck_assert_uint_eq(*remote, 7);
}
END_TEST

START_TEST(unsignalled_sends_free_their_slots)
{
    make_pair(IBV_QPT_RC, false);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++) {
            struct ibv_send_wr *wr = rdma(&a, IBV_WR_RDMA_WRITE, 1, 8);

            wr->send_flags = 0;
            ck_assert_int_eq(post(&a, wr), 0);
        }
        ck_assert_int_eq(post(&a, rdma(&a, IBV_WR_RDMA_WRITE, 2, 8)), 0);
        expect(&a, IBV_WC_SUCCESS, 2);
    }
}
END_TEST

START_TEST(shared_receive_queue)
{
    struct ibv_srq_attr at = {.srq_limit = 3};
    struct ibv_async_event ev;

    make_pair(IBV_QPT_RC, true);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(post_recv(&b, i, (uint32_t)i * 1024, 1024), 0);
    ck_assert_int_eq(ibv_modify_srq(b.srq, &at, IBV_SRQ_LIMIT), 0);
    ck_assert_int_eq(ibv_query_srq(b.srq, &at), 0);
    ck_assert_uint_eq(at.srq_limit, 3);
    for (uint64_t i = 0; i < 2; i++) {
        a.buf[0] = (uint8_t)(100 + i);
        ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 9, 0, 1)), 0);
        expect(&a, IBV_WC_SUCCESS, 9);
        expect(&b, IBV_WC_SUCCESS, i);
        ck_assert_uint_eq(b.buf[i * 1024], 100 + i);
    }
    ck_assert_int_eq(ibv_get_async_event(b.ctx, &ev), 0);
    ck_assert_str_eq(ibv_event_type_str(ev.event_type), ibv_event_type_str(IBV_EVENT_SRQ_LIMIT_REACHED));
    ck_assert_ptr_eq(ev.element.srq, b.srq);
    ibv_ack_async_event(&ev);
    ck_assert_int_eq(ibv_destroy_qp(b.qp), 0);
    ck_assert_int_eq(ibv_destroy_srq(b.srq), 0);
}
END_TEST

START_TEST(ud_send)
{
    struct ibv_ah_attr to = {.port_num = 1};
    struct ibv_send_wr *wr;
    struct ibv_ah *ah, *back;
    struct ibv_wc wc;

    make_pair(IBV_QPT_UD, false);
    to.dlid = b.lid;
    to.sl = 0;
    ah = ibv_create_ah(a.pd, &to);
    ck_assert_ptr_nonnull(ah);
    fill(&a, 200, 4);
    ck_assert_int_eq(post_recv(&b, 1, 0, 1024), 0);
    wr = request(&a, IBV_WR_SEND, 2, 0, 200);
    wr->wr.ud.ah = ah;
    wr->wr.ud.remote_qpn = b.qp->qp_num;
    wr->wr.ud.remote_qkey = 0x1234;
    ck_assert_int_eq(post(&a, wr), 0);
    expect(&a, IBV_WC_SUCCESS, 2);
    wc = completion(&b);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.byte_len, 240); /* the global route header's place included */
    ck_assert_uint_eq(wc.src_qp, a.qp->qp_num);
    ck_assert_uint_eq(wc.slid, a.lid);
    ck_assert_mem_eq(b.buf + 40, a.buf, 200);
    back = ibv_create_ah_from_wc(b.pd, &wc, NULL, 1);
    ck_assert_ptr_nonnull(back);

    /* a wrong key is dropped without a word, a receive stays */
    wr = request(&a, IBV_WR_SEND, 3, 0, 200);
    wr->wr.ud.ah = ah;
    wr->wr.ud.remote_qpn = b.qp->qp_num;
    wr->wr.ud.remote_qkey = 0x9999;
    ck_assert_int_eq(post_recv(&b, 4, 0, 1024), 0);
    ck_assert_int_eq(post(&a, wr), 0);
    expect(&a, IBV_WC_SUCCESS, 3);
    fill(&b, 300, 8);
    wr = request(&b, IBV_WR_SEND, 5, 0, 300);
    wr->wr.ud.ah = back;
    wr->wr.ud.remote_qpn = wc.src_qp;
    wr->wr.ud.remote_qkey = 0x1234;
    ck_assert_int_eq(post_recv(&a, 6, 4096, 1024), 0);
    ck_assert_int_eq(post(&b, wr), 0);
    expect(&a, IBV_WC_SUCCESS, 6);
    ck_assert_mem_eq(a.buf + 4096 + 40, b.buf, 300);
    expect(&b, IBV_WC_SUCCESS, 5);
    ck_assert_int_eq(ibv_poll_cq(b.cq, 1, &wc), 0);
    ibv_destroy_ah(ah);
    ibv_destroy_ah(back);
}
END_TEST

START_TEST(completion_events)
{
    struct ibv_cq *cq;
    void *context;
    struct pollfd p;

    make_pair(IBV_QPT_RC, false);
    fcntl(b.chan->fd, F_SETFL, O_NONBLOCK);
    ck_assert_int_eq(ibv_get_cq_event(b.chan, &cq, &context), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(ibv_req_notify_cq(b.cq, 0), 0);
    ck_assert_int_eq(post_recv(&b, 1, 0, 100), 0);
    ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 2, 0, 100)), 0);
    p = (struct pollfd){.fd = b.chan->fd, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
    ck_assert_int_eq(ibv_get_cq_event(b.chan, &cq, &context), 0);
    ck_assert_ptr_eq(cq, b.cq);
    ck_assert_ptr_eq(context, &b);
    ibv_ack_cq_events(cq, 1);
    /* arming with a completion already there fires at once */
    ck_assert_int_eq(ibv_req_notify_cq(b.cq, 0), 0);
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
    ck_assert_int_eq(ibv_get_cq_event(b.chan, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    expect(&b, IBV_WC_SUCCESS, 1);
    /* solicited only: an ordinary message is silent */
    ck_assert_int_eq(ibv_req_notify_cq(b.cq, 1), 0);
    ck_assert_int_eq(post_recv(&b, 3, 0, 100), 0);
    ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 4, 0, 100)), 0);
    ck_assert_int_eq(poll(&p, 1, 100), 0);
    ck_assert_int_eq(post_recv(&b, 5, 0, 100), 0);
    struct ibv_send_wr *wr = request(&a, IBV_WR_SEND, 6, 0, 100);
    wr->send_flags |= IBV_SEND_SOLICITED;
    ck_assert_int_eq(post(&a, wr), 0);
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
}
END_TEST

START_TEST(resize_keeps_completions)
{
    make_pair(IBV_QPT_RC, false);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(post(&a, rdma(&a, IBV_WR_RDMA_WRITE, i, 8)), 0);
    expect(&a, IBV_WC_SUCCESS, 0);
    usleep(1000); /* the others are there */
    ck_assert_int_eq(ibv_resize_cq(a.cq, 1000), 0);
    ck_assert_int_ge(a.cq->cqe, 1000);
    for (uint64_t i = 1; i < 4; i++)
        expect(&a, IBV_WC_SUCCESS, i);
}
END_TEST

/* ---- failing operations ------------------------------------------------------------------------------------------ */

START_TEST(full_queue_refuses)
{
    struct ibv_send_wr *bad, *wr;

    make_pair(IBV_QPT_RC, false);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(post_recv(&b, 1, 0, 64), 0);
    ck_assert_int_eq(post_recv(&b, 1, 0, 64), ENOMEM);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(post(&a, rdma(&a, IBV_WR_RDMA_WRITE, 1, 8)), 0);
    wr = rdma(&a, IBV_WR_RDMA_WRITE, 1, 8);
    ck_assert_int_eq(ibv_post_send(a.qp, wr, &bad), ENOMEM);
    ck_assert_ptr_eq(bad, wr);
}
END_TEST

/* A completion that finds no room is lost: its queue pair cannot go on, and the program is told of both (volume
 * 1, 11.6.3.1). */
START_TEST(an_overrun_ends_its_queue_pairs)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 32, .max_send_sge = 1}};
    bool queue = false, pair = false;
    struct ibv_async_event ev;
    struct end c, d;

    make_pair(IBV_QPT_RC, false);
    c = a;
    d = b;
    init.send_cq = init.recv_cq = a.cq;
    ck_assert_ptr_nonnull(c.qp = ibv_create_qp(a.pd, &init));
    init.send_cq = init.recv_cq = b.cq;
    ck_assert_ptr_nonnull(d.qp = ibv_create_qp(b.pd, &init));
    to_init(&c);
    to_init(&d);
    to_rts(&c, &d, 2, 1);
    to_rts(&d, &c, 2, 1);
    ck_assert_int_eq(ibv_resize_cq(a.cq, 1), 0);
    ck_assert_int_lt(a.cq->cqe, 32);
    for (int i = 0; i <= a.cq->cqe; i++)
        ck_assert_int_eq(post(&c, rdma(&c, IBV_WR_RDMA_WRITE, (uint64_t)i, 8)), 0);
    for (int got = 0; got < 3; got++) { /* the other pair of the same queue ends, too */
        ck_assert_int_eq(ibv_get_async_event(a.ctx, &ev), 0);
        queue |= ev.event_type == IBV_EVENT_CQ_ERR && ev.element.cq == a.cq;
        pair |= ev.event_type == IBV_EVENT_QP_FATAL && ev.element.qp == c.qp;
        ibv_ack_async_event(&ev);
    }
    ck_assert(queue && pair);
    ck_assert_int_eq(state_of(&c), IBV_QPS_ERR);
    ck_assert_int_eq(state_of(&a), IBV_QPS_ERR);
    ck_assert_int_eq(state_of(&d), IBV_QPS_RTS);
    for (int i = 0; i < a.cq->cqe; i++)
        expect(&c, IBV_WC_SUCCESS, (uint64_t)i);
}
END_TEST

START_TEST(wrong_state_and_arguments)
{
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_RTS};
    struct ibv_send_wr *wr;

    open_end(&a, 0);
    make_qp(&a, IBV_QPT_RC, false);
    b = a;
    ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 1, 0, 8)), EINVAL); /* RESET */
    ck_assert_int_eq(post_recv(&a, 1, 0, 8), EINVAL);
    ck_assert_int_eq(ibv_modify_qp(a.qp, &at, IBV_QP_STATE), EINVAL); /* RESET -> RTS */
    to_init(&a);
    ck_assert_int_eq(post_recv(&a, 1, 0, 8), 0);
    ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 1, 0, 8)), EINVAL);
    to_rts(&a, &a, 1, 1);
    wr = request(&a, IBV_WR_SEND, 1, 0, 8);
    wr->num_sge = 100;
    ck_assert_int_eq(post(&a, wr), EINVAL);
    ck_assert_int_eq(post(&a, request(&a, IBV_WR_TSO, 1, 0, 8)), EINVAL);
}
END_TEST

START_TEST(wrong_rkey)
{
    struct ibv_send_wr *wr;

    make_pair(IBV_QPT_RC, false);
    wr = rdma(&a, IBV_WR_RDMA_WRITE, 1, 64);
    wr->wr.rdma.rkey ^= 0x5500;
    ck_assert_int_eq(post(&a, wr), 0);
    expect(&a, IBV_WC_REM_ACCESS_ERR, 1);
    ck_assert_int_eq(state_of(&a), IBV_QPS_ERR);
    ck_assert_int_eq(state_of(&b), IBV_QPS_ERR);
    ck_assert_int_eq(post(&a, rdma(&a, IBV_WR_RDMA_WRITE, 2, 64)), 0);
    expect(&a, IBV_WC_WR_FLUSH_ERR, 2);
}
END_TEST

START_TEST(remote_bounds)
{
    struct ibv_send_wr *wr;

    make_pair(IBV_QPT_RC, false);
    wr = rdma(&a, IBV_WR_RDMA_READ, 1, 64);
    wr->wr.rdma.remote_addr += SIZE - 32;
    ck_assert_int_eq(post(&a, wr), 0);
    expect(&a, IBV_WC_REM_ACCESS_ERR, 1);
}
END_TEST

START_TEST(wrong_lkey)
{
    struct ibv_send_wr *wr;

    make_pair(IBV_QPT_RC, false);
    wr = rdma(&a, IBV_WR_RDMA_WRITE, 1, 64);
    wr->sg_list[0].lkey ^= 0x7700;
    ck_assert_int_eq(post(&a, wr), 0);
    expect(&a, IBV_WC_LOC_PROT_ERR, 1);
    ck_assert_int_eq(state_of(&a), IBV_QPS_ERR);
}
END_TEST

START_TEST(message_longer_than_the_receive)
{
    make_pair(IBV_QPT_RC, false);
    ck_assert_int_eq(post_recv(&b, 1, 0, 100), 0);
    ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 2, 0, 101)), 0);
    expect(&b, IBV_WC_LOC_LEN_ERR, 1);
    expect(&a, IBV_WC_REM_INV_REQ_ERR, 2);
}
END_TEST

START_TEST(receiver_not_ready)
{
    make_pair(IBV_QPT_RC, false);
    ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 1, 0, 64)), 0);
    expect(&a, IBV_WC_RNR_RETRY_EXC_ERR, 1);
    ck_assert_int_eq(state_of(&a), IBV_QPS_ERR);
}
END_TEST

START_TEST(nobody_there)
{
    struct timespec from, to;
    double seconds;

    make_pair(IBV_QPT_RC, false);
    ck_assert_int_eq(ibv_destroy_qp(b.qp), 0);
    clock_gettime(CLOCK_MONOTONIC, &from);
    ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, 1, 0, 64)), 0);
    expect(&a, IBV_WC_RETRY_EXC_ERR, 1);
    clock_gettime(CLOCK_MONOTONIC, &to);
    /* two retries after 4.096 us * 2^10 each; an HCA may take up to four times that */
    seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    ck_assert_double_ge(seconds, 3 * 4.194e-3 * 0.99);
    ck_assert_double_le(seconds, 3 * 4.194e-3 * 4);
}
END_TEST

START_TEST(error_state_flushes)
{
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_ERR};

    make_pair(IBV_QPT_RC, false);
    ck_assert_int_eq(post_recv(&b, 1, 0, 64), 0);
    ck_assert_int_eq(post_recv(&b, 2, 0, 64), 0);
    ck_assert_int_eq(ibv_modify_qp(b.qp, &at, IBV_QP_STATE), 0);
    expect(&b, IBV_WC_WR_FLUSH_ERR, 1);
    expect(&b, IBV_WC_WR_FLUSH_ERR, 2);
    at.qp_state = IBV_QPS_RESET;
    ck_assert_int_eq(ibv_modify_qp(b.qp, &at, IBV_QP_STATE), 0);
    ck_assert_int_eq(state_of(&b), IBV_QPS_RESET);
}
END_TEST

START_TEST(objects_in_use)
{
    struct ibv_pd *pd;

    make_pair(IBV_QPT_RC, false);
    pd = a.pd;
    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
    ck_assert_int_eq(ibv_destroy_cq(a.cq), EBUSY);
    ck_assert_int_eq(ibv_destroy_comp_channel(a.chan), EBUSY);
    ck_assert_int_eq(ibv_destroy_qp(a.qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(a.cq), 0);
    ck_assert_int_eq(ibv_destroy_comp_channel(a.chan), 0);
    ck_assert_int_eq(ibv_dereg_mr(a.mr), 0);
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    ck_assert_int_eq(ibv_close_device(a.ctx), 0);
}
END_TEST

/* ---- processes, threads, time ---------------------------------------------------------------------------------- */

START_TEST(a_forked_child_starts_anew)
{
    int status;
    pid_t pid;

    make_pair(IBV_QPT_RC, false);
    pid = fork();
    if (pid == 0) {
        struct ibv_wc wc;
        struct ibv_device **list;

        if (ibv_poll_cq(a.cq, 1, &wc) != -1 || post(&a, rdma(&a, IBV_WR_RDMA_WRITE, 1, 8)) != EIO)
            _exit(1);
        list = ibv_get_device_list(NULL);
        _exit(list && list[0] && ibv_open_device(list[0]) ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(post(&a, rdma(&a, IBV_WR_RDMA_WRITE, 1, 8)), 0);
    expect(&a, IBV_WC_SUCCESS, 1);
}
END_TEST

static void *receiver(void *arg)
{
    for (uint64_t i = 0; i < 200; i++) {
        expect(&b, IBV_WC_SUCCESS, i);
        if (i + 4 < 200)
            ck_assert_int_eq(post_recv(&b, i + 4, 0, 64), 0);
    }
    return NULL;
}

START_TEST(two_threads)
{
    pthread_t t;

    rnr_retry = 7; /* the receiver may be late */
    make_pair(IBV_QPT_RC, false);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(post_recv(&b, i, 0, 64), 0);
    ck_assert_int_eq(pthread_create(&t, NULL, receiver, NULL), 0);
    for (uint64_t i = 0; i < 200; i++) {
        ck_assert_int_eq(post(&a, request(&a, IBV_WR_SEND, i, 0, 64)), 0);
        expect(&a, IBV_WC_SUCCESS, i);
    }
    ck_assert_int_eq(pthread_join(t, NULL), 0);
}
END_TEST

static double seconds(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

START_TEST(sleeping_takes_no_real_time)
{
    double from;
    clock_t cpu;

    make_pair(IBV_QPT_RC, false);
    from = seconds(CLOCK_MONOTONIC);
    cpu = clock();
    sleep(100);
    ck_assert_double_ge(seconds(CLOCK_MONOTONIC) - from, 100);
    ck_assert_double_le(seconds(CLOCK_MONOTONIC) - from, 100.001);
    ck_assert_int_lt(clock() - cpu, CLOCKS_PER_SEC);
}
END_TEST

START_TEST(clocks_agree_and_advance)
{
    double last = 0, real, mono;

    for (int i = 0; i < 1000; i++) {
        double now = seconds(CLOCK_MONOTONIC);

        ck_assert_double_gt(now, last);
        last = now;
    }
    real = seconds(CLOCK_REALTIME) - seconds(CLOCK_MONOTONIC);
    open_end(&a, 0); /* becoming an actor does not turn the clock back */
    mono = seconds(CLOCK_MONOTONIC);
    ck_assert_double_gt(mono, last);
    ck_assert_double_eq_tol(seconds(CLOCK_REALTIME) - seconds(CLOCK_MONOTONIC), real, 1e-4);
}
END_TEST

int main(void)
{
    TCase *works = tcase_create("works"), *fails = tcase_create("fails"), *around = tcase_create("around");

    tcase_add_test(works, rc_send);
    tcase_add_test(works, rc_scatter_gather_and_inline);
    tcase_add_test(works, rc_rdma_write_and_read);
    tcase_add_test(works, rc_read_then_send);
    tcase_add_test(works, rc_atomics);
    tcase_add_test(works, unsignalled_sends_free_their_slots);
    tcase_add_test(works, shared_receive_queue);
    tcase_add_test(works, ud_send);
    tcase_add_test(works, completion_events);
    tcase_add_test(works, resize_keeps_completions);
    tcase_add_test(fails, full_queue_refuses);
    tcase_add_test(fails, an_overrun_ends_its_queue_pairs);
    tcase_add_test(fails, wrong_state_and_arguments);
    tcase_add_test(fails, wrong_rkey);
    tcase_add_test(fails, remote_bounds);
    tcase_add_test(fails, wrong_lkey);
    tcase_add_test(fails, message_longer_than_the_receive);
    tcase_add_test(fails, receiver_not_ready);
    tcase_add_test(fails, nobody_there);
    tcase_add_test(fails, error_state_flushes);
    tcase_add_test(fails, objects_in_use);
    tcase_add_test(around, a_forked_child_starts_anew);
    tcase_add_test(around, two_threads);
    tcase_add_test(around, sleeping_takes_no_real_time);
    tcase_add_test(around, clocks_agree_and_advance);
    return check_run(works, fails, around, NULL);
}
