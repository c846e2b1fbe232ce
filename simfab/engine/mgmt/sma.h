/* SPDX-License-Identifier: BSD-3-Clause */
/* The subnet management agents of ports. */
#ifndef SIMFAB_SMA_H
#define SIMFAB_SMA_H

#include <stdbool.h>
#include <stdint.h>

struct mad;
struct port;
struct timer;

/* Answer a request at a port; false: no answer. resp is 256 bytes, a copy of the request. */
bool sma_answer(struct port *at, const struct port *ingress, uint16_t slid, uint8_t *resp);
void sma_settle(struct mad *m); /* after the answer has left: applies changes that the answer could not survive */
void sma_lease_expired(struct timer *t); /* the M_Key's lease of the mad_port that holds the timer */

#endif
