/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns: which actors of a host wait for theirs. */
#ifndef SIMFAB_TURN_H
#define SIMFAB_TURN_H

#include <stdint.h>

#include "simfab/engine/clock/internal.h"

void turn_wait(struct actor *a, enum wake_reason reason, uint64_t clock_ps);
void turn_leave(struct actor *a);       /* it does not wait (any more) */
void turn_pause(struct actor *a);       /* its run may go on, and nobody else of its host begins before that is known */
void turn_end_pause(struct actor *a);   /* it goes on, or is over */
void turns_update(struct host_time *h); /* actors or processes have come or gone */

#endif
