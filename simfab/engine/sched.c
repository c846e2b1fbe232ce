/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Actors and time. The rule: virtual time moves only while no actor is RUNNING, and it stops as soon as one is woken.
 * Everything here serves to know when that is so, without waiting for threads that will not call again soon, and to
 * wake exactly those that have a reason. See simfab/TIME.md.
 */
#include "simfab/engine/sched.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/engine/fault.h"
#include "simfab/engine/packet.h"
#include "simfab/engine/alarm.h"
#include "simfab/engine/server.h"
#include "simfab/engine/stuck.h"
#include "simfab/engine/threads.h"
#include "simfab/engine/util.h"
#include "simfab/engine/world.h"

enum wake_reason { WAKE_COMPLETION = 1, WAKE_TIME = 2, WAKE_SHARED_MEMORY = 3, WAKE_DRAINED = 4, WAKE_WORLD = 5,
                   WAKE_SIGNAL = 6 };

#define EVENT_BATCH       512       /* events between two looks at the real world */
#define LOOK_DELAY_PS     500000ull /* after which the others of a host look at shared memory; */
#define LOOK_ACTOR_PS     100000ull /* more for each of them */
#define LOOK_AGAIN_ACTORS 8u        /* up to so many look twice */
#define LOOK_CALLS        8u        /* more calls than this in one look: it led to something */
#define CLOCKS_READ_PS    1000000000ull /* what a process may have seen pass before it attached */
#define QUICK_LOOKS       16u       /* without a pause, when nothing else can happen */
#define RESTLESS_PS       100000000ull   /* of time that others make pass, after which an idle actor looks at the world: */
#define RESTLESS_MAX_PS   10000000000ull /* at first, and at most */
#define IDLE_MS_MAX       10
#define FREE_TURN_NS      20000000ull   /* how long actors run freely at once */
#define FREE_BUDGET_NS    2000000000ull /* and in all, without anything that the engine sees, before they slow down */
#define COMING_US         200           /* between two looks at threads that are about to come back */
#define HOLD_US           10000         /* between two looks at whether the subnet manager is done */
#define DUE_NS            1000000000ull /* how long to wait for a thread that must return, as its time has come */

static struct sf_actor *shared(const struct actor *a)
{
    return &a->proc->arena->actor[a->index];
}

static struct host_time *host_time(const struct actor *a)
{
    return &a->proc->sim->sched->hosts[a->proc->host->index];
}

static void look_later(struct host_time *h, uint64_t from);
static void look(void *obj, uint64_t arg);

/* ---- waking ---------------------------------------------------------------------------------------------------- */

static void now_running(struct actor *a)
{
    thread_include(a);
    a->seen = SF_ACTOR_RUNNING;
    a->landed = false;
    a->calls = __atomic_load_n(&shared(a)->calls, __ATOMIC_RELAXED);
    a->waited_since_ns = 0;
    a->proc->sim->running++;
}

static void wake(struct actor *a, enum wake_reason reason, uint64_t clock_ps)
{
    struct sf_actor *sh = shared(a);

    evtimer_stop(&a->wake);
    if (__atomic_load_n(&sh->state, __ATOMIC_ACQUIRE) != a->seen)
        return; /* it has changed its mind: the doorbell tells */
    a->looking = reason == WAKE_SHARED_MEMORY || reason == WAKE_WORLD;
    if (!a->looking)
        __atomic_store_n(&sh->seen_events, a->proc->events, __ATOMIC_RELAXED);
    a->head_before = __atomic_load_n(&a->proc->arena->cmd_head, __ATOMIC_RELAXED);
    now_running(a);
    __atomic_store_n(&a->proc->arena->now_ps, sim_now(a->proc->sim), __ATOMIC_RELEASE);
    __atomic_store_n(&sh->clock_ps, clock_ps, __ATOMIC_RELAXED);
    sh->wake_reason = reason;
    __atomic_store_n(&sh->state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &sh->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wake_due(void *obj, uint64_t arg)
{
    struct actor *a = obj;

    if (a->seen == SF_ACTOR_IDLE || a->seen == SF_ACTOR_SLEEP)
        wake(a, a->wake_reason, max_u64(a->idle_clock_ps, sim_now(a->proc->sim)));
}

static void wake_at(struct actor *a, enum wake_reason reason, uint64_t t)
{
    struct sim *s = a->proc->sim;

    t = max_u64(t, max_u64(a->idle_clock_ps, sim_now(s)));
    if (evtimer_is_set(&a->wake) && a->wake.deadline_ps <= t)
        return;
    a->wake_reason = reason;
    evtimer_set(&s->q, &a->wake, t);
}

void sched_event(struct proc *p)
{
    __atomic_store_n(&p->arena->now_ps, sim_now(p->sim), __ATOMIC_RELEASE);
    __atomic_store_n(&p->arena->events, ++p->events, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < p->actors_used; i++)
        if (p->actors[i].seen == SF_ACTOR_IDLE)
            wake_at(&p->actors[i], WAKE_COMPLETION, 0);
}

/* Threads that poll look at the memory too, though no completion has come. */
void sched_written(struct proc *p)
{
    for (uint32_t i = 0; i < p->actors_used; i++)
        if (p->actors[i].seen == SF_ACTOR_IDLE)
            wake_at(&p->actors[i], WAKE_SHARED_MEMORY, 0);
}

/*
 * A thread that spins on memory is not waited for, until something is written there: then it is, as time would go on
 * under its hands. When it calls next its clock is that time.
 */
void sched_landing(struct proc *p)
{
    if (!p->spinners)
        return;
    __atomic_store_n(&p->arena->now_ps, sim_now(p->sim), __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < p->actors_used; i++) {
        struct actor *a = &p->actors[i];

        if (a->excluded && a->spins) {
            now_running(a);
            a->landed = true;
        }
    }
}

/*
 * A signal that is handled ends the wait of the thread that gets it. It may have come between the thread's word that it
 * waits and its waiting, where it would change nothing.
 */
void sched_signalled(struct proc *p, uint32_t tid)
{
    for (uint32_t i = 0; i < p->actors_used; i++) {
        struct actor *a = &p->actors[i];

        if ((a->seen == SF_ACTOR_IDLE || a->seen == SF_ACTOR_SLEEP) && shared(a)->tid == tid)
            wake(a, WAKE_SIGNAL, max_u64(a->idle_clock_ps, sim_now(p->sim)));
    }
}

/* Spinners that have called without being told that something landed: what they were waiting for is not ours to see. */
static bool spinner_called(struct sim *s)
{
    bool any = false;

    for (uint32_t i = 0; s->spinners && i < s->num_procs; i++)
        for (uint32_t n = 0; s->procs[i]->spinners && n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->excluded && a->spins && __atomic_load_n(&shared(a)->calls, __ATOMIC_RELAXED) != a->calls) {
                thread_was_busy(a);
                now_running(a);
                any = true;
            }
        }
    return any;
}

/* ---- what actors say of themselves ----------------------------------------------------------------------------- */

static void seen_activity(struct sched *sc)
{
    sc->quick_looks = 0;
    sc->idle_ms = 0;
    sc->free_used_ns = 0;
}

/* Did the actor, woken only to look, find something? One that ran freely has made many calls for nothing. */
static bool look_was_fruitful(const struct actor *a)
{
    return (!a->free && __atomic_load_n(&shared(a)->calls, __ATOMIC_RELAXED) - a->calls > LOOK_CALLS) ||
           __atomic_load_n(&a->proc->arena->cmd_head, __ATOMIC_RELAXED) != a->head_before;
}

/* The actor stops running, in one way or another. */
static void ran(struct actor *a, uint64_t clock)
{
    struct host_time *h = host_time(a);

    bool fruitful = !a->looking || look_was_fruitful(a), free = a->free;

    a->looking = a->free = false;
    if (free)
        a->idle_clock_ps = max_u64(a->idle_clock_ps, clock); /* it may have read the clock all the time */
    if (!fruitful)
        return; /* as if it had not happened: its clock is what it was */
    a->idle_clock_ps = clock;
    a->patience_ps = RESTLESS_PS;
    h->runner = h->ran ? NULL : a;
    h->ran = true;
    h->clock_ps = max_u64(h->clock_ps, clock);
    if (h->actors > 1)
        look_later(h, max_u64(clock, sim_now(h->sim)));
    seen_activity(a->proc->sim->sched);
}

static void goes_idle(struct actor *a)
{
    uint64_t wake_ps = proc_time(a->proc->sim, shared(a)->wake_ps);

    a->idle_since_ps = sim_now(a->proc->sim);
    if (a->proc->events != __atomic_load_n(&shared(a)->seen_events, __ATOMIC_RELAXED))
        wake_at(a, WAKE_COMPLETION, 0);
    if (wake_ps)
        wake_at(a, WAKE_TIME, wake_ps);
}

/*
 * Waits in the kernel that end at some time: they do not make time pass any more than timers of programs do (alarm.h), but
 * time stops there until the actor has returned.
 */
static void limit_reached(void *obj, uint64_t arg)
{
    struct actor *a = obj;
    struct sim *s = a->proc->sim;

    s->background--;
    s->alarms_set--;
    a->due = true;
    s->due++;
    __atomic_store_n(&a->proc->arena->now_ps, sim_now(s), __ATOMIC_RELEASE);
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
    evtimer_init(&a->wake, wake_due, a);
    evtimer_init(&a->limit, limit_reached, a);
    a->limit.quiet = true;
}

static void changed(struct actor *a, uint32_t state)
{
    struct sim *s = a->proc->sim;
    uint64_t clock = proc_time(s, __atomic_load_n(&shared(a)->clock_ps, __ATOMIC_RELAXED));

    if (a->seen == SF_ACTOR_RUNNING) {
        if (!a->excluded)
            s->running--;
        thread_called(a);
        ran(a, clock);
    } else if (state != SF_ACTOR_RUNNING && state != SF_ACTOR_FREE) {
        ran(a, clock); /* it has been back unseen, or is new */
    }
    host_time(a)->actors += (a->seen == SF_ACTOR_FREE) - (state == SF_ACTOR_FREE);
    thread_include(a);
    evtimer_stop(&a->wake);
    a->turns = __atomic_load_n(&shared(a)->turns, __ATOMIC_RELAXED);
    set_limit(a, state == SF_ACTOR_BLOCKED ? proc_time(s, shared(a)->wake_ps) : 0);
    if (state == SF_ACTOR_RUNNING) { /* a new thread, or back from a system call */
        a->looking = false;
        now_running(a);
        return;
    }
    a->seen = state;
    switch (state) {
    case SF_ACTOR_IDLE:
        goes_idle(a);
        break;
    case SF_ACTOR_SLEEP:
        wake_at(a, WAKE_TIME, proc_time(s, shared(a)->wake_ps));
        break;
    case SF_ACTOR_DRAIN:
        s->sched->draining = true;
        break;
    case SF_ACTOR_BLOCKED:
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
    uint32_t state = __atomic_load_n(&shared(a)->state, __ATOMIC_ACQUIRE);

    return state != a->seen ||
           (state != SF_ACTOR_RUNNING && state != SF_ACTOR_FREE && a->turns != __atomic_load_n(&shared(a)->turns, __ATOMIC_RELAXED));
}

void sched_scan(struct proc *p)
{
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
                 a->calls != __atomic_load_n(&shared(a)->calls, __ATOMIC_RELAXED)) {
            thread_called(a);
            now_running(a);
        }
    }
}

/*
 * The first process on an empty fabric begins at a whole number of microseconds and of 2^-22 s, which is how finely a double
 * counts the seconds since 1970: the clocks of a program that is run again round the same times to the same digits. Not
 * at the next such time if that is near: the process has read clocks before it attached, each reading later by its cost.
 */
void sched_proc_new(struct sim *s)
{
    const uint64_t grid = 15625000000;

    if (!s->num_procs)
        evq_skip_to(&s->q, (sim_now(s) + CLOCKS_READ_PS + grid) / grid * grid);
}

void sched_proc_gone(struct proc *p)
{
    for (uint32_t i = 0; i < p->actors_used; i++) {
        struct actor *a = &p->actors[i];
        struct host_time *h = host_time(a);

        if (a->seen == SF_ACTOR_RUNNING && !a->excluded)
            p->sim->running--;
        thread_include(a);
        if (h->runner == a)
            h->runner = NULL;
        h->actors -= a->seen != SF_ACTOR_FREE;
        a->seen = SF_ACTOR_FREE;
        evtimer_stop(&a->wake);
        set_limit(a, 0);
        thread_forget(a);
    }
    p->sim->sched->idle_ms = 0;
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
            queued = evtimer_queued(&p->actors[i].wake) || evtimer_queued(&p->actors[i].limit);
        if (queued) {
            at = &p->next_gone;
        } else {
            *at = p->next_gone;
            free(p);
        }
    }
}

/* ---- looking at shared memory ---------------------------------------------------------------------------------- */

static uint32_t wake_idle(struct sim *s, const struct host *host, const struct actor *except, enum wake_reason reason,
                          uint64_t clock, uint64_t more_ps)
{
    uint32_t woken = 0;

    for (uint32_t i = 0; i < s->num_procs; i++) {
        struct proc *p = s->procs[i];

        if (host && p->host != host)
            continue;
        for (uint32_t n = 0; n < p->actors_used; n++) {
            struct actor *a = &p->actors[n];

            if (a->seen != SF_ACTOR_IDLE || a == except)
                continue;
            a->idle_clock_ps += more_ps;
            wake(a, reason, max_u64(a->idle_clock_ps, clock));
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
static void look_later(struct host_time *h, uint64_t from)
{
    evtimer_set_earlier(&h->sim->q, &h->look, from + LOOK_DELAY_PS + h->actors * LOOK_ACTOR_PS);
}

/* What one of them does then may concern the first: among few there is a second round, and so on while one leads on. */
static void look(void *obj, uint64_t arg)
{
    struct host_time *h = obj;
    struct actor *except = NULL;

    if (h->ran) {
        h->rounds = h->actors <= LOOK_AGAIN_ACTORS ? 2 : 1;
        except = h->runner;
        h->ran = false;
        h->runner = NULL;
    }
    wake_idle(h->sim, h->host, except, WAKE_SHARED_MEMORY, h->clock_ps, 0);
    if (h->rounds && --h->rounds)
        look_later(h, sim_now(h->sim));
}

/* ---- moving time ----------------------------------------------------------------------------------------------- */

static void wake_drained(struct sim *s)
{
    s->sched->draining = false;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen == SF_ACTOR_DRAIN)
                wake(a, WAKE_DRAINED, max_u64(a->idle_clock_ps, sim_now(s)));
        }
}

/* While the kernel was asked somebody may have come back, and may even wait again: for something else, or for our answer. */
static bool somebody_came(struct sim *s)
{
    if (server_has_input(s->server))
        return true;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++)
            if (has_changed(&s->procs[i]->actors[n])) {
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

static void publish_time(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        __atomic_store_n(&s->procs[i]->arena->now_ps, sim_now(s), __ATOMIC_RELEASE);
}

/*
 * Is there anything that time should move for? Flows without a process and faults that are due later happen as time
 * passes, but it does not pass for their sake: somebody must wait for an event, a packet or a queue pair.
 */
static bool next_event(struct sim *s, uint64_t *t)
{
    return evq_next(&s->q, t) && (!s->background || s->q.loud || packets_foreground() || s->ready_qps);
}

/*
 * Others keep time going (by sleeping again and again until something outside has happened, or by a traffic of their own).
 * What it is that they wait for may be up to an actor that polled once, in vain, and would have gone on at once on real
 * hardware: who has been idle for long looks at the world, and again after twice the time.
 */
static void wake_restless(struct sim *s)
{
    s->sched->restless_ps = sim_now(s) + RESTLESS_PS;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen != SF_ACTOR_IDLE || sim_now(s) - a->idle_since_ps < max_u64(a->patience_ps, RESTLESS_PS))
                continue;
            a->patience_ps = min_u64(2 * max_u64(a->patience_ps, RESTLESS_PS), RESTLESS_MAX_PS);
            wake(a, WAKE_WORLD, max_u64(a->idle_clock_ps, sim_now(s)));
        }
}

/* Events until somebody runs; those at the same time as the first waking still happen. True if there may be more. */
static bool move_time(struct sim *s)
{
    uint64_t start = real_ns(), t;
    unsigned n = 0;
    bool more = true;

    while (!s->holding && !s->signalled && (more = next_event(s, &t)) && (!s->running || t == sim_now(s)) &&
           n++ < EVENT_BATCH) {
        evq_run_one(&s->q);
        if (sim_now(s) >= s->sched->restless_ps)
            wake_restless(s);
    }
    s->busy_ns += real_ns() - start;
    publish_time(s);
    if (n) {
        seen_activity(s->sched);
    }
    return more;
}

/* ---- running freely -------------------------------------------------------------------------------------------- */

static uint32_t idle_actors(const struct proc *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->actors_used; i++)
        n += p->actors[i].seen == SF_ACTOR_IDLE;
    return n;
}

/* While others run freely, who is alone on its host looks at the world as well: it may be what they wait for. */
static void wake_lonely(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen == SF_ACTOR_IDLE)
                wake(a, WAKE_WORLD, a->idle_clock_ps);
        }
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
        sc->hosts[s->procs[i]->host->index].idle = 0;
    for (uint32_t i = 0; i < s->num_procs; i++)
        sc->hosts[s->procs[i]->host->index].idle += idle_actors(s->procs[i]);
    for (uint32_t i = 0; i < s->num_procs; i++) {
        struct proc *p = s->procs[i];

        if (sc->hosts[p->host->index].idle < 2)
            continue;
        __atomic_store_n(&p->arena->free_run, 1, __ATOMIC_RELEASE);
        for (uint32_t n = 0; n < p->actors_used; n++)
            if (p->actors[n].seen == SF_ACTOR_IDLE) {
                wake(&p->actors[n], WAKE_WORLD, p->actors[n].idle_clock_ps);
                p->actors[n].free = any = true;
            }
    }
    if (any) {
        sc->free = true;
        sc->free_since_ns = real_ns();
        wake_lonely(s);
    }
    return any;
}

/* Long in vain: shorter turns between the pauses, so that a job that hangs leaves the machine to others. */
static uint64_t free_turn_ns(const struct sched *sc)
{
    return sc->free_used_ns < FREE_BUDGET_NS ? FREE_TURN_NS : FREE_TURN_NS / 4;
}

static void end_free_run(struct sim *s)
{
    struct sched *sc = s->sched;

    for (uint32_t i = 0; i < s->num_procs; i++)
        __atomic_store_n(&s->procs[i]->arena->free_run, 0, __ATOMIC_RELEASE);
    sc->free = false;
    sc->free_used_ns += real_ns() - sc->free_since_ns;
    alarms_pass(s, (real_ns() - sc->free_since_ns) * 1000);
}

static int64_t start_pause(struct sched *sc, int ms)
{
    sc->idle_ms = ms;
    sc->pause_ends_ns = real_ns() + (uint64_t)ms * 1000000;
    return 1000 * ms;
}

/*
 * Nothing can happen any more by itself. Let the idle ones look at the world now and then; returns the rest of the pause
 * until then in us, -1 when somebody has something to do. What interrupts a pause does not make it longer: threads that
 * come back from the kernel again and again must not keep time from passing.
 */
static int64_t wait_for_world(struct sim *s)
{
    struct sched *sc = s->sched;
    uint64_t now_ns = real_ns();
    bool paused = sc->idle_ms && now_ns >= sc->pause_ends_ns;

    if ((sc->free_used_ns < FREE_BUDGET_NS || paused) && start_free_run(s)) {
        sc->idle_ms = 0;
        return -1;
    }
    if (sc->quick_looks < QUICK_LOOKS) {
        sc->quick_looks++;
        if (wake_idle(s, NULL, NULL, WAKE_WORLD, 0, 0))
            return -1;
    }
    if (paused) {
        /* while nothing else moves time, it passes as it does in the world: who waits by the clock sees it */
        uint64_t passed = (uint64_t)sc->idle_ms * 1000000000u;
        int64_t wait_us = start_pause(sc, sc->idle_ms < IDLE_MS_MAX / 2 ? 2 * sc->idle_ms : IDLE_MS_MAX);

        alarms_pass(s, passed);
        if (s->signalled)
            return -1;
        return wake_idle(s, NULL, NULL, WAKE_WORLD, 0, passed) ? -1 : wait_us;
    }
    return sc->idle_ms ? (int64_t)((sc->pause_ends_ns - now_ns + 999) / 1000) : start_pause(sc, 1);
}

/* How long to wait for running actors before looking at what they do. */
static int64_t patience(struct sim *s, bool paused)
{
    struct sched *sc = s->sched;

    sc->patience_us = threads_patience_us(s, paused && sc->patience_us);
    return sc->patience_us;
}

int64_t sched_run(struct sim *s, bool paused)
{
    struct sched *sc = s->sched;
    int64_t wait_us;

    if (sc->free && (!paused || real_ns() - sc->free_since_ns > free_turn_ns(sc)))
        end_free_run(s);
    if (s->running && paused)
        threads_check(s);
    if (s->running)
        return patience(s, paused);
    stuck_moved(s);
    commands_drain(s);
    if (sc->draining)
        wake_drained(s);
    if (s->running)
        return patience(s, paused);
    if (spinner_called(s))
        return patience(s, false);
    if (somebody_coming(s))
        return COMING_US;
    if (faults_hold_time(s))
        return HOLD_US;
    if (move_time(s) || s->running)
        return s->running ? patience(s, false) : 0;
    if (!s->num_procs)
        return -1;
    wait_us = wait_for_world(s);
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
        evtimer_init(&h->look, look, h);
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
    free(s->sched->hosts);
    free(s->sched);
}
