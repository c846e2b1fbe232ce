/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams. */
#ifndef SIMFAB_UD_H
#define SIMFAB_UD_H

struct packet;
struct qp;
struct tx_cost;

struct packet *ud_emit(struct qp *qp, struct tx_cost *cost);
void ud_handle(struct qp *qp, struct packet *p);

#endif
