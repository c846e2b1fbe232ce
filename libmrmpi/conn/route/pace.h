/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pace of reads. Where an adapter's bus is slower than its cable, what many peers send to this host fills the
 * adapter's buffers, and neither lanes nor shares matter any more. Large messages come by reads of ours. So fabricd
 * divides the bus among the processes of the host that read, by class, and tells each its rate; it is told in turn who
 * reads, and how much. Reads are posted in pieces, which keep to the rate. Pure.
 *
 * A token bucket (bucket.h) for each rail. It holds little, so that what was not read before does not come at once. The
 * clock is read by the caller, while the bucket is empty.
 */
#ifndef MRMPI_PACE_H
#define MRMPI_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/conn/route/bucket.h"

#define MR_PACE_PIECE   4096u      /* bytes that are read at a time */
#define MR_PACE_LONG      16384u /* while there is no limit, but one may come: each costs the adapter something */
#define MR_PACE_DEPTH   4096       /* of a full bucket, in bytes */
#define MR_PACE_LOOK_NS 3000000ull /* what is read is counted in such intervals */
#define MR_PACE_ALL     UINT32_MAX
/*
 * Packets at a pace are short, and their bucket holds less than one of them: of several senders, who know nothing of
 * each other, one packet each meets in front of the bus, not a message each. It makes up for a sender who is late by
 * so much.
 */
#define MR_PACE_PACKET  2048u /* with its header */
#define MR_PACE_LATE_NS 1300u
#define MR_PACE_UNDER_WAY 32768u /* bytes of packets to a peer that has a pace, */
#define MR_PACE_READING   32768u /* and of reads from one */
#define MR_PACE_ALONE     (UINT32_MAX * 1000ull) /* a rate: no limit, but one may come */

struct mr_pace {
    struct mr_bucket bucket; /* of bytes */
    unsigned late_ns; /* the owner's, before the first rate: a full bucket is what comes in so long; 0: MR_PACE_DEPTH */
    uint64_t taken; /* bytes, in this interval, */
    uint64_t arrived, arrived_ns; /* and those that packets have brought until then, in all, */
    uint64_t owed;                /* of which so many are still to be taken off what may be read */
    bool waited;    /* in this interval something did, */
    bool held;      /* or senders of packets are held to the rate */
};

/* What fabricd has been told. */
struct mr_pace_report {
    uint32_t told; /* 10^3 bytes per second on one rail; MR_PACE_ALL: as much as it gets */
    uint64_t since_ns;
};

static inline bool mr_pace_limits(const struct mr_pace *p)
{
    return p->bucket.rate && p->bucket.rate != MR_PACE_ALONE;
}

/* Another rate; 0: no limit. arrived: see below. */
void mr_pace_set(struct mr_pace *p, uint64_t rate, uint64_t arrived, uint64_t now_ns);
/* Of an empty bucket: what has come in by now. True: a piece may go. */
bool mr_pace_fill(struct mr_pace *p, uint64_t now_ns);
/*
 * Packets take from the bus, too, and nobody has asked for them: of what may be read since the last call they may take
 * a half, and the rest of what they have brought is taken off in the next calls, up to MR_PACE_READING. arrived: bytes
 * of them, in all.
 */
void mr_pace_arrived(struct mr_pace *p, uint64_t arrived, uint64_t now_ns);
/*
 * Has fabricd something to be told of these buckets? Then it is in r->told: at once if the rate holds something back,
 * else after an interval in which it did not, if there is much of a difference.
 */
bool mr_pace_report(struct mr_pace_report *r, struct mr_pace *p, unsigned n, uint64_t now_ns);

static inline size_t mr_pace_piece(const struct mr_pace *p)
{
    return mr_pace_limits(p) ? MR_PACE_PIECE : MR_PACE_LONG;
}

/* How long until a piece may go, of an empty bucket that was just filled. */
static inline uint64_t mr_pace_wait_ns(const struct mr_pace *p)
{
    return (uint64_t)(1 - p->bucket.left) * MR_BUCKET_SECOND_NS / p->bucket.rate + 1;
}

static inline void mr_pace_take(struct mr_pace *p, size_t len)
{
    if (mr_pace_limits(p))
        mr_bucket_take(&p->bucket, len);
    p->taken += len;
}

#endif
