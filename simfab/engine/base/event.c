/* SPDX-License-Identifier: BSD-3-Clause */
/* A four-way heap of events: fewer cache misses per operation than a binary one, and simple enough to be sure of. */
#include "simfab/engine/base/event.h"

#include <stdlib.h>

#include "simfab/engine/base/util.h"

void evq_init(struct event_queue *q)
{
    *q = (struct event_queue){0};
}

void evq_fini(struct event_queue *q)
{
    free(q->heap);
    *q = (struct event_queue){0};
}

/* Numbers of events for each source; with all numbers used, time begins to stand still anew. */
#define SOURCE_EVENTS (1ull << 20)

void evq_move(struct event_queue *q)
{
    if (q->scheduled)
        q->next_seq += q->sources * SOURCE_EVENTS;
    q->sources = 0;
    q->scheduled = 0;
}

void evq_stand(struct event_queue *q, uint32_t n)
{
    evq_move(q);
    q->sources = n + 1;
}

static uint64_t take_seq(struct event_queue *q)
{
    if (!q->sources)
        return q->next_seq++;
    if (q->scheduled == SOURCE_EVENTS)
        evq_stand(q, q->sources - 1);
    return q->next_seq + (q->source < q->sources ? q->source : 0) * SOURCE_EVENTS + q->scheduled++;
}

static bool before(const struct event *a, const struct event *b)
{
    return a->t_ps < b->t_ps || (a->t_ps == b->t_ps && a->seq < b->seq);
}

static void push(struct event_queue *q, uint64_t t_ps, event_fn fn, void *obj, uint64_t arg, bool quiet)
{
    struct event e = {t_ps < q->now_ps ? q->now_ps : t_ps, take_seq(q) << 1 | quiet, fn, obj, arg};
    size_t i;

    if (q->used == q->cap) {
        q->cap = q->cap ? 2 * q->cap : 1024;
        q->heap = xrealloc(q->heap, q->cap * sizeof *q->heap);
    }
    for (i = q->used++; i > 0; i = (i - 1) / 4) {
        size_t up = (i - 1) / 4;

        if (!before(&e, &q->heap[up]))
            break;
        q->heap[i] = q->heap[up];
    }
    q->heap[i] = e;
}

void evq_push(struct event_queue *q, uint64_t t_ps, event_fn fn, void *obj, uint64_t arg)
{
    q->loud++;
    push(q, t_ps, fn, obj, arg, false);
}

void evq_push_quiet(struct event_queue *q, uint64_t t_ps, event_fn fn, void *obj, uint64_t arg)
{
    push(q, t_ps, fn, obj, arg, true);
}

static void drop_first(struct event_queue *q)
{
    struct event last = q->heap[--q->used];
    size_t i = 0, child;

    while ((child = 4 * i + 1) < q->used) {
        size_t end = child + 4 < q->used ? child + 4 : q->used, best = child;

        for (size_t c = child + 1; c < end; c++)
            if (before(&q->heap[c], &q->heap[best]))
                best = c;
        if (!before(&q->heap[best], &last))
            break;
        q->heap[i] = q->heap[best];
        i = best;
    }
    if (q->used)
        q->heap[i] = last;
}

/* A timer's event has come to the front. True if the timer really is due at that time; else the event is dropped. */
static bool timer_due(struct event_queue *q, const struct event *e)
{
    struct evtimer *t = e->obj;

    if (t->queued_ps == e->t_ps && t->deadline_ps == e->t_ps)
        return true;
    if (t->queued_ps == e->t_ps)
        t->queued_ps = 0;
    t->entries--;
    drop_first(q);
    if (t->deadline_ps && !t->queued_ps)
        evtimer_set(q, t, t->deadline_ps);
    return false;
}

bool evq_next(struct event_queue *q, uint64_t *t_ps)
{
    while (q->used) {
        struct event e = q->heap[0];

        if (e.fn || timer_due(q, &e)) {
            *t_ps = e.t_ps;
            return true;
        }
    }
    return false;
}

void evq_skip_to(struct event_queue *q, uint64_t t_ps)
{
    uint64_t next;

    if (t_ps > q->now_ps && (!evq_next(q, &next) || next >= t_ps))
        q->now_ps = t_ps;
}

bool evq_run_one(struct event_queue *q)
{
    struct event e;
    uint64_t t;

    if (!evq_next(q, &t))
        return false;
    e = q->heap[0];
    drop_first(q);
    q->now_ps = t;
    q->executed++;
    if (e.fn) {
        q->loud -= !(e.seq & 1);
        e.fn(e.obj, e.arg);
    } else {
        struct evtimer *timer = e.obj;

        timer->entries--;
        evtimer_stop(timer);
        timer->queued_ps = 0;
        timer->fn(timer->obj, 0);
    }
    return true;
}

void evtimer_init(struct evtimer *t, event_fn fn, void *obj)
{
    *t = (struct evtimer){.fn = fn, .obj = obj};
}

void evtimer_set(struct event_queue *q, struct evtimer *t, uint64_t t_ps)
{
    if (t_ps < q->now_ps)
        t_ps = q->now_ps;
    if (!t_ps)
        t_ps = 1; /* 0 means stopped */
    if (!t->deadline_ps && !t->quiet)
        q->loud++;
    t->q = q;
    t->deadline_ps = t_ps;
    if (t->queued_ps && t->queued_ps <= t_ps)
        return; /* its event comes up before: it will be moved then */
    t->queued_ps = t_ps;
    t->entries++;
    push(q, t_ps, NULL, t, 0, true); /* counted as loud when set */
}

void evtimer_set_earlier(struct event_queue *q, struct evtimer *t, uint64_t t_ps)
{
    if (!t->deadline_ps || t_ps < t->deadline_ps)
        evtimer_set(q, t, t_ps);
}
