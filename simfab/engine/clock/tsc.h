/* SPDX-License-Identifier: BSD-3-Clause */
/* How processes catch their readings of the time stamp counter. */
#ifndef SIMFAB_ENGINE_TSC_H
#define SIMFAB_ENGINE_TSC_H

#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/proc.h"

struct text;

void tsc_note(struct proc *p); /* the process may have changed its state */
void tsc_status(struct sim *s, struct text *t);

#endif
