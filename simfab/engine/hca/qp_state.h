/* SPDX-License-Identifier: BSD-3-Clause */
/* The states and attributes of queue pairs. */
#ifndef SIMFAB_QP_STATE_H
#define SIMFAB_QP_STATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct hca;
struct qp;

int qp_modify(struct qp *qp, int mask, const struct ibv_qp_attr *a); /* 0 or an errno */
void qp_query(const struct qp *qp, struct ibv_qp_attr *a, struct ibv_qp_init_attr *init);
bool ah_attr_valid(const struct hca *h, const struct ibv_ah_attr *a);

#endif
