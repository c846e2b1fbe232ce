/* SPDX-License-Identifier: BSD-3-Clause */
/* Wakes actors: completions, writes without a completion, signals, and threads that spin on memory. */
#include "simfab/engine/clock/wake.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/relay.h"
#include "simfab/engine/clock/threads.h"
#include "simfab/engine/clock/turn.h"
#include "simfab/proto.h"

/*
 * Rounds (sched_called). The first ROUNDS_FREE rounds take no time, and neither does one more for every ROUND_PS that
 * passes, the time to hand over a lock. Each later round takes ROUND_PS, or a ROUND_SHARE-th of the time since the
 * rounds began to take time, at most ROUND_MOST_PS. Rounds are free again once the actor has not been called for
 * ROUNDS_FREE such rounds.
 */
#define ROUNDS_FREE   16u
#define ROUND_PS      100000u
#define ROUND_SHARE   16u
#define ROUND_MOST_PS 16000000u
#define ROUNDS_OTHERS 64u

/*
 * Publishes the time before any actor runs: an actor may write to a socket at once, and the reader returns by itself,
 * at the time in its own process's memory.
 */
void sched_publish_time(struct sim *s)
{
    if (s->published_ps == sim_now(s))
        return;
    s->published_ps = sim_now(s);
    for (uint32_t i = 0; i < s->num_procs; i++)
        __atomic_store_n(&s->procs[i]->arena->now_ps, s->published_ps, __ATOMIC_RELEASE);
}

void sched_running(struct actor *a)
{
    thread_include(a);
    actor_host(a)->idle -= a->seen == SF_ACTOR_IDLE;
    a->seen = SF_ACTOR_RUNNING;
    a->landed = false;
    a->waited_since_ns = 0;
    a->proc->sim->running++;
    a->run = ++a->proc->sim->runs;
    actor_host(a)->running++;
}

/* The actor runs: a new run begins, unless the actor had only paused. */
void sched_runs(struct actor *a, bool looking)
{
    a->is_new = false;
    __atomic_store_n(&actor_shared(a)->left_out, 0, __ATOMIC_RELAXED);
    sched_running(a);
    if (a->paused) {
        turn_end_pause(a);
        return;
    }
    a->looking = looking;
    a->run_calls = __atomic_load_n(&actor_shared(a)->calls, __ATOMIC_RELAXED);
    a->head_before = __atomic_load_n(&a->proc->arena->cmd_head, __ATOMIC_RELAXED);
}

/* sched_wake when its turn has come. False: it has changed its mind. */
static bool sched_start(struct actor *a, enum wake_reason reason, uint64_t clock_ps)
{
    struct sf_actor *sh = actor_shared(a);
    bool looking = wakes_to_look(reason);

    if (__atomic_load_n(&sh->state, __ATOMIC_ACQUIRE) != a->seen)
        return false; /* the actor has changed its state: the doorbell follows */
    if (!looking)
        __atomic_store_n(&sh->seen_events, a->proc->events, __ATOMIC_RELAXED);
    sched_runs(a, looking);
    sched_publish_time(a->proc->sim);
    __atomic_store_n(&sh->clock_ps, clock_ps, __ATOMIC_RELAXED);
    sh->wake_reason = reason;
    __atomic_store_n(&sh->state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
    if (a->proc->seat && !a->index)
        relay_call(a);
    else
        syscall(SYS_futex, &sh->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return true;
}

void sched_wake(struct actor *a, enum wake_reason reason, uint64_t clock_ps)
{
    relay_close(actor_host(a));
    if (a->seen == SF_ACTOR_RUNNING)
        return; /* the turn was passed on by the relay */
    evtimer_stop(&a->wake);
    if (a->proc->sim->sched->moving || host_takes_turns(actor_host(a)))
        turn_wait(a, reason, clock_ps);
    else
        sched_start(a, reason, clock_ps);
}

void turns_next(struct sim *s)
{
    struct sched *sc = s->sched;

    for (uint32_t i = 0; sc->waiting && i < s->fabric->num_hosts; i++) {
        struct host_time *h = &sc->hosts[i];
        struct actor *a;

        while ((a = h->waiting) && (!host_takes_turns(h) || (!h->running && !h->undecided))) {
            turn_leave(a);
            if (host_takes_turns(h))
                relay_offer(h, a);
            if (!sched_start(a, a->turn_reason, a->turn_clock_ps))
                relay_close(h);
        }
    }
}

static void wake_due(void *obj, uint64_t arg)
{
    struct actor *a = obj;

    if (a->seen == SF_ACTOR_IDLE || a->seen == SF_ACTOR_SLEEP || a->seen == SF_ACTOR_LOCK)
        sched_wake(a, a->wake_reason, max_u64(a->idle_clock_ps, sim_now(a->proc->sim)));
}

void sched_wake_init(struct actor *a)
{
    evtimer_init(&a->wake, wake_due, a);
}

void sched_wake_at(struct actor *a, enum wake_reason reason, uint64_t t)
{
    struct sim *s = a->proc->sim;

    t = max_u64(t, max_u64(a->idle_clock_ps, sim_now(s)));
    if (evtimer_is_set(&a->wake) && a->wake.deadline_ps <= t)
        return;
    a->wake_reason = reason;
    evtimer_set(&s->q, &a->wake, t);
}

static void rounds_begin(struct actor *a, uint64_t calls, uint64_t now)
{
    a->rounds.calls = calls;
    a->rounds.at_ps = now;
    a->rounds.left = ROUNDS_FREE;
    a->rounds.all_take = false;
    a->rounds.long_ps = ROUND_PS;
}

/* Time that one more round of this actor takes. */
static uint64_t round_ps(struct actor *a, uint64_t now)
{
    uint64_t calls = __atomic_load_n(&actor_shared(a)->calls, __ATOMIC_RELAXED);
    uint64_t passed = now > a->rounds.at_ps ? now - a->rounds.at_ps : 0;

    if (calls != a->rounds.calls || passed > ROUNDS_OTHERS * a->rounds.long_ps)
        rounds_begin(a, calls, now);
    a->rounds.at_ps = now;
    if (!a->rounds.all_take) {
        a->rounds.left = (uint32_t)min_u64(a->rounds.left + passed / ROUND_PS, ROUNDS_FREE);
        if (a->rounds.left) {
            a->rounds.left--;
            return 0;
        }
        a->rounds.all_take = true;
        a->rounds.since_ps = now;
    }
    a->rounds.long_ps = max_u64(ROUND_PS, min_u64((now - a->rounds.since_ps) / ROUND_SHARE, ROUND_MOST_PS));
    a->rounds.at_ps = now + a->rounds.long_ps;
    return a->rounds.long_ps;
}

/*
 * Threads that take a lock again and again, to check for the work of others, would hand over the lock in no time:
 * returned and new actors would never get turns, and time would stand still. So after some number each round takes
 * time.
 */
void sched_called(struct actor *a, uint64_t clock_ps)
{
    uint64_t now = sim_now(a->proc->sim), takes = round_ps(a, now);

    if (takes)
        sched_wake_at(a, WAKE_TURN, max_u64(clock_ps, now + takes));
    else
        sched_wake(a, WAKE_TURN, clock_ps);
}

void sched_event(struct proc *p)
{
    __atomic_store_n(&p->arena->now_ps, sim_now(p->sim), __ATOMIC_RELEASE);
    __atomic_store_n(&p->arena->events, ++p->events, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < p->actors_used; i++)
        if (p->actors[i].seen == SF_ACTOR_IDLE)
            sched_wake_at(&p->actors[i], WAKE_COMPLETION, 0);
}

/*
 * Polling programs ask for asynchronous events only once in many polls or after some time, and react by the clock. An
 * idle poll stands for many, so for a while after an event of a port idle polls are shorter.
 */
void sched_news(struct proc *p)
{
    p->has_news = true;
    p->news_ps = sim_now(p->sim);
}

/* Time passes while an acknowledgement is late: polling threads notice. */
void sched_glance(struct proc *p)
{
    for (uint32_t i = 0; p && i < p->actors_used; i++)
        if (p->actors[i].seen == SF_ACTOR_IDLE)
            sched_wake_at(&p->actors[i], WAKE_WORLD, 0);
}

/* Threads that poll look at the memory too, though no completion has come. */
void sched_written(struct proc *p)
{
    for (uint32_t i = 0; i < p->actors_used; i++)
        if (p->actors[i].seen == SF_ACTOR_IDLE)
            sched_wake_at(&p->actors[i], WAKE_SHARED_MEMORY, 0);
}

/*
 * A thread that spins on memory is excluded until data is written to that memory. From then on time waits for the
 * thread, and the present time is the thread's clock at its next call.
 */
void sched_landing(struct proc *p)
{
    if (!p->spinners)
        return;
    sched_publish_time(p->sim);
    for (uint32_t i = 0; i < p->actors_used; i++) {
        struct actor *a = &p->actors[i];

        if (a->excluded && a->spins && !actor_shared(a)->guest) {
            sched_running(a);
            a->landed = true;
        }
    }
}

/*
 * A handled signal ends the wait of the thread that gets the signal. The signal may have come between the thread's
 * report of its wait and the wait itself, without effect on the wait.
 */
void sched_signalled(struct proc *p, uint32_t tid)
{
    for (uint32_t i = 0; i < p->actors_used; i++) {
        struct actor *a = &p->actors[i];

        if ((a->seen == SF_ACTOR_IDLE || a->seen == SF_ACTOR_SLEEP || a->seen == SF_ACTOR_LOCK) &&
            actor_shared(a)->tid == tid)
            sched_wake(a, WAKE_SIGNAL, max_u64(a->idle_clock_ps, sim_now(p->sim)));
    }
}

/* Spinners that called although nothing landed: the engine does not see their condition. */
bool sched_spinner_called(struct sim *s)
{
    bool any = false;

    for (uint32_t i = 0; s->spinners && i < s->num_procs; i++)
        for (uint32_t n = 0; s->procs[i]->spinners && n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->excluded && a->spins && __atomic_load_n(&actor_shared(a)->calls, __ATOMIC_RELAXED) != a->calls) {
                thread_was_busy(a);
                sched_running(a);
                any = true;
            }
        }
    return any;
}
