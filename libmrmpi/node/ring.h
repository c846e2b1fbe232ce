/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of pieces among the ranks of a node area: each rank has `slots` slots that it alone writes and all others may
 * read. Pieces are counted alike at all ranks, and piece n is in slot n % slots of each rank that has one to say.
 *
 * A writer says that its piece is there by the piece's number in its line, which carries few bytes itself. A
 * rank tells by its own number `done` up to which piece it needs nothing any more. A writer comes back to a slot when
 * all are done with the piece before. So nobody waits for an answer but once in `slots` pieces.
 *
 * Slots may be split: a short piece takes a part of one, so that a writer of such gets `split` times as far ahead of
 * its readers in the same memory. Pieces n, n + slots, n + 2 slots ... have different parts of the slot that is theirs
 * if they are long. So a long piece, and short ones soon after it, have room as in a ring that is not split.
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
    int ranks;
    int slots, split;  /* powers of two; parts of a slot, 1: it has none */
    size_t slot_bytes; /* a multiple of 64 for each part */
};

/* As this rank sees it. */
struct mr_node_ring {
    struct mr_node_shape shape;
    int me;
    struct mr_node_line *done, *first, *second; /* [ranks], [ranks * slots * split] each */
    char *data;                                 /* [ranks * slots * slot_bytes] */
    uint64_t next;                              /* number of the next piece, 1 at first */
    uint64_t room, room_short;                  /* pieces up to this one, and short ones, are known to have room */
    uint64_t past_long;                         /* from this one on no part is in a slot that this rank wrote whole */
};

static inline size_t mr_node_lines(struct mr_node_shape s)
{
    return (size_t)s.slots * (size_t)s.split;
}

static inline size_t mr_node_ring_lines(struct mr_node_shape s)
{
    return (size_t)s.ranks * (1 + 2 * mr_node_lines(s));
}

static inline size_t mr_node_ring_bytes(struct mr_node_shape s)
{
    return mr_node_ring_lines(s) * sizeof(struct mr_node_line) + (size_t)s.ranks * (size_t)s.slots * s.slot_bytes;
}

/* memory: so many bytes, aligned to 64, zeros when the first rank comes. */
static inline void mr_node_ring_init(struct mr_node_ring *r, void *memory, struct mr_node_shape s, int me)
{
    struct mr_node_line *lines = (struct mr_node_line *)memory;

    *r = (struct mr_node_ring){
        .shape = s, .me = me, .next = 1, .room = (uint64_t)s.slots, .room_short = mr_node_lines(s)};
    r->done = lines;
    r->first = lines + s.ranks;
    r->second = r->first + (size_t)s.ranks * mr_node_lines(s);
    r->data = (char *)(lines + mr_node_ring_lines(s));
}

static inline size_t mr_node_place(const struct mr_node_ring *r, int rank, uint64_t piece)
{
    size_t lines = mr_node_lines(r->shape);

    return (size_t)rank * lines + (size_t)(piece & (lines - 1));
}

static inline bool mr_node_is_short(const struct mr_node_ring *r, size_t bytes)
{
    return bytes <= r->shape.slot_bytes >> __builtin_ctz((unsigned)r->shape.split);
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

/* Where the bytes of a piece are that has so many. */
static inline char *mr_node_data(const struct mr_node_ring *r, int rank, uint64_t piece, size_t bytes)
{
    unsigned slots = (unsigned)r->shape.slots, split = (unsigned)r->shape.split;
    size_t part = (piece >> __builtin_ctz(slots)) & (split - 1);
    char *slot;

    if (bytes <= MR_NODE_INLINE)
        return mr_node_first(r, rank, piece)->data;
    slot = mr_node_slot(r, rank, piece);
    return mr_node_is_short(r, bytes) ? slot + part * (r->shape.slot_bytes >> __builtin_ctz(split)) : slot;
}

/* ---- a writer ---------------------------------------------------------------------------------------------------- */

static inline bool mr_node_has_room_now(struct mr_node_ring *r, uint64_t piece, size_t bytes)
{
    if (!mr_node_is_short(r, bytes)) {
        if (piece > r->room)
            return false;
        r->past_long = piece + mr_node_lines(r->shape);
        return true;
    }
    return piece <= (piece < r->past_long ? r->room : r->room_short);
}

/* May this rank write the piece, of so many bytes? */
static inline bool mr_node_has_room(struct mr_node_ring *r, uint64_t piece, size_t bytes)
{
    uint64_t least = UINT64_MAX;

    if (__builtin_expect(mr_node_has_room_now(r, piece, bytes), 1))
        return true;
    for (int i = 0; i < r->shape.ranks; i++) {
        uint64_t done = i == r->me ? piece : __atomic_load_n(&r->done[i].number, __ATOMIC_ACQUIRE);

        least = done < least ? done : least;
    }
    r->room = least + (uint64_t)r->shape.slots;
    r->room_short = least + mr_node_lines(r->shape);
    return mr_node_has_room_now(r, piece, bytes);
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
