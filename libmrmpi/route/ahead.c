/* SPDX-License-Identifier: BSD-3-Clause */
/* Token buckets: see ahead.h. */
#include "libmrmpi/route/ahead.h"

#define SECOND_NS         1000000000ull
#define SIGNAL_8B10B_MBPS 40000u /* 4X QDR, the fastest ports that send 10 bits for 8 */

uint64_t mr_ahead_rate(uint32_t rate_mbps, unsigned part, unsigned all)
{
    uint64_t mbps = rate_mbps <= SIGNAL_8B10B_MBPS ? rate_mbps * 8ull / 10 : rate_mbps;

    return mbps * (1000000 / 8) * part / all;
}

uint64_t mr_ahead_time(unsigned part, unsigned all)
{
    return SECOND_NS * part / all;
}

unsigned mr_ahead_message_ns(uint32_t rate_mbps)
{
    static const struct {
        uint32_t rate_mbps; /* at most */
        unsigned ns;
    } of[] = {
        {10000, 2000},  /* 4X SDR: InfiniHost, 0.5 million messages a second */
        {20000, 222},   /* 4X DDR: ConnectX, 4.5 million */
        {40000, 100},   /* 4X QDR: ConnectX-2, 10 million */
        {60000, 28},    /* 4X FDR: ConnectX-3, 35 million */
        {110000, 7},    /* 4X EDR: ConnectX-5, 150 million */
        {UINT32_MAX, 5} /* 4X HDR and faster: ConnectX-6, 200 million */
    };
    size_t i = 0;

    while (rate_mbps > of[i].rate_mbps)
        i++;
    return of[i].ns;
}

static int64_t depth_of(uint64_t rate)
{
    uint64_t depth = rate * MR_AHEAD_DEPTH_US / 1000000;

    return (int64_t)(depth < MR_AHEAD_LEAST ? MR_AHEAD_LEAST : depth);
}

void mr_ahead_set(struct mr_ahead *a, uint64_t rate, uint64_t now_ns)
{
    if (a->rate && rate)
        mr_ahead_fill(a, now_ns);
    else
        *a = (struct mr_ahead){.left = depth_of(rate), .filled_ns = now_ns};
    a->rate = rate;
    a->depth = depth_of(rate);
    if (a->left > a->depth)
        a->left = a->depth;
}

bool mr_ahead_fill(struct mr_ahead *a, uint64_t now_ns)
{
    uint64_t passed = now_ns > a->filled_ns ? now_ns - a->filled_ns : 0;
    uint64_t most = (uint64_t)(a->depth - a->left), came;

    if (passed >= SECOND_NS || __builtin_mul_overflow(passed, a->rate, &came))
        came = most;
    else
        came /= SECOND_NS;
    if (came >= most) {
        a->left = a->depth;
        a->filled_ns = now_ns;
    } else { /* the time of what is less than a byte is not lost: there may be many looks in it */
        a->left += (int64_t)came;
        a->filled_ns += came * SECOND_NS / a->rate;
    }
    if (a->left >= a->depth / 2)
        a->empty = false;
    return !a->empty;
}
