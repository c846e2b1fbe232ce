/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process's task directory has two links more than the process has threads, and the files of a dead thread are
 * unreadable. If the count equals the number of listed threads, and all their files are readable, the list is right,
 * and the directory need not be read again.
 */
#include "simfab/engine/clock/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simfab/engine/base/util.h"

#define BUCKETS    1024u /* a power of two */
#define LIST_TRIES 4u
#define TURNS_OLD  1024u /* turns without a request before a watch is closed */

struct watches {
    struct watch *bucket[BUCKETS];
    uint64_t turn;           /* from 1 on */
    uint32_t kept, kept_max; /* descriptors of threads */
    bool no_schedstat;       /* the kernel has no schedstat */
    char *text;              /* children */
    size_t text_cap;
};

struct watches *watches_new(void)
{
    struct watches *ws = xcalloc(1, sizeof *ws);
    struct rlimit files = {0};

    ws->turn = 1;
    getrlimit(RLIMIT_NOFILE, &files);
    watches_limit(ws, (uint32_t)min_u64(files.rlim_cur / 2, 1u << 20));
    ws->no_schedstat = access("/proc/self/schedstat", R_OK) != 0;
    ws->text_cap = 4096;
    ws->text = xcalloc(1, ws->text_cap);
    return ws;
}

uint32_t watches_kept(const struct watches *ws)
{
    return ws->kept;
}

void watches_limit(struct watches *ws, uint32_t descriptors)
{
    ws->kept_max = descriptors;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static void close_kept(struct watches *ws, int *fd)
{
    if (*fd < 0)
        return;
    close(*fd);
    *fd = -1;
    ws->kept--;
}

/*
 * Reads a thread's file from an offset. The descriptor is kept if there is room. Returns the number of bytes, or a
 * negative value.
 */
static ssize_t read_thread_file(struct watches *ws, struct watch *w, uint32_t tid, const char *name, int *kept,
                                char *buf, size_t cap, off_t offset)
{
    char path[64];
    int fd = *kept;
    ssize_t n;

    if (fd < 0) {
        snprintf(path, sizeof path, "%u/%s", tid, name);
        fd = openat(dirfd(w->tasks), path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return -1;
    }
    n = pread(fd, buf, cap, offset);
    if (*kept < 0 && ws->kept < ws->kept_max) {
        *kept = fd;
        ws->kept++;
    } else if (*kept < 0) {
        close(fd);
    }
    return n;
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static void close_thread(struct watches *ws, struct watch_thread *t)
{
    close_kept(ws, &t->sched_fd);
    close_kept(ws, &t->stat_fd);
    close_kept(ws, &t->children_fd);
}

/* 0: the process is gone. */
static uint32_t count_threads(const struct watch *w)
{
    struct stat st;

    return w->tasks && !fstat(dirfd(w->tasks), &st) && st.st_nlink > 2 ? (uint32_t)st.st_nlink - 2 : 0;
}

static void add_thread(struct watch *w, const struct watch_thread *t)
{
    if (w->num_threads == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 4;
        w->threads = xrealloc(w->threads, w->cap * sizeof *w->threads);
    }
    w->threads[w->num_threads++] = *t;
}

static void forget_tasks(struct watches *ws, struct watch *w)
{
    for (uint32_t i = 0; i < w->num_threads; i++)
        close_thread(ws, &w->threads[i]);
    w->num_threads = 0;
    if (w->tasks)
        closedir(w->tasks);
    w->tasks = NULL;
    w->parent = 0;
    w->zombie = false;
}

static struct watch_thread *find_thread(struct watch *w, uint32_t num, uint32_t tid)
{
    for (uint32_t i = 0; i < num; i++)
        if (w->threads[i].tid == tid)
            return &w->threads[i];
    return NULL;
}

/* False if the thread number has been reused: the open files are then unreadable. */
static bool is_same(struct watches *ws, struct watch *w, struct watch_thread *t)
{
    return (ws->no_schedstat ? t->stat_fd : t->sched_fd) >= 0 && watch_ran(ws, w, t);
}

/* Lists the threads again: adds new threads and removes dead threads. */
static void list_threads(struct watches *ws, struct watch *w)
{
    uint32_t before = w->num_threads;
    struct dirent *e;

    rewinddir(w->tasks);
    while ((e = readdir(w->tasks))) {
        struct watch_thread fresh = {.sched_fd = -1, .stat_fd = -1, .children_fd = -1}, *old;

        if (e->d_name[0] == '.')
            continue;
        fresh.tid = (uint32_t)strtoul(e->d_name, NULL, 10);
        old = find_thread(w, before, fresh.tid);
        if (old && is_same(ws, w, old)) {
            fresh = *old;
            old->sched_fd = old->stat_fd = old->children_fd = -1;
        }
        add_thread(w, &fresh);
    }
    for (uint32_t i = 0; i < before; i++)
        close_thread(ws, &w->threads[i]);
    w->num_threads -= before;
    if (before)
        memmove(w->threads, w->threads + before, w->num_threads * sizeof *w->threads);
    w->stale = false;
}

/* Run time, wait time and number of turns on a processor, in one number that changes with each run. */
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

bool watch_ran(struct watches *ws, struct watch *w, struct watch_thread *t)
{
    char buf[128], *rest;
    ssize_t n;

    if (ws->no_schedstat)
        return watch_state(ws, w, t) != 0;
    n = read_thread_file(ws, w, t->tid, "schedstat", &t->sched_fd, buf, sizeof buf - 1, 0);
    if (n <= 0) {
        w->stale = true;
        return false;
    }
    buf[n] = 0;
    t->digest = digest(buf);
    t->ran_ns = strtoull(buf, &rest, 10);
    t->queued_ns = strtoull(rest, NULL, 10);
    return true;
}

/* The fields after the name in a stat file: the state, then the parent. The name may contain anything. */
static const char *after_name(char *stat, ssize_t len)
{
    const char *paren;

    if (len <= 0)
        return "";
    stat[len] = 0;
    paren = strrchr(stat, ')');
    return paren && paren[1] == ' ' ? paren + 2 : "";
}

char watch_state(struct watches *ws, struct watch *w, struct watch_thread *t)
{
    char buf[512];
    char state = *after_name(buf, read_thread_file(ws, w, t->tid, "stat", &t->stat_fd, buf, sizeof buf - 1, 0));

    if (!state)
        w->stale = true;
    w->zombie = state == 'Z' && w->num_threads == 1;
    return state;
}

uint64_t watch_waits(const struct watch *w, const struct watch_thread *t)
{
    static const char key[] = "\nvoluntary_ctxt_switches:";
    char path[64], buf[4096];
    const char *at;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "%u/status", t->tid);
    fd = openat(dirfd(w->tasks), path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, buf, sizeof buf - 1);
    close(fd);
    buf[n > 0 ? n : 0] = 0;
    at = strstr(buf, key);
    return at ? strtoull(at + sizeof key - 1, NULL, 10) + 1 : 0;
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

static struct watch **place(struct watches *ws, pid_t pid)
{
    struct watch **at = &ws->bucket[(uint32_t)pid & (BUCKETS - 1)];

    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    return at;
}

static void drop_watch(struct watches *ws, struct watch **at)
{
    struct watch *w = *at;

    *at = w->next;
    forget_tasks(ws, w);
    free(w->threads);
    free(w->newcomers);
    free(w);
}

struct watch *watch_get(struct watches *ws, pid_t pid)
{
    struct watch **at = place(ws, pid), *w = *at;
    char path[64];
    uint32_t n;

    if (!w) {
        w = *at = xcalloc(1, sizeof *w);
        w->pid = pid;
    }
    if (w->used == ws->turn && w->num_threads && !w->stale)
        return w;
    w->used = ws->turn;
    n = count_threads(w);
    if (n && n == w->num_threads && !w->stale)
        return w;
    if (!n) { /* new or dead; the number may belong to another process now */
        forget_tasks(ws, w);
        w->grown_up = false;
        w->checked = w->children_key = 0;
        snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
        w->tasks = opendir(path);
    }
    for (unsigned tries = 0; tries < LIST_TRIES && w->tasks && (!tries || count_threads(w) != w->num_threads); tries++)
        list_threads(ws, w); /* a thread that ends meanwhile may cut the list short */
    if (w->num_threads)
        return w;
    drop_watch(ws, at);
    return NULL;
}

pid_t watch_parent(struct watches *ws, struct watch *w)
{
    const struct watch *up = w->parent ? watch_get(ws, w->parent) : NULL;
    char path[64], buf[512], state;
    int parent = 0, fd;

    if (up && !up->zombie)
        return w->parent;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)w->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && sscanf(after_name(buf, read(fd, buf, sizeof buf - 1)), "%c %d", &state, &parent) != 2)
        parent = 0;
    if (fd >= 0)
        close(fd);
    return w->parent = parent;
}

const char *watch_children(struct watches *ws, struct watch *w, struct watch_thread *t)
{
    size_t used = 0;
    ssize_t n;

    for (;;) { /* a page at a time is all the kernel gives */
        n = read_thread_file(ws, w, t->tid, "children", &t->children_fd, ws->text + used, ws->text_cap - used - 1,
                             (off_t)used);
        if (n <= 0)
            break;
        used += (size_t)n;
        if (used + 1 == ws->text_cap) {
            ws->text_cap *= 2;
            ws->text = xrealloc(ws->text, ws->text_cap);
        }
    }
    ws->text[used] = 0;
    return ws->text;
}

double watch_cpu_s(pid_t pid)
{
    char path[64], buf[512];
    unsigned long user, system;
    double s = -1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return s;
    if (sscanf(after_name(buf, read(fd, buf, sizeof buf - 1)), "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &user, &system) == 2)
        s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    close(fd);
    return s;
}

void watches_turn(struct watches *ws)
{
    if (++ws->turn % TURNS_OLD)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct watch **at = &ws->bucket[i]; *at;)
            if ((*at)->used + TURNS_OLD < ws->turn)
                drop_watch(ws, at);
            else
                at = &(*at)->next;
}

void watches_free(struct watches *ws)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        while (ws->bucket[i])
            drop_watch(ws, &ws->bucket[i]);
    free(ws->text);
    free(ws);
}
