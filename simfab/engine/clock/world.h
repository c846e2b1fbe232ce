/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world outside. Threads out of the engine's sight (in a wait for a socket, a lock, a launcher) return when
 * something outside wakes them. The kernel shows whether a wake-up is under way: the waking thread is runnable, be it
 * another thread of the process or the process's launcher.
 */
#ifndef SIMFAB_WORLD_H
#define SIMFAB_WORLD_H

#include <stdbool.h>
#include <sys/types.h>

#include "simfab/engine/base/sim.h"

struct world;

struct world *world_new(void);
void world_free(struct world *w);

/* The process has left the fabric, most likely because the process ends. */
void world_note_end(struct world *w, pid_t pid);
/* True if an actor, or a thread that may become an actor, is out of sight, or a process may still be ending. */
bool world_is_away(const struct world *w, const struct sim *s);
/* True if no wake-up of these threads is under way. Processes without such threads are skipped. */
bool world_is_quiet(struct world *w, struct sim *s);

/*
 * `simfab exec` makes this process a program of a simulated host, which may attach. While nothing can happen by itself,
 * the start of a program must not cost virtual time. The engine waits until the process has attached, waits itself, or
 * has used too much processor time; likewise for the process's descendants.
 */
void world_announce(struct world *w, pid_t pid);
bool world_somebody_starts(struct world *w, struct sim *s);

#endif
