/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine of queue pairs (specification 10.3.1): allowed changes, and queries. */
#include "simfab/engine/hca/qp_state.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/path.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_make.h"
#include "simfab/engine/hca/qp_table.h"

/* ---- validation of a request ------------------------------------------------------------------------------------- */

#define QP_ACCESS                                                                                                      \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |            \
     IBV_ACCESS_MW_BIND)

bool ah_attr_valid(const struct hca *h, const struct ibv_ah_attr *a)
{
    const struct port *p = a->port_num >= 1 && a->port_num <= h->node->num_ports ? &h->node->ports[a->port_num] : NULL;

    if (!p || !a->dlid || a->sl > 15 || qp_static_rate_bps(a->static_rate) < 0)
        return false;
    return !a->is_global || a->grh.sgid_index == 0 || (a->grh.sgid_index < FABRIC_GUIDS && p->guids[a->grh.sgid_index]);
}

/* The path of a connection: without a port, the queue pair's port. */
static bool path_valid(const struct qp *qp, const struct ibv_ah_attr *given, uint8_t port)
{
    struct ibv_ah_attr a = *given;

    if (a.port_num && a.port_num != port)
        return false;
    a.port_num = port;
    return ah_attr_valid(qp->hca, &a);
}

/* A port that is up carries what both ends can; one that is not, what it could at best. */
static enum ibv_mtu port_mtu(const struct port *p)
{
    return p->state == PORT_ACTIVE && p->mtu_neighbor ? p->mtu_neighbor : p->mtu_cap;
}

/* ARMED is what the adapter makes of REARM when both ends agree, and there must be a path to migrate to. */
static bool migration_valid(const struct qp *qp, int mask, const struct ibv_qp_attr *a)
{
    if ((mask & IBV_QP_ALT_PATH) &&
        (a->alt_port_num < 1 || a->alt_port_num > qp->hca->node->num_ports || a->alt_pkey_index >= FABRIC_PKEYS ||
         a->alt_timeout > 31 || !path_valid(qp, &a->alt_ah_attr, a->alt_port_num)))
        return false;
    if (!(mask & IBV_QP_PATH_MIG_STATE) || a->path_mig_state == IBV_MIG_MIGRATED)
        return true;
    return a->path_mig_state == IBV_MIG_REARM && (qp->alt_loaded || (mask & IBV_QP_ALT_PATH));
}

static bool attributes_valid(const struct qp *qp, int mask, const struct ibv_qp_attr *a)
{
    uint32_t rd_atomic = qp->hca->sim->model->max_rd_atomic;
    uint8_t port = mask & IBV_QP_PORT ? a->port_num : qp->attr.port_num;

    if ((mask & IBV_QP_PORT) && (port < 1 || port > qp->hca->node->num_ports))
        return false;
    if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index >= FABRIC_PKEYS)
        return false;
    if ((mask & IBV_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~(unsigned)(QP_ACCESS | IBV_ACCESS_OPTIONAL_RANGE)))
        return false;
    if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > port_mtu(&qp->hca->node->ports[port])))
        return false;
    if ((mask & IBV_QP_AV) && !path_valid(qp, &a->ah_attr, port))
        return false;
    if (((mask & IBV_QP_DEST_QPN) && a->dest_qp_num > 0xffffff) || ((mask & IBV_QP_RQ_PSN) && a->rq_psn > PSN_MASK) ||
        ((mask & IBV_QP_SQ_PSN) && a->sq_psn > PSN_MASK))
        return false;
    if (((mask & IBV_QP_TIMEOUT) && a->timeout > 31) || ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) ||
        ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7) || ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31))
        return false;
    if (((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > rd_atomic) ||
        ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > rd_atomic))
        return false;
    return migration_valid(qp, mask, a);
}

/* ---- application of a request ------------------------------------------------------------------------------------ */

static void take_attributes(struct qp *qp, int mask, const struct ibv_qp_attr *a)
{
    struct ibv_qp_attr *q = &qp->attr;

    if (mask & IBV_QP_PORT)
        qp_take_path(qp, &q->ah_attr, a->port_num);
    if (mask & IBV_QP_PKEY_INDEX)
        q->pkey_index = a->pkey_index;
    if (mask & IBV_QP_QKEY)
        q->qkey = a->qkey;
    if (mask & IBV_QP_ACCESS_FLAGS)
        q->qp_access_flags = a->qp_access_flags;
    if (mask & IBV_QP_AV)
        qp_take_path(qp, &a->ah_attr, q->port_num);
    if (mask & IBV_QP_PATH_MTU)
        q->path_mtu = a->path_mtu;
    if (mask & IBV_QP_DEST_QPN)
        q->dest_qp_num = a->dest_qp_num;
    if (mask & IBV_QP_RQ_PSN)
        qp->resp.expected_psn = q->rq_psn = a->rq_psn;
    if (mask & IBV_QP_SQ_PSN)
        qp->req.next_psn = qp->req.una_psn = q->sq_psn = a->sq_psn;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        q->max_rd_atomic = a->max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        q->max_dest_rd_atomic = a->max_dest_rd_atomic;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        q->min_rnr_timer = a->min_rnr_timer;
    if (mask & IBV_QP_TIMEOUT)
        q->timeout = a->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        qp->req.retries = q->retry_cnt = a->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        qp->req.rnr_retries = q->rnr_retry = a->rnr_retry;
    if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
        q->en_sqd_async_notify = a->en_sqd_async_notify;
    if (mask & IBV_QP_ALT_PATH) {
        q->alt_ah_attr = a->alt_ah_attr;
        q->alt_ah_attr.port_num = q->alt_port_num = a->alt_port_num;
        q->alt_timeout = a->alt_timeout;
        q->alt_pkey_index = a->alt_pkey_index;
        qp->alt_loaded = true;
    }
    if ((mask & IBV_QP_PATH_MIG_STATE) && a->path_mig_state == IBV_MIG_MIGRATED && q->path_mig_state == IBV_MIG_ARMED)
        qp_migrate(qp);
    else if (mask & IBV_QP_PATH_MIG_STATE)
        q->path_mig_state = a->path_mig_state;
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

/* The send queue finishes the begun requests: those before drain_to. */
static void start_draining(struct qp *qp)
{
    const struct requester *r = &qp->req;

    qp->drain_to = r->cur < r->tail && qp_wqe(qp, r->cur)->started ? r->cur + 1 : r->cur;
    qp->draining = true;
    qp_check_drained(qp);
}

/* Back to the state of a new queue pair. */
static void reset(struct qp *qp)
{
    qp_clear(qp);
    qp->state = IBV_QPS_RESET;
    qp->attr = (struct ibv_qp_attr){.path_mtu = IBV_MTU_256};
    qp->port = &qp->hca->ports[1];
    qp->alt_loaded = qp->established = qp->draining = false;
}

static void enter(struct qp *qp, enum ibv_qp_state to)
{
    enum ibv_qp_state from = qp->state;

    qp->state = to;
    if (to != IBV_QPS_SQD)
        qp->draining = false;
    if (to == IBV_QPS_RTR)
        qp->mtu = qp->type == IBV_QPT_UD ? mtu_bytes(port_mtu(qp->port->port)) : mtu_bytes(qp->attr.path_mtu);
    if (to == IBV_QPS_SQD && from == IBV_QPS_RTS)
        start_draining(qp);
    if (to == IBV_QPS_RTS || to == IBV_QPS_SQD)
        qp_ask_turn(qp);
}

int qp_modify(struct qp *qp, int mask, const struct ibv_qp_attr *a)
{
    enum ibv_qp_state to = mask & IBV_QP_STATE ? a->qp_state : qp->state;

    if (((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != qp->state) ||
        !qp_transition_allowed(qp->type, qp->state, to, mask) || !attributes_valid(qp, mask, a))
        return EINVAL;
    if (to == IBV_QPS_SQD && qp->draining && (mask & ~IBV_QP_STATE))
        return EBUSY; /* requests under way keep their initial attributes */
    if (to == IBV_QPS_RESET) {
        reset(qp);
    } else if (to == IBV_QPS_ERR) {
        qp_to_error(qp);
    } else {
        take_attributes(qp, mask, a);
        enter(qp, to);
    }
    return 0;
}

void qp_query(const struct qp *qp, struct ibv_qp_attr *a, struct ibv_qp_init_attr *init)
{
    *a = qp->attr;
    a->qp_state = a->cur_qp_state = qp->state;
    a->sq_draining = qp->draining;
    a->cap = qp->cap;
    a->rq_psn = qp->resp.expected_psn;
    a->sq_psn = qp->req.next_psn;
    memset(init, 0, sizeof *init);
    init->cap = qp->cap;
    init->qp_type = qp->type;
    init->sq_sig_all = qp->sq_sig_all;
}
