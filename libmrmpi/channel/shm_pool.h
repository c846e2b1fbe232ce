/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's pool of chunks in the node's shared memory, for the payloads of long packets: the rank writes chunks in a
 * row, and the packet in the receiver's ring names the first. The chunks are free again when the receiver has freed the
 * packet's slot, which its ring reports in portions. An alternative, a flag in each chunk written by both ranks, cost
 * two moves of a cache line for every packet: where a line takes .25 us from core to core, a third of the time of 8
 * KiB.
 *
 * The pool is better than the ring's data area: lines in the other core's own cache are slow to write and to read.
 * Chunks are taken round and round, and the pool is larger than such a cache, so before a chunk's next turn its lines
 * have moved on to the cache shared by the cores: three times as fast. And one pool serves all receivers, where rings
 * would need that size for every pair.
 *
 * Chunks that are never given back are skipped. An owner without free chunks uses the rings.
 */
#ifndef MRMPI_SHM_POOL_H
#define MRMPI_SHM_POOL_H

#include "libmrmpi/channel/shm_ring_writer.h"

#define MR_POOL_NONE  UINT32_MAX
#define MR_POOL_POLLS 64 /* chunks polled in vain, at most */

/* The geometry is the same for all pools of a segment. */
struct mr_pool_shape {
    uint32_t num_chunks, chunk_bytes;
};

/* A chunk is in use until the reader of this ring has freed the slot; NULL: free. */
struct mr_pool_user {
    struct mr_ring_writer *to;
    uint64_t slot;
};

/* One side's view. Only the chunks are shared. */
struct mr_pool {
    uint8_t *chunks;
    struct mr_pool_shape shape;
    struct mr_pool_user *users; /* owner: of each chunk; the caller's */
    uint32_t next;              /* owner: where the search begins */
    bool went_round;            /* owner: all have been written before */
};

static inline size_t mr_pool_bytes(struct mr_pool_shape s)
{
    return (size_t)s.num_chunks * s.chunk_bytes;
}

/* users: zeroed, one for each chunk, for the owner; NULL for readers. */
static inline void mr_pool_init(struct mr_pool *p, void *memory, struct mr_pool_shape shape, struct mr_pool_user *users)
{
    *p = (struct mr_pool){.chunks = memory, .shape = shape, .users = users};
}

static inline void *mr_pool_at(const struct mr_pool *p, uint32_t chunk)
{
    return p->chunks + (size_t)chunk * p->shape.chunk_bytes;
}

/* The number of chunks for len bytes. */
static inline uint32_t mr_pool_count(const struct mr_pool *p, size_t len)
{
    return (uint32_t)((len + p->shape.chunk_bytes - 1) / p->shape.chunk_bytes);
}

static inline bool mr_pool_is_used(const struct mr_pool_user *l)
{
    if (!l->to || l->slot < l->to->slots_freed)
        return false;
    mr_ring_poll_freed(l->to);
    return l->slot >= l->to->slots_freed;
}

/*
 * The first of n free chunks in a row, among the chunks assigned longest ago; MR_POOL_NONE: there are none nearby. The
 * next call begins elsewhere. mr_pool_assign takes the chunks.
 */
static inline uint32_t mr_pool_find(struct mr_pool *p, uint32_t n)
{
    uint32_t at = p->next, run = 0;

    for (uint32_t polls = 0; polls < n + MR_POOL_POLLS; polls++) {
        if (at == p->shape.num_chunks) {
            at = run = 0;
            p->went_round = true;
        }
        run = mr_pool_is_used(&p->users[at++]) ? 0 : run + 1;
        if (run == n)
            return at - n;
    }
    p->next = at;
    return MR_POOL_NONE;
}

/* The found chunks have been written, and go with the next packet of this ring. */
static inline void mr_pool_assign(struct mr_pool *p, uint32_t chunk, uint32_t n, struct mr_ring_writer *to)
{
    for (uint32_t i = 0; i < n; i++)
        p->users[chunk + i] = (struct mr_pool_user){to, to->slot};
    p->next = chunk + n;
}

#endif
