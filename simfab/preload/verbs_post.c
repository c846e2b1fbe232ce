/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: the fast path. Requests are checked here as an HCA's driver would, and written into the command ring that
 * the engine reads; no system call, unless the ring is full.
 */
#include "simfab/preload/verbs_post.h"

#include <errno.h>
#include <string.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/verbs.h"

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER; /* the producing end */

static size_t round8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

/*
 * Reserves contiguous room for a record; NULL when the engine died. Called with ring_lock held, which is released while
 * waiting: other threads' records may go first, but never into the middle of a record.
 */
static struct sf_cmd *reserve(struct sf_actor *a, size_t bytes)
{
    struct sf_arena *ar = sfp_proc.arena;
    uint64_t size = ar->cmd_bytes;

    for (;;) {
        uint64_t head = ar->cmd_head, used = head - __atomic_load_n(&ar->cmd_tail, __ATOMIC_ACQUIRE);
        uint64_t at = head & (size - 1), to_end = size - at;
        uint64_t need = bytes <= to_end ? bytes : to_end + bytes;
        char *ring = (char *)ar + ar->cmd_offset;

        if (used <= size && need <= size - used) {
            if (bytes <= to_end)
                return (struct sf_cmd *)(ring + at);
            *(uint32_t *)(ring + at) = (uint32_t)to_end;
            *(uint32_t *)(ring + at + 4) = SF_CMD_SKIP; /* op, and num_sge 0 */
            __atomic_store_n(&ar->cmd_head, head + to_end, __ATOMIC_RELEASE);
            continue;
        }
        pthread_mutex_unlock(&ring_lock);
        if (sfp_wait(a, SF_ACTOR_DRAIN, 0) < 0) {
            pthread_mutex_lock(&ring_lock);
            return NULL;
        }
        pthread_mutex_lock(&ring_lock);
    }
}

static void commit(const struct sf_cmd *c)
{
    __atomic_store_n(&sfp_proc.arena->cmd_head, sfp_proc.arena->cmd_head + c->bytes, __ATOMIC_RELEASE);
}

/* True for a record that could never fit, however empty the ring. */
static bool too_big(size_t bytes)
{
    return bytes > sfp_proc.arena->cmd_bytes / 4;
}

static void copy_sges(struct sf_sge *to, const struct ibv_sge *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (struct sf_sge){.addr = from[i].addr, .length = from[i].length, .lkey = from[i].lkey};
}

int sfp_post_simple(struct sf_actor *a, enum sf_cmd_op op, uint32_t object, uint32_t flags)
{
    struct sf_cmd *c;

    pthread_mutex_lock(&ring_lock);
    c = reserve(a, sizeof *c);
    if (c) {
        *c = (struct sf_cmd){
            .bytes = sizeof *c, .op = (uint16_t)op, .object = object, .flags = flags, .stamp_ps = sfp_now(a)};
        commit(c);
    }
    pthread_mutex_unlock(&ring_lock);
    return c ? 0 : EIO;
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

static bool opcode_allowed(enum ibv_qp_type type, enum ibv_wr_opcode op)
{
    switch (op) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_BIND_MW:
    case IBV_WR_LOCAL_INV:
        return type == IBV_QPT_RC || type == IBV_QPT_UC;
    case IBV_WR_RDMA_READ:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return type == IBV_QPT_RC;
    default:
        return false;
    }
}

static bool is_atomic(enum ibv_wr_opcode op)
{
    return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Done by the adapter without the peer; the data part of the request means something else, or nothing. */
static bool is_local(enum ibv_wr_opcode op)
{
    return op == IBV_WR_BIND_MW || op == IBV_WR_LOCAL_INV;
}

static uint64_t total_length(const struct ibv_send_wr *wr)
{
    uint64_t n = 0;

    for (int i = 0; i < wr->num_sge; i++)
        n += wr->sg_list[i].length;
    return n;
}

static int check_send(const struct sfp_qp *q, const struct ibv_send_wr *wr)
{
    if (q->qp.state < IBV_QPS_RTS || q->qp.state > IBV_QPS_ERR)
        return EINVAL;
    if (!opcode_allowed(q->qp.qp_type, wr->opcode))
        return EINVAL;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->cap.max_send_sge)
        return EINVAL;
    if (is_atomic(wr->opcode) && (wr->num_sge != 1 || wr->sg_list[0].length < 8))
        return EINVAL;
    if (q->qp.qp_type == IBV_QPT_UD && (!wr->wr.ud.ah || !sfp_same_pd(wr->wr.ud.ah->pd, q->qp.pd)))
        return EINVAL;
    if (wr->send_flags & IBV_SEND_INLINE && (wr->opcode == IBV_WR_RDMA_READ || is_atomic(wr->opcode) ||
                                             is_local(wr->opcode) || total_length(wr) > q->cap.max_inline_data))
        return EINVAL;
    if (wr->opcode == IBV_WR_BIND_MW &&
        (!wr->bind_mw.mw || (wr->bind_mw.bind_info.length && !wr->bind_mw.bind_info.mr)))
        return EINVAL;
    return 0;
}

static uint32_t cmd_flags(const struct sfp_qp *q, const struct ibv_send_wr *wr)
{
    uint32_t f = 0;

    if (q->sig_all || wr->send_flags & IBV_SEND_SIGNALED)
        f |= SF_SEND_SIGNALED;
    if (wr->send_flags & IBV_SEND_SOLICITED)
        f |= SF_SEND_SOLICITED;
    if (wr->send_flags & IBV_SEND_FENCE)
        f |= SF_SEND_FENCE;
    if (wr->send_flags & IBV_SEND_INLINE)
        f |= SF_SEND_INLINE;
    return f;
}

static void fill_send(struct sf_send *s, const struct sfp_qp *q, const struct ibv_send_wr *wr)
{
    *s = (struct sf_send){.opcode = wr->opcode, .imm = wr->imm_data, .wqe_index = q->sq_posted};
    if (wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_SEND_WITH_INV)
        s->rkey = wr->invalidate_rkey;
    else if (q->qp.qp_type == IBV_QPT_UD) {
        s->ah = wr->wr.ud.ah->handle;
        s->remote_qpn = wr->wr.ud.remote_qpn;
        s->remote_qkey = wr->wr.ud.remote_qkey;
    } else if (is_atomic(wr->opcode)) {
        s->remote_addr = wr->wr.atomic.remote_addr;
        s->rkey = wr->wr.atomic.rkey;
        s->compare_add = wr->wr.atomic.compare_add;
        s->swap = wr->wr.atomic.swap;
    } else {
        s->remote_addr = wr->wr.rdma.remote_addr;
        s->rkey = wr->wr.rdma.rkey;
    }
}

static void fill_bind(struct sf_bind *b, const struct ibv_send_wr *wr)
{
    const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

    *b = (struct sf_bind){.mw = wr->bind_mw.mw->handle,
                          .mr = info->mr ? info->mr->handle : 0,
                          .rkey = wr->bind_mw.rkey,
                          .access = info->mw_access_flags,
                          .addr = info->addr,
                          .length = info->length};
}

static void copy_inline(char *to, const struct ibv_send_wr *wr)
{
    for (int i = 0; i < wr->num_sge; i++) {
        if (wr->sg_list[i].length) /* the address of nothing may be anything */
            memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
        to += wr->sg_list[i].length;
    }
}

static int post_one_send(struct sf_actor *a, struct sfp_qp *q, const struct ibv_send_wr *wr)
{
    bool in_line = wr->send_flags & IBV_SEND_INLINE;
    int num_sge = in_line || is_local(wr->opcode) ? 0 : wr->num_sge;
    struct sf_send *s;
    struct sf_cmd *c;
    size_t bytes;
    int err = check_send(q, wr);

    if (err)
        return err;
    if (q->sq_posted - __atomic_load_n(&q->sq_done, __ATOMIC_ACQUIRE) >= q->cap.max_send_wr)
        return ENOMEM;
    bytes = sizeof *c + sizeof *s + (size_t)num_sge * sizeof(struct sf_sge);
    if (in_line)
        bytes += round8(total_length(wr));
    else if (wr->opcode == IBV_WR_BIND_MW)
        bytes += sizeof(struct sf_bind);
    if (too_big(bytes))
        return EINVAL;
    c = reserve(a, bytes);
    if (!c)
        return EIO;
    sfp_spend(a, sfp_proc.welcome.post_ps);
    *c = (struct sf_cmd){.bytes = (uint32_t)bytes,
                         .op = SF_CMD_POST_SEND,
                         .num_sge = (uint16_t)num_sge,
                         .object = q->qp.handle,
                         .flags = cmd_flags(q, wr),
                         .stamp_ps = sfp_now(a),
                         .wr_id = wr->wr_id};
    s = (struct sf_send *)(c + 1);
    fill_send(s, q, wr);
    if (in_line) {
        s->inline_bytes = (uint32_t)total_length(wr);
        copy_inline((char *)(s + 1), wr);
    } else if (wr->opcode == IBV_WR_BIND_MW) {
        fill_bind((struct sf_bind *)(s + 1), wr);
    } else {
        copy_sges((struct sf_sge *)(s + 1), wr->sg_list, num_sge);
    }
    q->sq_posted++;
    commit(c);
    return 0;
}

int sfp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct sfp_qp *q = sfp_qp(qp);
    struct sf_actor *a = q->generation == sfp_generation ? sfp_enter() : NULL;
    int err = a ? 0 : EIO;

    if (a) {
        pthread_mutex_lock(&ring_lock);
        while (wr && !(err = post_one_send(a, q, wr)))
            wr = wr->next;
        pthread_mutex_unlock(&ring_lock);
    }
    if (err && bad)
        *bad = wr;
    return err;
}

/* ---- receiving ------------------------------------------------------------------------------------------------- */

/* A receive queue, of a queue pair or shared. */
struct receiver {
    enum sf_cmd_op op;
    uint32_t handle, max_wr, max_sge;
    uint32_t *posted;
    const uint32_t *done;
};

static int post_one_recv(struct sf_actor *a, const struct receiver *r, const struct ibv_recv_wr *wr)
{
    struct sf_cmd *c;
    size_t bytes;

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > r->max_sge)
        return EINVAL;
    if (*r->posted - __atomic_load_n(r->done, __ATOMIC_ACQUIRE) >= r->max_wr)
        return ENOMEM;
    bytes = sizeof *c + (size_t)wr->num_sge * sizeof(struct sf_sge);
    if (too_big(bytes))
        return EINVAL;
    c = reserve(a, bytes);
    if (!c)
        return EIO;
    sfp_spend(a, sfp_proc.welcome.post_ps);
    *c = (struct sf_cmd){.bytes = (uint32_t)bytes,
                         .op = (uint16_t)r->op,
                         .num_sge = (uint16_t)wr->num_sge,
                         .object = r->handle,
                         .stamp_ps = sfp_now(a),
                         .wr_id = wr->wr_id};
    copy_sges((struct sf_sge *)(c + 1), wr->sg_list, wr->num_sge);
    ++*r->posted;
    commit(c);
    return 0;
}

static int post_receives(unsigned generation, const struct receiver *r, struct ibv_recv_wr *wr,
                         struct ibv_recv_wr **bad)
{
    struct sf_actor *a = generation == sfp_generation ? sfp_enter() : NULL;
    int err = a ? 0 : EIO;

    if (a) {
        pthread_mutex_lock(&ring_lock);
        while (wr && !(err = post_one_recv(a, r, wr)))
            wr = wr->next;
        pthread_mutex_unlock(&ring_lock);
    }
    if (err && bad)
        *bad = wr;
    return err;
}

int sfp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct sfp_qp *q = sfp_qp(qp);
    struct receiver r = {SF_CMD_POST_RECV,    qp->handle,    q->cap.max_recv_wr,
                         q->cap.max_recv_sge, &q->rq_posted, &q->rq_done};

    if (qp->srq || qp->state == IBV_QPS_RESET) {
        if (bad)
            *bad = wr;
        return EINVAL;
    }
    return post_receives(q->generation, &r, wr, bad);
}

int sfp_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct sfp_srq *s = sfp_srq(srq);
    struct receiver r = {SF_CMD_POST_SRQ, srq->handle, s->max_wr, s->max_sge, &s->posted, &s->done};

    return post_receives(s->generation, &r, wr, bad);
}
