/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying pieces: see move.h. The loops are fast by sizes known to the compiler, and by addresses that are each
 * computed from the first address, not from the former. Steps have at most 16 bytes: most pieces lie at multiples of
 * 16, longer steps would cross the ends of cache lines, and packing 128 KiB of 64-byte pieces took twice as long.
 */
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/core/move.h"
#include "libmrmpi/core/move_loops.h"

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* n bytes, from `half` to twice that: the two halves overlap. */
INLINE void move_halves(char *restrict to, const char *restrict from, size_t n, size_t half)
{
    memcpy(to, from, half);
    memcpy(to + n - half, from + n - half, half);
}

/*
 * A piece whose size may differ from the former. Pieces are small as a rule: a call of memcpy then costs more than the
 * copy, and so do many checks of the size.
 */
INLINE void move_piece(char *restrict to, const char *restrict from, size_t n)
{
    if (n > 64) {
        memcpy(to, from, n);
    } else if (n >= 16) {
        for (size_t k = 0; k + 16 < n; k += 16)
            memcpy(to + k, from + k, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        move_halves(to, from, n, 8);
    } else if (n >= 4) {
        move_halves(to, from, n, 4);
    } else if (n >= 2) {
        move_halves(to, from, n, 2);
    } else {
        *to = *from;
    }
}

/* Each size with a loop of its own; lists of 64-byte pieces have the loops of move_loops.h. */
#define SIZES(X) X(1) X(2) X(4) X(8) X(12) X(16) X(20) X(24) X(32) X(40) X(48) X(64)

INLINE void one_by_one(char *restrict to, ptrdiff_t to_step, const char *restrict from, ptrdiff_t from_step, size_t n,
                       size_t elem)
{
    for (; n >= 4; n -= 4, to += 4 * to_step, from += 4 * from_step) {
        memcpy(to, from, elem);
        memcpy(to + to_step, from + from_step, elem);
        memcpy(to + 2 * to_step, from + 2 * from_step, elem);
        memcpy(to + 3 * to_step, from + 3 * from_step, elem);
    }
    for (; n; n--, to += to_step, from += from_step)
        memcpy(to, from, elem);
}

/* The same for sizes from `half` to twice `half`. */
INLINE void halves_one_by_one(char *restrict to, ptrdiff_t to_step, const char *restrict from, ptrdiff_t from_step,
                              size_t n, size_t elem, size_t half)
{
    for (; n; n--, to += to_step, from += from_step)
        move_halves(to, from, elem, half);
}

/* Sizes without a loop of their own. */
static void odd_series(char *restrict to, ptrdiff_t to_step, const char *restrict from, ptrdiff_t from_step, size_t n,
                       size_t elem)
{
    if (elem > 256)
        for (; n; n--, to += to_step, from += from_step)
            memcpy(to, from, elem);
    else if (elem > 128)
        for (; n; n--, to += to_step, from += from_step) {
            for (size_t k = 0; k + 64 < elem; k += 64)
                memcpy(to + k, from + k, 64);
            memcpy(to + elem - 64, from + elem - 64, 64);
        }
    else if (elem > 64)
        halves_one_by_one(to, to_step, from, from_step, n, elem, 64);
    else if (elem > 32)
        halves_one_by_one(to, to_step, from, from_step, n, elem, 32);
    else if (elem > 16)
        halves_one_by_one(to, to_step, from, from_step, n, elem, 16);
    else if (elem > 8)
        halves_one_by_one(to, to_step, from, from_step, n, elem, 8);
    else if (elem > 4)
        halves_one_by_one(to, to_step, from, from_step, n, elem, 4);
    else
        halves_one_by_one(to, to_step, from, from_step, n, elem, 2);
}

/* A property of the machine, so asked once. */
static const struct mr_moves *fastest_moves(void)
{
    static const struct mr_moves *found;
    if (unlikely(!found))
        found = mr_moves_at(mr_vectors());
    return found;
}

void mr_move_series(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t n, size_t elem)
{
    if (elem == 8 && to_step == 8 && fastest_moves()->numbers_8(to, from, from_step, n))
        return;
    if (elem == 4 && to_step == 4 && fastest_moves()->numbers_4(to, from, from_step, n))
        return;
    if (elem == 8 && from_step == 8 && fastest_moves()->spread_8(to, to_step, from, n))
        return;
    if (elem == 4 && from_step == 4 && fastest_moves()->spread_4(to, to_step, from, n))
        return;
    switch (elem) {
#define FIXED(bytes)                                                                                                   \
    case bytes:                                                                                                        \
        one_by_one(to, to_step, from, from_step, n, bytes);                                                            \
        break;
        SIZES(FIXED)
#undef FIXED
    default:
        odd_series(to, to_step, from, from_step, n, elem);
    }
}

INLINE void rows(char *restrict to, ptrdiff_t to_row, ptrdiff_t to_step, const char *restrict from, ptrdiff_t from_row,
                 ptrdiff_t from_step, size_t n, size_t elem)
{
    for (; n; n--, to += to_step, from += from_step)
        _Pragma("GCC unroll 8") for (int r = 0; r < MR_MOVE_ROWS; r++)
            memcpy(to + r * to_row, from + r * from_row, elem);
}

void mr_move_tile(char *to, ptrdiff_t to_row, ptrdiff_t to_step, const char *from, ptrdiff_t from_row,
                  ptrdiff_t from_step, size_t n, size_t elem)
{
    if (elem == 4)
        rows(to, to_row, to_step, from, from_row, from_step, n, 4);
    else if (elem == 8)
        rows(to, to_row, to_step, from, from_row, from_step, n, 8);
    else
        rows(to, to_row, to_step, from, from_row, from_step, n, 16);
}

INLINE void list(bool scatter, char *restrict mem, char *restrict flat, const ptrdiff_t *restrict at, size_t n,
                 size_t elem, const size_t *restrict before)
{
#define MOVE(how, i, place, bytes)                                                                                     \
    (scatter ? how(mem + at[i], flat + (place), bytes) : how(flat + (place), mem + at[i], bytes))
    size_t i = 0;
    switch (elem) {
#define FIXED(bytes)                                                                                                   \
    case bytes:                                                                                                        \
        for (; i + 4 <= n; i += 4) {                                                                                   \
            MOVE(memcpy, i, i *(bytes), bytes);                                                                        \
            MOVE(memcpy, i + 1, (i + 1) * (bytes), bytes);                                                             \
            MOVE(memcpy, i + 2, (i + 2) * (bytes), bytes);                                                             \
            MOVE(memcpy, i + 3, (i + 3) * (bytes), bytes);                                                             \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            MOVE(memcpy, i, i *(bytes), bytes);                                                                        \
        break;
        SIZES(FIXED)
#undef FIXED
    case 0:
        for (size_t len; i < n; i++, flat += len) {
            len = before[i + 1] - before[i];
            MOVE(move_piece, i, 0, len);
        }
        break;
    default:
        for (; i < n; i++)
            MOVE(move_piece, i, i * elem, elem);
    }
#undef MOVE
}

void mr_move_gather(char *flat, const char *mem, const ptrdiff_t *at, size_t n, size_t elem, const size_t *before)
{
    if (elem == 64)
        fastest_moves()->gather_64(flat, mem, at, n);
    else
        list(false, (char *)(uintptr_t)mem, flat, at, n, elem, before);
}

void mr_move_scatter(char *mem, const char *flat, const ptrdiff_t *at, size_t n, size_t elem, const size_t *before)
{
    if (elem == 64)
        fastest_moves()->scatter_64(mem, flat, at, n);
    else
        list(true, mem, (char *)(uintptr_t)flat, at, n, elem, before);
}

bool mr_move_records(char *mem, ptrdiff_t stride, char *flat, size_t size, size_t n, const struct mr_move_piece *pieces,
                     size_t num_pieces, bool unpack)
{
    return fastest_moves()->records(mem, stride, flat, size, n, pieces, num_pieces, unpack);
}
