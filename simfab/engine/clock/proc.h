/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attached processes and their actors (threads). The engine copies values from the arena that a process shares,
 * checks the copy, then uses the copy. A process that breaks the rules is detached.
 */
#ifndef SIMFAB_PROC_H
#define SIMFAB_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/stuck.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/proto.h"

struct alarm;
struct object;

struct extent {
    uint32_t offset, bytes;
};

/* The engine's view of one thread. */
struct actor {
    struct proc *proc;
    uint32_t index;
    uint32_t seen;          /* enum sf_actor_state as last read */
    uint64_t idle_clock_ps; /* its clock when it went idle */
    uint64_t idle_since_ps; /* that, or the engine's time then, or when it last looked */
    uint64_t readings;      /* of clocks, its counter when it went idle */
    uint64_t patience_ps;   /* how long it stays so while others make time pass */
    uint64_t calls;         /* its counter when it was left out */
    uint64_t run_calls;     /* and when its run began */
    struct evtimer wake;
    struct evtimer limit; /* BLOCKED: when it stops waiting for what the engine does not see */
    struct evtimer peep;  /* IDLE: when it looks for an event of a port, or goes on, should time get there */
    uint64_t nap_ps;      /* its last sleep, if that was short and no idle poll has ended because of it */
    uint32_t stops;       /* its counter when last looked at */
    bool due;             /* the limit has come, and it has not yet returned */
    uint32_t wake_reason;
    struct {
        uint64_t calls;    /* its counter, */
        uint64_t at_ps;    /* and the time, when it was last called in LOCK */
        uint32_t left;     /* so many rounds take no time; */
        bool all_take;     /* all do, */
        uint64_t since_ps; /* since then, */
        uint64_t long_ps;  /* and the last one so much */
    } rounds;
    bool waits; /* it has been woken for this, and waits for its turn */
    uint32_t turn_reason;
    uint64_t turn_clock_ps;
    struct actor *next_waiting;
    struct {
        uint32_t turn;        /* in the relay's present order; 0: it has none */
        uint64_t calls, head; /* for run_calls and head_before, if the turn is passed on to it */
    } relay;
    bool excluded;      /* RUNNING, but time does not wait for it */
    bool spins;         /* that is because it burns processor time, not because it sleeps */
    uint64_t run;       /* the number of its present or last run */
    struct stuck stuck; /* whether it stops time for long */
    bool landed;        /* it spun, until something was written to its memory: not a call since */
    uint64_t spin_ns;   /* of processor time without a call, after which it is taken for a spinner */
    int cpu_fd; /* its processor time, as the kernel's performance events count it; -1: not open, -2: cannot be */
    uint64_t calls_checked, head_before;
    bool paused;        /* it waits in a system call, or for its turn: its run may go on */
    bool is_new;        /* it has not had a turn yet */
    bool undecided;     /* it may keep its turn: not known yet */
    bool keeps_turn;    /* and goes on before others who waited for theirs already */
    uint64_t paused_ps; /* its clock then */
    bool outside;       /* it waits for what the engine does not see: a system call, or a thread that is no actor */
    bool called;        /* LOCK, outside: that has come */
    bool looking;       /* woken only to look at shared memory or the real world */
    bool free;          /* and it runs freely meanwhile */
    int stat_fd;        /* /proc/PID/task/TID/stat, -1: not open */
    uint32_t stat_tid;
    bool asleep;                            /* it slept when last looked at, */
    uint64_t asleep_turns;                  /* having had so many turns on a processor */
    uint64_t waited_since_ns, cpu_since_ns; /* real time: since when, and its processor time then, */
    uint64_t kernel_since_ns;               /* and how much of that was in the kernel */
    uint64_t faults;                        /* pages that it had touched for the first time by then */
    struct {
        uint64_t run;    /* in this run the engine's patience has ended; */
        uint64_t ran_ns; /* the thread's processor time then */
    } slow;              /* cpu.c */
    pid_t held_tid;      /* held on the engine's processor (cpu.c); 0: it is not, */
    uint64_t cpus[4];    /* and where it may run otherwise, as in its slot */
};

struct proc {
    struct sim *sim;
    uint32_t id;
    uint32_t rank; /* as its launcher numbers it, 1 for the first; 0: unknown */
    struct host *host;
    pid_t pid;
    pid_t mem_tid; /* the thread by which its memory is reached: the first one may have ended */
    int sock, bell, memfd;
    uint32_t seat;              /* in the relay of its host (relay.c); 0: none */
    void *source, *bell_source; /* server.c's */
    struct sf_arena *arena;
    struct extent *holes; /* free room in the arena, by offset */
    uint32_t num_holes, holes_cap;
    uint32_t ring_offset; /* of the command ring: the arena says it too, but the process could write there */
    uint64_t cmd_tail;
    struct object **objects; /* by handle - 1 */
    uint32_t num_objects, free_hint;
    struct actor actors[SF_ACTORS_MAX];
    struct alarm *alarms; /* alarm.c */
    uint32_t num_alarms, last_alarm;
    bool signalled;         /* a timer of it has ended, and it may not have noticed */
    uint32_t spinners;      /* actors that spin, and are excluded for that */
    uint32_t births;        /* of threads, when nobody was on his way; */
    uint32_t births_walked; /* and when that was last asked */
    uint32_t actors_used;   /* all with a greater index are free */
    uint32_t num_actors;    /* in any state but FREE */
    uint64_t events;        /* completions and events made visible so far */
    bool has_news;          /* idle polls return early, to find an event of a port that came ... */
    uint64_t news_ps;       /* ... at this time */
    struct proc *next_gone; /* sched.c */
    uint32_t tsc;           /* enum sf_tsc, as last read */
    bool dead;              /* to be detached at the next occasion */
};

/* A time that a process told us. No clock is that far ahead: a broken one must not take the fabric's time with it. */
#define CLOCK_HORIZON_PS 100000000000000000ull /* a day and some hours */
static inline uint64_t proc_time(const struct sim *s, uint64_t t_ps)
{
    return t_ps > sim_now(s) + CLOCK_HORIZON_PS ? sim_now(s) + CLOCK_HORIZON_PS : t_ps;
}

static inline struct proc *proc_by_id(const struct sim *s, uint32_t id)
{
    return id <= s->next_proc_id && id < s->by_id_cap ? s->proc_by_id[id] : NULL;
}

#endif
