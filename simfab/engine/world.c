/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain of wake-ups (a launcher answers, a helper thread reads the answer and rings a condition variable, the actor
 * wakes) always has one thread that is runnable, but a walk over the threads could pass each of them just before its
 * turn. So it is walked twice, and only if nobody was runnable nor has run in between it is quiet. (The number of
 * runnable threads in /proc/loadavg would be cheaper, but it does not count one that is on its way to another processor.)
 */
#include "simfab/engine/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simfab/engine/threads.h"
#include "simfab/engine/util.h"

#define ANCESTORS_MAX 8u  /* from a process up to its launcher */
#define VISITED_MAX   64u /* launchers; processes of a job share theirs */
#define BUSY_NS       100000000ull   /* of processor time, or of waiting for a disk: then a thread is not about to wake anybody */
#define NEWCOMER_S    1u  /* of processor time, in which a process that a launcher has started attaches, if it ever does */
#define STARVED_NS    10000000000ull /* of real time, in which the thread did not get as much */

struct world {
    pid_t parent, self;
    pid_t visited[VISITED_MAX];
    uint32_t num_visited;
    uint64_t ran;  /* sum over the threads seen in this walk */
    uint32_t busy; /* the thread that was found to run, or to be about to; 0: none */
    bool disk;     /* it is about to, when a disk has answered */
    uint64_t busy_ran_ns;
    struct {
        uint32_t tid;
        uint64_t ran_ns, at_ns; /* its processor time, and the real time, when last seen */
        uint64_t since_ns, used_ns;
    } last;
};

struct world *world_new(void)
{
    struct world *w = xcalloc(1, sizeof *w);

    w->self = getpid();
    w->parent = getppid();
    return w;
}

void world_free(struct world *w)
{
    free(w);
}

/* ---- one process ----------------------------------------------------------------------------------------------- */

static bool read_proc(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, buf, cap - 1);
    close(fd);
    buf[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* What follows the name in a stat file: the state, then the parent. */
static const char *after_name(const char *stat)
{
    const char *paren = strrchr(stat, ')');

    return paren && paren[1] == ' ' ? paren + 2 : "";
}

/* Its run time, the time it waited and how often it got a processor, in one number that changes when it runs. */
static uint64_t digest(const char *schedstat)
{
    uint64_t sum = 0;

    for (char *end; *schedstat; schedstat = end) {
        sum = sum * 31 + strtoull(schedstat, &end, 10);
        if (end == schedstat)
            break;
    }
    return sum;
}

static void look_at_thread(struct world *w, pid_t pid, const char *tid)
{
    char path[64], buf[512];

    uint64_t ran_ns = 0;
    char state = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%.16s/schedstat", (int)pid, tid);
    if (read_proc(path, buf, sizeof buf)) {
        w->ran += digest(buf);
        ran_ns = strtoull(buf, NULL, 10);
    }
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)pid, tid);
    if (read_proc(path, buf, sizeof buf))
        state = *after_name(buf);
    if (state != 'R' && state != 'D')
        return;
    w->busy = (uint32_t)strtoul(tid, NULL, 10);
    w->disk = state == 'D';
    w->busy_ran_ns = ran_ns;
}

/*
 * Spinners run all the time, and wake nobody: they would have to call somebody for that. Nor does a thread that has told
 * us that it waits, and is still on its way to do so.
 */
static bool wakes_nobody(const struct proc *p, uint32_t tid)
{
    for (uint32_t i = 0; p && i < p->actors_used; i++) {
        const struct actor *a = &p->actors[i];

        if (p->arena->actor[i].tid == tid)
            return (a->excluded && a->spins) || a->seen == SF_ACTOR_IDLE || a->seen == SF_ACTOR_SLEEP ||
                   a->seen == SF_ACTOR_DRAIN || a->seen == SF_ACTOR_READY;
    }
    return false;
}

static void look_at_process(struct world *w, pid_t pid, const struct proc *p)
{
    char path[64];
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    d = opendir(path);
    while (d && !w->busy && (e = readdir(d)))
        if (e->d_name[0] != '.' && !wakes_nobody(p, (uint32_t)strtoul(e->d_name, NULL, 10)))
            look_at_thread(w, pid, e->d_name);
    if (d)
        closedir(d);
}

/* ---- where it comes from --------------------------------------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
    char path[64], buf[512], state;
    int parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_proc(path, buf, sizeof buf) && sscanf(after_name(buf), "%c %d", &state, &parent) == 2 ? parent : 0;
}

static bool visited_before(struct world *w, pid_t pid)
{
    for (uint32_t i = 0; i < w->num_visited; i++)
        if (w->visited[i] == pid)
            return true;
    if (w->num_visited < VISITED_MAX)
        w->visited[w->num_visited++] = pid;
    return false;
}

/* Processor time of the whole process. */
static bool is_newcomer(const struct sim *s, pid_t pid)
{
    char path[64], buf[512];
    unsigned long user, system;

    for (uint32_t i = 0; i < s->num_procs; i++)
        if (s->procs[i]->pid == pid)
            return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_proc(path, buf, sizeof buf) &&
           sscanf(after_name(buf), "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2 &&
           user + system < NEWCOMER_S * (unsigned long)sysconf(_SC_CLK_TCK);
}

/* The others of the job, as long as they are on their way to attach. */
static void look_at_newcomers(struct world *w, const struct sim *s, pid_t launcher)
{
    char path[64], buf[4096], *end;
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%d/task", (int)launcher);
    d = opendir(path);
    while (d && !w->busy && (e = readdir(d))) {
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)launcher, e->d_name);
        if (e->d_name[0] == '.' || !read_proc(path, buf, sizeof buf))
            continue;
        for (char *at = buf; !w->busy; at = end) {
            pid_t child = (pid_t)strtol(at, &end, 10);

            if (end == at)
                break;
            if (is_newcomer(s, child))
                look_at_process(w, child, NULL);
        }
    }
    if (d)
        closedir(d);
}

static void look_at_launchers(struct world *w, const struct sim *s, pid_t pid)
{
    for (uint32_t i = 0; i < ANCESTORS_MAX && !w->busy; i++) {
        pid = parent_of(pid);
        if (pid <= 1 || pid == w->parent || pid == w->self || visited_before(w, pid))
            return;
        look_at_process(w, pid, NULL);
        if (i == 0)
            look_at_newcomers(w, s, pid);
    }
}

/* ---- everybody concerned --------------------------------------------------------------------------------------- */

static bool somebody_is_away(const struct proc *p)
{
    for (uint32_t i = 0; i < p->actors_used; i++) {
        const struct actor *a = &p->actors[i];

        if (a->seen == SF_ACTOR_BLOCKED || (a->seen == SF_ACTOR_READY && a->is_new) || (a->excluded && !a->spins))
            return true;
    }
    return !p->actors_used || p->signalled || p->births != __atomic_load_n(&p->arena->births, __ATOMIC_RELAXED);
}

/* The sum of what all threads have run so far; w->busy if one does. */
static uint64_t walk(struct world *w, struct sim *s)
{
    w->ran = w->num_visited = 0;
    w->busy = 0;
    for (uint32_t i = 0; i < s->num_procs && !w->busy; i++) {
        const struct proc *p = s->procs[i];

        if (!somebody_is_away(p))
            continue;
        look_at_process(w, p->pid, p);
        look_at_launchers(w, s, p->pid);
    }
    return w->ran;
}

/* Threads that were new before the walk have had their chance to become actors; what has been created meanwhile has not. */
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
 * The thread that was found busy has used so much that it is no longer believed to be about to wake anybody. What counts is
 * what it has done, not how long that took: on a machine that others use, all this may take long.
 */
static bool busy_for_long(struct world *w)
{
    uint64_t now = real_ns();

    if (!w->last.since_ns)
        w->last.since_ns = now;
    if (w->last.tid == w->busy)
        w->last.used_ns += w->disk ? now - w->last.at_ns : w->busy_ran_ns - w->last.ran_ns;
    w->last.tid = w->busy;
    w->last.ran_ns = w->busy_ran_ns;
    w->last.at_ns = now;
    return w->last.used_ns > BUSY_NS || now - w->last.since_ns > STARVED_NS;
}

static bool nobody_runs(struct world *w, struct sim *s)
{
    uint64_t before = walk(w, s);

    if (!w->busy && walk(w, s) != before && !w->busy)
        return false;
    if (w->busy)
        return busy_for_long(w);
    w->last.since_ns = w->last.used_ns = w->last.tid = 0;
    return true;
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
