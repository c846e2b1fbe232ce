/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets received in order and not yet written to memory: parts of one chunk, written at once. */
#ifndef SIMFAB_LANDING_H
#define SIMFAB_LANDING_H

#include <stdbool.h>
#include <stdint.h>

struct chunk;
struct packet;

struct landing {
    struct chunk *chunk;
    uint32_t off, len, at; /* chunk->data[off .. off + len) goes to byte at of the message */
};

/* Add p's payload at byte at of the message. False: it does not continue the landing; flush first. */
bool landing_add(struct landing *l, struct packet *p, uint32_t at);
void landing_clear(struct landing *l);

#endif
