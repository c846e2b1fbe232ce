/* SPDX-License-Identifier: BSD-3-Clause */
/* When actors run, and when time moves (simfab/TIME.md). */
#ifndef SIMFAB_SCHED_H
#define SIMFAB_SCHED_H

#include <stdbool.h>
#include <stdint.h>

struct proc;
struct server;
struct sim;

/* Calls from the clock to the folders above; events.c fills the table in. */
struct clock_upcalls {
    bool (*has_input)(const struct server *v); /* a program has asked, or rung, and was not yet served */
    void (*drain)(struct sim *s);              /* take the commands in the rings of all processes */
    bool (*holds_time)(struct sim *s);         /* a fault keeps time from moving */
    uint64_t (*packets)(void);                 /* packets under way that a program waits for */
};

void sched_proc_new(struct sim *s);   /* before one is attached */
void sched_proc_added(struct proc *p); /* and when it is */
void sched_scan(struct proc *p);      /* the doorbell rang: what has changed? */
void sched_proc_gone(struct proc *p); /* before proc_free: nobody waits for it any more */
void sched_proc_free(struct proc *p); /* its memory, once no timer is queued on its actors */
void sched_event(struct proc *p);     /* something that idle actors of p wait for is visible now */
/* Before memory of p is written: whoever spins on it may see it, and call, at once. */
void sched_landing(struct proc *p);
/* The process has been sent a signal that its thread tid handles. */
void sched_signalled(struct proc *p, uint32_t tid);
/* Memory of p was written by a peer, and no completion will tell. */
void sched_written(struct proc *p);
/* Time passes while an acknowledgement to p is late. */
void sched_glance(struct proc *p);
/* Let the simulation go as far as it may. paused: the wait it asked for went by without any message. Returns how long
   to wait for messages and doorbells now, in microseconds (-1: until one comes). */
int64_t sched_run(struct sim *s, bool paused);
void sched_init(struct sim *s);
void sched_fini(struct sim *s);
void sched_news(struct proc *p); /* an event of a port or an adapter: the process polls on for a while */

#endif
