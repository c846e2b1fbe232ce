/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching: hashed queues of entries. The contract is in match.h. */
#include "libmrmpi/p2p/match/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/core/core.h"

struct mr_match_queue {
    struct mr_match_queue *next; /* in the bucket, or among the spare ones */
    uint32_t ctx;
    int32_t src, tag;
    unsigned class;
    struct mr_match_entry *first, *last;
};

#define SLAB_QUEUES 126
struct mr_match_slab {
    struct mr_match_slab *next;
    struct mr_match_queue queues[SLAB_QUEUES];
};

#define FIRST_BUCKETS 256

static uint32_t hash_key(uint32_t ctx, int32_t src, int32_t tag)
{
    uint64_t h = ((uint64_t)ctx << 32 | (uint32_t)src) * 0x9e3779b97f4a7c15u;

    h = (h ^ (uint32_t)tag) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

static unsigned wildcard_class(int src, int tag)
{
    return (src == MR_ANY_SOURCE) | (tag == MR_ANY_TAG) << 1;
}

int mr_match_init(struct mr_match_table *t)
{
    memset(t, 0, sizeof(*t));
    t->buckets = calloc(FIRST_BUCKETS, sizeof(*t->buckets));
    t->mask = FIRST_BUCKETS - 1;
    return t->buckets ? 0 : -ENOMEM;
}

void mr_match_finalize(struct mr_match_table *t)
{
    while (t->slabs) {
        struct mr_match_slab *slab = t->slabs;

        t->slabs = slab->next;
        free(slab);
    }
    free(t->buckets);
    memset(t, 0, sizeof(*t));
}

static inline bool has_key(const struct mr_match_queue *q, uint32_t ctx, int src, int tag)
{
    return q->tag == tag && q->src == src && q->ctx == ctx;
}

static __attribute__((noinline)) struct mr_match_queue *search(const struct mr_match_table *t, uint32_t ctx, int src,
                                                               int tag)
{
    struct mr_match_queue *q = t->buckets[hash_key(ctx, src, tag) & t->mask];

    while (q && !has_key(q, ctx, src, tag))
        q = q->next;
    return q;
}

/* Messages of one kind often come one after the other: the queue of the last insertion is checked first. */
static inline bool is_last(const struct mr_match_table *t, uint32_t ctx, int src, int tag)
{
    return likely(t->last && has_key(t->last, ctx, src, tag));
}

static inline struct mr_match_queue *find_queue(const struct mr_match_table *t, uint32_t ctx, int src, int tag)
{
    return is_last(t, ctx, src, tag) ? t->last : search(t, ctx, src, tag);
}

/* Twice the buckets; when there is no memory for them the chains just get longer. */
static void grow_buckets(struct mr_match_table *t)
{
    uint32_t mask = t->mask * 2 + 1;
    struct mr_match_queue **buckets = calloc((size_t)mask + 1, sizeof(*buckets));

    if (!buckets)
        return;
    for (uint32_t b = 0; b <= t->mask; b++) {
        struct mr_match_queue *q = t->buckets[b], *next;

        for (; q; q = next) {
            struct mr_match_queue **to = &buckets[hash_key(q->ctx, q->src, q->tag) & mask];

            next = q->next;
            q->next = *to;
            *to = q;
        }
    }
    free(t->buckets);
    t->buckets = buckets;
    t->mask = mask;
}

static struct mr_match_queue *new_queue(struct mr_match_table *t)
{
    struct mr_match_queue *q = t->spare;

    if (!q) {
        struct mr_match_slab *slab = malloc(sizeof(*slab));

        if (!slab)
            return NULL;
        slab->next = t->slabs;
        t->slabs = slab;
        for (int i = 0; i < SLAB_QUEUES; i++) {
            slab->queues[i].next = t->spare;
            t->spare = &slab->queues[i];
        }
        q = t->spare;
    }
    t->spare = q->next;
    return q;
}

static inline void count_class(struct mr_match_table *t, unsigned class, int change)
{
    t->by_class[class] += (uint32_t)change;
    if (class)
        t->wild += (uint32_t)change;
}

static __attribute__((noinline)) struct mr_match_queue *add_queue(struct mr_match_table *t, uint32_t ctx, int src,
                                                                  int tag)
{
    struct mr_match_queue *q = new_queue(t), **bucket;

    if (!q)
        return NULL;
    if (t->num_queues > t->mask)
        grow_buckets(t);
    bucket = &t->buckets[hash_key(ctx, src, tag) & t->mask];
    *q =
        (struct mr_match_queue){.next = *bucket, .ctx = ctx, .src = src, .tag = tag, .class = wildcard_class(src, tag)};
    *bucket = q;
    t->num_queues++;
    return q;
}

static inline void queue_append(struct mr_match_table *t, struct mr_match_queue *q, struct mr_match_entry *e)
{
    if (t->empty == q)
        t->empty = NULL;
    e->queue = q;
    e->stamp = t->stamp++;
    e->next = NULL;
    e->prev = q->last;
    if (q->last)
        q->last->next = e;
    else
        q->first = e;
    q->last = e;
    count_class(t, q->class, 1);
}

static __attribute__((noinline)) int insert_elsewhere(struct mr_match_table *t, struct mr_match_entry *e, uint32_t ctx,
                                                      int src, int tag)
{
    struct mr_match_queue *q = search(t, ctx, src, tag);

    if (!q && !(q = add_queue(t, ctx, src, tag)))
        return -ENOMEM;
    t->last = q;
    queue_append(t, q, e);
    return 0;
}

int mr_match_insert(struct mr_match_table *t, struct mr_match_entry *e, uint32_t ctx, int src, int tag)
{
    if (!is_last(t, ctx, src, tag))
        return insert_elsewhere(t, e, ctx, src, tag);
    queue_append(t, t->last, e);
    return 0;
}

static __attribute__((noinline)) void drop_empty(struct mr_match_table *t)
{
    struct mr_match_queue *q = t->empty, **at;

    t->empty = NULL;
    if (t->last == q)
        t->last = NULL;
    at = &t->buckets[hash_key(q->ctx, q->src, q->tag) & t->mask];
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    q->next = t->spare;
    t->spare = q;
    t->num_queues--;
}

static inline void queue_shrunk(struct mr_match_table *t, struct mr_match_queue *q)
{
    count_class(t, q->class, -1);
    if (!q->first) {
        if (unlikely(t->empty != NULL))
            drop_empty(t);
        t->empty = q;
    }
}

void mr_match_remove(struct mr_match_table *t, struct mr_match_entry *e)
{
    struct mr_match_queue *q = e->queue;

    if (!q)
        return;
    if (e->prev)
        e->prev->next = e->next;
    else
        q->first = e->next;
    if (e->next)
        e->next->prev = e->prev;
    else
        q->last = e->prev;
    e->queue = NULL;
    queue_shrunk(t, q);
}

struct mr_match_entry *mr_match_find(const struct mr_match_table *t, uint32_t ctx, int src, int tag)
{
    const struct mr_match_queue *q;

    if (is_last(t, ctx, src, tag))
        return t->last->first;
    q = mr_match_empty(t) ? NULL : search(t, ctx, src, tag);
    return q ? q->first : NULL;
}

static __attribute__((noinline)) struct mr_match_entry *oldest_taker(const struct mr_match_table *t, uint32_t ctx,
                                                                     int src, int tag)
{
    struct mr_match_entry *best = NULL;

    for (unsigned c = 0; c < 4; c++) {
        struct mr_match_entry *e;

        if (!t->by_class[c])
            continue;
        e = mr_match_find(t, ctx, c & 1 ? MR_ANY_SOURCE : src, c & 2 ? MR_ANY_TAG : tag);
        if (e && (!best || e->stamp < best->stamp))
            best = e;
    }
    return best;
}

static __attribute__((noinline)) struct mr_match_entry *take_elsewhere(struct mr_match_table *t, uint32_t ctx, int src,
                                                                       int tag)
{
    struct mr_match_entry *e = t->wild ? oldest_taker(t, ctx, src, tag) : mr_match_find(t, ctx, src, tag);

    if (e)
        mr_match_remove(t, e);
    return e;
}

struct mr_match_entry *mr_match_take(struct mr_match_table *t, uint32_t ctx, int src, int tag)
{
    struct mr_match_queue *q = t->last;
    struct mr_match_entry *e;

    if (unlikely(t->wild != 0) || !is_last(t, ctx, src, tag))
        return take_elsewhere(t, ctx, src, tag);
    e = q->first;
    if (!e)
        return NULL;
    q->first = e->next;
    if (e->next)
        e->next->prev = NULL;
    else
        q->last = NULL;
    e->queue = NULL;
    queue_shrunk(t, q);
    return e;
}

int mr_match_insert_quad(struct mr_match_table *t, struct mr_match_quad *q, uint32_t ctx, int src, int tag, void *owner)
{
    for (int c = 0; c < 4; c++) {
        q->e[c].owner = owner;
        if (mr_match_insert(t, &q->e[c], ctx, c & 1 ? MR_ANY_SOURCE : src, c & 2 ? MR_ANY_TAG : tag)) {
            while (c--)
                mr_match_remove(t, &q->e[c]);
            return -ENOMEM;
        }
    }
    return 0;
}

void mr_match_remove_quad(struct mr_match_table *t, struct mr_match_quad *q)
{
    for (int c = 0; c < 4; c++)
        mr_match_remove(t, &q->e[c]);
}

/* The queue is gone when f has removed all of it. */
static void each_in(struct mr_match_queue *q, void (*f)(struct mr_match_entry *e, void *arg), void *arg)
{
    for (struct mr_match_entry *e = q->first, *next; e; e = next) {
        next = e->next;
        f(e, arg);
    }
}

void mr_match_each_at(struct mr_match_table *t, uint32_t ctx, int src, int tag,
                      void (*f)(struct mr_match_entry *e, void *arg), void *arg)
{
    struct mr_match_queue *q = mr_match_empty(t) ? NULL : find_queue(t, ctx, src, tag);

    if (q)
        each_in(q, f, arg);
}

void mr_match_each(struct mr_match_table *t, void (*f)(struct mr_match_entry *e, void *arg), void *arg)
{
    if (t->empty)
        drop_empty(t); /* otherwise it might be freed when f removes an entry, and be the next one here */
    for (uint32_t b = 0; t->buckets && b <= t->mask; b++)
        for (struct mr_match_queue *q = t->buckets[b], *next; q; q = next) {
            next = q->next;
            each_in(q, f, arg);
        }
}
