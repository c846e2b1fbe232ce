/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of mr_copy_in (copy.h), one for each level of vector instructions (vectors.h). Lines are prefetched ahead
 * of their loads, and each load takes as much of a line as the level allows. More lines are thus under way at a time
 * than with loads of 16 bytes, which fill the processor's queues.
 */
#ifndef MRMPI_COPY_LOOPS_H
#define MRMPI_COPY_LOOPS_H

#include "libmrmpi/base/copy.h"
#include "libmrmpi/base/vectors.h"

/* len >= MR_COPY_LONG; otherwise as memcpy. */
void *mr_copy_in_base(void *to, const void *from, size_t len);
#ifdef __x86_64__
void *mr_copy_in_avx2(void *to, const void *from, size_t len);
void *mr_copy_in_avx512(void *to, const void *from, size_t len);
#endif

static inline mr_copy_fn *mr_copy_loop_at(enum mr_vectors level)
{
#ifdef __x86_64__
    if (level != MR_VECTORS_BASE)
        return level == MR_VECTORS_AVX2 ? mr_copy_in_avx2 : mr_copy_in_avx512;
#endif
    return mr_copy_in_base;
}

#endif
