/* SPDX-License-Identifier: BSD-3-Clause */
/* Waking actors: the reasons, and the start of a run. */
#ifndef SIMFAB_WAKE_H
#define SIMFAB_WAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/clock/internal.h"

struct actor;
struct proc;
struct sim;

/* ---- reasons, from all folders */

void sched_event(struct proc *p); /* an event for idle actors of p is visible now */
/* Call before memory of p is written: a spinner may see the write, and call, at once. */
void sched_landing(struct proc *p);
/* The process has been sent a signal that its thread tid handles. */
void sched_signalled(struct proc *p, uint32_t tid);
/* Memory of p was written by a peer, and no completion will tell. */
void sched_written(struct proc *p);
/* Time passes while an acknowledgement to p is late. */
void sched_glance(struct proc *p);
void sched_news(struct proc *p); /* an event of a port or an adapter: the process polls on for a while */

/* ---- inside the folder */

void sched_wake_init(struct actor *a);
void sched_wake(struct actor *a, enum wake_reason reason, uint64_t clock_ps);
void sched_wake_at(struct actor *a, enum wake_reason reason, uint64_t t);
void turns_next(struct sim *s); /* starts the next actor in turn on each host without a running actor */
/* Publishes the present time to all processes. */
void sched_publish_time(struct sim *s);
/* An actor with this clock has released, or done, the object of the actor's wait. */
void sched_called(struct actor *a, uint64_t clock_ps);
void sched_running(struct actor *a);            /* time waits for the actor from now on */
void sched_runs(struct actor *a, bool looking); /* a run of the actor begins or continues */
/* True if spinners called although nothing landed: the engine does not see their condition. */
bool sched_spinner_called(struct sim *s);

#endif
