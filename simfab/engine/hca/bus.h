/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way between adapters and memory: a bus that the DMA engines of one or more adapters share, and behind the buses
 * of a host its memory. An adapter has two engines (struct dma), one that reads memory and one that writes it; each
 * takes its requests in the order they came, at its own pace on average. A bus carries one transfer at a time, a
 * packet's bytes as a whole, and goes round the engines that wait for it, as the arbiters of PCI do: no engine, no
 * direction and no adapter gets more than its turn. What has no limit takes no time.
 *
 * The owner of these structures keeps them until the event queue is gone or has run out.
 */
#ifndef SIMFAB_BUS_H
#define SIMFAB_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/event.h"

struct memory {
    uint64_t bps; /* 0: no limit */
    uint64_t busy_ps;
};

/* The transfer began at start_ps (now) and is across at done_ps. */
typedef void (*dma_fn)(void *obj, uint64_t arg, uint64_t start_ps, uint64_t done_ps);

struct dma_request {
    uint32_t bytes;
    dma_fn fn;
    void *obj;
    uint64_t arg;
};

struct dma {
    struct bus *bus;
    struct dma *next;  /* of the bus, in the order of its turns */
    uint64_t bps;      /* its own pace; 0: as fast as the bus */
    uint64_t paced_ps; /* what it has moved, at its pace: a turn that came late is caught up with, one at most */
    uint64_t free_ps;  /* when it may begin the next transfer */
    struct dma_request *ring;
    uint32_t cap, first, used;
};

struct bus {
    struct event_queue *q;
    struct memory *memory; /* NULL: no limit */
    uint64_t bps;          /* 0: no limit */
    uint64_t slow_bps;     /* by a fault: no faster than this; 0: no fault */
    uint32_t slow_milli;   /* and what the DMA engines do takes so many thousandths of its time */
    uint32_t overhead_bytes;
    uint64_t busy_ps;
    struct dma *turn; /* who is asked first; the engines form a circle */
    uint32_t waiting; /* requests in all rings */
    bool serving;
    struct evtimer timer;
};

void bus_init(struct bus *b, struct event_queue *q, uint64_t bps, uint32_t overhead_bytes, struct memory *memory);

/* A fault slows the bus and its engines by factor_milli / 1000 (1000: not any more); without a limit of its own it
   counts as a bus of natural_bps. */
void bus_slow(struct bus *b, uint32_t factor_milli, uint64_t natural_bps);

/* One more engine on the bus. */
void dma_init(struct dma *d, struct bus *b, uint64_t bps);
void dma_fini(struct dma *d);

/*
 * Move bytes; fn is called when the transfer begins, at once if nothing stands before it. A request for no bytes only
 * waits for those before it.
 */
void dma_request(struct dma *d, uint32_t bytes, dma_fn fn, void *obj, uint64_t arg);

#endif
