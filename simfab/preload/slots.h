/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of actors in the arena, the slot of this thread, and the number of threads that are no actors. */
#ifndef SIMFAB_PRELOAD_SLOTS_H
#define SIMFAB_PRELOAD_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/proto.h"

extern __thread struct sf_actor *sfp_self; /* this thread's slot; NULL: no actor. Set by actor.c. */

bool sfp_is_actor(void);       /* true for a thread that is an actor */
uint64_t sfp_actor_time(void); /* this thread's clock; 0: no actor */

struct sf_actor *sfp_slot_take(void); /* NULL with EAGAIN: none is free */
void sfp_slot_free(const struct sf_actor *a);
uint32_t sfp_actor_slots(void);                  /* no actor has a later slot */
struct sf_actor *sfp_actor_by_tid(uint32_t tid); /* NULL: the thread is no actor */
void sfp_slots_after_fork(void);

void sfp_helpers_add(int threads); /* adds to the number of living threads that are no actors */
bool sfp_thread_all_act(void);     /* has this process no threads but actors? */
void sfp_helpers_after_fork(void); /* one thread is left */

#endif
