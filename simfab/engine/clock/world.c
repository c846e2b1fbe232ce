/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain of wake-ups (a launcher answers, a helper thread reads the answer and signals a condition variable, the actor
 * wakes) always has one runnable thread, but a walk over the threads could pass each of them just before its turn.
 * Therefore the threads are walked twice: all is quiet only if no thread was runnable or has run in between. (The
 * number of runnable threads in /proc/loadavg would be cheaper, but does not count a thread on its way to another
 * processor.)
 */
#include "simfab/engine/clock/world.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/watch.h"
#include "simfab/proto.h"

#define ANCESTORS_MAX 8u /* from a process up to its launcher */
/* Processor time after which a thread is not about to wake an actor; */
#define BUSY_NS 100000000ull
/* the same, after a thread was just found to exceed the limit, until all have been at rest */
#define BUSY_AGAIN_NS 5000000ull
/* processor time within which a started process attaches, if at all */
#define NEWCOMER_S  1u
#define GENERATIONS 4u             /* from a process started by hand: a shell, its child, ... */
#define STARVED_NS  10000000000ull /* real time in which the thread got less processor time, or waited for a disk */

struct world {
    pid_t parent, self;
    struct watches *watches;
    uint64_t walks;
    uint64_t ran;               /* sum over the threads seen in this walk, */
    uint64_t ran_before;        /* the same in the last complete walk */
    bool again;                 /* a thread has run since its last check: another walk is needed */
    struct watch_thread *busy;  /* the thread that was found to run, or to be about to; NULL: none */
    struct watch *busy_process; /* its process */
    pid_t *ending;              /* processes detached since all was last quiet */
    uint32_t num_ending, ending_cap;
    pid_t *announced; /* processes started by `simfab exec`, not attached, alive at the last check */
    uint32_t num_announced, announced_cap;
    uint64_t starts_since_ns;  /* a thread among them has been busy since, waits for a processor excluded; 0: none */
    uint32_t starts_tid;       /* the starting thread at the last check */
    uint64_t starts_queued_ns; /* and its wait for a processor so far */
    struct {
        uint32_t tid;
        uint64_t ran_ns; /* its processor time when last seen */
        uint64_t since_ns, used_ns;
        uint64_t runs; /* of actors by then: if there have been more it is another wait */
        bool proved;   /* a thread has been busy for long, and not all have been at rest since */
    } last;
};

struct world *world_new(void)
{
    struct world *w = xcalloc(1, sizeof *w);

    w->self = getpid();
    w->parent = getppid();
    w->watches = watches_new();
    return w;
}

void world_free(struct world *w)
{
    watches_free(w->watches);
    free(w->ending);
    free(w->announced);
    free(w);
}

/* ---- one process ----------------------------------------------------------------------------------------------- */

/* True if the thread computes, without a wait since it was found busy. */
static bool still_computes(const struct watch *p, struct watch_thread *t)
{
    if (t->busy_waits && watch_waits(p, t) != t->busy_waits)
        t->busy_waits = 0;
    return t->busy_waits;
}

/*
 * Checks whether the thread has run since the last walk or is runnable. The second check is spared if the walk must be
 * repeated anyway.
 */
static void check_thread(struct world *w, struct watch *p, struct watch_thread *t)
{
    uint64_t before = t->digest;
    char state;

    if (!watch_ran(w->watches, p, t) || still_computes(p, t))
        return;
    w->ran += t->digest * 31 + t->tid;
    if (t->digest != before)
        w->again = true;
    else if (w->again)
        return;
    state = watch_state(w->watches, p, t);
    if (state != 'R' && state != 'D')
        return;
    w->busy = t;
    w->busy_process = p;
}

/*
 * Spinners run all the time and wake nobody: waking would need a call. Neither does a thread that has reported a wait
 * and is still on its way into the wait.
 */
static bool wakes_nobody(const struct proc *p, uint32_t tid)
{
    for (uint32_t i = 0; p && i < p->actors_used; i++) {
        const struct actor *a = &p->actors[i];

        if (p->arena->actor[i].tid == tid)
            return (a->excluded && a->spins) || a->seen == SF_ACTOR_IDLE || a->seen == SF_ACTOR_SLEEP ||
                   a->seen == SF_ACTOR_DRAIN || a->seen == SF_ACTOR_READY || a->seen == SF_ACTOR_LOCK;
    }
    return false;
}

static struct watch *look_at_process(struct world *w, pid_t pid, const struct proc *p)
{
    struct watch *of = watch_get(w->watches, pid);

    for (uint32_t i = 0; of && i < of->num_threads && !w->busy; i++)
        if (!wakes_nobody(p, of->threads[i].tid))
            check_thread(w, of, &of->threads[i]);
        else
            watch_ran(w->watches, of, &of->threads[i]); /* or has the thread ended? */
    return of;
}

/* ---- origin of a process ----------------------------------------------------------------------------------------- */

static bool attached(const struct sim *s, pid_t pid)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        if (s->procs[i]->pid == pid)
            return true;
    return false;
}

static void add_newcomer(struct watch *launcher, pid_t child)
{
    if (launcher->num_newcomers == launcher->newcomers_cap) {
        launcher->newcomers_cap = launcher->newcomers_cap ? 2 * launcher->newcomers_cap : 16;
        launcher->newcomers = xrealloc(launcher->newcomers, launcher->newcomers_cap * sizeof *launcher->newcomers);
    }
    launcher->newcomers[launcher->num_newcomers++] = child;
}

/* Lists children that have not attached; lists again only if the children or the attached processes have changed. */
static void list_newcomers(struct world *w, const struct sim *s, struct watch *launcher)
{
    uint64_t key = ((uint64_t)s->next_proc_id << 32 | s->num_procs) + 1;

    for (uint32_t i = 0; i < launcher->num_threads; i++)
        for (const char *at = watch_children(w->watches, launcher, &launcher->threads[i]); *at; at++)
            key = key * 1099511628211u + (uint8_t)*at;
    if (key == launcher->children_key)
        return;
    launcher->children_key = key;
    launcher->num_newcomers = 0;
    for (uint32_t i = 0; i < launcher->num_threads; i++) {
        const char *at = watch_children(w->watches, launcher, &launcher->threads[i]);

        for (char *end; *at; at = end) {
            pid_t child = (pid_t)strtol(at, &end, 10);

            if (end == at)
                break;
            if (!attached(s, child))
                add_newcomer(launcher, child);
        }
    }
}

static bool has_grown_up(struct watch *of)
{
    uint64_t ran = 0;

    for (uint32_t i = 0; i < of->num_threads; i++)
        ran += of->threads[i].digest;
    if (!of->grown_up && ran != of->checked) {
        of->checked = ran;
        of->grown_up = watch_cpu_s(of->pid) >= NEWCOMER_S;
    }
    return of->grown_up;
}

/* The others of the job, as long as they are on their way to attach. */
static void look_at_newcomers(struct world *w, const struct sim *s, struct watch *launcher)
{
    list_newcomers(w, s, launcher);
    for (uint32_t i = 0; i < launcher->num_newcomers && !w->busy; i++) {
        struct watch *child = watch_get(w->watches, launcher->newcomers[i]);

        if (child && !has_grown_up(child))
            look_at_process(w, child->pid, NULL);
    }
}

static void look_at_launchers(struct world *w, const struct sim *s, struct watch *of)
{
    for (uint32_t i = 0; i < ANCESTORS_MAX && of && !w->busy; i++) {
        pid_t pid = watch_parent(w->watches, of);

        if (pid <= 1 || pid == w->parent || pid == w->self)
            return;
        of = watch_get(w->watches, pid);
        if (!of || of->visited == w->walks)
            return;
        of->visited = w->walks;
        look_at_process(w, pid, NULL);
        if (i == 0)
            look_at_newcomers(w, s, of);
    }
}

/* ---- processes started by hand ----------------------------------------------------------------------------------- */

static void forget_the_gone(struct world *w)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < w->num_announced; i++)
        if (!kill(w->announced[i], 0) || errno != ESRCH)
            w->announced[kept++] = w->announced[i];
    w->num_announced = kept;
}

void world_announce(struct world *w, pid_t pid)
{
    if (w->num_announced == w->announced_cap)
        forget_the_gone(w);
    if (w->num_announced == w->announced_cap) {
        w->announced_cap = w->announced_cap ? 2 * w->announced_cap : 16;
        w->announced = xrealloc(w->announced, w->announced_cap * sizeof *w->announced);
    }
    w->announced[w->num_announced++] = pid;
}

static void look_at_family(struct world *w, const struct sim *s, struct watch *of, uint32_t generations)
{
    if (!has_grown_up(of))
        look_at_process(w, of->pid, NULL);
    list_newcomers(w, s, of);
    for (uint32_t i = 0; generations && i < of->num_newcomers && !w->busy; i++) {
        struct watch *child = watch_get(w->watches, of->newcomers[i]);

        if (child)
            look_at_family(w, s, child, generations - 1);
    }
}

/* True if none of them runs, nor has run since the look before. w->busy if one runs. */
static bool announced_rest(struct world *w, const struct sim *s)
{
    uint32_t kept = 0;

    watches_turn(w->watches);
    w->busy = NULL;
    w->again = false;
    for (uint32_t i = 0; i < w->num_announced; i++) {
        pid_t pid = w->announced[i];
        struct watch *of = attached(s, pid) ? NULL : watch_get(w->watches, pid);

        if (!of)
            continue;
        w->announced[kept++] = pid;
        if (!w->busy)
            look_at_family(w, s, of, GENERATIONS);
    }
    w->num_announced = kept;
    return !w->busy && !w->again;
}

static void leave_out_queueing(struct world *w)
{
    const struct watch_thread *t = w->busy;

    if (!t)
        return;
    if (t->tid == w->starts_tid && t->queued_ns > w->starts_queued_ns)
        w->starts_since_ns += t->queued_ns - w->starts_queued_ns;
    w->starts_tid = t->tid;
    w->starts_queued_ns = t->queued_ns;
}

bool world_somebody_starts(struct world *w, struct sim *s)
{
    uint64_t now = real_ns();

    if (!w->num_announced || announced_rest(w, s) || (!w->busy && announced_rest(w, s))) {
        w->starts_since_ns = 0;
        w->starts_tid = 0;
        return false;
    }
    if (!w->starts_since_ns)
        w->starts_since_ns = now;
    leave_out_queueing(w);
    /* longer: a script starts one program after the other and never waits */
    return now <= w->starts_since_ns + STARVED_NS;
}

/* ---- all processes concerned ------------------------------------------------------------------------------------- */

static bool somebody_is_away(const struct proc *p)
{
    for (uint32_t i = 0; i < p->actors_used; i++) {
        const struct actor *a = &p->actors[i];
        bool outside = a->outside && (a->seen == SF_ACTOR_BLOCKED || a->seen == SF_ACTOR_LOCK);
        bool waits = outside || (a->excluded && !a->spins);

        /* a guest waits like a helper once nothing is known to bring the guest back soon */
        if ((waits && (!p->arena->actor[i].guest || a->undecided)) || (a->seen == SF_ACTOR_READY && a->is_new))
            return true;
    }
    return !p->actors_used || p->signalled || p->births != __atomic_load_n(&p->arena->births, __ATOMIC_RELAXED);
}

void world_note_end(struct world *w, pid_t pid)
{
    if (w->num_ending == w->ending_cap) {
        w->ending_cap = w->ending_cap ? 2 * w->ending_cap : 16;
        w->ending = xrealloc(w->ending, w->ending_cap * sizeof *w->ending);
    }
    w->ending[w->num_ending++] = pid;
}

/*
 * Returns true if no thread runs, and none has run since the last complete walk. w->busy: a running thread. The end of
 * a process is news for any other: the launcher hears of the end, and passes the news on.
 */
static bool walk_processes(struct world *w, struct sim *s)
{
    uint64_t before = w->ran_before;

    w->walks++;
    watches_turn(w->watches);
    w->ran = 0;
    w->busy = NULL;
    w->again = false;
    for (uint32_t i = 0; i < w->num_ending && !w->busy; i++)
        look_at_launchers(w, s, look_at_process(w, w->ending[i], NULL));
    for (uint32_t i = 0; i < s->num_procs && !w->busy; i++) {
        const struct proc *p = s->procs[i];

        if (!w->num_ending && !somebody_is_away(p))
            continue;
        look_at_launchers(w, s, look_at_process(w, p->pid, p));
    }
    if (!w->busy)
        w->ran_before = w->ran;
    return !w->busy && !w->again && w->ran == before;
}

/* Threads created before the walk have had the chance to become actors; threads created since have not. */
static void note_births(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        s->procs[i]->births_walked = __atomic_load_n(&s->procs[i]->arena->births, __ATOMIC_ACQUIRE);
}

static void forget_births(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        s->procs[i]->births = s->procs[i]->births_walked;
}

/*
 * The busy thread has used so much processor time, within one wait of the engine, that it is no longer expected to wake
 * an actor, and is not asked again until it has waited. Processor time counts, not real time: on a busy machine all
 * this may take long.
 */
static bool busy_for_long(struct world *w, const struct sim *s)
{
    struct watch_thread *t = w->busy;
    uint64_t now = real_ns();

    if (!w->last.since_ns || w->last.runs != s->runs) {
        w->last.since_ns = now;
        w->last.used_ns = w->last.tid = 0;
        w->last.runs = s->runs;
    }
    if (w->last.tid == t->tid)
        w->last.used_ns += t->ran_ns - w->last.ran_ns;
    w->last.tid = t->tid;
    w->last.ran_ns = t->ran_ns;
    if (w->last.used_ns <= (w->last.proved ? BUSY_AGAIN_NS : BUSY_NS) && now - w->last.since_ns <= STARVED_NS)
        return false;
    w->last.proved = true;
    t->busy_waits = watch_waits(w->busy_process, t);
    return true;
}

static bool nobody_runs(struct world *w, struct sim *s)
{
    bool quiet = walk_processes(w, s) || (!w->busy && walk_processes(w, s));

    if (w->busy)
        return busy_for_long(w, s);
    if (quiet) {
        w->last.since_ns = w->last.used_ns = w->last.tid = 0;
        w->last.proved = false;
    }
    return quiet;
}

bool world_is_away(const struct world *w, const struct sim *s)
{
    if (w->num_ending)
        return true;
    for (uint32_t i = 0; i < s->num_procs; i++)
        if (somebody_is_away(s->procs[i]))
            return true;
    return false;
}

bool world_is_quiet(struct world *w, struct sim *s)
{
    uint64_t start = real_ns();
    bool quiet;

    note_births(s);
    quiet = nobody_runs(w, s);
    if (quiet) {
        forget_births(s);
        w->num_ending = 0;
    }
    s->world_looks++;
    s->world_ns += real_ns() - start;
    return quiet;
}
