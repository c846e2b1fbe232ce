/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Actors and time. The rule: virtual time moves only while no actor is RUNNING, and it stops as soon as one is woken.
 * Everything here serves to know when that is so, without waiting for threads that will not call again soon, and to
 * wake exactly those that have a reason. See simfab/TIME.md.
 */
#include "simfab/engine/clock/sched.h"

#include <stdlib.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/alarm.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/stuck.h"
#include "simfab/engine/clock/threads.h"
#include "simfab/engine/clock/world.h"
#include "simfab/proto.h"

#define EVENT_BATCH    512           /* events between two looks at the real world */
#define CLOCKS_READ_PS 1000000000ull /* what a process may have seen pass before it attached */
#define COMING_US      200           /* between two looks at threads that are about to come back */
#define HOLD_US        10000         /* between two looks at whether the subnet manager is done */
#define STUCK_TURNS    256           /* of the engine while somebody runs, after which it asks for how long */
#define DUE_NS         1000000000ull /* how long to wait for a thread that must return, as its time has come */

/* ---- what actors say of themselves ----------------------------------------------------------------------------- */

void sched_activity(struct sched *sc)
{
    sc->quick_looks = sc->turn_looks = 0;
    sc->idle_us = 0;
    sc->free_used_ns = sc->free_until_ps = 0;
}

/* Did the actor, woken only to look, find something? One that ran freely has made many calls for nothing. */
static bool look_was_fruitful(const struct actor *a)
{
    return (!a->free && __atomic_load_n(&actor_shared(a)->calls, __ATOMIC_RELAXED) - a->run_calls > SF_LOOK_CALLS) ||
           __atomic_load_n(&a->proc->arena->cmd_head, __ATOMIC_RELAXED) != a->head_before;
}

/* The actor stops running, in one way or another. */
static void ran(struct actor *a, uint64_t clock)
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
        return; /* as if it had not happened: its clock is what it was */
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
#define NEWS_LOOK_PS 50000000ull      /* they take so long, */
#define NEWS_PS      10000000000ull   /* and draw time with them so long after the event; */
#define PEEP_MAX_PS  2000000000000ull /* up to here they end while others draw time, */
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
 * Who sleeps for a moment and polls in turns has something to do at a time of its own: on a real machine an empty poll
 * takes none. So the first one after such a sleep takes as long as that did, while others draw time.
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
 * Waits that end at some time: they do not make time pass any more than timers of programs do (alarm.h). Where the wait
 * is in the kernel time stops there until the actor has returned; who waits for another thread goes on in its turn.
 */
static void limit_reached(void *obj, uint64_t arg)
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
    evtimer_init(&a->limit, limit_reached, a);
    a->limit.quiet = true;
    evtimer_init(&a->peep, peep_due, a);
    a->peep.quiet = true;
}

/*
 * Has it run, and does no more? Also if it was back from its system call unseen. Whether it has to wait in such a call
 * at all may depend on how quick a helper thread is: if it comes back before all is quiet, it has been running all
 * along.
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
        ran(a, clock);
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

/*
 * Another thread of its process has done what it waits for, or wants it to look. Where that may have been a helper
 * thread, whose time is the machine's, it comes back as from a system call.
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

/*
 * The first process on an empty fabric begins at a whole number of microseconds and of 2^-22 s, which is how finely a
 * double counts the seconds since 1970: the clocks of a program that is run again round the same times to the same
 * digits. Not at the next such time if that is near: the process has read clocks before it attached, each reading later
 * by its cost.
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

/* ---- moving time ----------------------------------------------------------------------------------------------- */

static void wake_drained(struct sim *s)
{
    s->sched->draining = false;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen == SF_ACTOR_DRAIN)
                sched_wake(a, WAKE_DRAINED, max_u64(a->idle_clock_ps, sim_now(s)));
        }
}

static bool is_back(const struct actor *a)
{
    return a->seen == SF_ACTOR_READY || (a->seen == SF_ACTOR_LOCK && a->called);
}

/*
 * Who has come back from a system call before it was known whether it waits there goes on as if it had not been there.
 */
static bool go_on(struct sim *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (!is_back(a) || !a->undecided)
                continue;
            a->keeps_turn = any = true;
            sched_wake(a, WAKE_TURN, max_u64(a->paused_ps, sim_now(s)));
        }
    return any;
}

/*
 * All is quiet: if nobody goes on, those who are still in system calls do wait there and have stopped running, and
 * those who have come back from one, or are new, get their turns. All whom the same cause has brought are here by now,
 * so that their order is not that in which the kernel let them go.
 */
static void settle(struct sim *s)
{
    if (!go_on(s)) {
        s->sched->unsettled = false;
        for (uint32_t i = 0; i < s->num_procs; i++)
            for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
                struct actor *a = &s->procs[i]->actors[n];

                if (is_back(a)) {
                    sched_wake(a, WAKE_TURN, max_u64(a->paused_ps, sim_now(s)));
                } else if (a->undecided) {
                    turn_end_pause(a);
                    a->looking &= a->seen == SF_ACTOR_LOCK; /* it looked, and waits again */
                    ran(a, a->paused_ps);
                }
            }
    }
    turns_next(s);
}

/*
 * While the kernel was asked somebody may have come back, and may even wait again: for something else, or for our
 * answer.
 */
static bool somebody_came(struct sim *s)
{
    if (s->clock_up->has_input(s->server))
        return true;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++)
            if (has_changed(&s->procs[i]->actors[n]) || is_nudged(&s->procs[i]->actors[n])) {
                sched_scan(s->procs[i]);
                return true;
            }
    return false;
}

/* Is a thread that is out of our sight about to come back? The kernel knows: what woke it has happened already. */
static bool somebody_coming(struct sim *s)
{
    struct sched *sc = s->sched;
    bool coming = s->due;

    if (!coming)
        sc->due_since_ns = 0;
    else if (!sc->due_since_ns)
        sc->due_since_ns = real_ns();
    else if (real_ns() - sc->due_since_ns > DUE_NS)
        coming = false;
    coming = coming || (world_is_away(s) && (!world_is_quiet(sc->world, s) || somebody_came(s)));
    if (!coming && s->signalled)
        alarms_noticed(s);
    return coming;
}

/*
 * Is there anything that time should move for? Flows without a process and faults that are due later happen as time
 * passes, but it does not pass for their sake: somebody must wait for an event, a packet or a queue pair.
 */
static bool next_event(struct sim *s, uint64_t *t)
{
    return evq_next(&s->q, t) && (!s->background || s->q.loud || s->clock_up->packets() || s->ready_qps);
}

/*
 * Events until somebody is woken; those at the same time as the first waking still happen. Who is woken runs after all
 * of them (turns_next): what a poll finds must not depend on how soon it comes. True if there may be more.
 */
static bool move_time(struct sim *s)
{
    uint64_t start = coarse_ns(), t;
    unsigned n = 0;
    bool more = true;

    s->sched->moving = true;
    while (!s->holding && !s->signalled && (more = next_event(s, &t)) && (!s->running || t == sim_now(s)) &&
           (n++ < EVENT_BATCH || s->running)) {
        evq_run_one(&s->q);
        if (sim_now(s) >= s->sched->restless_ps)
            look_restless(s);
    }
    s->sched->moving = false;
    s->busy_ns += coarse_ns() - start;
    sched_publish_time(s);
    if (n) {
        sched_activity(s->sched);
    }
    return more;
}

/* How long to wait for running actors before looking at what they do. */
static int64_t patience(struct sim *s, bool paused)
{
    struct sched *sc = s->sched;

    sc->patience_us = threads_patience_us(s, paused && sc->patience_us);
    return sc->patience_us;
}

/* One that asks the engine again and again leaves it no pause. */
static void look_at_running(struct sim *s, bool paused)
{
    struct sched *sc = s->sched;

    if (paused) {
        for (uint32_t i = 0; i < s->fabric->num_hosts; i++)
            relay_close(&sc->hosts[i]);
        threads_check(s);
    } else if (++sc->turns % STUCK_TURNS == 0)
        stuck_look(s, real_ns());
}

int64_t sched_run(struct sim *s, bool paused)
{
    struct sched *sc = s->sched;
    int64_t wait_us;
    bool more;

    if (sc->free && ((!paused && (sc->found || !sc->vain)) || look_free_is_over(sc)))
        look_free_end(s);
    sc->vain = sc->found = false;
    if (sched_somebody_runs(s))
        look_at_running(s, paused);
    turns_next(s);
    if (sched_somebody_runs(s))
        return patience(s, paused);
    stuck_moved(s);
    s->clock_up->drain(s);
    if (sc->draining)
        wake_drained(s);
    turns_next(s);
    if (sched_somebody_runs(s))
        return patience(s, paused);
    if (sched_spinner_called(s))
        return patience(s, false);
    if (somebody_coming(s))
        return COMING_US;
    if (sc->free_clock_ps && !s->running)
        look_free_catch_up(s);
    if (sc->unsettled || sc->waiting)
        settle(s);
    if (s->running)
        return sched_somebody_runs(s) ? patience(s, false) : 0;
    if (s->clock_up->holds_time(s))
        return HOLD_US;
    more = move_time(s);
    turns_next(s);
    if (s->running || more)
        return s->running ? patience(s, false) : 0;
    if (!s->num_procs)
        return -1;
    if (world_somebody_starts(sc->world, s) || somebody_came(s))
        return COMING_US;
    wait_us = look_at_world(s);
    turns_next(s);
    return wait_us < 0 ? patience(s, false) : wait_us;
}

void sched_init(struct sim *s)
{
    s->sched = xcalloc(1, sizeof *s->sched);
    s->sched->world = world_new();
    s->sched->hosts = xcalloc(s->fabric->num_hosts, sizeof *s->sched->hosts);
    for (uint32_t i = 0; i < s->fabric->num_hosts; i++) {
        struct host_time *h = &s->sched->hosts[i];

        h->sim = s;
        h->host = s->fabric->hosts[i];
        look_init(h);
    }
}

void sched_fini(struct sim *s)
{
    struct proc *p;

    while ((p = s->sched->gone)) {
        s->sched->gone = p->next_gone;
        free(p);
    }
    alarms_fini(s);
    world_free(s->sched->world);
    for (uint32_t i = 0; i < s->fabric->num_hosts; i++)
        relay_free(&s->sched->hosts[i]);
    free(s->sched->hosts);
    free(s->sched);
}
