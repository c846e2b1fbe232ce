/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, posting, completing, flushing. */
#include "simfab/engine/hca/qp.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/cq.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/mcast_group.h"
#include "simfab/engine/hca/mw.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/path.h"
#include "simfab/engine/hca/rc_request.h"
#include "simfab/engine/hca/receive.h"
#include "simfab/engine/hca/rq.h"
#include "simfab/engine/hca/uc.h"
#include "simfab/engine/hca/ud.h"
#include "simfab/engine/wire/keys.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/proto.h"

/* ---- creation -------------------------------------------------------------------------------------------------- */

static void start_sending(void *obj, uint64_t arg)
{
    struct qp *qp = obj;

    if (qp_wants_turn(qp))
        hca_qp_ready(qp);
}

static struct qp *new_qp(struct hca *h)
{
    struct qp *qp = h->free_qps;
    struct evtimer start, timeout, glance, rnr, ready;

    if (!qp) {
        qp = xcalloc(1, sizeof *qp);
        evtimer_init(&qp->start, start_sending, qp);
        rc_init(qp);
        return qp;
    }
    /* old events may still point to the timers: they stay as they are */
    h->free_qps = qp->next_free;
    start = qp->start;
    timeout = qp->req.timeout;
    glance = qp->req.glance;
    rnr = qp->req.rnr;
    ready = qp->resp.ready;
    memset(qp, 0, sizeof *qp);
    qp->start = start;
    qp->req.timeout = timeout;
    qp->req.glance = glance;
    qp->req.rnr = rnr;
    qp->resp.ready = ready;
    return qp;
}

static uint32_t new_qpn(struct hca *h, struct qp *qp)
{
    uint32_t i = h->next_qpn - HCA_FIRST_QPN;

    if (i >= 1u << 20) { /* start over where numbers have become free */
        for (i = 0; i < h->qp_table_size && h->qp_table[i]; i++)
            ;
    }
    if (i >= h->qp_table_size) {
        uint32_t size = h->qp_table_size ? 2 * h->qp_table_size : 64;

        h->qp_table = xrealloc(h->qp_table, size * sizeof *h->qp_table);
        memset(h->qp_table + h->qp_table_size, 0, (size - h->qp_table_size) * sizeof *h->qp_table);
        h->qp_table_size = size;
    }
    h->qp_table[i] = qp;
    h->next_qpn++;
    return i + HCA_FIRST_QPN;
}

static uint32_t at_least_one(uint32_t n)
{
    return n ? n : 1;
}

int qp_create(struct ctx *ctx, const struct sf_create_qp *r, struct pd *pd, struct cq *scq, struct cq *rcq,
              struct srq *srq, struct qp **out)
{
    const struct model *m = ctx->hca->sim->model;
    struct qp *qp;

    if (r->qp_type != IBV_QPT_RC && r->qp_type != IBV_QPT_UC && r->qp_type != IBV_QPT_UD)
        return EOPNOTSUPP;
    if (r->max_send_wr > m->max_qp_wr || r->max_recv_wr > m->max_qp_wr || r->max_send_sge > m->max_sge ||
        r->max_recv_sge > m->max_sge || r->max_inline > m->max_inline_bytes)
        return EINVAL;
    if (srq && r->qp_type == IBV_QPT_UC && !m->uc_srq)
        return EINVAL;
    if (ctx->hca->objects[OBJ_QP] >= m->max_qp)
        return ENOMEM;
    qp = new_qp(ctx->hca);
    qp->hca = ctx->hca;
    qp->port = &ctx->hca->ports[1];
    qp->pd = pd;
    qp->send_cq = scq;
    qp->recv_cq = rcq;
    qp->srq = srq;
    qp->type = r->qp_type;
    qp->state = IBV_QPS_RESET;
    qp->cookie = r->cookie;
    qp->sq_sig_all = r->sq_sig_all;
    qp->cap = (struct ibv_qp_cap){at_least_one(r->max_send_wr), r->max_recv_wr, at_least_one(r->max_send_sge),
                                  at_least_one(r->max_recv_sge), r->max_inline};
    qp->attr.path_mtu = IBV_MTU_256;
    qp->sq_cap = qp->cap.max_send_wr;
    qp->sq = xcalloc(qp->sq_cap, sizeof *qp->sq);
    qp->sq_sges = xcalloc((size_t)qp->sq_cap * qp->cap.max_send_sge, sizeof *qp->sq_sges);
    rq_init(&qp->rq, srq ? 0 : r->max_recv_wr, qp->cap.max_recv_sge);
    qp->resp.recv_sge = xcalloc(m->max_sge, sizeof *qp->resp.recv_sge);
    qp->resp.last = &qp->resp.first;
    object_add(ctx->obj.proc, ctx, OBJ_QP, &qp->obj);
    qp->qpn = new_qpn(ctx->hca, qp);
    pd->obj.uses++;
    scq->obj.uses++;
    rcq->obj.uses++;
    if (srq)
        srq->obj.uses++;
    *out = qp;
    return 0;
}

struct wqe *qp_wqe(struct qp *qp, uint64_t number)
{
    return &qp->sq[number % qp->sq_cap];
}

static void release_wqe(struct wqe *w)
{
    chunk_put(w->inline_data);
    w->inline_data = NULL;
}

/* Forget all that was posted and all that is under way. */
void qp_clear(struct qp *qp)
{
    hca_qp_forget(qp);
    evtimer_stop(&qp->start);
    for (; qp->req.head < qp->req.tail; qp->req.head++)
        release_wqe(qp_wqe(qp, qp->req.head));
    rc_requester_reset(qp);
    rc_acknowledge_now(qp);
    rc_responder_reset(qp);
    qp->rq.taken = qp->rq.posted;
}

void qp_destroy(struct qp *qp)
{
    mcast_forget(qp);
    qp_clear(qp);
    mw_forget_qp(qp);
    async_forget(qp->obj.ctx, qp->cookie);
    qp->hca->qp_table[qp->qpn - HCA_FIRST_QPN] = NULL;
    qp->pd->obj.uses--;
    qp->send_cq->obj.uses--;
    qp->recv_cq->obj.uses--;
    if (qp->srq)
        qp->srq->obj.uses--;
    object_remove(&qp->obj);
    free(qp->sq);
    free(qp->sq_sges);
    free(qp->resp.recv_sge);
    rq_fini(&qp->rq);
    qp->next_free = qp->hca->free_qps;
    qp->hca->free_qps = qp;
}

/* ---- posting --------------------------------------------------------------------------------------------------- */

int qp_post_send(struct qp *qp, const struct sf_cmd *cmd, const struct sf_send *s, const void *data, struct ah *ah)
{
    const struct model *m = qp->hca->sim->model;
    struct wqe *w;

    if (qp->req.tail - qp->req.head >= qp->sq_cap)
        return ENOMEM;
    if (!(cmd->flags & SF_SEND_INLINE) && cmd->num_sge > qp->cap.max_send_sge)
        return EINVAL;
    w = qp_wqe(qp, qp->req.tail);
    *w = (struct wqe){.wr_id = cmd->wr_id,
                      .ready_ps = cmd->stamp_ps + m->doorbell_ps,
                      .opcode = s->opcode,
                      .flags = cmd->flags,
                      .imm = s->imm,
                      .rkey = s->rkey,
                      .wqe_index = s->wqe_index,
                      .remote_addr = s->remote_addr,
                      .compare_add = s->compare_add,
                      .swap = s->swap,
                      .remote_qpn = s->remote_qpn & 0xffffff,
                      .remote_qkey = s->remote_qkey,
                      .sge = qp->sq_sges + (qp->req.tail % qp->sq_cap) * qp->cap.max_send_sge};
    if (ah)
        w->av = ah->attr;
    if (cmd->flags & SF_SEND_INLINE) {
        w->length = s->inline_bytes;
        if (w->length) {
            w->inline_data = chunk_new(w->length);
            memcpy(w->inline_data->data, data, w->length);
        }
    } else if (s->opcode == IBV_WR_BIND_MW) {
        memcpy(&w->bind, data, sizeof w->bind);
    } else {
        uint64_t total = 0;

        w->num_sge = cmd->num_sge;
        memcpy(w->sge, data, w->num_sge * sizeof *w->sge);
        for (uint32_t i = 0; i < w->num_sge; i++)
            total += w->sge[i].length;
        w->length = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total; /* too long: found when its turn comes */
    }
    qp->req.tail++;
    if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)
        qp_flush_send(qp);
    else if (qp->state == IBV_QPS_RTS)
        evtimer_set_earlier(&qp->hca->sim->q, &qp->start, w->ready_ps);
    return 0;
}

/* In SQD only what was begun before. */
static bool may_send(const struct qp *qp)
{
    return qp->state == IBV_QPS_RTS || (qp->state == IBV_QPS_SQD && qp->req.cur < qp->drain_to);
}

/* Has t come? Otherwise look again then. */
static bool not_before(struct qp *qp, uint64_t t)
{
    if (t <= sim_now(qp->hca->sim))
        return true;
    evtimer_set_earlier(&qp->hca->sim->q, &qp->start, t);
    return false;
}

static bool request_wants_turn(struct qp *qp)
{
    struct wqe *w;

    if (!may_send(qp) || qp->req.cur == qp->req.tail)
        return false;
    w = qp_wqe(qp, qp->req.cur);
    if (!not_before(qp, max_u64(w->ready_ps, qp->paced_ps)))
        return false;
    return qp->type != IBV_QPT_RC || rc_can_emit(qp);
}

static bool answer_wants_turn(struct qp *qp)
{
    return qp->type == IBV_QPT_RC && rc_duty_needs_turn(qp) && not_before(qp, qp->paced_ps);
}

/* Is there anything that the HCA could send now, if its lane has room? Sets the timer for what becomes ready later. */
bool qp_wants_turn(struct qp *qp)
{
    if (qp->type == QPT_FLOW)
        return qp->hca->sim->hca_up->flow_wants_turn(qp);
    return !qp->obj.proc->dead && !qp->obj.ctx->lost && (answer_wants_turn(qp) || request_wants_turn(qp));
}

/*
 * Requester and responder of a queue pair know nothing of each other (IBTA volume 1, 9.2): where both have a packet
 * they take turns, unless the adapter's driver prefers answers.
 */
static bool is_answers_turn(struct qp *qp)
{
    if (!answer_wants_turn(qp))
        return false;
    return !qp->answered || qp->hca->sim->model->answers_first || !request_wants_turn(qp);
}

struct packet *qp_emit(struct qp *qp, struct tx_cost *cost, bool *more)
{
    struct packet *p = NULL;

    if (qp->type == QPT_FLOW)
        return qp->hca->sim->hca_up->flow_emit(qp, cost, more);
    if ((qp->answered = is_answers_turn(qp)))
        p = rc_emit_duty(qp, cost);
    else if (qp_wants_turn(qp))
        p = qp->type == IBV_QPT_RC ? rc_emit(qp, cost) : qp->type == IBV_QPT_UC ? uc_emit(qp, cost) : ud_emit(qp, cost);
    if (p && qp->type != IBV_QPT_UD)
        qp_pace(qp, &qp->attr.ah_attr, p);
    *more = qp_wants_turn(qp);
    return p;
}

int qp_lane(struct qp *qp)
{
    const struct port *p = qp->port->port;

    if (qp->type == IBV_QPT_UD) {
        int vl = link_lane(p, 0, qp->req.cur < qp->req.tail ? qp_wqe(qp, qp->req.cur)->av.sl : 0);

        return vl < 0 ? 0 : vl;
    }
    if (qp->vl_changes != p->changes || qp->vl < 0) {
        int vl = link_lane(p, 0, qp->sl);

        qp->vl_changes = p->changes;
        qp->vl = vl < 0 ? 0 : vl; /* a lane that discards is seen when the packet is made */
    }
    return qp->vl;
}

static bool is_response(const struct packet *p)
{
    return p->op == PKT_ACK || p->op == PKT_NAK || p->op == PKT_RNR_NAK || p->op == PKT_READ_RESPONSE ||
           p->op == PKT_ATOMIC_ACK;
}

/* The first packet on a connection that the program has not brought to RTS yet: it may do so now. */
static void tell_established(struct qp *qp)
{
    if (qp->state != IBV_QPS_RTR || qp->established)
        return;
    qp->established = true;
    async_event(qp->obj.ctx, IBV_EVENT_COMM_EST, 0, qp->cookie);
}

void qp_received(struct qp *qp, struct packet *p)
{
    if (qp->obj.proc->dead || qp->obj.ctx->lost ||
        (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD && qp->state != IBV_QPS_SQE))
        return;
    if (!keys_accept(qp->port->port, qp->attr.pkey_index, qp->type == IBV_QPT_UD ? &qp->attr.qkey : NULL, p))
        return;
    if (qp->type == IBV_QPT_UD) {
        ud_handle(qp, p);
        return;
    }
    if (!qp_path_accepts(qp, p))
        return;
    tell_established(qp);
    if (qp->type == IBV_QPT_UC)
        uc_handle(qp, p);
    else if (is_response(p))
        rc_handle_response(qp, p);
    else
        rc_handle_request(qp, p);
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

void qp_to_error(struct qp *qp)
{
    bool first = qp->state != IBV_QPS_ERR;

    qp->state = IBV_QPS_ERR;
    qp->draining = false;
    hca_qp_forget(qp);
    evtimer_stop(&qp->start);
    rc_requester_reset(qp);
    if (qp->resp.has_recv)
        flush_one_recv(qp, qp->resp.recv.wr_id);
    rc_responder_reset(qp);
    qp_flush_send(qp);
    qp_flush_recv(qp);
    if (first && qp->srq)
        async_event(qp->obj.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, 0, qp->cookie);
}
