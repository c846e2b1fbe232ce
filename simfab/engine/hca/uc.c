/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections: the packets of a reliable one, without acknowledges. A message with a gap is lost whole. */
#include "simfab/engine/hca/uc.h"

#include <infiniband/verbs.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/rc_request.h"
#include "simfab/engine/hca/receive.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/proto.h"

struct packet *uc_emit(struct qp *qp, struct tx_cost *cost)
{
    struct requester *r = &qp->req;
    struct wqe *w = qp_wqe(qp, r->cur);
    struct packet *p = NULL;

    if (!w->started) {
        request_start(qp, w);
        cost->first = true;
    }
    if (!w->status && !w->packets) { /* done by the adapter itself */
        r->cur++;
        qp_complete_send(qp, IBV_WC_SUCCESS);
        return NULL;
    }
    if (!w->status)
        p = request_data_packet(qp, r->cur, r->cur_packet, cost);
    if (!p) {
        enum ibv_wc_status status = w->status;

        qp->state = IBV_QPS_SQE;
        qp_complete_send(qp, status);
        qp_flush_send(qp);
        qp_requester_reset(qp);
        return NULL;
    }
    p->flags &= ~(uint32_t)PKT_ACK_REQ;
    if (++r->cur_packet == w->packets) {
        r->una_psn = r->next_psn;
        qp_complete_send(qp, IBV_WC_SUCCESS);
    }
    return p;
}

/*
 * Drops the incomplete message; its receive request serves the next message. The received part is in memory (volume 1,
 * 9.8.3: the contents are undefined).
 */
static void abandon(struct qp *qp)
{
    qp->resp.in_message = false;
    landing_flush(qp);
}

void uc_handle(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;
    enum take_result result;

    if (p->op != PKT_SEND && p->op != PKT_WRITE)
        return;
    if (r->in_message && (p->psn != r->expected_psn || (p->flags & PKT_FIRST))) {
        abandon(qp);
        r->deaf = r->message_op == PKT_WRITE && !qp->hca->sim->model->uc_recovers;
    }
    if (r->deaf)
        return;
    r->expected_psn = (p->psn + 1) & PSN_MASK;
    if (!r->in_message && !(p->flags & PKT_FIRST))
        return; /* the rest of a message that lost a packet */
    result = take_data(qp, p);
    switch (result) {
    case TAKE_OK:
        break;
    case TAKE_TOO_LONG:
    case TAKE_NO_MEMORY:
        if (r->message_op == PKT_SEND) {
            struct sf_cqe cqe = {.wr_id = r->recv.wr_id, .status = IBV_WC_LOC_LEN_ERR, .opcode = IBV_WC_RECV};

            if (result == TAKE_NO_MEMORY)
                cqe.status = IBV_WC_LOC_PROT_ERR;

            r->has_recv = false;
            qp_complete_recv(qp, &cqe, true);
            qp_to_error(qp);
            return;
        }
        abandon(qp);
        break;
    default:
        abandon(qp); /* no receive request or no access: silently dropped, as the transport promises nothing */
    }
}
