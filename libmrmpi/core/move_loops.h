/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What packing gains from vector instructions: numbers that lie a few places apart, moved into one stretch. One table
 * for each level of them (vectors.h). Gaps between the numbers may be read, too; nothing behind the last one is.
 */
#ifndef MRMPI_CORE_MOVE_LOOPS_H
#define MRMPI_CORE_MOVE_LOOPS_H

#include <stdbool.h>
#include <stddef.h>

#include "libmrmpi/base/vectors.h"

struct mr_moves {
    /* n numbers of 4 or 8 bytes, `step` bytes apart. False: not done, there is no loop for that distance. */
    bool (*numbers_4)(char *to, const char *from, ptrdiff_t step, size_t n);
    bool (*numbers_8)(char *to, const char *from, ptrdiff_t step, size_t n);
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
