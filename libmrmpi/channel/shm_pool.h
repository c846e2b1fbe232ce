/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's pool of chunks in the node's shared memory, for the payloads of long packets, and for the long pieces of
 * collectives (coll/node): the rank writes chunks in a row, and the packet in the receiver's ring, or the piece's line,
 * names the first. The chunks are free again when their readers have read so far: the receiver has freed the packet's
 * slot, which its ring reports in portions. An alternative, a flag in each chunk written by both ranks, cost two moves
 * of a cache line for every packet: where a line takes .25 us from core to core, a third of the time of 8 KiB.
 *
 * The pool is better than the ring's data area: lines in the other core's own cache are slow to write and to read.
 * Chunks are taken round and round, and the whole pool is larger than such a cache, so before a chunk's next turn its
 * lines have moved on to the cache shared by the cores: three times as fast. And one pool serves all receivers, where
 * rings would need that size for every pair.
 *
 * Chunks that are never given back are skipped. An owner without free chunks uses other memory: the rings, or the
 * slots of the node area.
 *
 * A page costs 2 us at its first use, and 15 us on some virtual machines: more than copying its 4 KiB many times. A few
 * messages, one at a time, need few pages. So the pool grows, MR_POOL_GROWS chunks at a time: at once if no chunk is
 * free, otherwise when the copies since its last growth have taken as long as the new pages will take. This is the rule
 * of those who rent skis until the rents have reached the price: nobody pays more than twice the least. Each reader
 * maps the same pages, at its first use: as many at a time, since a page fault for each page takes up to twenty times
 * as long.
 */
#ifndef MRMPI_SHM_POOL_H
#define MRMPI_SHM_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/reader.h"

#define MR_POOL_NONE  UINT32_MAX
#define MR_POOL_POLLS 64 /* chunks polled in vain, at most */
#define MR_POOL_GROWS 16 /* chunks by which a pool grows, and whose pages are made at a time */

/* The geometry is the same for all pools of a segment. */
struct mr_pool_shape {
    uint32_t num_chunks, chunk_bytes;
};

/* A chunk is in use until its readers have read the thing of this number; NULL: free. */
struct mr_pool_user {
    struct mr_reader *by;
    uint64_t number;
};

/* One side's view. Only the chunks are shared. */
struct mr_pool {
    uint8_t *chunks;
    struct mr_pool_shape shape;
    struct mr_pool_user *users; /* owner: of each chunk; the caller's */
    uint32_t next;              /* owner: where the search begins */
    uint32_t limit;             /* owner: this chunk and those behind it are not used yet */
    uint32_t fresh;             /* this chunk and those behind it have never been written; reader: or read */
    uint32_t unpaid;            /* owner: chunks to be written until the pool grows */
    uint32_t price;             /* owner: chunks copied in the time that the pages of MR_POOL_GROWS take */
};

static inline size_t mr_pool_bytes(struct mr_pool_shape s)
{
    return (size_t)s.num_chunks * s.chunk_bytes;
}

/* users: zeroed, one for each chunk, for the owner; NULL for readers. */
static inline void mr_pool_init(struct mr_pool *p, void *memory, struct mr_pool_shape shape, struct mr_pool_user *users)
{
    *p = (struct mr_pool){.chunks = memory, .shape = shape, .users = users};
    p->limit = shape.num_chunks < MR_POOL_GROWS ? shape.num_chunks : MR_POOL_GROWS;
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

static inline bool mr_pool_is_used(const struct mr_pool_user *u)
{
    if (!u->by || u->number < u->by->freed)
        return false;
    u->by->poll(u->by);
    return u->number >= u->by->freed;
}

/* As mr_pool_find_below, in the pool as it is. */
static inline uint32_t mr_pool_search(const struct mr_pool *p, uint32_t n, uint32_t most, uint32_t *next)
{
    uint32_t at = *next, run = 0;

    for (uint32_t polls = 0; polls < n + MR_POOL_POLLS; polls++) {
        if (at >= most)
            at = run = 0;
        run = mr_pool_is_used(&p->users[at++]) ? 0 : run + 1;
        if (run == n)
            return at - n;
    }
    *next = at;
    return MR_POOL_NONE;
}

/* The pool grows by n chunks at least, as far as there are chunks. */
static inline void mr_pool_grow(struct mr_pool *p, uint32_t n)
{
    uint32_t more = n > MR_POOL_GROWS ? n : MR_POOL_GROWS, left = p->shape.num_chunks - p->limit;

    p->limit += more < left ? more : left;
    p->unpaid = p->price;
}

/* mr_pool_find_below, in a pool that has to grow. */
static __attribute__((noinline, unused)) uint32_t mr_pool_find_more(struct mr_pool *p, uint32_t n, uint32_t most,
                                                                    uint32_t *next)
{
    *next = p->limit;
    mr_pool_grow(p, n);
    return mr_pool_search(p, n, most < p->limit ? most : p->limit, next);
}

/*
 * The first of n free chunks in a row below `most`, from *next on, round and round; MR_POOL_NONE: there are none
 * nearby, and *next is elsewhere.
 */
static inline uint32_t mr_pool_find_below(struct mr_pool *p, uint32_t n, uint32_t most, uint32_t *next)
{
    uint32_t chunk = mr_pool_search(p, n, most < p->limit ? most : p->limit, next);

    return likely(chunk != MR_POOL_NONE) || p->limit >= most ? chunk : mr_pool_find_more(p, n, most, next);
}

/* Of all chunks, among those assigned longest ago. mr_pool_assign takes the chunks. */
static inline uint32_t mr_pool_find(struct mr_pool *p, uint32_t n)
{
    return mr_pool_find_below(p, n, p->shape.num_chunks, &p->next);
}

/*
 * The found chunks are about to be written: have they been before? If not, no line of theirs is in any cache, and
 * populate makes pages.
 */
static inline bool mr_pool_begin(struct mr_pool *p, uint32_t chunk, uint32_t n, void (*populate)(void *at, size_t len))
{
    uint32_t end = chunk + n, most = p->shape.num_chunks;

    if (likely(end <= p->fresh))
        return true;
    end = end + MR_POOL_GROWS < most ? (end + MR_POOL_GROWS - 1) / MR_POOL_GROWS * MR_POOL_GROWS : most;
    populate(mr_pool_at(p, p->fresh), (size_t)(end - p->fresh) * p->shape.chunk_bytes);
    p->fresh = end;
    return false;
}

/*
 * Reader: len bytes from a chunk on, named by the owner, who is not trusted. NULL: there can be none. map maps the
 * pages of chunks that are read for the first time.
 */
static inline void *mr_pool_read(struct mr_pool *p, uint32_t chunk, size_t len, void (*map)(void *at, size_t len))
{
    uint32_t n = mr_pool_count(p, len);

    if (chunk >= p->shape.num_chunks || n > p->shape.num_chunks - chunk)
        return NULL;
    if (!p->users)
        mr_pool_begin(p, chunk, n, map);
    return mr_pool_at(p, chunk);
}

/* n chunks are about to be written. */
static inline void mr_pool_pay(struct mr_pool *p, uint32_t n)
{
    if (p->unpaid <= n)
        mr_pool_grow(p, 1);
    else
        p->unpaid -= n;
}

/* The found chunks go with the thing of this number. */
static inline void mr_pool_use(struct mr_pool *p, uint32_t chunk, uint32_t n, struct mr_reader *by, uint64_t number)
{
    for (uint32_t i = 0; i < n; i++)
        p->users[chunk + i] = (struct mr_pool_user){by, number};
}

/* With the next packet; the search for those of a later packet begins behind them. */
static inline void mr_pool_assign(struct mr_pool *p, uint32_t chunk, uint32_t n, struct mr_reader *by, uint64_t number)
{
    mr_pool_use(p, chunk, n, by, number);
    p->next = chunk + n;
}

/* The reader will free nothing any more. */
static inline void mr_pool_reclaim(struct mr_pool *p, const struct mr_reader *by)
{
    for (uint32_t i = 0; i < p->shape.num_chunks; i++)
        if (p->users[i].by == by)
            p->users[i].by = NULL;
}

#endif
