/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/copy.h"
#include "libmrmpi/channel/shm_copy.h"

#define TIME_EVERY   8    /* one in so many plain copies is timed */
#define SLOW_IN_ROW  4    /* as many timed copies that are slow make it stream: one alone may have been interrupted */
#define STREAM_TIMES 4096 /* copies, then a plain one is timed again */
/* Bytes per ns. Inside a shared cache 25 to 40 were measured, between caches 2 to 9, by streaming stores 30. */
#define SLOW_RATE 10

void mr_copy_stream(void *to, const void *from, size_t len)
{
#ifdef __SSE2__
    const char *in = from;
    char *out = to;

    for (; len >= 64 && !mr_copy_watched; len -= 64, in += 64, out += 64) {
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
    if (len >= ns * SLOW_RATE)
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
    if (++c->plain < TIME_EVERY) {
        memcpy(to, from, len);
        return;
    }
    c->plain = 0;
    begin = mr_clock_ns();
    memcpy(to, from, len);
    mr_copy_timed(c, len, mr_clock_ns() - begin);
}
