/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread, its tasks and its results: see manager.h. */
#include "fabricd/apply/manager.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct manager {
    struct conf conf;
    manager_work *work;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
    struct task *task;
    struct sm_verdicts verdicts; /* of its thread */
    struct manager_event *first, **last;
    int fd;
};

/* ---- small things ---- */

void in_force_copy(struct in_force *to, const struct in_force *from)
{
    *to = *from;
    to->text = (struct text){0};
    text_put(&to->text, text_str(&from->text), from->text.len);
}

bool in_force_compile(struct in_force *f, struct diag *d)
{
    return policy_compile_planes(&f->policy, &f->lock, &f->tables, &f->planes, d);
}

bool in_force_same_tables(const struct in_force *a, const struct in_force *b)
{
    return tables_equal(&a->tables, &b->tables) && tables_planes_equal(&a->planes, &b->planes);
}

void in_force_free(struct in_force *f)
{
    text_free(&f->text);
    f->valid = false;
}

void task_free(struct task *t)
{
    text_free(&t->text);
    text_free(&t->lock_text);
    in_force_free(&t->current);
    host_keys_free(&t->jobs);
    free(t);
}

void manager_event_free(struct manager_event *e)
{
    text_free(&e->text);
    text_free(&e->found);
    text_free(&e->planes);
    text_free(&e->unknown);
    in_force_free(&e->next_in_force);
    free(e);
}

static struct manager_event *event_new(const struct task *t, enum manager_event_kind kind)
{
    struct manager_event *e = calloc(1, sizeof(*e));
    if (!e)
        abort();
    e->kind = kind;
    e->task = t->kind;
    e->client = t->client;
    e->join = t->join;
    e->joined = t->joined;
    e->logged = t->logged || t->kind == TASK_APPLY || t->kind == TASK_FOLLOW;
    return e;
}

static void post(struct manager *m, struct manager_event *e)
{
    uint64_t one = 1;
    pthread_mutex_lock(&m->lock);
    *m->last = e;
    m->last = &e->next;
    pthread_mutex_unlock(&m->lock);
    if (write(m->fd, &one, sizeof(one)) < 0)
        abort(); /* the counter cannot overflow */
}

void manager_say(struct manager *m, const struct task *t, const char *fmt, ...)
{
    struct manager_event *e = event_new(t, EVENT_PROGRESS);
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(&e->text, fmt, ap);
    va_end(ap);
    post(m, e);
}

void manager_count(struct manager *m, const struct task *t, enum fd_counted what, unsigned done, unsigned of)
{
    struct manager_event *e = event_new(t, EVENT_COUNT);
    e->what = what;
    e->done = done;
    e->of = of;
    post(m, e);
}

struct sm_verdicts *manager_verdicts(struct manager *m)
{
    return &m->verdicts;
}

bool manager_pause(struct manager *m, unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += (time_t)(ms / 1000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&m->lock);
    while (!m->stopping && pthread_cond_timedwait(&m->wake, &m->lock, &until) != ETIMEDOUT)
        ;
    bool go_on = !m->stopping;
    pthread_mutex_unlock(&m->lock);
    return go_on;
}

/* ---- the thread ---- */

static void *manager_main(void *arg)
{
    struct manager *m = arg;
    for (;;) {
        pthread_mutex_lock(&m->lock);
        while (!m->task && !m->stopping)
            pthread_cond_wait(&m->wake, &m->lock);
        struct task *t = m->task;
        m->task = NULL;
        bool stop = m->stopping;
        pthread_mutex_unlock(&m->lock);
        if (t && !stop) {
            struct manager_event *out = event_new(t, EVENT_OUTCOME);
            m->work(m, &m->conf, t, out);
            post(m, out);
        }
        if (t)
            task_free(t);
        if (stop)
            return NULL;
    }
}

struct manager *manager_start(const struct conf *conf, manager_work *work)
{
    struct manager *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->conf = *conf;
    m->work = work;
    m->last = &m->first;
    verdicts_open(&m->verdicts, conf->state, conf->verify_timeout_s);
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->fd < 0)
        goto free_manager;
    int rc = pthread_create(&m->thread, NULL, manager_main, m);
    if (rc) {
        errno = rc;
        goto close_fd;
    }
    return m;

close_fd:
    close(m->fd);
free_manager:
    free(m);
    return NULL;
}

void manager_stop(struct manager *m)
{
    pthread_mutex_lock(&m->lock);
    m->stopping = true;
    pthread_cond_broadcast(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    for (struct manager_event *e = m->first; e;) {
        struct manager_event *next = e->next;
        manager_event_free(e);
        e = next;
    }
    close(m->fd);
    free(m);
}

int manager_fd(const struct manager *m)
{
    return m->fd;
}

void manager_submit(struct manager *m, struct task *t)
{
    pthread_mutex_lock(&m->lock);
    m->task = t;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
}

struct manager_event *manager_next_event(struct manager *m)
{
    pthread_mutex_lock(&m->lock);
    struct manager_event *e = m->first;
    if (e) {
        m->first = e->next;
        if (!m->first)
            m->last = &m->first;
        e->next = NULL;
    }
    pthread_mutex_unlock(&m->lock);
    return e;
}
