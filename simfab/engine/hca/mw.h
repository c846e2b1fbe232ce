/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. */
#ifndef SIMFAB_MW_H
#define SIMFAB_MW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/hca/mem.h"
#include "simfab/engine/hca/object.h"
#include "simfab/proto.h"

struct qp;

struct mr *mw_alloc(struct pd *pd, enum ibv_mw_type type, int *err);
void mw_free(struct mr *w);
/* Requests of a send queue. False: it may not be done. */
bool mw_bind(struct qp *qp, const struct sf_bind *b);
bool mw_invalidate(struct qp *qp, uint32_t key);
void mw_forget_qp(struct qp *qp);

#endif
