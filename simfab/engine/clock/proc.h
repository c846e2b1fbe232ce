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
    uint64_t idle_clock_ps; /* clock at the start of IDLE */
    uint64_t idle_since_ps; /* the later of this clock and engine time, or the last look */
    uint64_t readings;      /* clock readings at the start of IDLE */
    uint64_t patience_ps;   /* time moved by others before the next look */
    uint64_t calls;         /* call counter when excluded */
    uint64_t run_calls;     /* call counter at the start of the run */
    struct evtimer wake;
    struct evtimer limit; /* BLOCKED: end of a wait hidden from the engine */
    struct evtimer peep;  /* IDLE: time of a look for an event of a port, or of return */
    uint64_t nap_ps;      /* last short sleep, until an idle poll has ended because of the sleep */
    uint32_t stops;       /* its counter at the last check */
    bool due;             /* the limit has passed, and the actor has not returned */
    uint32_t wake_reason;
    struct {
        uint64_t calls;    /* call counter */
        uint64_t at_ps;    /* and time of the last call in LOCK */
        uint32_t left;     /* rounds left that take no time */
        bool all_take;     /* all rounds take time, */
        uint64_t since_ps; /* since this time, */
        uint64_t long_ps;  /* and the last round took this long */
    } rounds;
    bool waits; /* woken, and waiting for the turn */
    uint32_t turn_reason;
    uint64_t turn_clock_ps;
    struct actor *next_waiting;
    struct {
        uint32_t turn;        /* place in the relay's present order; 0: none */
        uint64_t calls, head; /* for run_calls and head_before, if the relay passes the turn on */
    } relay;
    bool excluded;      /* RUNNING, but time does not wait for the actor */
    bool spins;         /* excluded for burning processor time, not for sleeping */
    uint64_t run;       /* number of the present or last run */
    struct stuck stuck; /* long standstills of time */
    bool landed;        /* spun until memory was written: no call since */
    uint64_t spin_ns;   /* processor time without a call that makes a spinner */
    int cpu_fd;         /* performance counter of processor time; -1: not open, -2: not available */
    uint64_t calls_checked, head_before;
    bool paused;        /* in a system call, or waiting for the turn: the run may continue */
    bool is_new;        /* no turn yet */
    bool undecided;     /* the turn's end is not decided yet */
    bool keeps_turn;    /* continues before actors already waiting for their turn */
    uint64_t paused_ps; /* clock at the pause */
    bool outside;       /* waits for something hidden from the engine: a system call, or a thread that is no actor */
    bool called;        /* LOCK, outside: released */
    bool looking;       /* woken only to look at shared memory or the real world */
    bool free;          /* runs freely meanwhile */
    int stat_fd;        /* /proc/PID/task/TID/stat, -1: not open */
    uint32_t stat_tid;
    bool asleep;                            /* asleep at the last check, */
    uint64_t asleep_turns;                  /* with this number of turns on a processor */
    uint64_t waited_since_ns, cpu_since_ns; /* real time and processor time at the last call, */
    uint64_t kernel_since_ns;               /* its part in the kernel, */
    uint64_t faults;                        /* and page faults by then */
    struct {
        uint64_t run;    /* the run in which the engine's patience ended */
        uint64_t ran_ns; /* and the thread's processor time then */
    } slow;              /* cpu.c */
    pid_t held_tid;      /* thread held on the engine's processor (cpu.c); 0: none */
    uint64_t cpus[4];    /* former affinity, as in the slot */
};

struct proc {
    struct sim *sim;
    uint32_t id;
    uint32_t rank;  /* rank in the launcher's order, plus 1; 0: unknown */
    uint32_t place; /* in sim.procs, plus 1: the source of events that the process schedules (event.h) */
    struct host *host;
    pid_t pid;
    pid_t mem_tid; /* the thread used to reach the memory: the first thread may have ended */
    int sock, bell, memfd;
    uint32_t seat;              /* in the relay of its host (relay.c); 0: none */
    void *source, *bell_source; /* server.c's */
    struct sf_arena *arena;
    struct extent *holes; /* free room in the arena, by offset */
    uint32_t num_holes, holes_cap;
    uint32_t ring_offset; /* of the command ring: a copy, as the process may overwrite the arena */
    uint64_t cmd_tail;
    struct object **objects; /* by handle - 1 */
    uint32_t num_objects, free_hint;
    struct actor actors[SF_ACTORS_MAX];
    struct alarm *alarms; /* alarm.c */
    uint32_t num_alarms, last_alarm;
    bool signalled;         /* a timer has ended, and the process may not have noticed */
    uint32_t spinners;      /* actors excluded as spinners */
    uint32_t births;        /* threads created, when all was last quiet */
    uint32_t births_walked; /* the same at the last check */
    uint32_t actors_used;   /* all with a greater index are free */
    uint32_t num_actors;    /* in any state but FREE */
    uint64_t events;        /* completions and events made visible so far */
    bool has_news;          /* idle polls return early, to find an event of a port, */
    uint64_t news_ps;       /* which came at this time */
    struct proc *next_gone; /* sched.c */
    uint32_t tsc;           /* enum sf_tsc, as last read */
    bool dead;              /* will be detached */
};

/* A time reported by a process, limited: a wrong clock must not take the fabric's time along. */
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
