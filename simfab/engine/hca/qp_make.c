/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, posting, destruction. */
#include "simfab/engine/hca/qp_make.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/cq.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/mcast_group.h"
#include "simfab/engine/hca/mw.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/rc_request.h"
#include "simfab/engine/hca/receive.h"
#include "simfab/engine/hca/rq.h"
#include "simfab/engine/hca/transport.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/proto.h"

static void start_sending(void *obj, uint64_t arg)
{
    qp_ask_turn(obj);
}

static struct qp *new_qp(struct hca *h)
{
    struct qp *qp = h->free_qps;
    struct evtimer start, timeout, glance, rnr, ready;

    if (!qp) {
        qp = xcalloc(1, sizeof *qp);
        evtimer_init(&qp->start, start_sending, qp);
        rc_requester_init(qp);
        rc_responder_init(qp);
        return qp;
    }
    /* old events may still point to the timers, which stay unchanged */
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
    qp->ops = &transport_ops;
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

void qp_clear(struct qp *qp)
{
    hca_qp_forget(qp);
    evtimer_stop(&qp->start);
    qp_release_requests(qp);
    qp_requester_reset(qp);
    rc_acknowledge_now(qp);
    qp_responder_reset(qp);
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
