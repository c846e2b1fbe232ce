/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ahead budget: the amount that a process may send on levels ahead of its class's bulk (small messages in the
 * ports' high-priority table, medium messages on a lane of their own). The tables divide a link among lanes, not among
 * classes, so traffic ahead does not count against the share of the class. Within the budget the traffic is too little
 * to matter; further traffic goes with the bulk, where the share binds (docs/design/qos.md). Pure.
 *
 * A token bucket (bucket.h) for each port and level. Once the bucket is empty nothing goes ahead until it is half full
 * again: packets that overtake each other in turns would only wait for each other at the receiver. The caller reads the
 * clock, only while the bucket is empty.
 *
 * A flood of a few bytes may use up an adapter's time and little of the link. A second bucket for each port, in
 * nanoseconds of the adapter's time, is therefore filled at the share of the process. Every small message costs the
 * time of a message, also with the bulk: while small messages take more than the share, none goes ahead.
 */
#ifndef MRMPI_AHEAD_H
#define MRMPI_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/conn/route/bucket.h"

#define MR_AHEAD_WIRE     64u    /* bytes of a packet besides its payload: headers and checksums */
#define MR_AHEAD_DEPTH_US 200u   /* of a full bucket, at its rate, */
#define MR_AHEAD_LEAST    16384u /* in bytes at least */
#define MR_AHEAD_POLL     8u     /* while the bucket is empty one message in so many reads the clock, */
#define MR_AHEAD_LONG     2048u  /* and each of at least so many bytes */

struct mr_ahead {
    struct mr_bucket bucket; /* of bytes, or of nanoseconds of an adapter */
    unsigned polls;
    bool empty;
};

/* The signalling rate of a port with that data rate, in Mbit/s. */
uint32_t mr_ahead_signal_mbps(uint32_t data_mbps);
/* Bytes per second of a port's rate in Mbit/s (as it signals: 8 bits in 10 up to QDR): a part of all. */
uint64_t mr_ahead_rate(uint32_t rate_mbps, unsigned part, unsigned all);
/* Nanoseconds per second: a part of all of an adapter's time. */
uint64_t mr_ahead_time(unsigned part, unsigned all);
/* Nanoseconds per message of the adapter of a port with this signalling rate. */
unsigned mr_ahead_message_ns(uint32_t rate_mbps);
/* Another rate, 0: no limit. The bucket is full if it had no limit before; else its contents stay. */
void mr_ahead_set(struct mr_ahead *a, uint64_t rate, uint64_t now_ns);
/* Of an empty bucket: adds the rate's bytes so far. True: messages may go ahead again. */
bool mr_ahead_fill(struct mr_ahead *a, uint64_t now_ns);

/* The bucket is empty, and it is not the turn of this message to read the clock. */
static inline bool mr_ahead_waits(struct mr_ahead *a, size_t len)
{
    return len < MR_AHEAD_LONG && a->polls++ % MR_AHEAD_POLL != 0;
}

/* A message of len bytes goes ahead. */
static inline void mr_ahead_take(struct mr_ahead *a, size_t len)
{
    if (!a->bucket.rate)
        return;
    mr_bucket_take(&a->bucket, len + MR_AHEAD_WIRE);
    if (a->bucket.left <= 0) {
        a->empty = true;
        a->polls = 0;
    }
}

/* The adapter handles a message, ahead or not. It owes a full bucket at most: a flood is forgotten soon. */
static inline void mr_ahead_handle(struct mr_ahead *a, unsigned message_ns)
{
    if (!a->bucket.rate || a->bucket.left <= -a->bucket.depth)
        return;
    mr_bucket_take(&a->bucket, message_ns);
    if (a->bucket.left <= 0 && !a->empty) {
        a->empty = true;
        a->polls = 0;
    }
}

#endif
