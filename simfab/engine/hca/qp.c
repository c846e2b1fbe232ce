/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: completing, flushing, ending in error. */
#include "simfab/engine/hca/qp.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/cq.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/landing.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/proto.h"

struct wqe *qp_wqe(struct qp *qp, uint64_t number)
{
    return &qp->sq[number % qp->sq_cap];
}

void qp_ask_turn(struct qp *qp)
{
    if (qp->ops->wants_turn(qp))
        hca_qp_ready(qp);
}

static void release_wqe(struct wqe *w)
{
    chunk_put(w->inline_data);
    w->inline_data = NULL;
}

void qp_release_requests(struct qp *qp)
{
    for (; qp->req.head < qp->req.tail; qp->req.head++)
        release_wqe(qp_wqe(qp, qp->req.head));
}

/* ---- completing ------------------------------------------------------------------------------------------------ */

static const uint8_t wc_opcodes[] = {
    [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
    [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
    [IBV_WR_SEND] = IBV_WC_SEND,
    [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
    [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
    [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
    [IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
    [IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
    [IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
};

void qp_complete_send(struct qp *qp, enum ibv_wc_status status)
{
    struct wqe *w = qp_wqe(qp, qp->req.head);

    if (status != IBV_WC_SUCCESS || qp->sq_sig_all || (w->flags & SF_SEND_SIGNALED)) {
        struct sf_cqe cqe = {.wr_id = w->wr_id,
                             .status = status,
                             .byte_len = w->length,
                             .qp_num = qp->qpn,
                             .qp_handle = qp->obj.handle,
                             .wqe_index = w->wqe_index};

        cqe.opcode = w->opcode < sizeof wc_opcodes ? wc_opcodes[w->opcode] : IBV_WC_SEND;
        cq_push(qp->send_cq, &cqe, false);
    }
    release_wqe(w);
    qp->req.head++;
    if (qp->req.cur < qp->req.head) {
        qp->req.cur = qp->req.head;
        qp->req.cur_packet = 0;
    }
    qp_check_drained(qp);
}

void qp_complete_recv(struct qp *qp, struct sf_cqe *cqe, bool solicited)
{
    cqe->qp_num = qp->qpn;
    cqe->qp_handle = qp->obj.handle;
    cqe->is_recv = 1;
    cq_push(qp->recv_cq, cqe, solicited);
}

void qp_check_drained(struct qp *qp)
{
    if (!qp->draining || qp->req.head < qp->drain_to)
        return;
    qp->draining = false;
    if (qp->attr.en_sqd_async_notify)
        async_event(qp->obj.ctx, IBV_EVENT_SQ_DRAINED, 0, qp->cookie);
}

void qp_flush_send(struct qp *qp)
{
    while (qp->req.head < qp->req.tail)
        qp_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
}

static void flush_one_recv(struct qp *qp, uint64_t wr_id)
{
    struct sf_cqe cqe = {.wr_id = wr_id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV};

    qp_complete_recv(qp, &cqe, false);
}

void qp_flush_recv(struct qp *qp)
{
    for (; qp->rq.taken < qp->rq.posted; qp->rq.taken++)
        flush_one_recv(qp, qp->rq.slot[qp->rq.taken % qp->rq.cap].wr_id);
}

/* ---- ending --------------------------------------------------------------------------------------------------- */

void qp_requester_reset(struct qp *qp)
{
    struct requester *r = &qp->req;

    evtimer_stop(&r->timeout);
    evtimer_stop(&r->glance);
    evtimer_stop(&r->rnr);
    chunk_put(r->chunk);
    r->chunk = NULL;
    landing_clear(&r->landing);
    r->reads = 0;
    r->rnr_wait = r->halted = false;
    r->cur = r->head;
    r->cur_packet = 0;
}

void duty_drop(struct responder *r)
{
    struct duty *d = r->first;

    r->first = d->next;
    if (!r->first)
        r->last = &r->first;
    free(d);
}

void qp_responder_reset(struct qp *qp)
{
    struct responder *r = &qp->resp;

    while (r->first)
        duty_drop(r);
    evtimer_stop(&r->ready);
    chunk_put(r->chunk);
    r->chunk = NULL;
    landing_clear(&r->landing);
    r->in_message = r->has_recv = r->nak_sent = r->deaf = false;
    r->leaving = 0;
    memset(r->replay, 0, sizeof r->replay);
}

void qp_to_error(struct qp *qp)
{
    bool first = qp->state != IBV_QPS_ERR;

    qp->state = IBV_QPS_ERR;
    qp->draining = false;
    hca_qp_forget(qp);
    evtimer_stop(&qp->start);
    qp_requester_reset(qp);
    if (qp->resp.has_recv)
        flush_one_recv(qp, qp->resp.recv.wr_id);
    qp_responder_reset(qp);
    qp_flush_send(qp);
    qp_flush_recv(qp);
    if (first && qp->srq)
        async_event(qp->obj.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, 0, qp->cookie);
}
