/* SPDX-License-Identifier: BSD-3-Clause */
/* Ahead budgets: see ahead.h. */
#include "libmrmpi/conn/route/ahead.h"

#define SIGNAL_8B10B_MBPS 40000u /* 4X QDR, the fastest ports that send 10 bits for 8 */

uint32_t mr_ahead_signal_mbps(uint32_t data_mbps)
{
    return data_mbps <= SIGNAL_8B10B_MBPS / 10 * 8 ? data_mbps / 8 * 10 : data_mbps;
}

uint64_t mr_ahead_rate(uint32_t rate_mbps, unsigned part, unsigned all)
{
    uint64_t mbps = rate_mbps <= SIGNAL_8B10B_MBPS ? rate_mbps * 8ull / 10 : rate_mbps;

    return mbps * (1000000 / 8) * part / all;
}

uint64_t mr_ahead_time(unsigned part, unsigned all)
{
    return MR_BUCKET_SECOND_NS * part / all;
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

static int64_t ahead_depth(uint64_t rate)
{
    uint64_t depth = rate * MR_AHEAD_DEPTH_US / 1000000;

    return (int64_t)(depth < MR_AHEAD_LEAST ? MR_AHEAD_LEAST : depth);
}

void mr_ahead_set(struct mr_ahead *a, uint64_t rate, uint64_t now_ns)
{
    int64_t depth = ahead_depth(rate);

    if (a->bucket.rate && rate)
        mr_ahead_fill(a, now_ns);
    else
        *a = (struct mr_ahead){.bucket = mr_bucket_full(rate, depth, now_ns)};
    mr_bucket_set(&a->bucket, rate, depth);
}

bool mr_ahead_fill(struct mr_ahead *a, uint64_t now_ns)
{
    mr_bucket_fill(&a->bucket, now_ns, false);
    if (a->bucket.left >= a->bucket.depth / 2)
        a->empty = false;
    return !a->empty;
}
