/* SPDX-License-Identifier: BSD-3-Clause */
/* The PortInfo attribute, by far the largest of a subnet management agent. data is its 64 bytes on the wire. */
#ifndef SIMFAB_PORTINFO_H
#define SIMFAB_PORTINFO_H

#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

void portinfo_get(const struct port *p, unsigned local_port, uint8_t *data);

/* Validate all, then do all; data becomes the answer. Returns a MAD status. */
uint16_t portinfo_set(struct port *p, unsigned local_port, uint8_t *data);

#endif
