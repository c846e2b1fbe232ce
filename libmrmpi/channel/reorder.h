/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The out-of-order queue of one direction of a virtual channel: puts packets that took different subchannels back into
 * their order, and drops duplicates. Pure: no network, no clock.
 *
 * Sequence numbers are 32 bits and wrap; a packet less than 2^31 ahead of the expected number is early, any other is a
 * duplicate. A packet further ahead than a peer may send is refused: the peer's window, and the packets confirmed by
 * its adapter that may wait in receive queues here, bound the held packets. A held packet stays in its receive buffer
 * if that is retained (base/retained.h), else the queue has a copy of it. It is the caller's after mr_reorder_pop().
 */
#ifndef MRMPI_REORDER_H
#define MRMPI_REORDER_H

#include "libmrmpi/base/retained.h"
#include "libmrmpi/base/packet.h"

#define MR_REORDER_AHEAD_MAX 65536

struct mr_held {
    struct mr_held *next;
    size_t len;
    struct mr_retained *retained; /* NULL: payload is copy */
    const void *payload;
    struct mr_hdr hdr;
    unsigned char copy[];
};

struct mr_reorder {
    uint32_t expected;
    unsigned num_held;
    struct mr_held *head, *tail; /* ascending by distance from expected */
};

enum mr_reorder_case { MR_ORDER_NEXT, MR_ORDER_EARLY, MR_ORDER_DUPLICATE, MR_ORDER_REFUSED };

static inline enum mr_reorder_case mr_reorder_classify(const struct mr_reorder *r, uint32_t seq)
{
    uint32_t ahead = seq - r->expected;

    if (likely(ahead == 0))
        return MR_ORDER_NEXT;
    if (ahead >= 0x80000000u)
        return MR_ORDER_DUPLICATE;
    return ahead <= MR_REORDER_AHEAD_MAX ? MR_ORDER_EARLY : MR_ORDER_REFUSED;
}

/* Keep an early packet. 1: kept, 0: it was there already, -ENOMEM. */
int mr_reorder_hold(struct mr_reorder *r, const struct mr_hdr *hdr, const void *payload, size_t len);

/* The caller has delivered the expected packet. */
static inline void mr_reorder_advance(struct mr_reorder *r)
{
    r->expected++;
}

/* Takes the held packet that is due now; NULL if it has not come. The caller delivers it, advances and frees it. */
struct mr_held *mr_reorder_pop(struct mr_reorder *r);
void mr_reorder_free(struct mr_held *held);

void mr_reorder_clear(struct mr_reorder *r);

#endif
