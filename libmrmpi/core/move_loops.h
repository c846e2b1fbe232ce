/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loops of packing that gain from vector instructions: numbers a few places apart, or pieces of a cache line's length
 * anywhere, moved into one stretch, and out of one. One table for each level of instructions (vectors.h). Gaps between
 * the numbers may be read too, but nothing behind the last number. Gaps are never written.
 */
#ifndef MRMPI_CORE_MOVE_LOOPS_H
#define MRMPI_CORE_MOVE_LOOPS_H

#include <stdbool.h>
#include <stddef.h>

#include "libmrmpi/base/vectors.h"
#include "libmrmpi/core/move.h"

struct mr_moves {
    /* n numbers of 4 or 8 bytes, `step` bytes apart. False: not done, there is no loop for that distance. */
    bool (*numbers_4)(char *to, const char *from, ptrdiff_t step, size_t n);
    bool (*numbers_8)(char *to, const char *from, ptrdiff_t step, size_t n);
    /* The same number by number from `from` to places `step` bytes apart. */
    bool (*spread_4)(char *to, ptrdiff_t step, const char *from, size_t n);
    bool (*spread_8)(char *to, ptrdiff_t step, const char *from, size_t n);
    /* n pieces of 64 bytes, from listed places into one stretch, and out of one stretch to listed places. */
    void (*gather_64)(char *flat, const char *mem, const ptrdiff_t *at, size_t n);
    void (*scatter_64)(char *mem, const char *flat, const ptrdiff_t *at, size_t n);
    /* As mr_move_records. */
    bool (*records)(char *mem, ptrdiff_t stride, char *flat, size_t size, size_t n, const struct mr_move_piece *pieces,
                    size_t num_pieces, bool unpack);
};

extern const struct mr_moves mr_moves_base;
#ifdef __x86_64__
extern const struct mr_moves mr_moves_avx2, mr_moves_avx512;
#endif

static inline const struct mr_moves *mr_moves_at(enum mr_vectors level)
{
#ifdef __x86_64__
    if (level != MR_VECTORS_BASE)
        return level == MR_VECTORS_AVX2 ? &mr_moves_avx2 : &mr_moves_avx512;
#endif
    return &mr_moves_base;
}

#endif
