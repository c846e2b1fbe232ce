/* SPDX-License-Identifier: BSD-3-Clause */
/* States that actors report in their slots of the arena. A change of state ends or begins a run. */
#include "simfab/engine/clock/states.h"

#include <stdlib.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/look.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/relay.h"
#include "simfab/engine/clock/threads.h"
#include "simfab/engine/clock/turn.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/clock/world.h"
#include "simfab/proto.h"

void sched_activity(struct sched *sc)
{
    sc->quick_looks = sc->turn_looks = 0;
    sc->idle_us = 0;
    sc->free_used_ns = sc->free_until_ps = 0;
    sc->free_us = 0;
}

/* True if an actor woken only to look found something. The many calls of a free run do not count. */
static bool look_was_fruitful(const struct actor *a)
{
    return (!a->free && __atomic_load_n(&actor_shared(a)->calls, __ATOMIC_RELAXED) - a->run_calls > SF_LOOK_CALLS) ||
           __atomic_load_n(&a->proc->arena->cmd_head, __ATOMIC_RELAXED) != a->head_before;
}

/* The actor stops running. */
void state_ran(struct actor *a, uint64_t clock)
{
    struct host_time *h = actor_host(a);

    bool fruitful = !a->looking || look_was_fruitful(a), free = a->free;

    h->sim->sched->vain |= !fruitful && !free;
    h->sim->vain_runs += !fruitful;
    h->sim->sched->found |= fruitful || free;
    a->looking = a->free = false;
    if (free)
        h->sim->sched->free_clock_ps = max_u64(h->sim->sched->free_clock_ps, clock);
    if (!fruitful)
        return; /* restores the clock: the look leaves no trace */
    a->idle_clock_ps = clock;
    a->readings = __atomic_load_n(&actor_shared(a)->readings, __ATOMIC_RELAXED);
    a->patience_ps = 0; /* the shortest */
    h->clock_ps = max_u64(h->clock_ps, clock);
    if (h->idle) {
        h->runner = h->ran ? NULL : a;
        h->ran = true;
        look_later(h, max_u64(clock, sim_now(h->sim)));
    }
    sched_activity(a->proc->sim->sched);
}

/* Idle polls after an event of a port (sched_news): */
#define NEWS_LOOK_PS 50000000ull      /* for this time, */
#define NEWS_PS      10000000000ull   /* and draw time with them so long after the event; */
#define PEEP_MAX_PS  2000000000000ull /* up to here idle polls end while others move time, */
#define PEEP_PART    1000             /* after such a part of the time since the event, or NEWS_LOOK_PS */

static void stop_peep(struct actor *a)
{
    if (!evtimer_is_set(&a->peep))
        return;
    evtimer_stop(&a->peep);
    a->proc->sim->background--;
}

static void peep_due(void *obj, uint64_t arg)
{
    struct actor *a = obj;

    a->proc->sim->background--;
    if (a->seen == SF_ACTOR_IDLE)
        sched_wake(a, WAKE_COMPLETION, max_u64(a->idle_clock_ps, sim_now(a->proc->sim)));
}

/* Ends the idle poll before long if an event of a port has come lately. */
static void look_for_news(struct actor *a)
{
    struct sim *s = a->proc->sim;
    uint64_t since = a->idle_since_ps - a->proc->news_ps;

    if (a->idle_since_ps < a->proc->news_ps + NEWS_PS) {
        sched_wake_at(a, WAKE_COMPLETION, a->idle_since_ps + NEWS_LOOK_PS);
    } else if (since < PEEP_MAX_PS) {
        s->background++;
        evtimer_set(&s->q, &a->peep, a->idle_since_ps + max_u64(NEWS_LOOK_PS, since / PEEP_PART));
    } else {
        a->proc->has_news = false;
    }
}

/*
 * A program that sleeps briefly and polls in turn has work at a time of its own: on a real machine an empty poll takes
 * no time. The first empty poll after such a sleep therefore ends after as long as the sleep took, while others move
 * time.
 */
#define NAP_MAX_PS 50000000ull

static void look_after_nap(struct actor *a)
{
    struct sim *s = a->proc->sim;
    uint64_t end = a->idle_since_ps + a->nap_ps;

    a->nap_ps = 0;
    if (evtimer_is_set(&a->peep))
        return; /* after an event of a port: soon */
    s->background++;
    evtimer_set(&s->q, &a->peep, end);
}

static void goes_idle(struct actor *a)
{
    uint64_t wake_ps = proc_time(a->proc->sim, actor_shared(a)->wake_ps);

    a->idle_since_ps = max_u64(sim_now(a->proc->sim), a->idle_clock_ps);
    if (a->proc->events != __atomic_load_n(&actor_shared(a)->seen_events, __ATOMIC_RELAXED))
        sched_wake_at(a, WAKE_COMPLETION, 0);
    if (wake_ps)
        sched_wake_at(a, WAKE_TIME, wake_ps);
    if (a->proc->has_news)
        look_for_news(a);
    if (a->nap_ps)
        look_after_nap(a);
}

static void goes_to_sleep(struct actor *a, uint64_t clock)
{
    uint64_t until = proc_time(a->proc->sim, actor_shared(a)->wake_ps);

    a->nap_ps = until > clock && until - clock <= NAP_MAX_PS ? until - clock : 0;
    sched_wake_at(a, WAKE_TIME, until);
}

/*
 * Time-outs of waits do not make time pass, as timers of programs do not (alarm.h). For a wait in the kernel, time
 * stops at the end until the actor has returned. An actor that waits for another thread continues in its turn.
 */
static void wait_limit_reached(void *obj, uint64_t arg)
{
    struct actor *a = obj;
    struct sim *s = a->proc->sim;

    s->background--;
    s->alarms_set--;
    if (a->seen == SF_ACTOR_LOCK)
        sched_wake(a, WAKE_TIME, max_u64(a->idle_clock_ps, sim_now(s)));
    if (a->seen != SF_ACTOR_BLOCKED)
        return;
    a->due = true;
    s->due++;
    sched_publish_time(s);
    a->proc->signalled = s->signalled = true;
}

static void set_limit(struct actor *a, uint64_t t)
{
    struct sim *s = a->proc->sim;

    if (evtimer_is_set(&a->limit)) {
        evtimer_stop(&a->limit);
        s->background--;
        s->alarms_set--;
    }
    s->due -= a->due;
    a->due = false;
    if (t) {
        s->background++;
        s->alarms_set++;
        evtimer_set(&s->q, &a->limit, t);
    }
}

static void init_actor(struct proc *p, uint32_t i)
{
    struct actor *a = &p->actors[i];

    a->proc = p;
    a->index = i;
    thread_init(a);
    sched_wake_init(a);
    evtimer_init(&a->limit, wait_limit_reached, a);
    a->limit.quiet = true;
    evtimer_init(&a->peep, peep_due, a);
    a->peep.quiet = true;
}

/*
 * True if the run is over, also if the actor returned from its system call unseen. The need to wait in a call may
 * depend on the speed of a helper thread: an actor that returns before all is quiet has been running all along.
 */
static bool run_is_over(struct actor *a, uint32_t state)
{
    bool yields = state == SF_ACTOR_READY && actor_shared(a)->wake_ps;

    if (state == SF_ACTOR_BLOCKED || (state == SF_ACTOR_READY && !yields) ||
        (state == SF_ACTOR_LOCK && actor_shared(a)->helpers)) {
        if (a->seen == SF_ACTOR_RUNNING)
            turn_pause(a);
        return false;
    }
    return a->seen == SF_ACTOR_RUNNING || a->paused ||
           (a->seen != SF_ACTOR_READY && state != SF_ACTOR_RUNNING && state != SF_ACTOR_FREE);
}

static void changed(struct actor *a, uint32_t state)
{
    struct sim *s = a->proc->sim;
    uint64_t clock = proc_time(s, __atomic_load_n(&actor_shared(a)->clock_ps, __ATOMIC_RELAXED));

    turn_leave(a);
    if (a->seen == SF_ACTOR_RUNNING) {
        if (!a->excluded)
            actor_stops(a);
        thread_called(a);
    }
    if (run_is_over(a, state))
        state_ran(a, clock);
    if (a->seen == SF_ACTOR_FREE || state == SF_ACTOR_FREE) {
        actor_host(a)->actors += (a->seen == SF_ACTOR_FREE) - (state == SF_ACTOR_FREE);
        a->proc->num_actors += (a->seen == SF_ACTOR_FREE) - (state == SF_ACTOR_FREE);
        turns_update(actor_host(a));
    }
    thread_include(a);
    evtimer_stop(&a->wake);
    stop_peep(a);
    a->stops = __atomic_load_n(&actor_shared(a)->stops, __ATOMIC_RELAXED);
    set_limit(a, state == SF_ACTOR_BLOCKED || state == SF_ACTOR_LOCK ? proc_time(s, actor_shared(a)->wake_ps) : 0);
    if (state == SF_ACTOR_RUNNING) { /* a new thread, or back from a system call */
        sched_runs(a, false);
        return;
    }
    if (a->seen == SF_ACTOR_FREE)
        a->is_new = true;
    actor_host(a)->idle += (state == SF_ACTOR_IDLE) - (a->seen == SF_ACTOR_IDLE);
    a->seen = state;
    a->paused_ps = clock;
    a->called = false;
    a->outside = state == SF_ACTOR_BLOCKED || (state == SF_ACTOR_LOCK && actor_shared(a)->helpers);
    if (!a->outside && state != SF_ACTOR_READY)
        turn_end_pause(a);
    switch (state) {
    case SF_ACTOR_IDLE:
        goes_idle(a);
        break;
    case SF_ACTOR_LOCK:
        a->idle_since_ps = max_u64(sim_now(s), a->idle_clock_ps);
        s->sched->unsettled |= a->paused;
        break;
    case SF_ACTOR_SLEEP:
        goes_to_sleep(a, clock);
        break;
    case SF_ACTOR_DRAIN:
        s->sched->draining = true;
        break;
    case SF_ACTOR_READY:
        s->sched->unsettled = true;
        break;
    case SF_ACTOR_BLOCKED:
        s->sched->unsettled |= a->paused;
        break;
    case SF_ACTOR_FREE:
        thread_forget(a);
        break;
    default:
        engine_log("process %u (pid %d): actor %u in state %u; detached", a->proc->id, (int)a->proc->pid, a->index,
                   state);
        a->proc->dead = true;
    }
}

/* It may have been back, and have left again, since the last look. */
static bool has_changed(const struct actor *a)
{
    uint32_t state = __atomic_load_n(&actor_shared(a)->state, __ATOMIC_ACQUIRE);

    return state != a->seen || (state != SF_ACTOR_RUNNING && state != SF_ACTOR_FREE &&
                                a->stops != __atomic_load_n(&actor_shared(a)->stops, __ATOMIC_RELAXED));
}

static bool is_nudged(const struct actor *a)
{
    return (a->seen == SF_ACTOR_IDLE || a->seen == SF_ACTOR_LOCK) &&
           __atomic_load_n(&actor_shared(a)->nudged, __ATOMIC_RELAXED);
}

bool state_is_news(const struct actor *a)
{
    return has_changed(a) || is_nudged(a);
}

/*
 * Another thread of the process has done the awaited action, or wants the actor to look. If the thread may be a helper,
 * with real time, the actor returns as from a system call.
 */
static void take_nudge(struct actor *a)
{
    uint64_t clock = proc_time(a->proc->sim, __atomic_load_n(&actor_shared(a)->nudge_ps, __ATOMIC_RELAXED));

    __atomic_store_n(&actor_shared(a)->nudged, 0, __ATOMIC_SEQ_CST);
    if (a->seen == SF_ACTOR_IDLE) {
        sched_wake(a, WAKE_SHARED_MEMORY, a->idle_clock_ps);
    } else if (a->outside) {
        a->called = true;
        a->paused_ps = max_u64(a->paused_ps, clock);
        a->proc->sim->sched->unsettled = true;
    } else {
        sched_called(a, max_u64(a->idle_clock_ps, clock));
    }
}

void sched_look_at(struct actor *a)
{
    if (has_changed(a))
        changed(a, __atomic_load_n(&actor_shared(a)->state, __ATOMIC_ACQUIRE));
}

void sched_scan(struct proc *p)
{
    relay_close(&p->sim->sched->hosts[p->host->index]);
    for (uint32_t i = 0; i < SF_ACTORS_MAX; i++) {
        struct actor *a = &p->actors[i];
        uint32_t state = __atomic_load_n(&p->arena->actor[i].state, __ATOMIC_ACQUIRE);

        if (i >= p->actors_used) {
            if (state == SF_ACTOR_FREE)
                break; /* slots are taken from the first on */
            if (!a->proc)
                init_actor(p, i);
            p->actors_used = i + 1;
        }
        if (has_changed(a))
            changed(a, state);
        else if (a->seen == SF_ACTOR_RUNNING && a->excluded &&
                 a->calls != __atomic_load_n(&actor_shared(a)->calls, __ATOMIC_RELAXED)) {
            thread_called(a);
            sched_running(a);
        }
    }
    for (uint32_t i = 0; i < p->actors_used; i++)
        if (is_nudged(&p->actors[i]))
            take_nudge(&p->actors[i]);
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

#define CLOCKS_READ_PS 1000000000ull /* most time that a process sees pass before attaching */

/*
 * The first process on an empty fabric begins at a whole number of microseconds and of 2^-22 s, the resolution of a
 * double for seconds since 1970. Clocks of a repeated program then round the same times to the same digits. A near grid
 * point is skipped: the process has read clocks before attaching, each reading later by its cost.
 */
void sched_proc_new(struct sim *s)
{
    const uint64_t grid = 15625000000;

    if (!s->num_procs)
        evq_skip_to(&s->q, (sim_now(s) + CLOCKS_READ_PS + grid) / grid * grid);
}

void sched_proc_added(struct proc *p)
{
    struct host_time *h = &p->sim->sched->hosts[p->host->index];

    h->procs++;
    turns_update(h);
}

void sched_proc_gone(struct proc *p)
{
    relay_close(&p->sim->sched->hosts[p->host->index]);
    for (uint32_t i = 0; i < p->actors_used; i++) {
        struct actor *a = &p->actors[i];
        struct host_time *h = actor_host(a);

        turn_leave(a);
        turn_end_pause(a);
        if (a->seen == SF_ACTOR_RUNNING && !a->excluded)
            actor_stops(a);
        thread_include(a);
        if (h->runner == a)
            h->runner = NULL;
        h->actors -= a->seen != SF_ACTOR_FREE;
        h->idle -= a->seen == SF_ACTOR_IDLE;
        a->seen = SF_ACTOR_FREE;
        evtimer_stop(&a->wake);
        set_limit(a, 0);
        stop_peep(a);
        thread_forget(a);
    }
    p->num_actors = 0;
    relay_leave(&p->sim->sched->hosts[p->host->index], p->seat);
    p->seat = 0;
    p->sim->sched->hosts[p->host->index].procs--;
    turns_update(&p->sim->sched->hosts[p->host->index]);
    p->sim->sched->idle_us = 0;
    world_note_end(p->sim->sched->world, p->pid);
}

/* A timer that is queued points into the actor: the memory waits until none is. */
void sched_proc_free(struct proc *p)
{
    struct sched *sc = p->sim->sched;
    struct proc **at;

    p->next_gone = sc->gone;
    sc->gone = p;
    for (at = &sc->gone; (p = *at);) {
        bool queued = false;

        for (uint32_t i = 0; i < p->actors_used && !queued; i++)
            queued = evtimer_queued(&p->actors[i].wake) || evtimer_queued(&p->actors[i].limit) ||
                     evtimer_queued(&p->actors[i].peep);
        if (queued) {
            at = &p->next_gone;
        } else {
            *at = p->next_gone;
            free(p);
        }
    }
}
