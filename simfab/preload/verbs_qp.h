/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs. */
#ifndef SIMFAB_PRELOAD_VERBS_QP_H
#define SIMFAB_PRELOAD_VERBS_QP_H

#include "simfab/preload/verbs.h"

struct ibv_qp *sfp_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

#endif
