/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues, of a queue pair or shared: posting, taking in order, growing. */
#include "simfab/engine/hca/rq.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/proto.h"

void rq_init(struct rq *rq, uint32_t cap, uint32_t max_sge)
{
    *rq = (struct rq){.cap = cap, .max_sge = max_sge};
    if (!cap)
        return;
    rq->slot = xcalloc(cap, sizeof *rq->slot);
    rq->sges = xcalloc((size_t)cap * max_sge, sizeof *rq->sges);
    for (uint32_t i = 0; i < cap; i++)
        rq->slot[i].sge = rq->sges + (size_t)i * max_sge;
}

int rq_resize(struct rq *rq, uint32_t cap, uint32_t max)
{
    struct rq bigger;

    if (!cap || cap > max || cap < rq->posted - rq->taken)
        return EINVAL;
    rq_init(&bigger, cap, rq->max_sge);
    for (; rq->taken < rq->posted; rq->taken++) {
        const struct rwqe *from = &rq->slot[rq->taken % rq->cap];
        struct rwqe *to = &bigger.slot[bigger.posted++];
        struct sf_sge *sge = to->sge;

        memcpy(sge, from->sge, from->num_sge * sizeof *sge);
        *to = *from;
        to->sge = sge;
    }
    rq_fini(rq);
    *rq = bigger;
    return 0;
}

void rq_fini(struct rq *rq)
{
    free(rq->slot);
    free(rq->sges);
    *rq = (struct rq){0};
}

int rq_post(struct rq *rq, const struct sf_cmd *cmd, const struct sf_sge *sge)
{
    struct rwqe *w;

    if (rq->posted - rq->taken >= rq->cap)
        return ENOMEM;
    if (cmd->num_sge > rq->max_sge)
        return EINVAL;
    w = &rq->slot[rq->posted++ % rq->cap];
    w->wr_id = cmd->wr_id;
    w->ready_ps = cmd->stamp_ps;
    w->num_sge = cmd->num_sge;
    memcpy(w->sge, sge, cmd->num_sge * sizeof *sge);
    return 0;
}

bool rq_take(struct rq *rq, uint64_t now, struct rwqe *out, struct sf_sge *store)
{
    struct rwqe *w;

    if (rq->posted == rq->taken)
        return false;
    w = &rq->slot[rq->taken % rq->cap];
    if (w->ready_ps > now)
        return false;
    rq->taken++;
    *out = *w;
    memcpy(store, w->sge, w->num_sge * sizeof *store);
    out->sge = store;
    return true;
}

void srq_check_limit(struct srq *srq)
{
    if (srq->limit && srq->rq.posted - srq->rq.taken < srq->limit) {
        srq->limit = 0; /* fires once, until armed again */
        async_event(srq->obj.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, 0, srq->cookie);
    }
}

bool qp_take_recv(struct qp *qp, struct rwqe *out, struct sf_sge *store)
{
    uint64_t now = sim_now(qp->hca->sim);

    if (!qp->srq)
        return rq_take(&qp->rq, now, out, store);
    if (!rq_take(&qp->srq->rq, now, out, store))
        return false;
    srq_check_limit(qp->srq);
    return true;
}
