/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that come in over RC and UC, and the responder of RC. */
#ifndef SIMFAB_RECEIVE_H
#define SIMFAB_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

struct packet;
struct qp;
struct tx_cost;

void rc_responder_init(struct qp *qp); /* the timer of new memory */
void rc_response_left(struct qp *qp);  /* one response to a read has gone from the adapter to the wire */
bool rc_duty_needs_turn(struct qp *qp);
struct packet *rc_emit_duty(struct qp *qp, struct tx_cost *cost);
void rc_handle_request(struct qp *qp, struct packet *p);
void rc_acknowledge_now(struct qp *qp); /* acknowledges all received messages */

enum take_result {
    TAKE_OK,
    TAKE_NO_RECV,
    TAKE_BAD_REQUEST,
    TAKE_NO_ACCESS,
    TAKE_TOO_LONG,
    TAKE_BAD_KEY,
    TAKE_NO_MEMORY
};
/* A packet of a send or a write, in its turn: place the data, complete the message. */
enum take_result take_data(struct qp *qp, struct packet *p);

/* Writes the received part of the present message to memory. False: not possible. */
bool landing_flush(struct qp *qp);

#endif
