/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of counters over a time (PortSamplesControl, PortSamplesResult). */
#ifndef SIMFAB_SAMPLES_H
#define SIMFAB_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

struct port;

/* p is the requested port, among the ports of the agent `at`. Both return a MAD status. */
uint16_t samples_control(struct port *at, const struct port *p, uint8_t *data, bool set);
uint16_t samples_result(const struct port *at, uint8_t *data, bool extended);
/* The time given to fabric_upcalls.samples_later has passed. */
void samples_due(struct port *at);

#endif
