/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pace of reads. If an adapter's bus is slower than its cable, traffic of many peers to this host fills the
 * adapter's buffers, and neither lanes nor shares matter any more. Large messages arrive by our reads. fabricd
 * therefore divides the bus among the reading processes of the host, by class, and tells each its rate; the processes
 * report their reads in turn. Reads are posted in pieces, within the rate. Pure.
 *
 * A token bucket (bucket.h) for each rail. The bucket holds little, so unused reads do not come all at once later. The
 * caller reads the clock, while the bucket is empty.
 */
#ifndef MRMPI_PACE_H
#define MRMPI_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/conn/route/bucket.h"

#define MR_PACE_PIECE       4096u      /* bytes read at a time */
#define MR_PACE_LONG        16384u     /* while there is no limit, but one may come: each costs the adapter something */
#define MR_PACE_DEPTH       4096       /* of a full bucket, in bytes */
#define MR_PACE_INTERVAL_NS 3000000ull /* reads are counted in such intervals */
#define MR_PACE_ALL         UINT32_MAX
/*
 * Packets at a pace are short, and their bucket holds less than one of them: of several senders without knowledge of
 * each other, one packet each meets in front of the bus, not a message each. The bucket compensates for a sender that
 * is late by so much.
 */
#define MR_PACE_PACKET    2048u /* with its header */
#define MR_PACE_LATE_NS   1300u
#define MR_PACE_UNDER_WAY 32768u                 /* bytes of packets to a peer that has a pace, */
#define MR_PACE_READING   32768u                 /* and of reads from such a peer */
#define MR_PACE_ALONE     (UINT32_MAX * 1000ull) /* a rate: no limit, but a limit may come */

struct mr_pace {
    struct mr_bucket bucket; /* of bytes */
    unsigned late_ns;        /* the owner's, before the first rate: a full bucket holds the rate's bytes of so long; 0:
                                MR_PACE_DEPTH */
    uint64_t taken;          /* bytes, in this interval, */
    uint64_t arrived, arrived_ns; /* and the bytes of packets until then, in all, */
    uint64_t owed;                /* of which so many are still to be subtracted from reads */
    bool waited;                  /* in this interval something did, */
    bool held;                    /* or senders of packets are held to the rate */
};

/* The last report to fabricd. */
struct mr_pace_report {
    uint32_t told; /* 10^3 bytes per second on one rail; MR_PACE_ALL: as much as possible */
    uint64_t since_ns;
};

static inline bool mr_pace_limits(const struct mr_pace *p)
{
    return p->bucket.rate && p->bucket.rate != MR_PACE_ALONE;
}

/* Another rate; 0: no limit. arrived: see below. */
void mr_pace_set(struct mr_pace *p, uint64_t rate, uint64_t arrived, uint64_t now_ns);
/* Of an empty bucket: adds the rate's bytes so far. True: a piece may go. */
bool mr_pace_fill(struct mr_pace *p, uint64_t now_ns);
/*
 * Packets take from the bus too, unrequested: of the reads allowed since the last call they may take a half, and the
 * rest of their bytes is subtracted in the next calls, up to MR_PACE_READING. arrived: their bytes, in all.
 */
void mr_pace_arrived(struct mr_pace *p, uint64_t arrived, uint64_t now_ns);
/*
 * True if fabricd needs a report about these buckets, then in r->told: at once if the rate holds something back, else
 * after an interval without holding back, if the difference is large.
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
