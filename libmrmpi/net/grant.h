/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grants: how much of its ahead budget (ahead.h) a process leaves to each of those that send to it. Budgets bound what
 * leaves a host; what meets on the cable of one receiver could be as many budgets as hosts send to it. So a receiver
 * counts the peers from which packets have come lately and tells each its part, and the sender keeps a bucket of that
 * rate for the peer beside those of its rails. The number is rounded up to a power of two, and goes down only when it
 * was not needed for a while: peers that come and go do not cost a message each time. Pure.
 *
 * Where the receiver's bus is slower than its cable (pace.h) the same messages give each sender a pace for all packets
 * to this process, a part of its own pace: the buffers of the adapter stay empty. A sender keeps little under way then,
 * and cuts its messages into short packets.
 */
#ifndef MRMPI_GRANT_H
#define MRMPI_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_GRANT_NS      1000000ull  /* an interval, after each of which peers are counted, */
#define MR_GRANT_PEER_NS 8000ull     /* is longer by so much for each peer: that takes no more than a few percent */
#define MR_GRANT_CALM    16u         /* so many intervals in a row with fewer senders, and there are fewer */
#define MR_GRANT_FINE    4u          /* a pace that is not used up is told if it changes by such a part */
#define MR_GRANT_MOST_KB 1000000000u /* nobody may say more: a TB/s */

/* Of this process, as a receiver. All 0 at first. */
struct mr_grants {
    uint32_t sharers; /* that the budget is divided among; 0: nothing has come yet */
    uint32_t most;    /* in the intervals in a row that had fewer */
    unsigned calm;    /* which are so many */
    uint64_t looked_ns;
    uint32_t arrived; /* packets, of all peers, then */
    unsigned met;     /* peers, then */
    bool said;        /* somebody was told something */
    /* where reads are paced (pace.h): bytes of packets then, and parts that had been read */
    uint64_t bytes;
    unsigned parts;
};

/* Is a pace in kB/s so much another one that the peer is to be told? exact: it is used up. */
static inline bool mr_grant_pace_differs(uint32_t told, uint32_t kb, bool exact)
{
    uint32_t off = told > kb ? told - kb : kb - told;

    return exact || !told || !kb ? off != 0 : off > told / MR_GRANT_FINE;
}

/* Packets of so many peers came in the last interval. Among how many the budget is divided now. */
static inline uint32_t mr_grant_count(struct mr_grants *g, uint32_t active)
{
    uint32_t n = 1;

    while (n < active && n < 1u << 31)
        n *= 2;
    if (n >= g->sharers) {
        g->sharers = n;
        g->calm = g->most = 0;
        return n;
    }
    if (n > g->most)
        g->most = n;
    if (++g->calm == MR_GRANT_CALM) {
        g->sharers = g->most;
        g->calm = g->most = 0;
    }
    return g->sharers;
}

/* The part of each, in kB/s, of a budget in bytes per second. 0: no limit. */
static inline uint32_t mr_grant_part(uint64_t budget, uint32_t sharers)
{
    uint64_t kb = budget / 1000 / (sharers ? sharers : 1);

    if (!budget)
        return 0;
    return kb < 1 ? 1 : kb > MR_GRANT_MOST_KB ? MR_GRANT_MOST_KB : (uint32_t)kb;
}

struct mr_peer;
struct mr_hdr;
/* While this process has a budget, or has said something: count the senders, tell them if it is due. */
void mr_grant_tick(uint64_t now_ns);
/* A peer's message on what it grants: true if it is one. */
bool mr_grant_control(struct mr_peer *p, const struct mr_hdr *hdr, size_t len);

#endif
