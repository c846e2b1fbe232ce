/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues, of a queue pair or shared. */
#ifndef SIMFAB_RQ_H
#define SIMFAB_RQ_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/hca/object.h"
#include "simfab/proto.h"

struct pd;
struct qp;

struct rwqe {
    uint64_t wr_id, ready_ps;
    uint32_t num_sge;
    struct sf_sge *sge;
};

/* Posted receive requests, of a queue pair or shared. */
struct rq {
    struct rwqe *slot;
    struct sf_sge *sges; /* max_sge per slot */
    uint32_t cap, max_sge;
    uint64_t posted, taken;
};

struct srq {
    struct object obj;
    struct pd *pd;
    struct rq rq;
    uint32_t limit;
    uint64_t cookie;
};

void rq_init(struct rq *rq, uint32_t cap, uint32_t max_sge);
void rq_fini(struct rq *rq);
int rq_post(struct rq *rq, const struct sf_cmd *cmd, const struct sf_sge *sge);
int rq_resize(struct rq *rq, uint32_t cap, uint32_t max);
void srq_check_limit(struct srq *srq);
/* Take the oldest request that the HCA can see at now; sge is copied to *store. False: none. */
bool rq_take(struct rq *rq, uint64_t now, struct rwqe *out, struct sf_sge *store);
bool qp_take_recv(struct qp *qp, struct rwqe *out, struct sf_sge *store);

#endif
