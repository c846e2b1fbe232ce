/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decision when a peer deserves a connection and the number of connections is limited. Pure. A connection being
 * closed still takes its place: the next is opened when its queue pairs are gone.
 */
#ifndef MRMPI_QUOTA_H
#define MRMPI_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

enum mr_quota_answer {
    MR_QUOTA_OPEN,      /* there is room */
    MR_QUOTA_MAKE_ROOM, /* the least useful connection is closed: ask again later */
    MR_QUOTA_WAIT,      /* a connection is being closed already */
    MR_QUOTA_NO,        /* all others are worth about as much, or more */
};

/*
 * Peers with connections for each of so many ranks of a host, if its adapters serve so many queue pairs (a connection
 * takes one of each adapter).
 */
static inline unsigned mr_quota_peers(unsigned contexts, unsigned ranks)
{
    return contexts > ranks && ranks ? contexts / ranks : 1;
}

/*
 * held: peers with connections, closing ones included; wanted: without those; most: the limit. use: the value of the
 * new connection, spare: the value of the least useful old connection that can be closed; UINT32_MAX: none.
 */
static inline enum mr_quota_answer mr_quota_ask(unsigned held, unsigned wanted, unsigned most, uint32_t use,
                                                uint32_t spare)
{
    if (held < most)
        return MR_QUOTA_OPEN;
    if (wanted < most)
        return MR_QUOTA_WAIT;
    return spare != UINT32_MAX && spare < use / 2 ? MR_QUOTA_MAKE_ROOM : MR_QUOTA_NO;
}

/* The value of a peer after a tick with so many packets: half of the older value is forgotten. */
static inline uint32_t mr_quota_use(uint32_t use, uint32_t packets)
{
    uint64_t sum = (uint64_t)(use / 2) + packets;

    return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX - 1;
}

/* Packets per second: half of the last tick, of passed_ns, half of the ticks before. */
static inline uint32_t mr_quota_rate(uint32_t rate, uint32_t packets, uint64_t passed_ns)
{
    uint64_t now = passed_ns ? packets * 1000000000ull / passed_ns : 0, mean = (now + rate) / 2;

    return mean < UINT32_MAX ? (uint32_t)mean : UINT32_MAX;
}

/* A peer that has refused so often in a row, at least once, is left alone for so long. */
#define MR_QUOTA_PAUSE_NS     50000000ull
#define MR_QUOTA_PAUSE_MAX_NS 5000000000ull
static inline uint64_t mr_quota_pause(unsigned refusals)
{
    uint64_t pause = MR_QUOTA_PAUSE_NS << (refusals < 10 ? refusals - (refusals > 0) : 9);

    return pause < MR_QUOTA_PAUSE_MAX_NS ? pause : MR_QUOTA_PAUSE_MAX_NS;
}

#endif
