/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adaptive weights: a subchannel gets as much of each large message as it has shown that it carries, so that all
 * stripes of a message are done at the same time. Pure: times come from the caller, who tells them when completions are
 * found.
 *
 * A sample is the rate of a run: from the first stripe on an idle subchannel until it is idle again, or has done
 * MR_ADAPT_RUN bytes. Only runs count that had a stripe of a message that was cut: their likes on the other subchannels
 * were as long as their weights say, while whole messages are of any length, and short ones always slow. A completion
 * may be found late, since the process computes or does not run, and a short stripe may wait behind packets, so the
 * median of the last MR_ADAPT_SAMPLES of each subchannel counts, by bytes; where two are in the middle the upper one,
 * since time is only ever added.
 *
 * A run in which the process was away, registering memory, is no sample: stripes of one rail are found before that and
 * those of another one after it, always the same. Nor is one that has begun while the process was behind: those that
 * have come meanwhile are found one after the other, as fast as it can look, until it has found them all.
 *
 * When each subchannel has two new samples, with some bytes in them, weights go half of the way to the rates; the first
 * time all of it. (In twos: of two stripes that share something on the way each may win in turn.) Rates that are nearly
 * alike count as alike: rails that are equal stay at equal weights. If the very first samples are not alike, that has
 * to be seen twice: a program may begin with a burst of packets that the stripes of one subchannel waited behind. None
 * falls below MR_WEIGHT_MIN, and now and then every subchannel gets a piece (conn/route/sched.h), so that one that has
 * recovered is found out.
 */
#ifndef MRMPI_ADAPT_H
#define MRMPI_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/conn/route/sched.h"

#define MR_ADAPT_SAMPLES 6
#define MR_ADAPT_RUN     (512u << 10) /* bytes */
/* Between two weighings: samples of each subchannel, and bytes, of which each has its part. */
#define MR_ADAPT_ROUND 2
#define MR_ADAPT_BYTES (256u << 10)

struct mr_sample {
    uint64_t rate, bytes;
};

struct mr_flow {
    unsigned open;            /* stripes under way */
    unsigned samples, next;   /* how many there are, and the place of the next */
    unsigned fresh;           /* taken since the last weighing, */
    uint64_t fresh_bytes;     /* with so many bytes */
    uint64_t since_ns, bytes; /* of the run */
    bool cut;                 /* it had a stripe of a message that was cut */
    bool behind;              /* it began while the process was, */
    unsigned away;            /* and mr_adapt.away was this */
    struct mr_sample sample[MR_ADAPT_SAMPLES];
};

struct mr_adapt {
    struct mr_flow flow[MR_SUBS_MAX];
    unsigned away; /* times that the process has registered memory, */
    bool behind;   /* and what came meanwhile may not have been found yet: the caller's to keep */
    bool weighed; /* once, at least */
    bool doubted; /* the first samples said that weights are wrong, and were not believed */
};

/*
 * A stripe is handed to the HCA; cut: its message has others. Stripes of one message begin at one time, that before the
 * first of them is posted: a device whose driver does the work while it is posted to would show the last ones as the
 * fastest.
 */
void mr_adapt_started(struct mr_adapt *a, unsigned sub, bool cut, uint64_t now_ns);
/* A stripe of len bytes is done. */
void mr_adapt_finished(struct mr_adapt *a, unsigned sub, uint64_t len, uint64_t now_ns);
/* What is under way on it will not be done there. */
void mr_adapt_forget(struct mr_adapt *a, unsigned sub);
/*
 * New weights, once there are samples enough of every subchannel in use; the largest is MR_WEIGHT_MAX. True if they are
 * not those from before.
 */
bool mr_adapt_weigh(struct mr_adapt *a, struct mr_load *load, unsigned n);

#endif
