/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adaptive weights: a subchannel gets as much of each large message as it has shown that it carries, so that all stripes
 * of a message are done at the same time. Pure: times come from the caller, who tells them when completions are found.
 *
 * A sample is the rate of a run: from the first stripe on an idle subchannel until it is idle again, or has done
 * MR_ADAPT_RUN bytes. A completion may be found late, since the process computes or does not run, so the median of
 * MR_ADAPT_SAMPLES of each subchannel counts. Weights then go half of the way to the rates. Rates that are nearly alike
 * count as alike: rails that are equal stay at equal weights. None falls below MR_WEIGHT_MIN, and now and then every
 * subchannel gets a piece (rail/sched.h), so that one that has recovered is found out.
 */
#ifndef MRMPI_ADAPT_H
#define MRMPI_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/rail/sched.h"

#define MR_ADAPT_SAMPLES 5
#define MR_ADAPT_RUN     (512u << 10) /* bytes */

struct mr_flow {
    unsigned open;            /* stripes under way */
    unsigned samples;         /* since the last weighing */
    uint64_t since_ns, bytes; /* of the run */
    uint64_t rate[MR_ADAPT_SAMPLES];
};

struct mr_adapt {
    struct mr_flow flow[MR_SUBS_MAX];
};

/* A stripe was handed to the HCA. */
void mr_adapt_started(struct mr_adapt *a, unsigned sub, uint64_t now_ns);
/* A stripe of len bytes is done. */
void mr_adapt_finished(struct mr_adapt *a, unsigned sub, uint64_t len, uint64_t now_ns);
/*
 * New weights, once there are samples enough of every subchannel in use; the largest is MR_WEIGHT_MAX. True if they are
 * not those from before.
 */
bool mr_adapt_weigh(struct mr_adapt *a, struct mr_load *load, unsigned n);

#endif
