/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the scheduler of actors, and the functions that its files share. The others are in sched.h. */
#ifndef SIMFAB_SCHED_INTERNAL_H
#define SIMFAB_SCHED_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/proto.h"

enum wake_reason { WAKE_COMPLETION = 1, WAKE_TIME = 2, WAKE_SHARED_MEMORY = 3, WAKE_DRAINED = 4, WAKE_WORLD = 5,
                   WAKE_SIGNAL = 6, WAKE_TURN = 7 };

struct host_time {
    struct sim *sim;
    struct host *host;
    struct evtimer look;
    uint32_t procs;       /* attached */
    uint32_t actors;      /* in any state but FREE */
    uint32_t running;     /* actors that the engine waits for */
    /* actors in system calls, or back from one, of whom it is not yet known whether they wait there */
    uint32_t undecided;
    bool in_turns;        /* they run one after the other: turn.c */
    struct actor *waiting; /* for their turn, in its order */
    bool ran;             /* somebody of the host has run since the last look */
    struct actor *runner; /* the only one that has; NULL: several */
    uint64_t clock_ps;    /* the latest clock among those who ran */
    uint32_t rounds;      /* looks still to be had */
    uint32_t idle;        /* actors that are */
    struct relay *relay;  /* relay.c; NULL: no process has been there */
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
    uint64_t free_until_ps; /* if in vain, as it has been so long by the world's clock: time is to get there, */
    uint64_t free_clock_ps; /* and to the latest clock of those who ran so */
    uint64_t restless_ps;   /* when the idle are next asked how long they have been so */
    uint32_t quick_looks, turn_looks;
    unsigned idle_us; /* the length of the pause that ends then; 0: there is none */
    uint64_t pause_ends_ns;
    struct world *world;
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

/* sched.c: something has happened that gives reason to look at the world again soon. */
void sched_activity(struct sched *sc);
void sched_look_at(struct actor *a); /* has its state changed? */

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

/* turn.c */
void turn_wait(struct actor *a, enum wake_reason reason, uint64_t clock_ps);
void turn_leave(struct actor *a);            /* it does not wait (any more) */
void turn_pause(struct actor *a); /* its run may go on, and nobody else of its host begins before that is known */
void turn_end_pause(struct actor *a);        /* it goes on, or is over */
void turns_next(struct sim *s);              /* wherever nobody runs, the next one does */
void turns_update(struct host_time *h);      /* actors or processes have come or gone */

/* relay.c */
uint32_t relay_sit(struct host_time *h,
                   int *fd); /* a seat for a process, and the page's descriptor; 0: there is none */
void relay_leave(struct host_time *h, uint32_t seat);
void relay_offer(struct host_time *h, struct actor *first); /* it is about to start; those that wait come after it */
void relay_close_now(struct host_time *h);
/* Before anything is done to actors of the host: what those that passed turns on have done is made known. */
static inline void relay_close(struct host_time *h)
{
    if (h->relay_length)
        relay_close_now(h);
}
void relay_call(const struct actor *a); /* if it waits at its seat: it runs now */
void relay_free(struct host_time *h);

/* wake.c */
/* sched_wake when its turn has come. False: it has changed its mind. */
bool sched_start(struct actor *a, enum wake_reason reason, uint64_t clock_ps);
void sched_wake_init(struct actor *a);
void sched_wake(struct actor *a, enum wake_reason reason, uint64_t clock_ps);
void sched_wake_at(struct actor *a, enum wake_reason reason, uint64_t t);
/* Tell all processes what time it is. */
void sched_publish_time(struct sim *s);
/* Somebody whose clock was this has unlocked, or done, what the actor waits for. */
void sched_called(struct actor *a, uint64_t clock_ps);
void sched_running(struct actor *a);            /* time waits for it from now on */
void sched_runs(struct actor *a, bool looking); /* and a run of it begins, or goes on */
/* Have spinners called without being told that something landed? What they were waiting for is not ours to see. */
bool sched_spinner_called(struct sim *s);

/* look.c */
void look_init(struct host_time *h);
/* Somebody of the host has run until then: the others are to look at what it may have written. */
void look_later(struct host_time *h, uint64_t from);
void look_restless(struct sim *s);
/* Nothing can happen any more by itself. How long to wait until the next look, in us; -1: somebody looks now. */
int64_t look_at_world(struct sim *s);
bool look_free_is_over(const struct sched *sc);
void look_free_end(struct sim *s);
void look_free_catch_up(struct sim *s); /* when all of them have stopped */

#endif
