/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions and windows. */
#ifndef SIMFAB_PRELOAD_VERBS_MEM_H
#define SIMFAB_PRELOAD_VERBS_MEM_H

#include "simfab/preload/verbs.h"

/* The end of a plain object of the engine's. 0 or an errno. */
int sfp_destroy_handle(enum sf_op op, struct ibv_context *c, uint32_t handle);

/* In the tables of operations: */
struct ibv_mr *sfp_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mw *sfp_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int sfp_dealloc_mw(struct ibv_mw *mw);
int sfp_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif
