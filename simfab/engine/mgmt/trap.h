/* SPDX-License-Identifier: BSD-3-Clause */
/* Traps: notices to the subnet manager of a port, repeated until the manager answers. */
#ifndef SIMFAB_TRAP_H
#define SIMFAB_TRAP_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

struct mad_port;

#define TRAP_PORT_STATE   128
#define TRAP_INTEGRITY    129
#define TRAP_OVERRUN      130
#define TRAP_WATCHDOG     131
#define TRAP_LOCAL_CHANGE 144
#define TRAP_BAD_MKEY     256
#define TRAP_BAD_PKEY     257
#define TRAP_BAD_QKEY     258
#define TRAP_SWITCH_PKEY  259

/* A change of the port: sends the matching traps (fabric_upcalls.port_changed). */
void mad_port_event(struct port *p, enum port_event ev);

/*
 * A packet with a wrong key has come to the port p, of an adapter or of an enforcing switch (fabric_upcalls.bad_key).
 * Sends traps 257, 258, 259, but not more often than the port's subnet time-out allows.
 */
void mad_bad_key(struct port *p, const struct bad_key *b);

void trap_bad_mkey(struct port *p, const uint8_t *smp, uint16_t slid);
/* A TrapRepress has come to the port; true if for a trap of the port. */
bool trap_repress(struct port *p, const uint8_t *smp);
void traps_free(struct mad_port *mp);
uint32_t traps_waiting(const struct mad_port *mp); /* for an answer */

#endif
