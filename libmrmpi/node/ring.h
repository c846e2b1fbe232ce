/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of pieces among the ranks of a node area: each rank has `slots` slots that it alone writes and all others may
 * read. Pieces are counted alike at all ranks, and piece n is in slot n % slots of each rank that has one to say.
 *
 * A writer says that its piece is there by the piece's number in the slot's line, which carries few bytes itself. A
 * rank tells by its own number `done` up to which piece it needs nothing any more. A writer comes back to a slot when
 * all are done with the piece before. So nobody waits for an answer but once in `slots` pieces.
 *
 * A piece may have a second half: what a rank has made of all the others' first halves. It has a line of its own and
 * lies in the slot, too, where others do not read any more.
 *
 * What is in the memory is another process's word: numbers that no sane peer writes are told by mr_node_mad(), lengths
 * are the caller's to check. Addresses come from what this process knows. Pure: test_node_ring.c.
 */
#ifndef MRMPI_NODE_RING_H
#define MRMPI_NODE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_NODE_INLINE 48 /* bytes that a line carries */

struct mr_node_line {
    _Alignas(64) uint64_t number; /* of the piece that is there; 0: none yet */
    uint64_t bytes;               /* what the writer says of it */
    char data[MR_NODE_INLINE];
};

struct mr_node_shape {
    int ranks, slots;
    size_t slot_bytes; /* a multiple of 64 */
};

/* As this rank sees it. */
struct mr_node_ring {
    struct mr_node_shape shape;
    int me;
    struct mr_node_line *done, *first, *second; /* [ranks], [ranks * slots] each */
    char *data;                                 /* [ranks * slots * slot_bytes] */
    uint64_t next;                              /* number of the next piece, 1 at first */
    uint64_t room;                              /* pieces up to this one are known to have room */
};

static inline size_t mr_node_ring_lines(struct mr_node_shape s)
{
    return (size_t)s.ranks * (1 + 2 * (size_t)s.slots);
}

static inline size_t mr_node_ring_bytes(struct mr_node_shape s)
{
    return mr_node_ring_lines(s) * sizeof(struct mr_node_line) + (size_t)s.ranks * (size_t)s.slots * s.slot_bytes;
}

/* memory: so many bytes, aligned to 64, zeros when the first rank comes. */
static inline void mr_node_ring_init(struct mr_node_ring *r, void *memory, struct mr_node_shape s, int me)
{
    struct mr_node_line *lines = (struct mr_node_line *)memory;

    *r = (struct mr_node_ring){.shape = s, .me = me, .next = 1, .room = (uint64_t)s.slots};
    r->done = lines;
    r->first = lines + s.ranks;
    r->second = r->first + (size_t)s.ranks * (size_t)s.slots;
    r->data = (char *)(lines + mr_node_ring_lines(s));
}

static inline size_t mr_node_place(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    return (size_t)rank * (size_t)r->shape.slots + (size_t)(piece % (uint64_t)r->shape.slots);
}

static inline char *mr_node_slot(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    return r->data + mr_node_place(r, rank, piece) * r->shape.slot_bytes;
}

static inline struct mr_node_line *mr_node_first(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    return &r->first[mr_node_place(r, rank, piece)];
}

static inline struct mr_node_line *mr_node_second(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    return &r->second[mr_node_place(r, rank, piece)];
}

/* ---- a writer ---------------------------------------------------------------------------------------------------- */

/* May this rank write the piece? */
static inline bool mr_node_has_room(struct mr_node_ring *r, uint64_t piece)
{
    uint64_t least = UINT64_MAX;

    if (__builtin_expect(piece <= r->room, 1))
        return true;
    for (int i = 0; i < r->shape.ranks; i++) {
        uint64_t done = i == r->me ? piece : __atomic_load_n(&r->done[i].number, __ATOMIC_ACQUIRE);

        least = done < least ? done : least;
    }
    r->room = least + (uint64_t)r->shape.slots;
    return piece <= r->room;
}

/* The piece is there; what it has of data was written before. */
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

/* It holds a piece that cannot be there while this rank still needs `piece`. */
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
