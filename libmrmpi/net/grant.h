/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grants: the parts of a process's ahead budget (ahead.h) for its senders. Budgets bound the traffic that leaves a
 * host; on the cable of one receiver as many budgets could meet as hosts send to it. A receiver therefore counts the
 * peers that have sent lately and tells each its part; the sender keeps a bucket of that rate for the peer beside the
 * buckets of its rails. The number is rounded up to a power of two, and goes down only after a while without need:
 * peers that come and go do not cost a message each time. Pure.
 *
 * If the receiver's bus is slower than its cable (pace.h) the same messages give each sender a pace for all packets to
 * this process, a part of its own pace: the buffers of the adapter stay empty. A sender then keeps little under way,
 * and cuts its messages into short packets.
 */
#ifndef MRMPI_GRANT_H
#define MRMPI_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_GRANT_NS      1000000ull  /* an interval; peers are counted after each, */
#define MR_GRANT_PEER_NS 8000ull     /* longer by so much for each peer: the messages take no more than a few percent */
#define MR_GRANT_CALM    16u         /* so many intervals in a row with fewer senders, and there are fewer */
#define MR_GRANT_FINE    4u          /* an unused pace is told after a change by such a part */
#define MR_GRANT_MOST_KB 1000000000u /* no sender may say more: a TB/s */

/* Of this process, as a receiver. All 0 at first. */
struct mr_grants {
    uint32_t sharers; /* that the budget is divided among; 0: nothing has come yet */
    uint32_t most;    /* in the intervals in a row with fewer senders */
    unsigned calm;    /* the number of these intervals */
    uint64_t ticked_ns;
    uint32_t arrived; /* packets, of all peers, then */
    unsigned met;     /* peers, then */
    bool said;        /* some peer was told */
    /* where reads are paced (pace.h): bytes of packets then, and parts that had been read */
    uint64_t bytes;
    unsigned parts;
};

/* True if a pace in kB/s differs enough to be told to the peer. exact: the pace is used up. */
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
/* While this process has a budget, or has told one: counts the senders, and tells them if due. */
void mr_grant_tick(uint64_t now_ns);
/* A peer's message about its grant: true if it was one. */
bool mr_grant_control(struct mr_peer *p, const struct mr_hdr *hdr, size_t len);

#endif
