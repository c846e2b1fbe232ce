/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extended queue pair (ibv_wr_start .. ibv_wr_complete): requests are collected as ordinary work requests and
 * posted as one list when the program completes the batch.
 */
#include "simfab/preload/verbs_wr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/preload/preload.h"
#include "simfab/preload/verbs.h"
#include "simfab/preload/verbs_post.h"
#include "simfab/preload/verbs_qp.h"

#define SUPPORTED_OPS                                                                                                  \
    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |                            \
     IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                     \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |                         \
     IBV_QP_EX_WITH_SEND_WITH_INV)

struct item {
    struct ibv_send_wr wr;
    struct ibv_sge *sge; /* max_send_sge of them */
    char *data;          /* max_inline_data bytes */
};

struct sfp_wr_batch {
    pthread_mutex_t lock; /* held from start to complete or abort */
    uint32_t used, size;
    int err;
    struct item item[];
};

static struct sfp_qp *qp_of_ex(struct ibv_qp_ex *ex)
{
    return sfp_container(ex, struct sfp_qp, ex);
}

static void wr_start(struct ibv_qp_ex *ex)
{
    struct sfp_wr_batch *b = qp_of_ex(ex)->batch;

    pthread_mutex_lock(&b->lock);
    b->used = 0;
    b->err = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct sfp_qp *q = qp_of_ex(ex);
    struct sfp_wr_batch *b = q->batch;
    struct ibv_send_wr *bad;
    int err = b->err;

    /* all or nothing */
    if (!err && q->sq_posted - __atomic_load_n(&q->sq_done, __ATOMIC_ACQUIRE) + b->used > q->cap.max_send_wr)
        err = ENOMEM;
    if (!err && b->used) {
        for (uint32_t i = 0; i + 1 < b->used; i++)
            b->item[i].wr.next = &b->item[i + 1].wr;
        b->item[b->used - 1].wr.next = NULL;
        err = sfp_post_send(&q->qp, &b->item[0].wr, &bad);
    }
    pthread_mutex_unlock(&b->lock);
    return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    pthread_mutex_unlock(&qp_of_ex(ex)->batch->lock);
}

static struct item *last(struct ibv_qp_ex *ex)
{
    struct sfp_wr_batch *b = qp_of_ex(ex)->batch;

    return b->used && !b->err ? &b->item[b->used - 1] : NULL;
}

static struct ibv_send_wr *add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
    static __thread struct ibv_send_wr nowhere; /* where the fields of a refused request go */
    struct sfp_wr_batch *b = qp_of_ex(ex)->batch;
    struct item *it;

    if (b->used == b->size)
        b->err = ENOMEM;
    if (b->err)
        return &nowhere;
    it = &b->item[b->used++];
    it->wr = (struct ibv_send_wr){.wr_id = ex->wr_id,
                                  .sg_list = it->sge,
                                  .opcode = opcode,
                                  .send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE};
    return &it->wr;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    add(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    add(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr, __be32 imm)
{
    struct ibv_send_wr *wr = add(ex, op);

    wr->wr.rdma.rkey = rkey;
    wr->wr.rdma.remote_addr = addr;
    wr->imm_data = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
    rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr, uint64_t a, uint64_t b)
{
    struct ibv_send_wr *wr = add(ex, op);

    wr->wr.atomic.rkey = rkey;
    wr->wr.atomic.remote_addr = addr;
    wr->wr.atomic.compare_add = a;
    wr->wr.atomic.swap = b;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
    atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t value)
{
    atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, value, 0);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    add(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    add(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
    struct ibv_send_wr *wr = add(ex, IBV_WR_BIND_MW);

    wr->bind_mw.mw = mw;
    wr->bind_mw.rkey = rkey;
    wr->bind_mw.bind_info = *info;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct item *it = last(ex);

    if (!it)
        return;
    it->wr.wr.ud.ah = ah;
    it->wr.wr.ud.remote_qpn = qpn;
    it->wr.wr.ud.remote_qkey = qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
    struct sfp_qp *q = qp_of_ex(ex);
    struct item *it = last(ex);

    if (!it)
        return;
    if (n > q->cap.max_send_sge) {
        q->batch->err = EINVAL;
        return;
    }
    if (n)
        memcpy(it->sge, list, n * sizeof *list);
    it->wr.num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

    wr_set_sge_list(ex, 1, &sge);
}

/* The data is copied now: the program may change it before the batch is complete. */
static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
    struct sfp_qp *q = qp_of_ex(ex);
    struct item *it = last(ex);
    size_t total = 0;

    if (!it)
        return;
    for (size_t i = 0; i < n; i++) {
        if (list[i].length > q->cap.max_inline_data - total) {
            q->batch->err = EINVAL;
            return;
        }
        if (list[i].length)
            memcpy(it->data + total, list[i].addr, list[i].length);
        total += list[i].length;
    }
    it->sge[0] = (struct ibv_sge){.addr = (uintptr_t)it->data, .length = (uint32_t)total};
    it->wr.num_sge = 1;
    it->wr.send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf buf = {.addr = addr, .length = length};

    wr_set_inline_data_list(ex, 1, &buf);
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static struct sfp_wr_batch *new_batch(const struct ibv_qp_cap *cap)
{
    uint32_t n = cap->max_send_wr ? cap->max_send_wr : 1, sges = cap->max_send_sge ? cap->max_send_sge : 1;
    size_t per_item = sizeof(struct item) + sges * sizeof(struct ibv_sge) + ((cap->max_inline_data + 7) & ~7u);
    struct sfp_wr_batch *b = calloc(1, sizeof *b + n * per_item);
    struct ibv_sge *sge;
    char *data;

    if (!b)
        return NULL;
    pthread_mutex_init(&b->lock, NULL);
    b->size = n;
    sge = (struct ibv_sge *)&b->item[n];
    data = (char *)(sge + (size_t)n * sges);
    for (uint32_t i = 0; i < n; i++) {
        b->item[i].sge = sge + (size_t)i * sges;
        b->item[i].data = data + (size_t)i * ((cap->max_inline_data + 7) & ~7u);
    }
    return b;
}

static void free_wr_batch(struct sfp_qp *q)
{
    pthread_mutex_destroy(&q->batch->lock);
    free(q->batch);
}

/* The operations supported by queue pairs of a type. */
static uint64_t operations(enum ibv_qp_type type)
{
    if (type == IBV_QPT_RC)
        return SUPPORTED_OPS;
    if (type == IBV_QPT_UC)
        return SUPPORTED_OPS & ~(uint64_t)(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                           IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV);
    return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
}

struct ibv_qp *sfp_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    struct ibv_qp *qp;
    struct sfp_qp *q;

    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || attr->comp_mask & ~known ||
        (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags) ||
        (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr->send_ops_flags & ~operations(attr->qp_type))) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    qp = sfp_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr); /* the same beginning, by definition */
    if (!qp || !(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
        return qp;
    q = sfp_qp(qp);
    q->batch = new_batch(&q->cap);
    if (!q->batch) {
        ibv_destroy_qp(qp);
        errno = ENOMEM;
        return NULL;
    }
    q->free_batch = free_wr_batch;
    q->ex.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    q->ex.wr_atomic_fetch_add = wr_atomic_fetch_add;
    q->ex.wr_bind_mw = wr_bind_mw;
    q->ex.wr_local_inv = wr_local_inv;
    q->ex.wr_send_inv = wr_send_inv;
    q->ex.wr_rdma_read = wr_rdma_read;
    q->ex.wr_rdma_write = wr_rdma_write;
    q->ex.wr_rdma_write_imm = wr_rdma_write_imm;
    q->ex.wr_send = wr_send;
    q->ex.wr_send_imm = wr_send_imm;
    q->ex.wr_set_ud_addr = wr_set_ud_addr;
    q->ex.wr_set_inline_data = wr_set_inline_data;
    q->ex.wr_set_inline_data_list = wr_set_inline_data_list;
    q->ex.wr_set_sge = wr_set_sge;
    q->ex.wr_set_sge_list = wr_set_sge_list;
    q->ex.wr_start = wr_start;
    q->ex.wr_complete = wr_complete;
    q->ex.wr_abort = wr_abort;
    return qp;
}

SFP_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    struct sfp_qp *q = sfp_qp(qp);

    return q->batch ? &q->ex : NULL;
}
