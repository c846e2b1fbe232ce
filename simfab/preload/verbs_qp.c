/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs and shared receive queues: their control verbs. The counts of posted and completed requests are kept
 * here, so a full queue refuses a post without a request to the engine.
 */
#include "simfab/preload/verbs_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/call.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/verbs.h"
#include "simfab/preload/verbs_cq.h"
#include "simfab/preload/verbs_registry.h"

/* ---- shared receive queues ------------------------------------------------------------------------------------- */

SFP_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct sf_create_srq req = {.pd = pd->handle, .max_wr = attr->attr.max_wr, .max_sge = attr->attr.max_sge};
    struct sfp_srq *s = calloc(1, sizeof *s);
    uint32_t rep[3];
    int err;

    if (!s)
        return NULL;
    s->cookie = req.cookie = sfp_new_cookie();
    err = sfp_call(SF_OP_CREATE_SRQ, &req, sizeof req, rep, sizeof rep, NULL, NULL);
    if (err) {
        free(s);
        errno = err;
        return NULL;
    }
    s->generation = sfp_generation;
    s->max_wr = attr->attr.max_wr = rep[1];
    s->max_sge = attr->attr.max_sge = rep[2];
    s->srq.context = pd->context;
    s->srq.srq_context = attr->srq_context;
    s->srq.pd = pd;
    s->srq.handle = rep[0];
    pthread_mutex_init(&s->srq.mutex, NULL);
    pthread_cond_init(&s->srq.cond, NULL);
    sfp_register_srq(s);
    return &s->srq;
}

SFP_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    struct {
        uint32_t srq;
        int32_t mask;
        struct ibv_srq_attr attr;
    } req = {srq->handle, mask, *attr};
    int err;

    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return EINVAL;
    err = sfp_call(SF_OP_MODIFY_SRQ, &req, sizeof req, NULL, 0, NULL, NULL);
    if (!err && mask & IBV_SRQ_MAX_WR)
        sfp_srq(srq)->max_wr = attr->max_wr;
    return err;
}

SFP_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    return sfp_call(SF_OP_QUERY_SRQ, &srq->handle, sizeof srq->handle, attr, sizeof *attr, NULL, NULL);
}

SFP_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    struct sfp_srq *s = sfp_srq(srq);
    int err = 0;

    if (s->generation == sfp_generation)
        err = sfp_call(SF_OP_DESTROY_SRQ, &srq->handle, sizeof srq->handle, NULL, 0, NULL, NULL);
    if (err && err != EIO)
        return err;
    sfp_unregister_srq(s);
    pthread_mutex_lock(&srq->mutex);
    while (srq->events_completed != s->async_reported)
        pthread_cond_wait(&srq->cond, &srq->mutex);
    pthread_mutex_unlock(&srq->mutex);
    pthread_mutex_destroy(&srq->mutex);
    pthread_cond_destroy(&srq->cond);
    free(s);
    return 0;
}

/* ---- queue pairs ----------------------------------------------------------------------------------------------- */

static void describe(struct sf_create_qp *req, const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
    *req = (struct sf_create_qp){
        .pd = pd->handle,
        .qp_type = attr->qp_type,
        .send_cq = attr->send_cq->handle,
        .recv_cq = attr->recv_cq->handle,
        .srq = attr->srq ? attr->srq->handle : 0,
        .max_send_wr = attr->cap.max_send_wr,
        .max_recv_wr = attr->cap.max_recv_wr,
        .max_send_sge = attr->cap.max_send_sge,
        .max_recv_sge = attr->cap.max_recv_sge,
        .max_inline = attr->cap.max_inline_data,
        .sq_sig_all = attr->sq_sig_all != 0,
    };
}

struct ibv_qp *sfp_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct sf_create_qp req;
    struct sf_created_qp rep;
    struct sfp_qp *q;
    int err;

    if (!attr->send_cq || !attr->recv_cq) {
        errno = EINVAL;
        return NULL;
    }
    q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    describe(&req, pd, attr);
    q->cookie = req.cookie = sfp_new_cookie();
    err = sfp_call(SF_OP_CREATE_QP, &req, sizeof req, &rep, sizeof rep, NULL, NULL);
    if (err)
        goto fail;
    q->generation = sfp_generation;
    q->cap = (struct ibv_qp_cap){rep.max_send_wr, rep.max_recv_wr, rep.max_send_sge, rep.max_recv_sge, rep.max_inline};
    q->sig_all = attr->sq_sig_all;
    q->qp.context = pd->context;
    q->qp.qp_context = attr->qp_context;
    q->qp.pd = pd;
    q->qp.send_cq = attr->send_cq;
    q->qp.recv_cq = attr->recv_cq;
    q->qp.srq = attr->srq;
    q->qp.handle = rep.qp;
    q->qp.qp_num = rep.qpn;
    q->qp.state = IBV_QPS_RESET;
    q->qp.qp_type = attr->qp_type;
    pthread_mutex_init(&q->qp.mutex, NULL);
    pthread_cond_init(&q->qp.cond, NULL);
    err = sfp_register_qp(q);
    if (err) {
        sfp_call(SF_OP_DESTROY_QP, &rep.qp, sizeof rep.qp, NULL, 0, NULL, NULL);
        goto fail;
    }
    attr->cap = q->cap;
    return &q->qp;

fail:
    free(q);
    errno = err;
    return NULL;
}

SFP_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    return sfp_create_qp(pd, attr);
}

/* A queue pair that starts over: its requests and their completions are gone. */
static void forget_requests(struct sfp_qp *q)
{
    sfp_purge_cq(sfp_cq(q->qp.send_cq), q);
    if (q->qp.recv_cq != q->qp.send_cq)
        sfp_purge_cq(sfp_cq(q->qp.recv_cq), q);
    __atomic_store_n(&q->sq_done, q->sq_posted, __ATOMIC_RELEASE);
    __atomic_store_n(&q->rq_done, q->rq_posted, __ATOMIC_RELEASE);
}

SFP_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct {
        uint32_t qp;
        int32_t mask;
        struct ibv_qp_attr attr;
    } req = {qp->handle, mask, *attr};
    int err;

    if (sfp_qp(qp)->generation != sfp_generation)
        return EIO;
    err = sfp_call(SF_OP_MODIFY_QP, &req, sizeof req, NULL, 0, NULL, NULL);
    if (!err && mask & IBV_QP_STATE) {
        qp->state = attr->qp_state;
        if (qp->state == IBV_QPS_RESET)
            forget_requests(sfp_qp(qp));
    }
    return err;
}

SFP_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct {
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
    } rep;
    int err;

    if (sfp_qp(qp)->generation != sfp_generation)
        return EIO;
    err = sfp_call(SF_OP_QUERY_QP, &qp->handle, sizeof qp->handle, &rep, sizeof rep, NULL, NULL);
    if (err)
        return err;
    *attr = rep.attr;
    if (mask & IBV_QP_STATE)
        qp->state = rep.attr.qp_state;
    if (init)
        *init = (struct ibv_qp_init_attr){
            .qp_context = qp->qp_context,
            .send_cq = qp->send_cq,
            .recv_cq = qp->recv_cq,
            .srq = qp->srq,
            .cap = sfp_qp(qp)->cap,
            .qp_type = qp->qp_type,
            .sq_sig_all = sfp_qp(qp)->sig_all,
        };
    return 0;
}

SFP_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct sfp_qp *q = sfp_qp(qp);
    int err = 0;

    if (q->generation == sfp_generation) {
        err = sfp_call(SF_OP_DESTROY_QP, &qp->handle, sizeof qp->handle, NULL, 0, NULL, NULL);
        if (err && err != EIO)
            return err;
        forget_requests(q);
    }
    sfp_unregister_qp(q);
    pthread_mutex_lock(&qp->mutex);
    while (qp->events_completed != q->async_reported)
        pthread_cond_wait(&qp->cond, &qp->mutex);
    pthread_mutex_unlock(&qp->mutex);
    pthread_mutex_destroy(&qp->mutex);
    pthread_cond_destroy(&qp->cond);
    if (q->free_batch)
        q->free_batch(q);
    free(q);
    return 0;
}

/* ---- multicast ------------------------------------------------------------------------------------------------- */

static int multicast(enum sf_op op, struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct {
        uint32_t qp;
        uint16_t lid;
        uint8_t gid[16];
    } __attribute__((packed)) req = {.qp = qp->handle, .lid = lid};

    memcpy(req.gid, gid->raw, sizeof req.gid);
    return sfp_call(op, &req, sizeof req, NULL, 0, NULL, NULL);
}

SFP_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return multicast(SF_OP_ATTACH_MCAST, qp, gid, lid);
}

SFP_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return multicast(SF_OP_DETACH_MCAST, qp, gid, lid);
}
