/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain of wake-ups (a launcher answers, a helper thread reads the answer and rings a condition variable, the actor
 * wakes) always has one thread that is runnable, but a walk over the threads could pass each of them just before its
 * turn. So it is walked twice, and only if nobody was runnable nor has run in between it is quiet. (The number of
 * runnable threads in /proc/loadavg would be cheaper, but it does not count one that is on its way to another
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

#define ANCESTORS_MAX 8u           /* from a process up to its launcher */
#define BUSY_NS       100000000ull /* of processor time, or of a wait for a disk: it is not about to wake anybody; */
/* nor is one after this, where one was just found not to be, and not all were at rest since */
#define BUSY_AGAIN_NS 5000000ull
/* of processor time, in which a process that a launcher has started attaches, if it ever does */
#define NEWCOMER_S  1u
#define GENERATIONS 4u             /* of a process that was started by hand: a shell, what it runs, ... */
#define STARVED_NS  10000000000ull /* of real time, in which the thread did not get as much */

struct world {
    pid_t parent, self;
    struct watches *watches;
    uint64_t walks;
    uint64_t ran;               /* sum over the threads seen in this walk, */
    uint64_t ran_before;        /* and in the last one that was not broken off */
    bool again;                 /* a thread has run since it was last looked at: this walk cannot be the last one */
    struct watch_thread *busy;  /* the thread that was found to run, or to be about to; NULL: none */
    struct watch *busy_process; /* whose it is */
    bool disk;                  /* it is about to, when a disk has answered */
    pid_t *announced; /* what `simfab exec` has started: has not attached, and was there when last looked at */
    uint32_t num_announced, announced_cap;
    uint64_t starts_since_ns;  /* somebody among them has been busy since, but for waits for a processor; 0: nobody */
    uint32_t starts_tid;       /* who, when last looked at, */
    uint64_t starts_queued_ns; /* and how long it had waited for one */
    struct {
        uint32_t tid;
        uint64_t ran_ns, at_ns; /* its processor time, and the real time, when last seen */
        uint64_t since_ns, used_ns;
        uint64_t runs; /* of actors by then: if there have been more it is another wait */
        bool proved;   /* somebody has been busy for long, and not all have been at rest since */
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
    free(w->announced);
    free(w);
}

/* ---- one process ----------------------------------------------------------------------------------------------- */

/* It computes, without ever having waited for anything since it was found to. */
static bool still_computes(const struct watch *p, struct watch_thread *t)
{
    if (t->busy_waits && watch_waits(p, t) != t->busy_waits)
        t->busy_waits = 0;
    return t->busy_waits;
}

/*
 * Has it run since the last walk? And is it about to? The latter need not be asked of one that has not if the walk has
 * to be repeated anyway.
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
    w->disk = state == 'D';
}

/*
 * Spinners run all the time, and wake nobody: they would have to call somebody for that. Nor does a thread that has
 * told us that it waits, and is still on its way to do so.
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
            watch_ran(w->watches, of, &of->threads[i]); /* or has it ended? */
    return of;
}

/* ---- where it comes from --------------------------------------------------------------------------------------- */

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

/* Children that have not attached. They are sorted out again only if there are others, or somebody has come or gone. */
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

/* ---- who was started by hand ------------------------------------------------------------------------------------ */

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
    /* longer: it is a script that starts one program after the other and never waits */
    return now <= w->starts_since_ns + STARVED_NS;
}

/* ---- everybody concerned --------------------------------------------------------------------------------------- */

static bool somebody_is_away(const struct proc *p)
{
    for (uint32_t i = 0; i < p->actors_used; i++) {
        const struct actor *a = &p->actors[i];
        bool outside = a->outside && (a->seen == SF_ACTOR_BLOCKED || a->seen == SF_ACTOR_LOCK);
        bool waits = outside || (a->excluded && !a->spins);

        /* a guest waits as helpers do, when it is known that nothing brings it back soon */
        if ((waits && (!p->arena->actor[i].guest || a->undecided)) || (a->seen == SF_ACTOR_READY && a->is_new))
            return true;
    }
    return !p->actors_used || p->signalled || p->births != __atomic_load_n(&p->arena->births, __ATOMIC_RELAXED);
}

/* True if nobody runs, and nobody has run since the walk before that saw all. w->busy if one runs. */
static bool walk_processes(struct world *w, struct sim *s)
{
    uint64_t before = w->ran_before;

    w->walks++;
    watches_turn(w->watches);
    w->ran = 0;
    w->busy = NULL;
    w->again = false;
    for (uint32_t i = 0; i < s->num_procs && !w->busy; i++) {
        const struct proc *p = s->procs[i];

        if (!somebody_is_away(p))
            continue;
        look_at_launchers(w, s, look_at_process(w, p->pid, p));
    }
    if (!w->busy)
        w->ran_before = w->ran;
    return !w->busy && !w->again && w->ran == before;
}

/*
 * Threads that were new before the walk have had their chance to become actors; what has been created meanwhile has
 * not.
 */
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
 * The thread that was found busy has used so much, in this one wait of the engine's, that it is no longer believed to
 * be about to wake anybody; nor is it asked again until it has waited for something. What counts is what it has done,
 * not how long that took: on a machine that others use, all this may take long.
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
        w->last.used_ns += w->disk ? now - w->last.at_ns : t->ran_ns - w->last.ran_ns;
    w->last.tid = t->tid;
    w->last.ran_ns = t->ran_ns;
    w->last.at_ns = now;
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

bool world_is_away(const struct sim *s)
{
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
    if (quiet)
        forget_births(s);
    s->world_looks++;
    s->world_ns += real_ns() - start;
    return quiet;
}
