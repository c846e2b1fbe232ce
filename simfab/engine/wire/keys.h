/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of partition and queue keys in switches and at queue pairs. A failing packet is counted and reported to the
 * subnet manager here; the caller drops the packet.
 */
#ifndef SIMFAB_KEYS_H
#define SIMFAB_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/packet.h"

/* May a queue pair with this index of the port's P_Key table take the packet? qkey: of a UD queue pair; else NULL. */
bool keys_accept(struct port *port, uint16_t pkey_index, const uint32_t *qkey, const struct packet *p);

/* An enforcing port of a switch: may the packet come in, go out? */
bool keys_enter(struct port *in, const struct packet *p);
bool keys_leave(struct port *out, const struct packet *p);

#endif
