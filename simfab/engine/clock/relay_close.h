/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of an order of the relay. */
#ifndef SIMFAB_RELAY_CLOSE_H
#define SIMFAB_RELAY_CLOSE_H

struct host_time;

/* The host has an open order. struct sched.close_relay. */
void relay_close_now(struct host_time *h);

#endif
