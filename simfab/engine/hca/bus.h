/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path between adapters and memory: a bus shared by the DMA engines of one or more adapters, and behind the buses
 * of a host its memory. An adapter has two engines (struct dma), for reading and for writing memory. Each engine takes
 * its requests in the order of arrival, at its own average pace. A bus carries one transfer at a time, a packet's bytes
 * as a whole, and serves the waiting engines in turn, as PCI arbiters do: no engine, direction or adapter gets more
 * than its turn. Without a rate limit, a transfer takes no time.
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
    uint64_t paced_ps; /* end of its transfers at its pace: a late turn is caught up with, one turn at most */
    uint64_t free_ps;  /* earliest start of the next transfer */
    struct dma_request *ring;
    uint32_t cap, first, used;
};

struct bus {
    struct event_queue *q;
    struct memory *memory; /* NULL: no limit */
    uint64_t bps;          /* 0: no limit */
    uint64_t slow_bps;     /* by a fault: no faster than this; 0: no fault */
    uint32_t slow_milli;   /* duration of DMA work, in thousandths of the normal time */
    uint32_t overhead_bytes;
    uint64_t busy_ps;
    struct dma *turn; /* next engine to ask; the engines form a circle */
    uint32_t waiting; /* requests in all rings */
    bool serving;
    struct evtimer timer;
};

void bus_init(struct bus *b, struct event_queue *q, uint64_t bps, uint32_t overhead_bytes, struct memory *memory);

/* A fault slows the bus and its engines by factor_milli / 1000 (1000: not any more); without a limit of its own it
   counts as a bus of natural_bps. */
void bus_slow(struct bus *b, uint32_t factor_milli, uint64_t natural_bps);

/* Adds an engine to the bus. */
void dma_init(struct dma *d, struct bus *b, uint64_t bps);
void dma_fini(struct dma *d);

/*
 * Moves bytes; fn is called when the transfer begins, at once if no transfer is before it. A request for no bytes only
 * waits for earlier requests.
 */
void dma_request(struct dma *d, uint32_t bytes, dma_fn fn, void *obj, uint64_t arg);

#endif
