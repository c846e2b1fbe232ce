/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's pool of chunks in the node's shared memory, for the payloads of long packets: the rank writes a chunk, the
 * packet in the receiver's ring says which, the receiver gives the chunk back when it has read it.
 *
 * Why not the ring's data area: lines that lie in the other core's own cache are slow to write and to read. Chunks are
 * taken round and round, and the pool is larger than such a cache, so when a chunk's turn comes again its lines have
 * moved on to the cache that the cores share: that is three times as fast. And one pool serves all receivers, where
 * rings would have to be of that size for every pair.
 *
 * Only the owner takes chunks; whoever was told of one gives it back, once. A chunk that is never given back is passed
 * over. An owner that finds none free has the rings.
 */
#ifndef MRMPI_SHM_POOL_H
#define MRMPI_SHM_POOL_H

#include <stddef.h>
#include <stdint.h>

#define MR_POOL_NONE UINT32_MAX

/* The geometry is the same for all pools of a segment. */
struct mr_pool_shape {
    uint32_t num_chunks, chunk_bytes;
};

/* One side's view. What is shared: for each chunk whether it is lent (a word; together whole pages), then the chunks.
 */
struct mr_pool {
    uint32_t *lent;
    uint8_t *chunks;
    struct mr_pool_shape shape;
    uint32_t next; /* owner: where to look first */
};

static inline size_t mr_pool_words_bytes(struct mr_pool_shape s)
{
    return ((size_t)s.num_chunks * sizeof(uint32_t) + 4095) & ~(size_t)4095;
}

static inline size_t mr_pool_bytes(struct mr_pool_shape s)
{
    return mr_pool_words_bytes(s) + (size_t)s.num_chunks * s.chunk_bytes;
}

static inline void mr_pool_init(struct mr_pool *p, void *memory, struct mr_pool_shape shape)
{
    *p = (struct mr_pool){.lent = memory, .chunks = (uint8_t *)memory + mr_pool_words_bytes(shape), .shape = shape};
}

static inline void *mr_pool_at(const struct mr_pool *p, uint32_t chunk)
{
    return p->chunks + (size_t)chunk * p->shape.chunk_bytes;
}

static inline uint32_t mr_pool_after(const struct mr_pool *p, uint32_t chunk)
{
    return chunk + 1 == p->shape.num_chunks ? 0 : chunk + 1;
}

/* The chunk that was lent longest ago and is free again; MR_POOL_NONE: all are lent. It is taken by mr_pool_lend. */
static inline uint32_t mr_pool_find(struct mr_pool *p)
{
    for (uint32_t i = 0; i < p->shape.num_chunks; i++, p->next = mr_pool_after(p, p->next))
        if (!__atomic_load_n(&p->lent[p->next], __ATOMIC_ACQUIRE))
            return p->next;
    return MR_POOL_NONE;
}

/* The chunk that was found has been written. The reader learns of it by a store that releases what comes before. */
static inline void mr_pool_lend(struct mr_pool *p, uint32_t chunk)
{
    __atomic_store_n(&p->lent[chunk], 1, __ATOMIC_RELAXED);
    p->next = mr_pool_after(p, chunk);
}

static inline void mr_pool_give_back(struct mr_pool *p, uint32_t chunk)
{
    __atomic_store_n(&p->lent[chunk], 0, __ATOMIC_RELEASE);
}

#endif
