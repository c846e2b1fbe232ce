/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread and its two queues: see helper.h. */
#include "fabricd/jobs/helper.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define STOP_S 2 /* wait at the end */

struct work {
    struct work *next;
    void (*run)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

struct queue {
    struct work *first, **last;
};

struct helper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping, ended;
    struct queue todo, did;
    int fd; /* readable: something has been done */
    sd_event_source *source;
};

static void push(struct queue *q, struct work *w)
{
    w->next = NULL;
    *q->last = w;
    q->last = &w->next;
}

static struct work *pop(struct queue *q)
{
    struct work *w = q->first;
    if (w && !(q->first = w->next))
        q->last = &q->first;
    return w;
}

static void *helper_main(void *arg)
{
    struct helper *h = arg;
    const uint64_t one = 1;
    pthread_mutex_lock(&h->lock);
    while (!h->stopping) {
        struct work *w = pop(&h->todo);
        if (!w) {
            pthread_cond_wait(&h->wake, &h->lock);
            continue;
        }
        pthread_mutex_unlock(&h->lock);
        w->run(w->arg);
        pthread_mutex_lock(&h->lock);
        push(&h->did, w);
        if (write(h->fd, &one, sizeof(one)) < 0)
            abort(); /* the counter cannot overflow */
    }
    h->ended = true;
    pthread_cond_broadcast(&h->wake);
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static struct work *next_done(struct helper *h)
{
    pthread_mutex_lock(&h->lock);
    struct work *w = pop(&h->did);
    pthread_mutex_unlock(&h->lock);
    return w;
}

static int on_work_done(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct helper *h = arg;
    uint64_t count;
    if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        return -errno;
    for (struct work *w; (w = next_done(h));) {
        w->done(w->arg);
        free(w);
    }
    return 0;
}

struct helper *helper_start(sd_event *event)
{
    struct helper *h = calloc(1, sizeof(*h));
    int rc;
    if (!h)
        return NULL;
    h->todo.last = &h->todo.first;
    h->did.last = &h->did.first;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&h->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = h->fd < 0 ? -errno : sd_event_add_io(event, &h->source, h->fd, EPOLLIN, on_work_done, h);
    if (rc >= 0)
        rc = -pthread_create(&h->thread, NULL, helper_main, h);
    if (rc >= 0)
        return h;
    sd_event_source_unref(h->source);
    if (h->fd >= 0)
        close(h->fd);
    free(h);
    errno = -rc;
    return NULL;
}

bool helper_stop(struct helper *h, void (*drop)(void *arg))
{
    struct timespec until;
    if (!h)
        return true;
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    pthread_cond_broadcast(&h->wake);
    h->source = sd_event_source_unref(h->source);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_S;
    while (!h->ended && pthread_cond_timedwait(&h->wake, &h->lock, &until) != ETIMEDOUT)
        ;
    bool ended = h->ended;
    pthread_mutex_unlock(&h->lock);
    if (!ended)
        return false;
    pthread_join(h->thread, NULL);
    for (struct work *w; (w = pop(&h->todo)) || (w = pop(&h->did)); free(w))
        if (drop)
            drop(w->arg);
    close(h->fd);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->wake);
    free(h);
    return true;
}

bool helper_do(struct helper *h, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
    struct work *w = malloc(sizeof(*w));
    if (!w)
        return false;
    *w = (struct work){.run = run, .done = done, .arg = arg};
    pthread_mutex_lock(&h->lock);
    push(&h->todo, w);
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
    return true;
}
