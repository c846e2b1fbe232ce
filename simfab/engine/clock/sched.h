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
    uint64_t (*packets)(void);                 /* packets under way for waiting programs */
};

/*
 * Lets the simulation advance as far as possible. paused: the previous wait ended without any message; news: with one
 * of a process. Returns the time to wait for messages and doorbells, in microseconds (-1: without limit).
 */
int64_t sched_run(struct sim *s, bool paused, bool news);
void sched_init(struct sim *s);
void sched_fini(struct sim *s);

#endif
