/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks of idle actors at shared memory and at the world. */
#ifndef SIMFAB_CLOCK_LOOK_H
#define SIMFAB_CLOCK_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/clock/internal.h"

void look_init(struct host_time *h);
/* An actor of the host has run until `from`: the other actors are to look at memory that the actor may have written. */
void look_later(struct host_time *h, uint64_t from);
void look_restless(struct sim *s);
/* Nothing can happen any more by itself. Returns the time until the next look, in us; -1: an actor looks now. */
int64_t look_at_world(struct sim *s);
bool look_passes_time(const struct sim *s); /* or would, in the next look_at_world */
bool look_free_is_over(const struct sched *sc);
void look_free_end(struct sim *s);
void look_free_catch_up(struct sim *s); /* when all of them have stopped */

#endif
