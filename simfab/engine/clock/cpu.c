/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds actors on the engine's processor while their runs are short and few actors run at once. The engine stays on
 * this processor too, and lets the kernel choose again now and then, because another program or fabric may have come to
 * the processor. When an actor runs for longer than the engine's patience, all actors are released, and the next
 * holding starts later.
 */
#include "simfab/engine/clock/cpu.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/threads.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/proto.h"

#define TURNS       64u         /* waits of the engine for actors between two judgements */
#define ABREAST     2u          /* actors that may run at once, */
#define WIDE_TURNS  16u         /* more than ABREAST, in at most this number of turns */
#define LONG_TURNS  8u          /* two at once, in at most this number of turns */
#define LONG_NS     200000u     /* where a turn takes as long: side by side they would have ended sooner */
#define LONG_RUN_NS 1000000u    /* processor time in one run, after the engine's patience, that makes the run long */
#define RESTLESS    16u         /* judgements in a row without rest: an actor may be calling again and again */
#define STAY_NS     50000000ull /* real time on one processor before the kernel chooses again */
#define CALM_MOST   4096u       /* most turns in time before actors are held again after long runs */

struct cpu {
    cpu_set_t own; /* processors that the engine may use */
    bool usable;   /* the engine has several processors */
    /* sim->together: the engine and the actors share processor `at` */
    bool choosing; /* the kernel is choosing a new `at`: the engine is unbound for one wait */
    uint32_t at;
    uint32_t turns, wide,
        several; /* since the last judgement: all, with more than ABREAST actors, with more than one */
    uint64_t judged_ns, rests;
    uint32_t restless;   /* judgements in a row without rest */
    uint32_t calm, need; /* turns in time in a row, and the number required to hold actors */
    uint64_t since_ns;
};

struct cpu *cpu_new(void)
{
    struct cpu *c = xcalloc(1, sizeof *c);

    c->need = TURNS;
    c->usable = !sched_getaffinity(0, sizeof c->own, &c->own) && CPU_COUNT(&c->own) > 1;
    return c;
}

void cpu_free(struct cpu *c)
{
    free(c);
}

/* ---- one actor ------------------------------------------------------------------------------------------------- */

/* The kernel decides whether the thread belongs to the process; the slot may contain anything. */
static bool is_there(const struct actor *a, pid_t tid)
{
    return tid > 0 && !syscall(SYS_tgkill, a->proc->pid, tid, 0);
}

static bool move_to(pid_t tid, uint32_t at)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(at, &one);
    return !sched_setaffinity(tid, sizeof one, &one);
}

/*
 * Stores the thread's affinity in the slot, for the thread, and in the actor, because the process may overwrite the
 * slot.
 */
static bool note_cpus(struct actor *a, pid_t tid, uint32_t at)
{
    struct sf_actor *sh = actor_shared(a);
    cpu_set_t may, rest;

    if (!is_there(a, tid) || sched_getaffinity(tid, sizeof may, &may) || CPU_COUNT(&may) < 2 || !CPU_ISSET(at, &may))
        return false;
    rest = may;
    memset(&rest, 0, sizeof sh->cpus);
    if (CPU_COUNT(&rest))
        return false; /* more processors than the slot has room for */
    memcpy(sh->cpus, &may, sizeof sh->cpus);
    memcpy(a->cpus, &may, sizeof a->cpus);
    return true;
}

static bool waits(const struct actor *a)
{
    return !a->relay.turn && (a->seen == SF_ACTOR_IDLE || a->seen == SF_ACTOR_SLEEP || a->seen == SF_ACTOR_LOCK ||
                              a->seen == SF_ACTOR_READY);
}

/* Holds an actor. A running thread is left alone: the thread may be about to ask for its affinity. */
static void hold(struct actor *a, uint32_t at)
{
    struct sf_actor *sh = actor_shared(a);
    pid_t tid = (pid_t)__atomic_load_n(&sh->tid, __ATOMIC_RELAXED);
    uint32_t was = SF_CPU_FREE;

    if (!waits(a) ||
        !__atomic_compare_exchange_n(&sh->held, &was, SF_CPU_MOVING, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    a->held_tid = note_cpus(a, tid, at) && move_to(tid, at) ? tid : 0;
    __atomic_store_n(&sh->held, a->held_tid ? SF_CPU_HELD : SF_CPU_FREE, __ATOMIC_SEQ_CST);
}

/* Moves a held actor to processor `to`; -1 releases the actor to its former affinity. */
static void move_held(struct actor *a, int to)
{
    struct sf_actor *sh = actor_shared(a);
    uint32_t was = SF_CPU_HELD;
    cpu_set_t may;

    if (!a->held_tid ||
        !__atomic_compare_exchange_n(&sh->held, &was, SF_CPU_MOVING, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    CPU_ZERO(&may);
    memcpy(&may, a->cpus, sizeof a->cpus);
    if (to >= 0 && waits(a) && CPU_ISSET(to, &may) && is_there(a, a->held_tid) && move_to(a->held_tid, (uint32_t)to)) {
        __atomic_store_n(&sh->held, SF_CPU_HELD, __ATOMIC_SEQ_CST);
        return;
    }
    if (is_there(a, a->held_tid))
        sched_setaffinity(a->held_tid, sizeof may, &may);
    a->held_tid = 0;
    __atomic_store_n(&sh->held, SF_CPU_FREE, __ATOMIC_SEQ_CST);
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

static void hold_new(const struct cpu *c, struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++)
            hold(&s->procs[i]->actors[n], c->at);
}

static void move_all(struct sim *s, int to)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++)
            move_held(&s->procs[i]->actors[n], to);
}

void cpu_let_go(struct proc *p)
{
    for (uint32_t n = 0; n < p->actors_used; n++)
        move_held(&p->actors[n], -1);
}

static void part(struct cpu *c, struct sim *s)
{
    if (!s->together)
        return;
    sched_setaffinity(0, sizeof c->own, &c->own);
    move_all(s, -1);
    s->together = c->choosing = false;
}

/* Shares the processor that the kernel has chosen for the engine. */
static void share(struct cpu *c, struct sim *s)
{
    int at = sched_getcpu();

    c->choosing = false;
    if (at < 0 || at >= CPU_SETSIZE || !move_to(0, (uint32_t)at)) {
        part(c, s);
        c->usable = false;
        return;
    }
    if (s->together)
        move_all(s, at);
    s->together = true;
    c->at = (uint32_t)at;
    c->since_ns = real_ns();
    hold_new(c, s);
}

static void runs_are_long(struct cpu *c, struct sim *s)
{
    if (s->together)
        c->need = c->calm > CALM_MOST ? TURNS : (uint32_t)min_u64(2 * c->need, CALM_MOST);
    c->turns = c->wide = c->several = c->calm = 0;
    part(c, s);
}

static void judge(struct cpu *c, struct sim *s)
{
    uint64_t now = real_ns();
    bool narrow = c->wide <= WIDE_TURNS;
    bool lengthy = s->together && c->several > LONG_TURNS && now - c->judged_ns > (uint64_t)LONG_NS * TURNS;

    c->turns = c->wide = c->several = 0;
    c->judged_ns = now;
    c->restless = c->rests == s->rests ? c->restless + 1 : 0;
    c->rests = s->rests;
    if (lengthy || c->restless == RESTLESS) {
        runs_are_long(c, s);
    } else if (!narrow) {
        part(c, s);
    } else if (!s->together) {
        if (c->calm >= c->need && !c->restless)
            share(c, s);
    } else if (now - c->since_ns > STAY_NS) {
        sched_setaffinity(0, sizeof c->own, &c->own);
        c->choosing = true;
    } else {
        hold_new(c, s);
    }
}

/*
 * The engine's patience has ended. On a busy machine the actor may be waiting for a processor, and parting would not
 * help. Only processor time since the first such end in this run counts.
 */
static bool somebody_runs_long(const struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];
            uint64_t ran;

            if (a->seen != SF_ACTOR_RUNNING || a->excluded)
                continue;
            ran = thread_ran_ns(a);
            if (!ran)
                return true; /* the kernel does not say */
            if (a->slow.run != a->run) {
                a->slow.run = a->run;
                a->slow.ran_ns = ran;
            } else if (ran - a->slow.ran_ns > LONG_RUN_NS) {
                return true;
            }
        }
    return false;
}

/* With a cpu_factor, computing is measured, and must not be disturbed. */
void cpu_waited(struct cpu *c, struct sim *s, uint32_t running, bool in_time)
{
    if (!c->usable || !running || s->model->cpu_factor_milli)
        return;
    s->waits++;
    s->waits_together += s->together;
    if (!in_time) {
        if (somebody_runs_long(s))
            runs_are_long(c, s);
        return;
    }
    c->calm++;
    if (c->choosing)
        share(c, s);
    c->several += running > 1;
    c->wide += running > ABREAST;
    if (++c->turns == TURNS)
        judge(c, s);
}
