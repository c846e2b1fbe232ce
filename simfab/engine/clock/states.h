/* SPDX-License-Identifier: BSD-3-Clause */
/* States of actors, as reported in their slots in the arena, and of their processes. */
#ifndef SIMFAB_STATES_H
#define SIMFAB_STATES_H

#include <stdbool.h>
#include <stdint.h>

struct actor;
struct proc;
struct sched;
struct sim;

void sched_proc_new(struct sim *s);    /* before a process attaches */
void sched_proc_added(struct proc *p); /* after a process has attached */
void sched_scan(struct proc *p);       /* after a doorbell: handles changed states */
void sched_proc_gone(struct proc *p);  /* before proc_free: no actor waits for the process */
void sched_proc_free(struct proc *p);  /* its memory, once no timer is queued on its actors */

/* ---- inside the folder */

void sched_look_at(struct actor *a);                /* has its state changed? */
bool state_is_news(const struct actor *a);          /* has it, or does another thread want the actor to look? */
void state_ran(struct actor *a, uint64_t clock_ps); /* the actor's run is over */
/* Something has happened that gives reason to look at the world again soon. */
void sched_activity(struct sched *sc);

#endif
