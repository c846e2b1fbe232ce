/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams, and the global route header. */
#ifndef SIMFAB_UD_H
#define SIMFAB_UD_H

#include <infiniband/verbs.h>

struct packet;
struct qp;
struct tx_cost;

/* Give the packet a global route header. */
void packet_route_globally(struct packet *p, const struct qp *qp, const struct ibv_ah_attr *a);
struct packet *ud_emit(struct qp *qp, struct tx_cost *cost);
void ud_handle(struct qp *qp, struct packet *p);

#endif
