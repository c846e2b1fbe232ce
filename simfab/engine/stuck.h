/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that neither waits nor ends stops virtual time for everybody, as it should while it computes. When that goes
 * on for long somebody wants to know which one it is.
 */
#ifndef SIMFAB_STUCK_H
#define SIMFAB_STUCK_H

#include "simfab/engine/proc.h"

/* Time has moved, or there is nobody to wait for. */
void stuck_moved(struct sim *s);
/* Called now and then while time waits for running actors: names them after STUCK_NS, and ever more rarely. */
void stuck_look(struct sim *s, uint64_t now_ns);

#endif
