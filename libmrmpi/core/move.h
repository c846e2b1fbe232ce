/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of many separate pieces of memory, the core of packing and unpacking (pack.c). Only the pieces are written;
 * gaps between read pieces may be read too. Written memory must not overlap read memory.
 */
#ifndef MRMPI_CORE_MOVE_H
#define MRMPI_CORE_MOVE_H

#include <stdbool.h>
#include <stddef.h>

/* n pieces of elem bytes, at either end the given distance apart */
void mr_move_series(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t n, size_t elem);

/*
 * MR_MOVE_ROWS such series side by side; the first is given and each other is a row further: element by element, for
 * series whose neighbours share cache lines. elem is 4, 8 or 16.
 */
enum { MR_MOVE_ROWS = 8 };
void mr_move_tile(char *to, ptrdiff_t to_row, ptrdiff_t to_step, const char *from, ptrdiff_t from_row,
                  ptrdiff_t from_step, size_t n, size_t elem);

/* n pieces at listed places, to or from one stretch: of elem bytes each; with elem 0, of before[i + 1] - before[i] */
void mr_move_gather(char *flat, const char *mem, const ptrdiff_t *at, size_t n, size_t elem, const size_t *before);
void mr_move_scatter(char *mem, const char *flat, const ptrdiff_t *at, size_t n, size_t elem, const size_t *before);

/* A piece of a record: where in memory, where in the packed form, and its bytes. */
struct mr_move_piece {
    ptrdiff_t place;
    size_t at, len;
};
/*
 * n records of the given pieces, stride apart in memory, one after the other in the packed form, with size bytes each.
 * False: nothing was done; the records are too long, or this processor has no fast loop.
 */
bool mr_move_records(char *mem, ptrdiff_t stride, char *flat, size_t size, size_t n, const struct mr_move_piece *pieces,
                     size_t num_pieces, bool unpack);

#endif
