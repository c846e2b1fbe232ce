/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of a queue pair's packets. */
#ifndef SIMFAB_QP_PACKET_H
#define SIMFAB_QP_PACKET_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "simfab/engine/wire/packet.h"

struct qp;

/* A packet of the queue pair's connection; its dlid is 0 if the service level has no lane (to be discarded). */
struct packet *connected_packet(struct qp *qp, enum packet_op op, uint32_t psn, uint32_t payload);

#define GRH_BYTES 40u

/* Give the packet a global route header. */
void packet_route_globally(struct packet *p, const struct qp *qp, const struct ibv_ah_attr *a);

#endif
