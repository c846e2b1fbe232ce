/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying what another core or a device has just written. The C library takes the processor's string instructions for
 * some KiB and more; where the source is in no near cache these were measured at half the speed of loads that the
 * processor sees coming (AMD, 11 GB/s against 20), and they are no faster elsewhere.
 *
 * Where another memcpy comes before the C library's, somebody wants to see copies, or to charge for them (simfab does):
 * then all are made by it.
 */
#ifndef MRMPI_COPY_H
#define MRMPI_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "libmrmpi/base/idioms.h"

extern MR_OWN bool mr_copy_watched; /* memcpy is not the C library's */
void mr_copy_init(void);            /* finds that; until then it is */

#define MR_COPY_LONG 2048 /* shorter ones are the C library's */

static inline void mr_copy_in(void *to, const void *from, size_t len)
{
#ifdef __SSE2__
    const char *in = from;
    char *out = to;

    for (; len >= MR_COPY_LONG && !mr_copy_watched; len -= 128, in += 128, out += 128)
        for (int i = 0; i < 8; i++)
            _mm_storeu_si128((__m128i *)out + i, _mm_loadu_si128((const __m128i *)in + i));
    memcpy(out, in, len);
#else
    memcpy(to, from, len);
#endif
}

#endif
