/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine of queue pairs (specification 10.3.1): what may change when, and asking what is. */
#include <errno.h>
#include <string.h>

#include "simfab/engine/proc.h"

struct transition {
    enum ibv_qp_state from, to;
    int required[3], optional[3]; /* by type: RC, UC, UD */
};

#define ACCESS_PATH (IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH)

static const struct transition transitions[] = {
    {IBV_QPS_RESET,
     IBV_QPS_INIT,
     {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
      IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
     {0, 0, 0}},
    {IBV_QPS_INIT,
     IBV_QPS_INIT,
     {0, 0, 0},
     {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
      IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY}},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, 0},
     {ACCESS_PATH | IBV_QP_PKEY_INDEX, ACCESS_PATH | IBV_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     {IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_SQ_PSN,
      IBV_QP_SQ_PSN},
     {IBV_QP_CUR_STATE | ACCESS_PATH | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE,
      IBV_QP_CUR_STATE | ACCESS_PATH | IBV_QP_PATH_MIG_STATE, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
    {IBV_QPS_RTS,
     IBV_QPS_RTS,
     {0, 0, 0},
     {IBV_QP_CUR_STATE | ACCESS_PATH | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE,
      IBV_QP_CUR_STATE | ACCESS_PATH | IBV_QP_PATH_MIG_STATE, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
    {IBV_QPS_SQE,
     IBV_QPS_RTS,
     {0, 0, 0},
     {IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS,
      IBV_QP_CUR_STATE | IBV_QP_QKEY}},
    {IBV_QPS_RTS,
     IBV_QPS_SQD,
     {0, 0, 0},
     {IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
    {IBV_QPS_SQD,
     IBV_QPS_RTS,
     {0, 0, 0},
     {IBV_QP_CUR_STATE | ACCESS_PATH | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE,
      IBV_QP_CUR_STATE | ACCESS_PATH | IBV_QP_PATH_MIG_STATE, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
};

static bool transition_allowed(const struct qp *qp, enum ibv_qp_state to, int mask)
{
    unsigned type = qp->type == IBV_QPT_RC ? 0 : qp->type == IBV_QPT_UC ? 1 : 2;
    /* a rate limit is a hint that this hardware does not know; the current state is always allowed to be named */
    int given = mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_RATE_LIMIT);

    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return !given;
    for (unsigned i = 0; i < sizeof transitions / sizeof *transitions; i++) {
        const struct transition *t = &transitions[i];

        if (t->from == qp->state && t->to == to)
            return (given & t->required[type]) == t->required[type] &&
                   !(given & ~(t->required[type] | t->optional[type]));
    }
    return false;
}

static bool attributes_valid(const struct qp *qp, int mask, const struct ibv_qp_attr *a)
{
    if ((mask & IBV_QP_PORT) && (a->port_num < 1 || a->port_num > qp->hca->node->num_ports))
        return false;
    if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index >= FABRIC_PKEYS)
        return false;
    if ((mask & IBV_QP_PATH_MTU) &&
        (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096 || a->path_mtu > qp->port->port->mtu_cap))
        return false;
    if ((mask & IBV_QP_AV) && (a->ah_attr.sl > 15 || (a->ah_attr.port_num && a->ah_attr.port_num != qp->attr.port_num)))
        return false;
    if ((mask & IBV_QP_TIMEOUT) && a->timeout > 31)
        return false;
    if (((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) || ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7) ||
        ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31))
        return false;
    if (((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > qp->hca->sim->model->max_rd_atomic) ||
        ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > qp->hca->sim->model->max_rd_atomic))
        return false;
    return true;
}

static void take_path(struct qp *qp, const struct ibv_qp_attr *a)
{
    qp->attr.ah_attr = a->ah_attr;
    qp->remote_lid = a->ah_attr.dlid;
    qp->sl = a->ah_attr.sl;
    qp->vl_changes = 0;
    qp->vl = -1;
}

static void take_attributes(struct qp *qp, int mask, const struct ibv_qp_attr *a)
{
    struct ibv_qp_attr *q = &qp->attr;

    if (mask & IBV_QP_PORT) {
        q->port_num = a->port_num;
        qp->port = &qp->hca->ports[a->port_num];
    }
    if (mask & IBV_QP_PKEY_INDEX)
        q->pkey_index = a->pkey_index;
    if (mask & IBV_QP_QKEY)
        q->qkey = a->qkey;
    if (mask & IBV_QP_ACCESS_FLAGS)
        q->qp_access_flags = a->qp_access_flags;
    if (mask & IBV_QP_AV)
        take_path(qp, a);
    if (mask & IBV_QP_PATH_MTU)
        q->path_mtu = a->path_mtu;
    if (mask & IBV_QP_DEST_QPN)
        q->dest_qp_num = a->dest_qp_num & 0xffffff;
    if (mask & IBV_QP_RQ_PSN)
        qp->resp.expected_psn = q->rq_psn = a->rq_psn & PSN_MASK;
    if (mask & IBV_QP_SQ_PSN)
        qp->req.next_psn = qp->req.una_psn = q->sq_psn = a->sq_psn & PSN_MASK;
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
    if (mask & IBV_QP_ALT_PATH) {
        q->alt_ah_attr = a->alt_ah_attr;
        q->alt_port_num = a->alt_port_num;
        q->alt_timeout = a->alt_timeout;
        q->alt_pkey_index = a->alt_pkey_index;
    }
    if (mask & IBV_QP_PATH_MIG_STATE)
        q->path_mig_state = a->path_mig_state;
}

int qp_modify(struct qp *qp, int mask, const struct ibv_qp_attr *a)
{
    enum ibv_qp_state to = mask & IBV_QP_STATE ? a->qp_state : qp->state;

    if (((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != qp->state) || !transition_allowed(qp, to, mask) ||
        !attributes_valid(qp, mask, a))
        return EINVAL;
    take_attributes(qp, mask, a);
    if (to == IBV_QPS_RESET) {
        qp_clear(qp);
        qp->state = to;
        return 0;
    }
    if (to == IBV_QPS_ERR) {
        qp_to_error(qp);
        return 0;
    }
    qp->state = to;
    if (to == IBV_QPS_RTR)
        qp->mtu = qp->type == IBV_QPT_UD ? mtu_bytes(qp->port->port->mtu_cap) : mtu_bytes(qp->attr.path_mtu);
    if (to == IBV_QPS_RTS && qp_wants_turn(qp))
        hca_qp_ready(qp);
    if (to == IBV_QPS_SQD && qp->req.head == qp->req.cur && qp->attr.en_sqd_async_notify)
        async_event(qp->obj.ctx, IBV_EVENT_SQ_DRAINED, 0, qp->cookie);
    return 0;
}

void qp_query(const struct qp *qp, struct ibv_qp_attr *a, struct ibv_qp_init_attr *init)
{
    *a = qp->attr;
    a->qp_state = a->cur_qp_state = qp->state;
    a->cap = qp->cap;
    a->rq_psn = qp->resp.expected_psn;
    a->sq_psn = qp->req.next_psn;
    memset(init, 0, sizeof *init);
    init->cap = qp->cap;
    init->qp_type = qp->type;
    init->sq_sig_all = qp->sq_sig_all;
}
