/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams: one packet, an address handle, a queue key, and 40 bytes for a GRH before every message. */
#include "simfab/engine/hca/ud.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/mem.h"
#include "simfab/engine/hca/path.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_packet.h"
#include "simfab/engine/hca/rq.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/mcast.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/engine/wire/trace_log.h"
#include "simfab/proto.h"

static struct packet *datagram(struct qp *qp, struct wqe *w)
{
    const struct ibv_ah_attr *a = &w->av;
    const struct port *port = qp->port->port;
    struct packet *p = packet_new();
    int vl = link_lane(port, 0, a->sl);

    p->op = PKT_SEND;
    p->transport = IBV_QPT_UD;
    p->slid = port->lid | (a->src_path_bits & ((1u << port->lmc) - 1));
    p->dlid = vl < 0 ? 0 : a->dlid;
    p->sl = a->sl;
    p->vl = vl < 0 ? 0 : (uint8_t)vl;
    p->dest_qpn = w->remote_qpn;
    p->src_qpn = qp->qpn;
    /* a queue key with the highest bit set means: mine */
    p->qkey = w->remote_qkey & 0x80000000u ? qp->attr.qkey : w->remote_qkey;
    p->psn = qp->req.next_psn;
    qp->req.next_psn = qp->req.una_psn = (qp->req.next_psn + 1) & PSN_MASK;
    p->pkey = port->pkeys[qp->attr.pkey_index];
    p->payload = w->length;
    p->wire_bytes = w->length + qp->hca->sim->model->packet_overhead_bytes + 8;
    p->flags = PKT_FIRST | PKT_LAST | (w->flags & SF_SEND_SOLICITED ? PKT_SOLICITED : 0) |
               (mcast_lid(p->dlid) ? PKT_MULTICAST : 0);
    if (w->opcode == IBV_WR_SEND_WITH_IMM) {
        p->flags |= PKT_IMM;
        p->imm = w->imm;
        p->wire_bytes += 4;
    }
    if (a->is_global)
        packet_route_globally(p, qp, a);
    if (w->length) {
        p->chunk = w->inline_data ? chunk_get(w->inline_data) : chunk_new(w->length);
        if (!w->inline_data && !mem_gather(qp, w->sge, w->num_sge, 0, p->chunk->data, w->length))
            w->status = IBV_WC_LOC_PROT_ERR;
    }
    return p;
}

/* A request that cannot be sent stops the send queue, not the queue pair. */
static void stop_queue(struct qp *qp, enum ibv_wc_status status)
{
    qp->state = IBV_QPS_SQE;
    qp_complete_send(qp, status);
    qp_flush_send(qp);
}

struct packet *ud_emit(struct qp *qp, struct tx_cost *cost)
{
    struct wqe *w = qp_wqe(qp, qp->req.cur);
    struct packet *p = NULL;

    if ((w->opcode != IBV_WR_SEND && w->opcode != IBV_WR_SEND_WITH_IMM) || !w->av.dlid)
        w->status = IBV_WC_LOC_QP_OP_ERR;
    else if (w->length > qp->mtu)
        w->status = IBV_WC_LOC_LEN_ERR;
    else if (!w->inline_data && !sge_check(qp, qp->pd, w->sge, w->num_sge, 0))
        w->status = IBV_WC_LOC_PROT_ERR;
    else
        p = datagram(qp, w);
    cost->first = true;
    cost->inlined = w->inline_data || !w->length;
    cost->memory = w->length;
    if (w->status) {
        stop_queue(qp, w->status);
        if (p)
            packet_free(p);
        return NULL;
    }
    qp_pace(qp, &w->av, p);
    qp->req.cur++;
    qp_complete_send(qp, IBV_WC_SUCCESS);
    return p;
}

void ud_handle(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;
    uint64_t capacity = 0;
    bool ok;
    struct sf_cqe cqe = {.opcode = IBV_WC_RECV,
                         .byte_len = p->payload + GRH_BYTES,
                         .src_qp = p->src_qpn,
                         .slid = p->slid,
                         .sl = p->sl,
                         .pkey_index = qp->attr.pkey_index};

    if (!qp_take_recv(qp, &r->recv, r->recv_sge)) { /* dropped, as datagrams are */
        trace_drop(qp->hca->sim, qp->port->port, p, "no receive request");
        return;
    }
    for (uint32_t i = 0; i < r->recv.num_sge; i++)
        capacity += r->recv.sge[i].length;
    cqe.wr_id = r->recv.wr_id;
    cqe.dlid_path_bits = (uint8_t)(p->dlid & ((1u << qp->port->port->lmc) - 1));
    cqe.wc_flags = (p->flags & PKT_IMM ? IBV_WC_WITH_IMM : 0) | (p->flags & PKT_GRH ? IBV_WC_GRH : 0);
    cqe.imm = p->imm;
    if (capacity < p->payload + GRH_BYTES) {
        cqe.status = IBV_WC_LOC_LEN_ERR;
        qp_complete_recv(qp, &cqe, true);
        qp_to_error(qp);
        return;
    }
    ok = (!(p->flags & PKT_GRH) ||
          mem_scatter(qp, qp_recv_pd(qp), r->recv.sge, r->recv.num_sge, 0, p->grh, GRH_BYTES)) &&
         (!p->payload || mem_scatter(qp, qp_recv_pd(qp), r->recv.sge, r->recv.num_sge, GRH_BYTES,
                                     p->chunk->data + p->chunk_off, p->payload));
    if (!ok)
        cqe.status = IBV_WC_LOC_PROT_ERR;
    qp_complete_recv(qp, &cqe, p->flags & PKT_SOLICITED);
    if (!ok)
        qp_to_error(qp);
}
