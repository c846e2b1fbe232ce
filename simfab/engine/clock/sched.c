/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Actors and time. Virtual time moves only while no actor is RUNNING, and stops as soon as an actor is woken. The files
 * of this folder find out when that is true without waiting for threads that will not call again soon, and wake exactly
 * the actors with a reason. See simfab/TIME.md.
 */
#include "simfab/engine/clock/sched.h"

#include <stdlib.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/alarm.h"
#include "simfab/engine/clock/check.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/look.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/relay.h"
#include "simfab/engine/clock/relay_close.h"
#include "simfab/engine/clock/states.h"
#include "simfab/engine/clock/stuck.h"
#include "simfab/engine/clock/turn.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/clock/world.h"
#include "simfab/proto.h"

#define EVENT_BATCH 512           /* events between two looks at the real world */
#define COMING_US   200           /* least time between two questions to the kernel about threads out of sight */
#define COMING_MOST 2000          /* most of it; between them: */
#define ASK_SHARE   8             /* as many times the time of the question */
#define HOLD_US     10000         /* between two looks at whether the subnet manager is done */
#define STUCK_TURNS 256           /* waits of the engine for running actors between two checks for standstill */
#define DUE_NS      1000000000ull /* how long to wait for a thread that must return, as its time has come */

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
 * An actor back from a system call before its wait there was certain continues its turn, as if the call had not
 * happened.
 */
static bool resume_undecided(struct sim *s)
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
 * All is quiet. If no undecided actor continues, actors still in system calls have stopped running, and returned or new
 * actors get their turns. By now all actors brought by the same cause have arrived, so their order does not depend on
 * the kernel.
 */
static void settle(struct sim *s)
{
    if (!resume_undecided(s)) {
        s->sched->unsettled = false;
        for (uint32_t i = 0; i < s->num_procs; i++)
            for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
                struct actor *a = &s->procs[i]->actors[n];

                if (is_back(a)) {
                    sched_wake(a, WAKE_TURN, max_u64(a->paused_ps, sim_now(s)));
                } else if (a->undecided) {
                    turn_end_pause(a);
                    a->looking &= a->seen == SF_ACTOR_LOCK; /* looked, and waits again */
                    state_ran(a, a->paused_ps);
                }
            }
    }
    turns_next(s);
}

/*
 * While the kernel was asked an actor may have returned, and may even wait again: for something else, or for our
 * answer.
 */
static bool somebody_came(struct sim *s)
{
    if (s->clock_up->has_input(s->server))
        return true;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++)
            if (state_is_news(&s->procs[i]->actors[n])) {
                sched_scan(s->procs[i]);
                return true;
            }
    return false;
}

/*
 * True if a thread out of sight is about to return: asked_ns is the time of the question. The kernel knows: the
 * thread's wake-up has happened already. Most hand-overs need no question, and then no clock, which is a system call.
 */
static bool somebody_coming(struct sim *s, uint64_t *asked_ns)
{
    struct sched *sc = s->sched;
    bool coming = s->due, away = world_is_away(sc->world, s);

    *asked_ns = coming || away ? real_ns() : 0;
    if (!coming)
        sc->due_since_ns = 0;
    else if (!sc->due_since_ns)
        sc->due_since_ns = *asked_ns;
    else if (*asked_ns - sc->due_since_ns > DUE_NS)
        coming = false;
    coming = coming || (away && (!world_is_quiet(sc->world, s) || somebody_came(s)));
    if (!coming && s->signalled)
        alarms_noticed(s);
    return coming;
}

/*
 * Finds the next event worth moving time for. Flows without a process and later faults do not move time by themselves:
 * an actor must wait for an event, a packet or a queue pair.
 */
static bool next_event(struct sim *s, uint64_t *t)
{
    return evq_next(&s->q, t) && (!s->background || s->q.loud || s->clock_up->packets() || s->ready_qps);
}

/*
 * Runs events until an actor is woken, and the further events of the same time. Woken actors run afterwards
 * (turns_next), so a poll's result does not depend on real time. Returns true if more events may follow.
 */
static bool move_time(struct sim *s)
{
    uint64_t start = coarse_ns(), t;
    unsigned n = 0;
    bool more = true;

    s->sched->moving = true;
    evq_move(&s->q);
    while (!s->holding && !s->signalled && (more = next_event(s, &t)) && (!s->running || t == sim_now(s)) &&
           (n++ < EVENT_BATCH || s->running)) {
        evq_run_one(&s->q);
        if (sim_now(s) >= s->sched->restless_ps)
            look_restless(s);
    }
    evq_stand(&s->q, s->num_procs);
    s->sched->moving = false;
    s->busy_ns += coarse_ns() - start;
    sched_publish_time(s);
    if (n) {
        sched_activity(s->sched);
    }
    return more;
}

/* ---- the kernel's word on threads out of sight ------------------------------------------------------------------- */

/*
 * All there is to do is to wait: for threads out of sight (coming), which the kernel was just asked about, or for the
 * end of a pause. Asking takes as long as many messages. So what daemons and commands ask of the engine meanwhile leads
 * to no further question; messages of processes and, in a pause, events do.
 */
static int64_t rest(struct sched *sc, int64_t us, bool coming)
{
    sc->rest_ends_ns = real_ns() + (uint64_t)us * 1000;
    sc->rest_coming = coming;
    return us;
}

/* Returns what is left of the rest in us; 0: nothing, or there is something to do. */
static int64_t still_rests(struct sim *s, bool news)
{
    struct sched *sc = s->sched;
    uint64_t now, t;

    if (!sc->rest_ends_ns)
        return 0;
    now = real_ns();
    if (news || now >= sc->rest_ends_ns ||
        (!sc->rest_coming && (sc->unsettled || sc->waiting || s->signalled || next_event(s, &t))))
        sc->rest_ends_ns = 0;
    return sc->rest_ends_ns ? (int64_t)((sc->rest_ends_ns - now + 999) / 1000) : 0;
}

/* The time until the next question, in us; the last one was put at asked_ns. */
static int64_t until_asked_again(uint64_t asked_ns)
{
    int64_t us = (int64_t)((real_ns() - asked_ns) / 1000) * ASK_SHARE;

    return us < COMING_US ? COMING_US : us > COMING_MOST ? COMING_MOST : us;
}

/*
 * True if a process is on its way to attach. Looks follow each other quickly: not every look has its own question, but
 * time passes after a fresh one only.
 */
static bool somebody_starts(struct sim *s)
{
    struct sched *sc = s->sched;
    uint64_t now = real_ns();

    if (now < sc->none_starts_ns && !look_passes_time(s))
        return false;
    sc->none_starts_ns = 0;
    sc->asked_ns = real_ns();
    if (world_somebody_starts(sc->world, s))
        return true;
    sc->none_starts_ns = real_ns() + (uint64_t)until_asked_again(now) * 1000;
    return false;
}

/* ---- a turn of the engine ---------------------------------------------------------------------------------------- */

/* Returns the time to wait for running actors before checking them. */
static int64_t patience(struct sim *s, bool paused)
{
    struct sched *sc = s->sched;

    sc->patience_us = threads_patience_us(s, paused && sc->patience_us);
    return sc->patience_us;
}

/* An actor that calls again and again leaves the engine no pause. */
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

int64_t sched_run(struct sim *s, bool paused, bool news)
{
    struct sched *sc = s->sched;
    uint64_t asked_ns;
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
    wait_us = still_rests(s, news);
    if (wait_us)
        return wait_us;
    if (somebody_coming(s, &asked_ns))
        return rest(sc, until_asked_again(asked_ns), true);
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
    asked_ns = real_ns();
    if (somebody_starts(s))
        return rest(sc, until_asked_again(asked_ns), true);
    if (somebody_came(s))
        return COMING_US;
    wait_us = look_at_world(s);
    turns_next(s);
    return wait_us < 0 ? patience(s, false) : rest(sc, wait_us, false);
}

void sched_init(struct sim *s)
{
    s->sched = xcalloc(1, sizeof *s->sched);
    s->sched->world = world_new();
    s->sched->close_relay = relay_close_now;
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
