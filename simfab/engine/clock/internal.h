/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the scheduler of actors, which the files of this folder share. */
#ifndef SIMFAB_SCHED_INTERNAL_H
#define SIMFAB_SCHED_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/proto.h"

enum wake_reason {
    WAKE_COMPLETION = 1,
    WAKE_TIME = 2,
    WAKE_SHARED_MEMORY = 3,
    WAKE_DRAINED = 4,
    WAKE_WORLD = 5,
    WAKE_SIGNAL = 6,
    WAKE_TURN = 7
};

struct host_time {
    struct sim *sim;
    struct host *host;
    struct evtimer look;
    uint32_t procs;   /* attached */
    uint32_t actors;  /* in any state but FREE */
    uint32_t running; /* actors that the engine waits for */
    /* actors in system calls, or back from one, of whom it is not yet known whether they wait there */
    uint32_t undecided;
    bool in_turns;         /* they run one after the other: turn.h */
    struct actor *waiting; /* for their turn, in its order */
    bool ran;              /* somebody of the host has run since the last look */
    struct actor *runner;  /* the only one that has; NULL: several */
    uint64_t clock_ps;     /* the latest clock among those who ran */
    uint32_t rounds;       /* looks still to be had */
    uint32_t idle;         /* actors that are */
    struct relay *relay;   /* relay.c; NULL: no process has been there */
    uint32_t relay_length; /* places of its open order; 0: there is none */
};

struct sched {
    struct host_time *hosts; /* by host index */
    struct proc *gone;       /* detached, memory still pointed to by queued timers */
    bool draining;           /* somebody waits for room in its ring */
    bool moving;             /* events happen: who is woken runs after them */
    bool unsettled;          /* somebody has gone into a system call, or come back from one, since all was quiet */
    uint32_t waiting;        /* actors that have been woken, and wait for their turn */
    uint32_t turn_hosts;     /* on which actors take turns */
    bool free;               /* actors that share memory run freely: nothing else can happen; */
    bool lonely;             /* others look meanwhile: */
    bool vain, found;        /* since the last turn of the engine somebody has looked in vain; somebody has not */
    uint64_t free_since_ns, free_used_ns;
    unsigned free_us;       /* the last step of time for a free run in vain */
    uint64_t free_until_ps; /* the end of that step: time is to get there, */
    uint64_t free_clock_ps; /* and to the latest clock of those who ran so */
    uint64_t restless_ps;   /* when the idle are next asked how long they have been so */
    uint32_t quick_looks, turn_looks;
    unsigned idle_us; /* the length of the pause that ends then; 0: there is none */
    uint64_t pause_ends_ns;
    struct world *world;
    void (*close_relay)(struct host_time *h); /* relay_close_now: the files below it call it, too */
    int64_t patience_us;
    uint32_t turns; /* while somebody ran */
    uint64_t due_since_ns;
};

static inline struct sf_actor *actor_shared(const struct actor *a)
{
    return &a->proc->arena->actor[a->index];
}

static inline struct host_time *actor_host(const struct actor *a)
{
    return &a->proc->sim->sched->hosts[a->proc->host->index];
}

/* Do actors of the host run one after the other? */
static inline bool host_takes_turns(const struct host_time *h)
{
    return h->in_turns && !h->sim->sched->free;
}

/* The engine does not wait for a running actor any more. */
static inline void actor_stops(const struct actor *a)
{
    a->proc->sim->running--;
    actor_host(a)->running--;
}

/* Who waits for his turn only waits for others. */
static inline uint32_t sched_running_now(const struct sim *s)
{
    return s->running - s->sched->waiting;
}

/* Does the engine wait for anybody? */
static inline bool sched_somebody_runs(const struct sim *s)
{
    return s->running > s->sched->waiting;
}

/* Does it begin only to look at memory, or at the world? */
static inline bool wakes_to_look(enum wake_reason reason)
{
    return reason == WAKE_SHARED_MEMORY || reason == WAKE_WORLD;
}

/* Before anything is done to actors of the host: what those that passed turns on have done is made known. */
static inline void relay_close(struct host_time *h)
{
    if (h->relay_length)
        h->sim->sched->close_relay(h);
}

#endif
