/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's pool of chunks in the node's shared memory, for the payloads of long packets: the rank writes chunks in a
 * row, the packet in the receiver's ring says which is the first, the receiver gives them back when it has read them.
 *
 * Why not the ring's data area: lines that lie in the other core's own cache are slow to write and to read. Chunks are
 * taken round and round, and the pool is larger than such a cache, so when a chunk's turn comes again its lines have
 * moved on to the cache that the cores share: that is three times as fast. And one pool serves all receivers, where
 * rings would have to be of that size for every pair.
 *
 * Only the owner takes chunks; whoever was told of them gives them back, once. Chunks that are never given back are
 * passed over. An owner that finds none free has the rings.
 */
#ifndef MRMPI_SHM_POOL_H
#define MRMPI_SHM_POOL_H

#include <stddef.h>
#include <stdint.h>

#define MR_POOL_NONE  UINT32_MAX
#define MR_POOL_LOOKS 64 /* chunks looked at in vain, at most */

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

/* How many chunks so many bytes take. */
static inline uint32_t mr_pool_count(const struct mr_pool *p, size_t len)
{
    return (uint32_t)((len + p->shape.chunk_bytes - 1) / p->shape.chunk_bytes);
}

/*
 * The first of n free chunks in a row, of those that were lent longest ago; MR_POOL_NONE: there are none near. Next
 * time others are looked at. They are taken by mr_pool_lend.
 */
static inline uint32_t mr_pool_find(struct mr_pool *p, uint32_t n)
{
    uint32_t at = p->next, run = 0;

    for (uint32_t looks = 0; looks < n + MR_POOL_LOOKS; looks++) {
        if (at == p->shape.num_chunks)
            at = run = 0;
        run = __atomic_load_n(&p->lent[at++], __ATOMIC_ACQUIRE) ? 0 : run + 1;
        if (run == n)
            return at - n;
    }
    p->next = at;
    return MR_POOL_NONE;
}

/* What was found has been written. The reader learns of it by a store that releases what comes before. */
static inline void mr_pool_lend(struct mr_pool *p, uint32_t chunk, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        __atomic_store_n(&p->lent[chunk + i], 1, __ATOMIC_RELAXED);
    p->next = chunk + n;
}

static inline void mr_pool_give_back(struct mr_pool *p, uint32_t chunk, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        __atomic_store_n(&p->lent[chunk + i], 0, __ATOMIC_RELEASE);
}

#endif
