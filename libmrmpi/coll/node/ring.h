/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of pieces among the ranks of a node area: each rank has `slots` slots, written by that rank alone and read by
 * all others. Pieces are counted alike at all ranks, and piece n is in slot n % slots of each writing rank.
 *
 * A writer publishes a piece by the piece's number in its line, which carries few bytes itself; piece n is in line n %
 * lines. A rank's own number `done` is the last piece that the rank has finished. A writer reuses a line when all ranks
 * are done with its former piece. A rank thus waits for an answer only once in `lines` pieces.
 *
 * There may be more slots than lines: data read a while ago has left the reader's own cache, and is written several
 * times as fast. Few bytes, up to brief_bytes, then have places beside the slots, one for each line, so that they stay
 * in the caches.
 *
 * There may be fewer slots than lines, if pieces lie in other memory: their lines name the chunk there (area.h). A
 * piece then takes its slot only if all ranks are done with the former piece there.
 *
 * A piece may have a second half: a result that a rank made from the first halves of all. The half has a line of its
 * own and lies in the slot too, in a part that others no longer read.
 *
 * The memory's contents come from other processes: mr_node_mad() detects impossible numbers; the caller checks lengths.
 * Addresses come from this process's knowledge. Pure: test_node_ring.c.
 */
#ifndef MRMPI_NODE_RING_H
#define MRMPI_NODE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libmrmpi/base/idioms.h"

#define MR_NODE_INLINE    48 /* bytes that a line carries */
#define MR_NODE_SLOTS_MAX 256
#define MR_NODE_LEFT      INT64_MAX /* a rank is done with any piece */

struct mr_node_line {
    _Alignas(64) uint64_t number; /* of the piece that is there; 0: none yet */
    uint64_t bytes;               /* the writer's length */
    char data[MR_NODE_INLINE];
};

struct mr_node_shape {
    int ranks;
    int lines, slots;   /* powers of two, no more slots than MR_NODE_SLOTS_MAX */
    size_t slot_bytes;  /* multiples of 64 */
    size_t brief_bytes; /* 0: there are no such places */
};

/* This rank's view. */
struct mr_node_ring {
    struct mr_node_shape shape;
    int me;
    struct mr_node_line *done, *first, *second; /* [ranks], [ranks * lines] each */
    char *brief, *data;                         /* [ranks * lines * brief_bytes], [ranks * slots * slot_bytes] */
    uint64_t next;                              /* number of the next piece, 1 at first */
    int64_t done_by_all;                        /* the others are done with pieces up to this one, as last seen */
    uint64_t used[MR_NODE_SLOTS_MAX / 64];      /* bits: own slots that this rank has written, whose pages exist */
};

static inline size_t mr_node_lines(struct mr_node_shape s)
{
    return (size_t)s.ranks * (1 + 2 * (size_t)s.lines);
}

static inline size_t mr_node_ring_bytes(struct mr_node_shape s)
{
    size_t ranks = (size_t)s.ranks, lines = (size_t)s.lines;

    return mr_node_lines(s) * sizeof(struct mr_node_line) + ranks * lines * s.brief_bytes +
           ranks * (size_t)s.slots * s.slot_bytes;
}

/* memory: so many bytes, aligned to 64, zeros when the first rank comes. */
static inline void mr_node_ring_init(struct mr_node_ring *r, void *memory, struct mr_node_shape s, int me)
{
    struct mr_node_line *lines = (struct mr_node_line *)memory;

    *r = (struct mr_node_ring){.shape = s, .me = me, .next = 1};
    r->done = lines;
    r->first = lines + s.ranks;
    r->second = r->first + (size_t)s.ranks * (size_t)s.lines;
    r->brief = (char *)(lines + mr_node_lines(s));
    r->data = r->brief + (size_t)s.ranks * (size_t)s.lines * s.brief_bytes;
}

/* The index of a rank's line. */
static inline size_t mr_node_place(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    size_t lines = (size_t)r->shape.lines;

    return (size_t)rank * lines + (size_t)(piece & (lines - 1));
}

static inline char *mr_node_slot(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    size_t slots = (size_t)r->shape.slots;

    return r->data + ((size_t)rank * slots + (size_t)(piece & (slots - 1))) * r->shape.slot_bytes;
}

static inline struct mr_node_line *mr_node_first(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    return &r->first[mr_node_place(r, rank, piece)];
}

static inline struct mr_node_line *mr_node_second(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    return &r->second[mr_node_place(r, rank, piece)];
}

/* The place of a piece's bytes, by their number. */
static inline char *mr_node_data(const struct mr_node_ring *r, int rank, uint64_t piece, size_t bytes)
{
    if (bytes <= MR_NODE_INLINE)
        return mr_node_first(r, rank, piece)->data;
    if (bytes <= r->shape.brief_bytes)
        return r->brief + mr_node_place(r, rank, piece) * r->shape.brief_bytes;
    return mr_node_slot(r, rank, piece);
}

/* ---- a writer ---------------------------------------------------------------------------------------------------- */

/* The others are done with this piece; none is before the first. */
static inline bool mr_node_all_done(struct mr_node_ring *r, int64_t piece)
{
    int64_t least = MR_NODE_LEFT;

    if (likely(piece <= r->done_by_all))
        return true;
    for (int i = 0; i < r->shape.ranks; i++) {
        int64_t done = i == r->me ? MR_NODE_LEFT : (int64_t)__atomic_load_n(&r->done[i].number, __ATOMIC_ACQUIRE);

        least = done < least ? done : least;
    }
    r->done_by_all = least;
    return piece <= least;
}

/* May this rank write the piece? Into its slot? */
static inline bool mr_node_has_room(struct mr_node_ring *r, uint64_t piece)
{
    return mr_node_all_done(r, (int64_t)piece - r->shape.lines);
}
static inline bool mr_node_has_slot(struct mr_node_ring *r, uint64_t piece)
{
    return mr_node_all_done(r, (int64_t)piece - r->shape.slots);
}

/* In other memory: where. MR_NODE_IN_SLOT: in its slot. Before the piece is published. */
#define MR_NODE_IN_SLOT UINT32_MAX
static inline void mr_node_set_chunk(struct mr_node_line *line, uint32_t chunk)
{
    memcpy(line->data, &chunk, sizeof(chunk));
}
static inline uint32_t mr_node_chunk(const struct mr_node_line *line)
{
    return *(volatile const uint32_t *)line->data;
}

/* The slot of this rank's piece is written. False: it is for the first time. */
static inline bool mr_node_use(struct mr_node_ring *r, uint64_t piece)
{
    uint64_t slot = piece & ((uint64_t)r->shape.slots - 1), bit = 1ull << slot % 64, *word = &r->used[slot / 64];
    bool was = *word & bit;

    *word |= bit;
    return was;
}

/* Publishes the piece, whose data was written before. */
static inline void mr_node_publish(struct mr_node_line *line, uint64_t piece, uint64_t bytes)
{
    __atomic_store_n(&line->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&line->number, piece, __ATOMIC_RELEASE);
}

/* ---- a reader ---------------------------------------------------------------------------------------------------- */

static inline bool mr_node_is_there(const struct mr_node_line *line, uint64_t piece)
{
    return __atomic_load_n(&line->number, __ATOMIC_ACQUIRE) == piece;
}

/* True for a piece that cannot be there while this rank still needs `piece`. */
static inline bool mr_node_mad(const struct mr_node_line *line, uint64_t piece)
{
    return __atomic_load_n(&line->number, __ATOMIC_RELAXED) > piece;
}

static inline uint64_t mr_node_bytes(const struct mr_node_line *line)
{
    return __atomic_load_n(&line->bytes, __ATOMIC_RELAXED);
}

/* This rank needs nothing any more of pieces up to this one. */
static inline void mr_node_done(struct mr_node_ring *r, uint64_t piece)
{
    __atomic_store_n(&r->done[r->me].number, piece, __ATOMIC_RELEASE);
}

#endif
