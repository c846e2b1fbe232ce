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

void sched_event(struct proc *p); /* something that idle actors of p wait for is visible now */
/* Before memory of p is written: whoever spins on it may see it, and call, at once. */
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
void turns_next(struct sim *s); /* wherever nobody runs, the actor whose turn it is starts */
/* Tell all processes what time it is. */
void sched_publish_time(struct sim *s);
/* Somebody whose clock was this has unlocked, or done, what the actor waits for. */
void sched_called(struct actor *a, uint64_t clock_ps);
void sched_running(struct actor *a);            /* time waits for it from now on */
void sched_runs(struct actor *a, bool looking); /* and a run of it begins, or goes on */
/* Have spinners called without being told that something landed? What they were waiting for is not ours to see. */
bool sched_spinner_called(struct sim *s);

#endif
