/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ahead budget: how much a process may send on levels that go ahead of its class's bulk (small messages in the
 * ports' high-priority table, medium ones on a lane of their own). The tables divide a link among lanes, not among
 * classes, so what goes ahead is not weighed against the share of the class. Within the budget it is too little to
 * matter; what is more goes with the bulk, where the share binds (docs/design/qos.md). Pure.
 *
 * A token bucket (bucket.h) for each port and level. Once it is empty nothing goes ahead until it is half full again:
 * packets that overtake each other by turns would only wait for each other at the receiver. The clock is read by the
 * caller, and only while the bucket is empty.
 *
 * A flood of a few bytes may use up an adapter's time and little of the link. So a second bucket for each port, in
 * nanoseconds of the adapter's time, is filled at the share of the process. Every small message costs the time for a
 * message, also one that goes with the bulk: while small messages take more than the share, none goes ahead.
 */
#ifndef MRMPI_AHEAD_H
#define MRMPI_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/conn/route/bucket.h"

#define MR_AHEAD_WIRE     64u    /* bytes that a packet has besides its payload: headers and checksums */
#define MR_AHEAD_DEPTH_US 200u   /* of a full bucket, at its rate, */
#define MR_AHEAD_LEAST    16384u /* in bytes at least */
#define MR_AHEAD_LOOK     8u     /* while it is empty one message in so many reads the clock, */
#define MR_AHEAD_LONG     2048u  /* and each that is so long */

struct mr_ahead {
    struct mr_bucket bucket; /* of bytes, or of nanoseconds of an adapter */
    unsigned looks;
    bool empty;
};

/* The rate at which a port signals that carries so much data, in Mbit/s. */
uint32_t mr_ahead_signal_mbps(uint32_t data_mbps);
/* Bytes per second of a port's rate in Mbit/s (as it signals: 8 bits in 10 up to QDR): a part of all. */
uint64_t mr_ahead_rate(uint32_t rate_mbps, unsigned part, unsigned all);
/* Nanoseconds per second: a part of all of an adapter's time. */
uint64_t mr_ahead_time(unsigned part, unsigned all);
/* Nanoseconds that the adapter of a port with this rate, as it signals, takes for a message. */
unsigned mr_ahead_message_ns(uint32_t rate_mbps);
/* Another rate, 0: no limit. The bucket is full if it had none before; else what is left stays. */
void mr_ahead_set(struct mr_ahead *a, uint64_t rate, uint64_t now_ns);
/* Of an empty bucket: what has come in by now. True: messages may go ahead again. */
bool mr_ahead_fill(struct mr_ahead *a, uint64_t now_ns);

/* The bucket is empty, and it is not the turn of this message to look at the clock. */
static inline bool mr_ahead_waits(struct mr_ahead *a, size_t len)
{
    return len < MR_AHEAD_LONG && a->looks++ % MR_AHEAD_LOOK != 0;
}

/* A message of len bytes goes ahead. */
static inline void mr_ahead_take(struct mr_ahead *a, size_t len)
{
    if (!a->bucket.rate)
        return;
    mr_bucket_take(&a->bucket, len + MR_AHEAD_WIRE);
    if (a->bucket.left <= 0) {
        a->empty = true;
        a->looks = 0;
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
        a->looks = 0;
    }
}

#endif
