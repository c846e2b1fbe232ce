/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of counters over a time (PortSamplesControl, PortSamplesResult). */
#ifndef SIMFAB_SAMPLES_H
#define SIMFAB_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

struct port;

/* p is the port that is asked for, of the ports that the agent at at speaks for. Both return a MAD status. */
uint16_t samples_control(struct port *at, const struct port *p, uint8_t *data, bool set);
uint16_t samples_result(const struct port *at, uint8_t *data, bool extended);
/* The time for which fabric_upcalls.samples_later was called is over. */
void samples_due(struct port *at);

#endif
