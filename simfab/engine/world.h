/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world outside: threads that the engine left out of its sight (they wait for a socket, a lock, a launcher) come
 * back when something there wakes them. Whether that is under way is asked of the kernel: whoever is about to wake them
 * is running, be it another thread of the process or the launcher that the process comes from.
 */
#ifndef SIMFAB_WORLD_H
#define SIMFAB_WORLD_H

#include "simfab/engine/proc.h"

struct world;

struct world *world_new(void);
void world_free(struct world *w);

/* Is any actor, or a thread that may become one, out of sight? */
bool world_is_away(const struct sim *s);
/* Is nothing under way that would wake those who are? Processes with nobody out of sight are not asked. */
bool world_is_quiet(struct world *w, struct sim *s);

#endif
