/* SPDX-License-Identifier: BSD-3-Clause */
/* See watch.h. */
#include "fabricd/fabric/watch.h"
#include "fabricd/base/clock.h"
#include "fabricd/fabric/counters.h"
#include "fabricd/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct watched {
    char device[FD_DEV_MAX];
    unsigned port;
    bool there;
    struct counters *counters;
};

struct watch {
    unsigned interval_ms;
    char file[PATH_MAX];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
    int fd;
    unsigned num;
    struct watch_reading reading[FD_RAILS_MAX];
    struct text keep; /* to be written; empty: nothing */

    /* the thread's own */
    struct rails rails;
    unsigned num_watched;
    struct watched watched[FD_RAILS_MAX];
    int told_errno; /* of writing */
};

/* ---- the thread ---- */

static struct watched *find_watched(struct watch *w, const struct fd_rail *r)
{
    for (unsigned i = 0; i < w->num_watched; i++)
        if (w->watched[i].port == r->port && !strcmp(w->watched[i].device, r->device))
            return &w->watched[i];
    return NULL;
}

/* The present rails, and no others. */
static void find_rails(struct watch *w)
{
    unsigned kept = 0;
    rails_list(&w->rails);
    for (unsigned i = 0; i < w->num_watched; i++)
        w->watched[i].there = false;
    for (unsigned i = 0; i < w->rails.n; i++) {
        struct watched *x = w->rails.rail[i].infiniband ? find_watched(w, &w->rails.rail[i]) : NULL;
        if (x)
            x->there = true;
    }
    for (unsigned i = 0; i < w->num_watched; i++)
        if (w->watched[i].there)
            w->watched[kept++] = w->watched[i];
        else
            counters_close(w->watched[i].counters);
    w->num_watched = kept;
    for (unsigned i = 0; i < w->rails.n; i++) {
        const struct fd_rail *r = &w->rails.rail[i];
        if (!r->infiniband || find_watched(w, r) || w->num_watched == FD_RAILS_MAX)
            continue;
        struct watched *x = &w->watched[w->num_watched++];
        *x = (struct watched){.port = r->port, .there = true, .counters = counters_open(r->device, r->port)};
        memcpy(x->device, r->device, sizeof(x->device));
    }
}

static void post_readings(struct watch *w, const struct watch_reading *r, unsigned num)
{
    uint64_t one = 1;
    pthread_mutex_lock(&w->lock);
    memcpy(w->reading, r, num * sizeof(*r));
    w->num = num;
    pthread_mutex_unlock(&w->lock);
    if (write(w->fd, &one, sizeof(one)) < 0)
        abort(); /* the counter cannot overflow */
}

static void read_rails(struct watch *w)
{
    struct watch_reading reading[FD_RAILS_MAX];
    find_rails(w);
    for (unsigned i = 0; i < w->num_watched; i++) {
        struct watch_reading *r = &reading[i];
        *r = (struct watch_reading){.port = w->watched[i].port};
        memcpy(r->device, w->watched[i].device, sizeof(r->device));
        counters_read(w->watched[i].counters, &r->look);
        r->look.now_us = clock_us();
        snprintf(r->far_name, sizeof(r->far_name), "%s", counters_far_name(w->watched[i].counters));
    }
    if (w->num_watched)
        post_readings(w, reading, w->num_watched);
}

/* With the lock held, except while waiting for the disk. */
static void write_file(struct watch *w)
{
    struct text t = w->keep;
    w->keep = (struct text){0};
    pthread_mutex_unlock(&w->lock);
    int rc = text_write_file(w->file, text_str(&t), t.len);
    if (rc && rc != w->told_errno)
        log_event(LOG_STATE_NOT_KEPT, SD_ERR, "%s: %s: what became of rails, and which are drained, is not kept",
                  w->file, strerror(-rc));
    w->told_errno = rc;
    text_free(&t);
    pthread_mutex_lock(&w->lock);
}

static void *watch_main(void *arg)
{
    struct watch *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        pthread_mutex_unlock(&w->lock);
        read_rails(w);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += w->interval_ms / 1000;
        until.tv_nsec += (long)(w->interval_ms % 1000) * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&w->lock);
        int rc = 0;
        while (!w->stopping && rc != ETIMEDOUT) {
            if (w->keep.len)
                write_file(w);
            else
                rc = pthread_cond_timedwait(&w->wake, &w->lock, &until);
        }
    }
    if (w->keep.len)
        write_file(w);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- for the main thread ---- */

struct watch *watch_start(unsigned interval_ms, const char *file)
{
    struct watch *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->interval_ms = interval_ms;
    snprintf(w->file, sizeof(w->file), "%s", file);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = w->fd < 0 ? errno : pthread_create(&w->thread, NULL, watch_main, w);
    if (!rc)
        return w;
    if (w->fd >= 0)
        close(w->fd);
    free(w);
    errno = rc;
    return NULL;
}

void watch_stop(struct watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    for (unsigned i = 0; i < w->num_watched; i++)
        counters_close(w->watched[i].counters);
    close(w->fd);
    text_free(&w->keep);
    free(w);
}

int watch_fd(const struct watch *w)
{
    return w->fd;
}

unsigned watch_take(struct watch *w, struct watch_reading out[FD_RAILS_MAX])
{
    uint64_t count;
    if (read(w->fd, &count, sizeof(count)) < 0)
        return 0;
    pthread_mutex_lock(&w->lock);
    unsigned num = w->num;
    memcpy(out, w->reading, num * sizeof(*out));
    pthread_mutex_unlock(&w->lock);
    return num;
}

void watch_keep(struct watch *w, const char *text, size_t len)
{
    pthread_mutex_lock(&w->lock);
    text_free(&w->keep);
    text_put(&w->keep, text, len);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}
