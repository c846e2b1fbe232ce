/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at what the engine does not see: memory that the actors of a host share, and the world outside, which idle
 * actors are let look at when somebody has run, when others have made time pass, or when nothing can happen by itself.
 */
#include "simfab/engine/clock/look.h"

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/alarm.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/proto.h"

#define LOOK_DELAY_PS     500000ull /* after which the others of a host look at shared memory; */
#define LOOK_ACTOR_PS     100000ull /* more for each of them */
#define LOOK_AGAIN_ACTORS 8u        /* up to so many look twice */
#define QUICK_LOOKS       16u       /* without a pause, when nothing else can happen */
#define TURN_LOOKS        2000u     /* rounds of looks, where actors take turns, before they run freely; */
#define TURN_LOOKS_ALL    16u       /* all look in every so many */
/* Of time that others make pass, after which an idle actor looks at the world: */
#define RESTLESS_PS     100000000ull
#define RESTLESS_MAX_PS 10000000000ull /* at first, and at most */
/*
 * The first step of time while nothing can happen: a pause, of real and of virtual time, or the virtual time of a free
 * run in vain. Each step is twice as long as the last, up to:
 */
#define STEP_US        100
#define STEP_US_MAX    10000
#define FREE_TURN_NS   20000000ull   /* how long actors run freely at once, */
#define FREE_LONELY_NS 1000000ull    /* and where others look between such runs, */
#define FREE_BUDGET_NS 2000000000ull /* and in all, without anything that the engine sees, before they slow down */

/* ---- looking at shared memory ---------------------------------------------------------------------------------- */

static uint32_t wake_idle(struct sim *s, const struct host *host, const struct actor *except, enum wake_reason reason,
                          uint64_t clock)
{
    uint32_t woken = 0;

    for (uint32_t i = 0; i < s->num_procs; i++) {
        struct proc *p = s->procs[i];

        if (host && p->host != host)
            continue;
        for (uint32_t n = 0; n < p->actors_used; n++) {
            struct actor *a = &p->actors[n];

            if ((a->seen != SF_ACTOR_IDLE && (a->seen != SF_ACTOR_LOCK || host)) || a == except)
                continue;
            sched_wake(a, reason, max_u64(a->idle_clock_ps, clock));
            woken++;
        }
    }
    return woken;
}

/*
 * Where somebody has run, the others of that host look at the memory they share with it, all at once, a moment later:
 * the time in which one processor notices what another has written, and longer where many would be woken for each
 * other.
 */
void look_later(struct host_time *h, uint64_t from)
{
    evtimer_set_earlier(&h->sim->q, &h->look, from + LOOK_DELAY_PS + h->actors * LOOK_ACTOR_PS);
}

/*
 * What one of them does then may concern the first: among few there is a second round, and so on while one leads on. A
 * runner whose clock is ahead has a look of its own when time gets there: it must not take others with it, who may find
 * something that has nothing to do with it.
 */
static void look_at_host(void *obj, uint64_t arg)
{
    struct host_time *h = obj;
    struct actor *except = NULL;

    if (h->ran) {
        h->rounds = h->actors <= LOOK_AGAIN_ACTORS ? 2 : 1;
        except = h->runner;
        h->ran = false;
        h->runner = NULL;
    }
    wake_idle(h->sim, h->host, except, WAKE_SHARED_MEMORY, min_u64(h->clock_ps, sim_now(h->sim)));
    if (h->clock_ps > sim_now(h->sim))
        look_later(h, h->clock_ps);
    if (h->rounds && --h->rounds)
        look_later(h, sim_now(h->sim));
}

void look_init(struct host_time *h)
{
    evtimer_init(&h->look, look_at_host, h);
}

/*
 * Others keep time going (by sleeping again and again until something outside has happened, or by a traffic of their
 * own). What it is that they wait for may be up to an actor that polled once, in vain, and would have gone on at once
 * on real hardware: who has been idle for long looks at the world, and again after twice the time.
 */
void look_restless(struct sim *s)
{
    s->sched->restless_ps = sim_now(s) + RESTLESS_PS;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if ((a->seen != SF_ACTOR_IDLE && a->seen != SF_ACTOR_LOCK) ||
                sim_now(s) < a->idle_since_ps + max_u64(a->patience_ps, RESTLESS_PS))
                continue;
            a->patience_ps = min_u64(2 * max_u64(a->patience_ps, RESTLESS_PS), RESTLESS_MAX_PS);
            sched_wake(a, WAKE_WORLD, max_u64(a->idle_clock_ps, sim_now(s)));
        }
}

/* ---- time that passes ----------------------------------------------------------------------------------------- */

/* Does it wait, and look at the clock meanwhile? */
static bool watches_clock(const struct actor *a)
{
    return a->seen == SF_ACTOR_IDLE && a->readings != __atomic_load_n(&actor_shared(a)->readings, __ATOMIC_RELAXED);
}

/*
 * While nothing else moves time it passes as it does in the world, for all, if there is anybody to see it: timers, or
 * who waits by the clock. For all: whose clock is ahead of the others' hears only then of what they do.
 */
static void pass_time(struct sim *s, uint64_t ps)
{
    bool seen = s->alarms_set;

    for (uint32_t i = 0; i < s->num_procs && !seen; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used && !seen; n++)
            seen = watches_clock(&s->procs[i]->actors[n]);
    if (seen)
        alarms_pass(s, ps);
}

/* The step after one of so many us; 0: the first. */
static unsigned next_step(unsigned us)
{
    return us ? (us < STEP_US_MAX / 2 ? 2 * us : STEP_US_MAX) : STEP_US;
}

/* ---- running freely -------------------------------------------------------------------------------------------- */

/*
 * Where actors take turns, what they exchange through memory goes on in turns as well: all look, one after the other,
 * again and again, and on the other hosts now and then. After many rounds for nothing they run freely.
 */
static bool look_in_turns(struct sim *s)
{
    struct sched *sc = s->sched;
    bool all = sc->turn_looks % TURN_LOOKS_ALL == 0;
    uint32_t woken = 0;

    if (!sc->turn_hosts || sc->turn_looks >= TURN_LOOKS)
        return false;
    sc->turn_looks++;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen != SF_ACTOR_IDLE || !(all || actor_host(a)->in_turns))
                continue;
            sched_wake(a, WAKE_WORLD, a->idle_clock_ps);
            woken++;
        }
    return woken;
}

/* While others run freely, who is alone on its host looks at the world as well: it may be what they wait for. */
static bool wake_lonely(struct sim *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen != SF_ACTOR_IDLE)
                continue;
            sched_wake(a, WAKE_WORLD, a->idle_clock_ps);
            any = true;
        }
    return any;
}

/*
 * Nothing can happen by itself, but threads of one host may be talking through memory that the engine does not see:
 * they run as they would without us, until one of them wants something. False: no host has two of them.
 */
static bool start_free_run(struct sim *s)
{
    struct sched *sc = s->sched;
    bool any = false;

    for (uint32_t i = 0; i < s->num_procs; i++)
        if (sc->hosts[s->procs[i]->host->index].idle > 1)
            __atomic_store_n(&s->procs[i]->arena->free_run, 1, __ATOMIC_RELEASE);
    sc->free = true;
    for (uint32_t i = 0; i < s->num_procs; i++) {
        struct proc *p = s->procs[i];

        for (uint32_t n = 0; __atomic_load_n(&p->arena->free_run, __ATOMIC_RELAXED) && n < p->actors_used; n++)
            if (p->actors[n].seen == SF_ACTOR_IDLE) {
                sched_wake(&p->actors[n], WAKE_WORLD, p->actors[n].idle_clock_ps);
                p->actors[n].free = any = true;
            }
    }
    sc->free = any;
    if (any) {
        sc->free_since_ns = real_ns();
        sc->lonely = wake_lonely(s);
    }
    return any;
}

/* Long in vain: shorter turns between the pauses, so that a job that hangs leaves the machine to others. */
static uint64_t free_turn_ns(const struct sched *sc)
{
    if (sc->free_used_ns >= FREE_BUDGET_NS)
        return FREE_TURN_NS / 4;
    return sc->lonely ? FREE_LONELY_NS : FREE_TURN_NS;
}

bool look_free_is_over(const struct sched *sc)
{
    return real_ns() - sc->free_since_ns > free_turn_ns(sc);
}

/*
 * A free run in vain takes a step of virtual time, not the machine's time: timers of programs that poll by the clock
 * are then late by their own length at most.
 */
void look_free_end(struct sim *s)
{
    struct sched *sc = s->sched;
    uint64_t ran_ns = real_ns() - sc->free_since_ns;

    for (uint32_t i = 0; i < s->num_procs; i++)
        __atomic_store_n(&s->procs[i]->arena->free_run, 0, __ATOMIC_RELEASE);
    sc->free = false;
    if (ran_ns > free_turn_ns(sc)) {
        sc->free_us = next_step(sc->free_us);
        sc->free_until_ps = sim_now(s) + sc->free_us * 1000000ull;
    }
    sc->free_used_ns += ran_ns;
}

/* Who ran freely may have read the clock all the time: theirs is everybody's, for the reason above. */
void look_free_catch_up(struct sim *s)
{
    uint64_t clock = s->sched->free_clock_ps;

    s->sched->free_clock_ps = 0;
    if (clock > sim_now(s))
        alarms_pass(s, clock - sim_now(s));
}

static int64_t start_pause(struct sched *sc, unsigned us)
{
    sc->idle_us = us;
    sc->pause_ends_ns = real_ns() + us * 1000ull;
    return us;
}

/*
 * Nothing can happen any more by itself. Let the idle ones look at the world now and then; returns the rest of the
 * pause until then in us, -1 when somebody has something to do. What interrupts a pause does not make it longer:
 * threads that come back from the kernel again and again must not keep time from passing.
 */
int64_t look_at_world(struct sim *s)
{
    struct sched *sc = s->sched;
    uint64_t now_ns = real_ns();
    bool paused = sc->idle_us && now_ns >= sc->pause_ends_ns;
    uint64_t passed_ps = paused ? sc->idle_us * 1000000ull : 0;
    int64_t wait_us = 0;

    if (sc->free_until_ps > sim_now(s))
        passed_ps += sc->free_until_ps - sim_now(s);
    sc->free_until_ps = 0;
    if (paused)
        wait_us = start_pause(sc, next_step(sc->idle_us));
    if (passed_ps)
        pass_time(s, passed_ps);
    if (s->signalled || s->running)
        return -1;
    if (look_in_turns(s))
        return -1;
    if ((sc->free_used_ns < FREE_BUDGET_NS || paused) && start_free_run(s)) {
        sc->idle_us = 0;
        return -1;
    }
    if (sc->quick_looks < QUICK_LOOKS) {
        sc->quick_looks++;
        if (wake_idle(s, NULL, NULL, WAKE_WORLD, 0))
            return -1;
    }
    if (paused)
        return wake_idle(s, NULL, NULL, WAKE_WORLD, sim_now(s)) ? -1 : wait_us;
    return sc->idle_us ? (int64_t)((sc->pause_ends_ns - now_ns + 999) / 1000) : start_pause(sc, STEP_US);
}
