/* SPDX-License-Identifier: BSD-3-Clause */
/* Between sma.c and portinfo.c: the PortInfo attribute, by far the largest. data is its 64 bytes on the wire. */
#ifndef SIMFAB_SMA_H
#define SIMFAB_SMA_H

#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

void portinfo_get(const struct port *p, unsigned local_port, uint8_t *data);

/* Validate all, then do all; data becomes the answer. Returns a MAD status. */
uint16_t portinfo_set(struct port *p, unsigned local_port, uint8_t *data);

#endif
