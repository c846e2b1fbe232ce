/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks at state hidden from the engine: memory shared by the actors of a host, and the world outside. Idle actors look
 * after another actor has run, after others have made time pass, or when nothing can happen by itself.
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

#define LOOK_DELAY_PS     500000ull /* before the other actors of a host look at shared memory; */
#define LOOK_ACTOR_PS     100000ull /* plus this for each actor */
#define LOOK_AGAIN_ACTORS 8u        /* actors on a host for a second round */
#define QUICK_LOOKS       16u       /* looks without a pause, when nothing else can happen */
#define TURN_LOOKS        2000u     /* rounds of looks in turns before actors run freely; */
#define TURN_LOOKS_ALL    16u       /* all hosts look every 16th round */
/* Time moved by others before an idle actor looks at the world: */
#define RESTLESS_PS     100000000ull
#define RESTLESS_MAX_PS 10000000000ull /* first, and most */
/*
 * The first step of time while nothing can happen: a pause, in real and virtual time, or the virtual time of a free run
 * in vain. Each step is twice as long as the last, up to:
 */
#define STEP_US        100
#define STEP_US_MAX    10000
#define FREE_TURN_NS   20000000ull   /* length of a free run, */
#define FREE_LONELY_NS 1000000ull    /* if single actors look between free runs, */
#define FREE_BUDGET_NS 2000000000ull /* and of all free runs without a visible event, before actors slow down */

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
 * After an actor has run, the other actors of its host look at their shared memory, a moment later: the time in which
 * one processor sees a write of another processor, and longer where many actors would wake each other.
 */
void look_later(struct host_time *h, uint64_t from)
{
    evtimer_set_earlier(&h->sim->q, &h->look, from + LOOK_DELAY_PS + h->actors * LOOK_ACTOR_PS);
}

/*
 * A discovery of one actor may concern the first, so up to LOOK_AGAIN_ACTORS actors have a second round, and further
 * rounds while discoveries go on. A runner whose clock is ahead gets a look of its own when time gets there. Taking
 * other actors along would let them find unrelated data early.
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
 * Others keep time moving, by repeated sleeps or by traffic of their own. They may wait for an actor that polled once
 * in vain, and that would have continued at once on real hardware. Therefore actors that have been idle for long look
 * at the world, and again after twice the time.
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

/* True if the idle actor reads clocks meanwhile. */
static bool watches_clock(const struct actor *a)
{
    return a->seen == SF_ACTOR_IDLE && a->readings != __atomic_load_n(&actor_shared(a)->readings, __ATOMIC_RELAXED);
}

/*
 * While nothing else moves time, time passes at the real rate if a timer is set or an idle actor reads clocks. Time
 * passes for all actors, because an actor whose clock is ahead would hear of the others late.
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
 * Exchanges through memory go on in turns too where actors take turns: these actors look one after the other, again and
 * again, and every TURN_LOOKS_ALL rounds the actors of the other hosts look, too. After TURN_LOOKS rounds in vain,
 * actors run freely.
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

/* While others run freely, single actors of a host look at the world too: the others may wait for these actors. */
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
 * Nothing can happen by itself, but threads of one host may exchange data through memory, hidden from the engine. The
 * threads run as without the engine until one of them calls. Returns false if no host has two idle actors.
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

/* After a long time in vain, free runs are shorter, so a hanging job leaves the machine to others. */
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

/* The free runners may have read clocks: move time for all actors to the latest clock (see pass_time). */
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

static bool pause_is_over(const struct sched *sc, uint64_t now_ns)
{
    return sc->idle_us && now_ns >= sc->pause_ends_ns;
}

bool look_passes_time(const struct sim *s)
{
    return s->sched->free_until_ps > sim_now(s) || pause_is_over(s->sched, real_ns());
}

/*
 * Nothing can happen by itself any more. Lets idle actors look at the world now and then. Returns the rest of the pause
 * in us, or -1 if an actor has something to do. An interruption does not prolong a pause: threads returning from the
 * kernel again and again must not keep time from passing. A pause is over once the kernel was asked after its end.
 */
int64_t look_at_world(struct sim *s)
{
    struct sched *sc = s->sched;
    uint64_t now_ns = real_ns();
    bool paused = pause_is_over(sc, sc->asked_ns);
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
    if (!sc->idle_us)
        return start_pause(sc, STEP_US);
    return sc->pause_ends_ns > now_ns ? (int64_t)((sc->pause_ends_ns - now_ns + 999) / 1000) : 0;
}
