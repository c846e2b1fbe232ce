/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paths of a connection: automatic migration to the alternate path (specification 17.2.8), and static rates.
 *
 * The MigReq bit of every packet says whether the sender's state is MIGRATED. REARM becomes ARMED when the peer is no
 * longer MIGRATED. An ARMED queue pair migrates when its retries are exhausted, when the program requests migration, or
 * when a packet with MigReq comes by the alternate path: the peer has migrated.
 */
#include "simfab/engine/hca/path.h"

#include <infiniband/verbs.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_table.h"
#include "simfab/engine/wire/packet.h"

void qp_take_path(struct qp *qp, const struct ibv_ah_attr *a, uint8_t port)
{
    hca_qp_forget(qp); /* removed from the lists of its lane */
    qp->attr.ah_attr = *a;
    qp->attr.ah_attr.port_num = qp->attr.port_num = port;
    qp->port = &qp->hca->ports[port];
    qp->remote_lid = a->dlid;
    qp->sl = a->sl;
    qp->vl_changes = 0;
    qp->vl = -1;
}

void qp_migrate(struct qp *qp)
{
    struct ibv_qp_attr *q = &qp->attr;
    struct ibv_ah_attr path = q->alt_ah_attr;

    q->path_mig_state = IBV_MIG_MIGRATED;
    q->pkey_index = q->alt_pkey_index;
    q->timeout = q->alt_timeout;
    qp_take_path(qp, &path, q->alt_port_num);
    qp->alt_loaded = false; /* the path is in use: another one must be given before the next migration */
    async_event(qp->obj.ctx, IBV_EVENT_PATH_MIG, 0, qp->cookie);
    qp_ask_turn(qp);
}

/* The peer's LID, or another that the same port of the peer could have. */
static bool from_peer(const struct port *mine, uint16_t remote_lid, const struct packet *p)
{
    return p->slid == remote_lid || hca_owns_lid(mine, p->slid) || (p->slid ^ remote_lid) >> 7 == 0;
}

static bool by_alternate(const struct qp *qp, const struct packet *p)
{
    const struct port *port = &qp->hca->node->ports[qp->attr.alt_port_num];

    return hca_owns_lid(port, p->dlid) && from_peer(port, qp->attr.alt_ah_attr.dlid, p);
}

bool qp_path_accepts(struct qp *qp, const struct packet *p)
{
    bool migrated = p->flags & PKT_MIGREQ;
    enum ibv_mig_state *state = &qp->attr.path_mig_state;

    if (*state == IBV_MIG_ARMED && migrated) {
        if (by_alternate(qp, p)) {
            qp_migrate(qp);
            return true;
        }
        async_event(qp->obj.ctx, IBV_EVENT_PATH_MIG_ERR, 0, qp->cookie); /* not the agreed path */
        return false;
    }
    if (!hca_owns_lid(qp->port->port, p->dlid) || !from_peer(qp->port->port, qp->remote_lid, p))
        return false;
    if (*state == IBV_MIG_REARM && !migrated)
        *state = IBV_MIG_ARMED;
    return true;
}

void qp_pace(struct qp *qp, const struct ibv_ah_attr *a, const struct packet *p)
{
    int64_t bps = qp_static_rate_bps(a->static_rate);

    if (bps > 0)
        qp->paced_ps = sim_now(qp->hca->sim) + transfer_ps(p->wire_bytes, (uint64_t)bps);
}
