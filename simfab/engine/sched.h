/* SPDX-License-Identifier: BSD-3-Clause */
/* What the scheduler of actors remembers; its functions are in proc.h, for everybody. */
#ifndef SIMFAB_SCHED_H
#define SIMFAB_SCHED_H

#include "simfab/engine/proc.h"

struct host_time {
    struct sim *sim;
    struct host *host;
    struct evtimer look;
    uint32_t actors;      /* in any state but FREE */
    bool ran;             /* somebody of the host has run since the last look */
    struct actor *runner; /* the only one that has; NULL: several */
    uint64_t clock_ps;    /* the latest clock among those who ran */
    uint32_t rounds;      /* looks still to be had */
    uint32_t idle;        /* actors, when last counted */
};

struct sched {
    struct host_time *hosts; /* by host index */
    struct proc *gone;       /* detached, memory still pointed to by queued timers */
    bool draining;
    bool free; /* actors that share memory run freely: nothing else can happen */
    uint64_t free_since_ns, free_used_ns;
    uint64_t restless_ps; /* when the idle are next asked how long they have been so */
    uint32_t quick_looks;
    int idle_ms; /* the length of the pause that ends then; 0: there is none */
    uint64_t pause_ends_ns;
    struct world *world;
    int64_t patience_us;
    uint64_t due_since_ns;
};

#endif
