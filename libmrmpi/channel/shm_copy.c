/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/copy.h"
#include "libmrmpi/channel/shm_copy.h"

#define TIME_EVERY   8    /* one in so many plain copies is timed; those after a slow one at once, */
#define TIME_LEAST   4096 /* but none of fewer bytes: the core takes as many before it waits for any */
#define SLOW_IN_ROW  4    /* as many timed copies that are slow make it stream: one alone may have been interrupted */
#define STREAM_TIMES 4096 /* copies, then a plain one is timed again */
/*
 * A copy is slow that takes more than SLOW_NS and a ns for SLOW_RATE bytes. Few bytes wait in the core, and many for
 * the lines: 4 KiB took .13 to .56 us inside a shared cache and .67 to 2.4 between caches, 8 KiB .23 to .78 and 1.8 to
 * 4, 32 KiB 1 and 15 (AMD, family 25); long ones 25 to 40 bytes per ns and 2 to 9, by streaming stores 30 (family 26).
 */
#define SLOW_NS   400
#define SLOW_RATE 11

void mr_copy_stream(void *to, const void *from, size_t len)
{
#ifdef __SSE2__
    size_t before = -(uintptr_t)to % 16 < len ? -(uintptr_t)to % 16 : len;
    const char *in = (const char *)from + before;
    char *out = (char *)to + before;

    memcpy(to, from, before);
    for (len -= before; len >= 64 && !mr_copy_watched; len -= 64, in += 64, out += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)in), b = _mm_loadu_si128((const __m128i *)(in + 16)),
                c = _mm_loadu_si128((const __m128i *)(in + 32)), d = _mm_loadu_si128((const __m128i *)(in + 48));

        _mm_stream_si128((__m128i *)out, a);
        _mm_stream_si128((__m128i *)(out + 16), b);
        _mm_stream_si128((__m128i *)(out + 32), c);
        _mm_stream_si128((__m128i *)(out + 48), d);
    }
    memcpy(out, in, len);
    _mm_sfence(); /* streaming stores are not ordered by a release */
#else
    memcpy(to, from, len);
#endif
}

void mr_copy_timed(struct mr_copier *c, size_t len, uint64_t ns)
{
    if (ns <= SLOW_NS + len / SLOW_RATE)
        c->slow = 0;
    else if (++c->slow == SLOW_IN_ROW)
        c->streamed = 1;
}

void mr_copy_out(struct mr_copier *c, void *to, const void *from, size_t len)
{
    uint64_t begin;

    if (c->streamed) {
        mr_copy_stream(to, from, len);
        if (++c->streamed > STREAM_TIMES)
            *c = (struct mr_copier){.slow = SLOW_IN_ROW - 1};
        return;
    }
    if (len < TIME_LEAST || (++c->plain < TIME_EVERY && !c->slow)) {
        memcpy(to, from, len);
        return;
    }
    c->plain = 0;
    begin = mr_clock_ns();
    memcpy(to, from, len);
    mr_copy_timed(c, len, mr_clock_ns() - begin);
}
