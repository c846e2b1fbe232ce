/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections. */
#ifndef SIMFAB_UC_H
#define SIMFAB_UC_H

struct packet;
struct qp;
struct tx_cost;

struct packet *uc_emit(struct qp *qp, struct tx_cost *cost);
void uc_handle(struct qp *qp, struct packet *p);

#endif
