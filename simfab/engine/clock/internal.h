/* SPDX-License-Identifier: BSD-3-Clause */
/* State of the scheduler of actors, shared by the files of this folder. */
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
    uint32_t running; /* RUNNING and not excluded */
    /* actors in system calls, or back, with the end of their turn undecided */
    uint32_t undecided;
    bool in_turns;         /* actors run one after the other: turn.h */
    struct actor *waiting; /* actors waiting for their turn, next first */
    bool ran;              /* an actor of the host has run since the last look */
    struct actor *runner;  /* the actor that has run; NULL: several */
    uint64_t clock_ps;     /* the latest clock of these actors */
    uint32_t rounds;       /* looks still to be had */
    uint32_t idle;         /* IDLE actors */
    struct relay *relay;   /* relay.c; NULL: no process has been there */
    uint32_t relay_length; /* places of its open order; 0: there is none */
};

struct sched {
    struct host_time *hosts; /* by host index */
    struct proc *gone;       /* detached, but queued timers still point to the memory */
    bool draining;           /* an actor waits for room in its ring */
    bool moving;             /* events are running: woken actors run afterwards */
    bool unsettled;          /* an actor has entered or left a system call since all was quiet */
    uint32_t waiting;        /* woken actors waiting for their turn */
    uint32_t turn_hosts;     /* hosts with turns */
    bool free;               /* nothing else can happen: actors that share memory run freely, */
    bool lonely;             /* and single actors look meanwhile */
    bool vain, found;        /* looks without and with result since the last turn of the engine */
    uint64_t free_since_ns, free_used_ns;
    unsigned free_us;       /* the last step of time for a free run in vain */
    uint64_t free_until_ps; /* the end of that step, to which time moves, */
    uint64_t free_clock_ps; /* and the latest clock of the free runners, too */
    uint64_t restless_ps;   /* next check of idle actors by look_restless */
    uint32_t quick_looks, turn_looks;
    unsigned idle_us; /* length of the pause ending at pause_ends_ns; 0: none */
    uint64_t pause_ends_ns;
    struct world *world;
    uint64_t rest_ends_ns;   /* until then there is nothing to do; 0: no rest */
    bool rest_coming;        /* the rest is for threads out of sight */
    uint64_t asked_ns;       /* when the kernel was last asked whether a process is on its way to attach; */
    uint64_t none_starts_ns; /* none was: taken for true until then. 0: unknown */
    void (*close_relay)(struct host_time *h); /* relay_close_now, for lower files */
    int64_t patience_us;
    uint32_t turns; /* waits of the engine for running actors */
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

/* True if actors of the host run one after the other now. */
static inline bool host_takes_turns(const struct host_time *h)
{
    return h->in_turns && !h->sim->sched->free;
}

/* The engine no longer waits for the running actor. */
static inline void actor_stops(const struct actor *a)
{
    a->proc->sim->running--;
    actor_host(a)->running--;
}

/* Actors that wait for their turn are not running. */
static inline uint32_t sched_running_now(const struct sim *s)
{
    return s->running - s->sched->waiting;
}

static inline bool sched_somebody_runs(const struct sim *s)
{
    return s->running > s->sched->waiting;
}

/* True if the woken actor is only to look at memory or at the world. */
static inline bool wakes_to_look(enum wake_reason reason)
{
    return reason == WAKE_SHARED_MEMORY || reason == WAKE_WORLD;
}

/* Accounts for the turns passed in an open relay. Call before any change to actors of the host. */
static inline void relay_close(struct host_time *h)
{
    if (h->relay_length)
        h->sim->sched->close_relay(h);
}

#endif
