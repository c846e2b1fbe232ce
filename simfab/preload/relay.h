/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping actors, and turns passed to the next actor. */
#ifndef SIMFAB_PRELOAD_RELAY_H
#define SIMFAB_PRELOAD_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/proto.h"

/*
 * An actor about to sleep in sfp_wait passes its turn on; false: tell the engine. The next two: the actor has
 * begun with a turn passed on by the relay, or by the engine or by itself.
 */
bool sfp_relay_pass(const struct sf_actor *a, enum sf_actor_state state);
bool sfp_relay_begin(struct sf_actor *a);
void sfp_relay_begun(struct sf_actor *a);
void sfp_relay_forget(struct sf_actor *a);
/* The actor's state was made RUNNING; and sleeping until then, or until something else (as a futex does). */
void sfp_actor_call(struct sf_actor *a);
struct timespec;
long sfp_actor_sleep(struct sf_actor *a, uint32_t state, const struct timespec *patience);

#endif
