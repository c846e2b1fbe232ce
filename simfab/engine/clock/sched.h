/* SPDX-License-Identifier: BSD-3-Clause */
/* When actors run, and when time moves (simfab/TIME.md). */
#ifndef SIMFAB_SCHED_H
#define SIMFAB_SCHED_H

#include <stdbool.h>
#include <stdint.h>

struct server;
struct sim;

/* Calls from the clock to the folders above; events.c fills the table in. */
struct clock_upcalls {
    bool (*has_input)(const struct server *v); /* a program has asked, or rung, and was not yet served */
    void (*drain)(struct sim *s);              /* take the commands in the rings of all processes */
    bool (*holds_time)(struct sim *s);         /* a fault keeps time from moving */
    uint64_t (*packets)(void);                 /* packets under way that a program waits for */
};

/* Let the simulation go as far as it may. paused: the wait it asked for went by without any message. Returns how long
   to wait for messages and doorbells now, in microseconds (-1: until one comes). */
int64_t sched_run(struct sim *s, bool paused);
void sched_init(struct sim *s);
void sched_fini(struct sim *s);

#endif
