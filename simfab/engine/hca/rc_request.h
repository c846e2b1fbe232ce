/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester of a reliable connection, and the packets of a message for UC too. */
#ifndef SIMFAB_RC_REQUEST_H
#define SIMFAB_RC_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

struct packet;
struct qp;
struct tx_cost;
struct wqe;

void rc_requester_init(struct qp *qp); /* the timers of new memory */
bool rc_can_emit(struct qp *qp);
struct packet *rc_emit(struct qp *qp, struct tx_cost *cost);
void rc_handle_response(struct qp *qp, struct packet *p);
/* Begins a request: checks the request, assigns its PSNs. Sets its status if the request cannot be done. */
void request_start(struct qp *qp, struct wqe *w);
/* Packet number index of a send or a write. NULL: the memory is not there (status set). */
struct packet *request_data_packet(struct qp *qp, uint64_t number, uint32_t index, struct tx_cost *cost);

#endif
