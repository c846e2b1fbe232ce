/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world outside: threads that the engine left out of its sight (they wait for a socket, a lock, a launcher) come
 * back when something there wakes them. Whether that is under way is asked of the kernel: whoever is about to wake them
 * is running, be it another thread of the process or the launcher that the process comes from.
 */
#ifndef SIMFAB_WORLD_H
#define SIMFAB_WORLD_H

#include <stdbool.h>
#include <sys/types.h>

#include "simfab/engine/base/sim.h"

struct world;

struct world *world_new(void);
void world_free(struct world *w);

/* Is any actor, or a thread that may become one, out of sight? */
bool world_is_away(const struct sim *s);
/* Is nothing under way that would wake those who are? Processes with nobody out of sight are not asked. */
bool world_is_quiet(struct world *w, struct sim *s);

/*
 * `simfab exec` makes this process a program of a simulated host, which may attach. While nothing can happen by itself
 * the others' time must not pass for as long as it takes to start on this machine, so it is waited for until it has
 * attached, waits for something itself, or has used too much processor time for that. The same goes for its children
 * and theirs.
 */
void world_announce(struct world *w, pid_t pid);
bool world_somebody_starts(struct world *w, struct sim *s);

#endif
