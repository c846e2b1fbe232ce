/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_*. */
#ifndef SIMFAB_PRELOAD_VERBS_WR_H
#define SIMFAB_PRELOAD_VERBS_WR_H

#include "simfab/preload/verbs.h"

struct ibv_qp *sfp_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);

#endif
