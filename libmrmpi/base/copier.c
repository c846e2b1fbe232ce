/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/copy.h"
#include "libmrmpi/base/copier.h"

#define TIME_EVERY  32 /* one cached copy in this number is timed, */
#define TIME_SOON   8  /* and after a slow one, one in this number */
#define SLOW_IN_ROW 4  /* slow timed copies before streaming: a single one may have been interrupted */
/*
 * A copy is slow if longer than SLOW_NS plus a ns per SLOW_RATE bytes; of fewer than BRIEF, which a core takes before
 * it waits for any line, SLOW_BRIEF_NS. Inside a shared cache, and between caches (us): 1 KiB .05 to .07, .16 to .3; 2
 * KiB .08 to .18, .25 to .6; 4 KiB .13 to .56, .67 to 2.4; 8 KiB .23 to .78, 1.8 to 4; 32 KiB 1, 15 (AMD, family 25);
 * long ones 25 to 40 bytes per ns, 2 to 9, by streaming stores 30 (family 26).
 */
#define SLOW_NS       400
#define SLOW_BRIEF_NS 40
#define BRIEF         4096
#define SLOW_RATE     11

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

struct mr_copier mr_copier_begin(void)
{
    return (struct mr_copier){.always = mr_config.shm_stream > 0};
}

void mr_copy_timed(struct mr_copier *c, size_t len, uint64_t ns)
{
    if (!mr_config.shm_stream)
        return;
    if (ns <= (len < BRIEF ? SLOW_BRIEF_NS : SLOW_NS) + len / SLOW_RATE) {
        c->slow = 0;
        mr_backoff_succeeded(&c->stores);
    } else if (++c->slow == SLOW_IN_ROW) {
        c->slow--; /* later one slow copy is enough */
        mr_backoff_failed(&c->stores, MR_BACKOFF_FIRST);
    }
}

static void copy_and_time(struct mr_copier *c, void *to, const void *from, size_t len)
{
    uint64_t before = mr_clock_ns(), begin = mr_clock_ns(), end;

    memcpy(to, from, len);
    end = mr_clock_ns();
    mr_copy_timed(c, len, end - begin > begin - before ? end - begin - (begin - before) : 0); /* the clock's own time */
}

void mr_copy_out(struct mr_copier *c, void *to, const void *from, size_t len)
{
    if (c->always || mr_backoff_skips(&c->stores)) {
        mr_copy_stream(to, from, len);
        return;
    }
    if (++c->cached < (c->slow ? TIME_SOON : TIME_EVERY)) {
        memcpy(to, from, len);
        return;
    }
    c->cached = 0;
    copy_and_time(c, to, from, len);
}
