/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that neither waits nor ends stops virtual time for all actors, as computing should. After a long standstill
 * the engine names the thread. Only the thread's own time counts: on a busy machine thread and engine wait for a
 * processor, and threads of a host wait for their turns; neither counts.
 */
#ifndef SIMFAB_STUCK_H
#define SIMFAB_STUCK_H

#include <stdbool.h>
#include <stdint.h>

struct sim;

/* Activity of one thread in the present standstill. All zero: nothing yet. */
struct stuck {
    uint64_t since_ns; /* start of the standstill; 0: none */
    uint64_t at_ns;    /* real time when last looked at; then: */
    uint64_t ran_ns, queued_ns, run, calls;
    uint64_t own_ns;  /* its own time in this standstill, */
    uint64_t told_ns; /* own time at the last report; 0: not reported */
};

/* The thread now. */
struct stuck_sample {
    uint64_t at_ns;     /* real time */
    uint64_t ran_ns;    /* processor time since the thread began, */
    uint64_t queued_ns; /* and how long it and the engine have waited for a processor */
    uint64_t run;       /* number of the actor's run */
    uint64_t calls;     /* of verbs */
};

/* Pure: adds the time since the last sample. True: the thread is to be named. *calls: it has called since then. */
bool stuck_add(struct stuck *t, uint64_t since_ns, const struct stuck_sample *now, bool *calls);

/* Time has moved, or no actor is waited for. */
void stuck_moved(struct sim *s);
/* Called now and then while time waits for running actors: names the threads that stop time, less and less often. */
void stuck_look(struct sim *s, uint64_t now_ns);

#endif
