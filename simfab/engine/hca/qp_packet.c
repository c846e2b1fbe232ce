/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of a queue pair's packets: of connections, and global routes. */
#include "simfab/engine/hca/qp_packet.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/wire/link.h"

void packet_route_globally(struct packet *p, const struct qp *qp, const struct ibv_ah_attr *a)
{
    const struct port *port = qp->port->port;
    uint32_t version = htobe32(6u << 28 | (uint32_t)a->grh.traffic_class << 20 | (a->grh.flow_label & 0xfffff));
    uint16_t length = htobe16((uint16_t)(p->payload + 24)); /* from BTH on, with DETH and the invariant CRC */
    uint64_t prefix = htobe64(port->gid_prefix),
             guid = htobe64(port->guids[a->grh.sgid_index < FABRIC_GUIDS ? a->grh.sgid_index : 0]);

    memcpy(p->grh, &version, 4);
    memcpy(p->grh + 4, &length, 2);
    p->grh[6] = 0x1b; /* next header: IBA transport */
    p->grh[7] = a->grh.hop_limit;
    memcpy(p->grh + 8, &prefix, 8);
    memcpy(p->grh + 16, &guid, 8);
    memcpy(p->grh + 24, a->grh.dgid.raw, 16);
    p->flags |= PKT_GRH;
    p->wire_bytes += GRH_BYTES;
}

struct packet *connected_packet(struct qp *qp, enum packet_op op, uint32_t psn, uint32_t payload)
{
    const struct port *port = qp->port->port;
    struct packet *p = packet_new();
    int vl = link_lane(port, 0, qp->sl);

    p->op = (uint8_t)op;
    p->transport = (uint8_t)qp->type;
    p->slid = port->lid | (qp->attr.ah_attr.src_path_bits & ((1u << port->lmc) - 1));
    p->dlid = vl < 0 ? 0 : qp->remote_lid;
    p->sl = qp->sl;
    p->vl = vl < 0 ? 0 : (uint8_t)vl;
    p->dest_qpn = qp->attr.dest_qp_num;
    p->src_qpn = qp->qpn;
    p->psn = psn & PSN_MASK;
    p->pkey = port->pkeys[qp->attr.pkey_index];
    p->payload = payload;
    p->wire_bytes = payload + qp->hca->sim->model->packet_overhead_bytes;
    if (qp->attr.path_mig_state == IBV_MIG_MIGRATED)
        p->flags |= PKT_MIGREQ;
    if (qp->attr.ah_attr.is_global)
        packet_route_globally(p, qp, &qp->attr.ah_attr);
    return p;
}
