/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving of a program's queue pair, by transport. */
#include "simfab/engine/hca/transport.h"

#include <infiniband/verbs.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/path.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/rc_request.h"
#include "simfab/engine/hca/receive.h"
#include "simfab/engine/hca/uc.h"
#include "simfab/engine/hca/ud.h"
#include "simfab/engine/wire/keys.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"

/* In SQD, only begun requests. */
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

/* True if the HCA could send now, with room in the lane. Sets the timer for later requests. */
static bool transport_wants_turn(struct qp *qp)
{
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

static struct packet *transport_emit(struct qp *qp, struct tx_cost *cost, bool *more)
{
    struct packet *p = NULL;

    if ((qp->answered = is_answers_turn(qp)))
        p = rc_emit_duty(qp, cost);
    else if (transport_wants_turn(qp))
        p = qp->type == IBV_QPT_RC ? rc_emit(qp, cost) : qp->type == IBV_QPT_UC ? uc_emit(qp, cost) : ud_emit(qp, cost);
    if (p && qp->type != IBV_QPT_UD)
        qp_pace(qp, &qp->attr.ah_attr, p);
    *more = transport_wants_turn(qp);
    return p;
}

int transport_lane(struct qp *qp)
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

/* The first packet on a connection not yet in RTS: the program may change to RTS now. */
static void tell_established(struct qp *qp)
{
    if (qp->state != IBV_QPS_RTR || qp->established)
        return;
    qp->established = true;
    async_event(qp->obj.ctx, IBV_EVENT_COMM_EST, 0, qp->cookie);
}

static void transport_received(struct qp *qp, struct packet *p)
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

const struct qp_ops transport_ops = {.wants_turn = transport_wants_turn,
                                     .lane = transport_lane,
                                     .emit = transport_emit,
                                     .received = transport_received,
                                     .response_left = rc_response_left,
                                     .to_error = qp_to_error};
