/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns: the actors of a host that wait to run. */
#ifndef SIMFAB_TURN_H
#define SIMFAB_TURN_H

#include <stdint.h>

#include "simfab/engine/clock/internal.h"

void turn_wait(struct actor *a, enum wake_reason reason, uint64_t clock_ps);
void turn_leave(struct actor *a); /* the actor no longer waits */
void turn_pause(struct actor *a); /* its run may continue, and no other actor of its host begins before that is known */
void turn_end_pause(struct actor *a);   /* the turn continues or is over */
void turns_update(struct host_time *h); /* actors or processes have come or gone */

#endif
