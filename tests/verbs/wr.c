/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting by ibv_wr_*: every builder and setter of ibv_wr_post(3). Both ends are in one process. */
#include <errno.h>
#include <string.h>

#include "tests/verbs/suite.h"

enum {
    RC_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
             IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ,
};

static struct ibv_qp_ex *pair(struct side *s, struct end *a, struct end *b, uint64_t ops)
{
    struct end_options with = {.wr_ops = ops, .inline_data = 64, .unsignalled = true}, without = {0};
    struct ibv_qp_ex *x;

    end_make(a, s, &with);
    end_make(b, s, &without);
    end_loop(a, b);
    x = ibv_qp_to_qp_ex(a->qp);
    CHECK(x, "no ibv_qp_ex");
    return x;
}

static void begin(struct ibv_qp_ex *x, uint64_t id, unsigned flags)
{
    ibv_wr_start(x);
    x->wr_id = id;
    x->wr_flags = flags;
}

static void builders(struct side *s)
{
    struct ibv_qp_ex *x;
    struct end a, b;
    uint32_t len = 2000;

    x = pair(s, &a, &b, RC_OPS);
    fill(a.buf, len, 6);
    for (uint64_t i = 0; i < 5; i++)
        recv_post(&b, i, 16384, 4096);
    begin(x, 1, IBV_SEND_SIGNALED);
    ibv_wr_rdma_write(x, b.mr->rkey, (uintptr_t)b.buf);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, len);
    CHECK(!ibv_wr_complete(x), "write");
    EXPECT(a.cq, 1, IBV_WC_SUCCESS);
    CHECK(filled(b.buf, len, 6), "the bytes written");
    begin(x, 2, IBV_SEND_SIGNALED);
    ibv_wr_rdma_write_imm(x, b.mr->rkey, (uintptr_t)b.buf, htobe32(21));
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, len);
    CHECK(!ibv_wr_complete(x), "write with immediate");
    EXPECT(a.cq, 2, IBV_WC_SUCCESS);
    CHECK_IS(be32toh(EXPECT(b.cq, 0, IBV_WC_SUCCESS).imm_data), 21, "immediate");
    begin(x, 3, IBV_SEND_SIGNALED);
    ibv_wr_send(x);
    ibv_wr_set_sge_list(
        x, 2, (struct ibv_sge[]){{(uintptr_t)a.buf, 10, a.mr->lkey}, {(uintptr_t)a.buf + 10, 20, a.mr->lkey}});
    CHECK(!ibv_wr_complete(x), "send");
    EXPECT(a.cq, 3, IBV_WC_SUCCESS);
    CHECK_IS(EXPECT(b.cq, 1, IBV_WC_SUCCESS).byte_len, 30, "byte_len");
    CHECK(filled(b.buf + 16384, 30, 6), "the bytes sent");
    begin(x, 4, IBV_SEND_SIGNALED);
    ibv_wr_send_imm(x, htobe32(22));
    ibv_wr_set_inline_data(x, a.buf, 16);
    CHECK(!ibv_wr_complete(x), "inline");
    EXPECT(a.cq, 4, IBV_WC_SUCCESS);
    CHECK_IS(be32toh(EXPECT(b.cq, 2, IBV_WC_SUCCESS).imm_data), 22, "immediate");
    begin(x, 5, IBV_SEND_SIGNALED);
    ibv_wr_rdma_read(x, b.mr->rkey, (uintptr_t)b.buf);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf + 8192, len);
    CHECK(!ibv_wr_complete(x), "read");
    EXPECT(a.cq, 5, IBV_WC_SUCCESS);
    CHECK(filled(a.buf + 8192, len, 6), "the bytes read");
    begin(x, 6, IBV_SEND_SIGNALED);
    ibv_wr_send(x);
    ibv_wr_set_inline_data_list(x, 2, (struct ibv_data_buf[]){{a.buf, 3}, {a.buf + 3, 4}});
    CHECK(!ibv_wr_complete(x), "inline list");
    EXPECT(a.cq, 6, IBV_WC_SUCCESS);
    CHECK_IS(EXPECT(b.cq, 3, IBV_WC_SUCCESS).byte_len, 7, "byte_len");
}

static void atomic_builders(struct side *s)
{
    struct ibv_qp_ex *x;
    struct end a, b;

    SKIP_UNLESS(s->attr.atomic_cap != IBV_ATOMIC_NONE, "no atomics on this device");
    x = pair(s, &a, &b, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
    *(uint64_t *)b.buf = 5;
    begin(x, 1, IBV_SEND_SIGNALED);
    ibv_wr_atomic_fetch_add(x, b.mr->rkey, (uintptr_t)b.buf, 3);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 8);
    CHECK(!ibv_wr_complete(x), "add");
    EXPECT(a.cq, 1, IBV_WC_SUCCESS);
    CHECK_IS(*(uint64_t *)a.buf, 5, "what was there");
    begin(x, 2, IBV_SEND_SIGNALED);
    ibv_wr_atomic_cmp_swp(x, b.mr->rkey, (uintptr_t)b.buf, 8, 100);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 8);
    CHECK(!ibv_wr_complete(x), "swap");
    EXPECT(a.cq, 2, IBV_WC_SUCCESS);
    CHECK_IS(*(uint64_t *)b.buf, 100, "what is there");
}

/* Several in one batch, only the last signalled; given up batches leave nothing. */
static void batches(struct side *s)
{
    struct ibv_qp_ex *x;
    struct end a, b;

    x = pair(s, &a, &b, RC_OPS);
    memset(b.buf, 0, 256);
    memset(a.buf, 9, 256);
    begin(x, 1, IBV_SEND_SIGNALED);
    ibv_wr_rdma_write(x, b.mr->rkey, (uintptr_t)b.buf);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 8);
    ibv_wr_abort(x);
    wc_none(a.cq, 5);
    CHECK(!b.buf[0], "a request that was given up was done");
    ibv_wr_start(x);
    for (uint64_t i = 0; i < 6; i++) {
        x->wr_id = i;
        x->wr_flags = i == 5 ? IBV_SEND_SIGNALED : 0;
        ibv_wr_rdma_write(x, b.mr->rkey, (uintptr_t)b.buf + 32 * i);
        ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 8);
    }
    wc_none(a.cq, 2);
    CHECK(!ibv_wr_complete(x), "batch");
    EXPECT(a.cq, 5, IBV_WC_SUCCESS);
    wc_none(a.cq, 2);
    for (int i = 0; i < 6; i++)
        CHECK_IS(b.buf[32 * i], 9, "a byte");
    /* more than the queue holds */
    ibv_wr_start(x);
    for (uint64_t i = 0; i < 5000; i++) {
        x->wr_id = i;
        x->wr_flags = 0;
        ibv_wr_rdma_write(x, b.mr->rkey, (uintptr_t)b.buf);
        ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 8);
    }
    CHECK(ibv_wr_complete(x), "5000 requests were taken");
    begin(x, 7, IBV_SEND_SIGNALED);
    ibv_wr_rdma_write(x, b.mr->rkey, (uintptr_t)b.buf);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 8);
    CHECK(!ibv_wr_complete(x), "after the batch that did not fit");
    EXPECT(a.cq, 7, IBV_WC_SUCCESS);
}

static void datagrams(struct side *s)
{
    struct end_options with = {.wr_ops = IBV_QP_EX_WITH_SEND, .type = IBV_QPT_UD}, without = {.type = IBV_QPT_UD};
    struct ibv_ah_attr attr;
    struct ibv_qp_ex *x;
    struct ibv_ah *ah;
    struct end a, b;

    end_make(&a, s, &with);
    end_make(&b, s, &without);
    end_loop(&a, &b);
    x = ibv_qp_to_qp_ex(a.qp);
    attr = end_ah(s, &b.local);
    CHECK((ah = ibv_create_ah(s->pd, &attr)), "%s", strerror(errno));
    recv_post(&b, 1, 0, 104);
    begin(x, 1, IBV_SEND_SIGNALED);
    ibv_wr_send(x);
    ibv_wr_set_ud_addr(x, ah, b.qp->qp_num, QKEY);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 64);
    CHECK(!ibv_wr_complete(x), "datagram");
    EXPECT(a.cq, 1, IBV_WC_SUCCESS);
    CHECK_IS(EXPECT(b.cq, 1, IBV_WC_SUCCESS).byte_len, 104, "byte_len");
}

/* Operations that the type does not have are refused when the queue pair is made. */
static void impossible_operations(struct side *s)
{
    struct ibv_cq *cq = ibv_create_cq(s->ctx, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {1, 1, 1, 1, 0},
                                       .qp_type = IBV_QPT_UD,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = s->pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ};

    CHECK(!ibv_create_qp_ex(s->ctx, &init), "a datagram queue pair that reads");
    CHECK(errno == EOPNOTSUPP || errno == EINVAL, "errno %d", errno);
    init.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    CHECK(!ibv_create_qp_ex(s->ctx, &init), "without a domain");
}

static const struct test_case cases[] = {
    {"every builder and setter", builders, false},
    {"atomics", atomic_builders, false},
    {"batches", batches, false},
    {"datagrams", datagrams, false},
    {"operations that the type does not have", impossible_operations, false},
};
const struct theme theme_wr = {"wr", cases, COUNT(cases)};
