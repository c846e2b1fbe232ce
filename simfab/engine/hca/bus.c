/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buses. A transfer's end is known at its beginning, so an uncontended transfer needs no event of its own; the timer
 * runs only while requests wait.
 */
#include "simfab/engine/hca/bus.h"

#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/util.h"

static void serve_bus(void *obj, uint64_t arg);

void bus_init(struct bus *b, struct event_queue *q, uint64_t bps, uint32_t overhead_bytes, struct memory *memory)
{
    *b = (struct bus){.q = q, .memory = memory, .bps = bps, .overhead_bytes = overhead_bytes};
    evtimer_init(&b->timer, serve_bus, b);
    b->timer.quiet = true; /* waiting packets are counted */
}

void bus_slow(struct bus *b, uint32_t factor_milli, uint64_t natural_bps)
{
    b->slow_milli = factor_milli;
    b->slow_bps = factor_milli == 1000 ? 0 : (b->bps ? b->bps : natural_bps) / factor_milli * 1000;
}

void dma_init(struct dma *d, struct bus *b, uint64_t bps)
{
    *d = (struct dma){.bus = b, .bps = bps, .next = d};
    if (b->turn) {
        d->next = b->turn->next;
        b->turn->next = d;
    }
    b->turn = d;
}

void dma_fini(struct dma *d)
{
    free(d->ring);
    d->ring = NULL;
    d->cap = d->used = 0;
}

/* When a transfer that begins now is across; the bus and the memory are taken until then. */
static uint64_t cross_bus(struct bus *b, struct dma *d, uint32_t bytes)
{
    uint64_t now = b->q->now_ps, bps = b->slow_bps ? b->slow_bps : b->bps;
    uint64_t pace = transfer_ps(bytes, b->slow_bps ? d->bps / b->slow_milli * 1000 : d->bps), done = now + pace;

    if (bps)
        done = now + transfer_ps(bytes + b->overhead_bytes, bps);
    if (b->memory && b->memory->bps) {
        b->memory->busy_ps = max_u64(now, b->memory->busy_ps) + transfer_ps(bytes, b->memory->bps);
        done = max_u64(done, b->memory->busy_ps);
    }
    if (bps)
        b->busy_ps = done;
    d->paced_ps = max_u64(d->paced_ps, now - min_u64(now, pace)) + pace;
    d->free_ps = max_u64(d->paced_ps, done);
    return done;
}

static void begin_dma(struct dma *d, const struct dma_request *r)
{
    uint64_t now = d->bus->q->now_ps;

    r->fn(r->obj, r->arg, now, r->bytes ? cross_bus(d->bus, d, r->bytes) : now);
}

static bool may_begin(const struct dma *d, uint32_t bytes)
{
    uint64_t now = d->bus->q->now_ps;

    return !bytes || (d->bus->busy_ps <= now && d->free_ps <= now);
}

static void enqueue_dma(struct dma *d, const struct dma_request *r)
{
    if (d->used == d->cap) {
        uint32_t cap = d->cap ? 2 * d->cap : 16;
        struct dma_request *ring = xcalloc(cap, sizeof *ring);

        for (uint32_t i = 0; i < d->used; i++)
            ring[i] = d->ring[(d->first + i) & (d->cap - 1)];
        free(d->ring);
        d->ring = ring;
        d->cap = cap;
        d->first = 0;
    }
    d->ring[(d->first + d->used++) & (d->cap - 1)] = *r;
    d->bus->waiting++;
}

/* Begin the oldest request of an engine if its time has come. */
static bool begin_oldest_dma(struct dma *d)
{
    struct dma_request r;

    if (!d->used || !may_begin(d, d->ring[d->first].bytes))
        return false;
    r = d->ring[d->first];
    d->first = (d->first + 1) & (d->cap - 1);
    d->used--;
    d->bus->waiting--;
    begin_dma(d, &r);
    return true;
}

/* Sets the timer to the first time at which a waiting engine may be asked again. */
static void set_timer(struct bus *b)
{
    uint64_t t = UINT64_MAX;
    struct dma *d = b->turn;

    if (!b->waiting)
        return;
    do {
        if (d->used)
            t = min_u64(t, d->free_ps);
        d = d->next;
    } while (d != b->turn);
    evtimer_set(b->q, &b->timer, max_u64(max_u64(t, b->busy_ps), b->q->now_ps));
}

/* Goes round until no engine can begin. A transfer that begins may request more, which is met on the way round. */
static void serve_bus(void *obj, uint64_t arg)
{
    struct bus *b = obj;
    struct dma *last = b->turn;

    b->serving = true;
    while (b->waiting) {
        struct dma *d = b->turn;

        b->turn = d->next;
        if (begin_oldest_dma(d))
            last = b->turn;
        else if (b->turn == last)
            break;
    }
    b->serving = false;
    set_timer(b);
}

void dma_request(struct dma *d, uint32_t bytes, dma_fn fn, void *obj, uint64_t arg)
{
    struct dma_request r = {bytes, fn, obj, arg};
    struct bus *b = d->bus;

    if (!d->used && (!bytes || (!b->waiting && may_begin(d, bytes)))) {
        if (bytes)
            b->turn = d->next;
        begin_dma(d, &r);
        return;
    }
    enqueue_dma(d, &r);
    if (!b->serving)
        serve_bus(b, 0);
}
