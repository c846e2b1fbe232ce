/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event queue. Events run in the order of (time, order of scheduling), so two runs with the same input are the same
 * to the last picosecond. An event calls fn(obj, arg); obj must live until then. A timer is an event that can be moved
 * or stopped at no cost. A timer belongs to its owner and may have several entries in the queue; its memory may be
 * reused only for another timer while evtimer_queued() is true.
 *
 * While time stands still, processes schedule events in an order that depends on the machine. Such events of one time
 * run in the order of their sources (processes), and among events of one source in the order of scheduling: before
 * events scheduled since time moved again, after events scheduled before time stood still.
 *
 * Events are loud or quiet. A loud event is a reason for time to move. A quiet event happens when time gets there
 * anyway: steps of packets on their way, counted by the waiting side itself. q.loud counts the waiting loud events.
 */
#ifndef SIMFAB_EVENT_H
#define SIMFAB_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*event_fn)(void *obj, uint64_t arg);

struct event {
    uint64_t t_ps, seq; /* the lowest bit of seq: quiet */
    event_fn fn;        /* NULL: obj is a struct evtimer */
    void *obj;
    uint64_t arg;
};

struct event_queue {
    struct event *heap;
    size_t used, cap;
    uint64_t next_seq;
    uint32_t sources;   /* while time stands still: the number of sources, with source 0; else 0 */
    uint32_t source;    /* the present source; 0: the engine itself */
    uint64_t scheduled; /* events scheduled since time has stood still */
    uint64_t now_ps;
    uint64_t executed;
    uint64_t loud; /* loud events and set loud timers */
};

struct evtimer {
    uint64_t deadline_ps; /* 0: stopped */
    uint64_t queued_ps;   /* when its event in the queue comes up; 0: none */
    event_fn fn;
    void *obj;
    uint32_t entries;      /* entries in the queue that point here */
    bool quiet;            /* may be set after evtimer_init */
    struct event_queue *q; /* the queue of the last setting */
};

void evq_init(struct event_queue *q);
void evq_fini(struct event_queue *q);

/* Schedule fn(obj, arg) at t (not before now). */
void evq_push(struct event_queue *q, uint64_t t_ps, event_fn fn, void *obj, uint64_t arg);
void evq_push_quiet(struct event_queue *q, uint64_t t_ps, event_fn fn, void *obj, uint64_t arg);

/* Time stands still from now on, with sources 1 to n; a second call begins again, with another number. */
void evq_stand(struct event_queue *q, uint32_t n);
void evq_move(struct event_queue *q); /* Time moves from now on. */
/* The events scheduled from now on are of this source. */
static inline void evq_source(struct event_queue *q, uint32_t source)
{
    q->source = source;
}

/* The time of the next event that will really do something; false if there is none. Never moves time. */
bool evq_next(struct event_queue *q, uint64_t *t_ps);

/* Move time to t, unless something is to happen before or time is there already. */
void evq_skip_to(struct event_queue *q, uint64_t t_ps);

/* Move time to the next event and run it; false if there is none. */
bool evq_run_one(struct event_queue *q);

void evtimer_init(struct evtimer *t, event_fn fn, void *obj);
void evtimer_set(struct event_queue *q, struct evtimer *t, uint64_t t_ps);
/* Like evtimer_set, but only if the timer is stopped or set to a later time. */
void evtimer_set_earlier(struct event_queue *q, struct evtimer *t, uint64_t t_ps);
static inline void evtimer_stop(struct evtimer *t)
{
    if (t->deadline_ps && !t->quiet)
        t->q->loud--;
    t->deadline_ps = 0;
}
static inline bool evtimer_is_set(const struct evtimer *t)
{
    return t->deadline_ps != 0;
}
static inline bool evtimer_queued(const struct evtimer *t)
{
    return t->entries != 0;
}

#endif
