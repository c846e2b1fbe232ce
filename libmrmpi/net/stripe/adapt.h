/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adaptive weights: a subchannel gets as much of each large message as it has been seen to carry, so that all stripes
 * of a message end at the same time. Pure: times come from the caller, when completions are found.
 *
 * A sample is the rate of a run: from the first stripe on an idle subchannel until it is idle again, or has done
 * MR_ADAPT_RUN bytes. Only runs with a stripe of a cut message count: its fellows on the other subchannels were as long
 * as their weights say, while whole messages have any length, and short messages are always slow. A completion may be
 * found late, because the process computes or does not run, and a short stripe may wait behind packets. The median of
 * the last MR_ADAPT_SAMPLES of each subchannel therefore counts, by bytes; of two in the middle the upper one, because
 * delays only add time.
 *
 * A run is no sample if the process was away, registering memory: stripes of one rail are found before and those of
 * another rail after, always the same. Nor is a run a sample that began while the process was behind: completions that
 * arrived meanwhile are found one after the other, as fast as the process polls, until it has found them all.
 *
 * When each subchannel has two new samples, with some bytes in them, weights go half of the way to the rates; the first
 * time all of it. (In twos: of two stripes that share something on the way each may win in turn.) Nearly equal rates
 * count as equal: equal rails keep equal weights. If the very first samples differ, the difference has to be seen
 * twice: a program may begin with a burst of packets that delays the stripes of one subchannel. No weight falls below
 * MR_WEIGHT_MIN, and now and then every subchannel gets a piece (conn/route/sched.h), so a recovered subchannel is
 * noticed.
 */
#ifndef MRMPI_ADAPT_H
#define MRMPI_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/conn/conn.h"

#define MR_ADAPT_SAMPLES 6
#define MR_ADAPT_RUN     (512u << 10) /* bytes */
/* Between two weighings: samples of each subchannel, and bytes, each with its part. */
#define MR_ADAPT_ROUND 2
#define MR_ADAPT_BYTES (256u << 10)

struct mr_sample {
    uint64_t rate, bytes;
};

struct mr_adapt_flow {
    unsigned open;            /* stripes under way */
    unsigned samples, next;   /* how many there are, and the place of the next */
    unsigned fresh;           /* taken since the last weighing, */
    uint64_t fresh_bytes;     /* with so many bytes */
    uint64_t since_ns, bytes; /* of the run */
    bool cut;                 /* includes a stripe of a cut message */
    bool behind;              /* began while the process was behind, */
    unsigned away;            /* and mr_adapt.away was this */
    struct mr_sample sample[MR_ADAPT_SAMPLES];
};

struct mr_adapt {
    struct mr_adapt_flow flow[MR_SUBS_MAX];
    unsigned away; /* times that the process has registered memory, */
    bool behind;   /* and completions since then may not have been found yet: the caller's to keep */
    bool weighed;  /* once, at least */
    bool doubted;  /* the first samples said that weights are wrong, and were not believed */
};

/*
 * A stripe is handed to the HCA; cut: its message has others. Stripes of one message begin at one time, before the
 * first of them is posted: a device whose driver works during the post would otherwise show the last stripes as the
 * fastest.
 */
void mr_adapt_started(struct mr_adapt *a, unsigned sub, bool cut, uint64_t now_ns);
/* A stripe of len bytes is done. */
void mr_adapt_finished(struct mr_adapt *a, unsigned sub, uint64_t len, uint64_t now_ns);
/* Its stripes under way will not be done there. */
void mr_adapt_forget(struct mr_adapt *a, unsigned sub);
/*
 * New weights, once every subchannel in use has enough samples; the largest is MR_WEIGHT_MAX. True if they have
 * changed.
 */
bool mr_adapt_weigh(struct mr_adapt *a, struct mr_load *load, unsigned n);

#endif
