/* SPDX-License-Identifier: BSD-3-Clause */
/* The performance management agents of ports. */
#ifndef SIMFAB_PMA_H
#define SIMFAB_PMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port;

/* Answer a request at a port; false: no answer. resp is 256 bytes, a copy of the request. */
bool pma_answer(struct port *at, uint8_t *resp);
/* The value shown for the counter at this offset of struct port_count, in the widest attribute. */
uint64_t pma_shown(const struct port *p, size_t offset);

#endif
