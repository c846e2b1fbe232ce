/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adaptive striping as printed: the weights of the subchannels follow the times that the stripes of one message took
 * (Liu, Vishnu and Panda, SC 2004, section 4.5, Equations 3 and 4). Pure. It is there to be measured beside
 * conn/route/adapt.h, which is what a user should want.
 *
 *   W'[i] = (1 - alpha) W[i] + alpha Wtotal (W[i]/t[i]) / sum of W[k]/t[k]        Equation 3: alpha = 1
 *
 * Weights are whole numbers whose sum stays Wtotal. Two things that the paper leaves open: what is lost in rounding
 * goes to those that lost most by it, and a subchannel that is up keeps a weight of 1 at least, since one of 0 would
 * stay 0 for ever. A message that did not go over all of them redistributes the weights of those that it went over.
 */
#ifndef MRMPI_FEEDBACK_H
#define MRMPI_FEEDBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/conn/route/sched.h"

struct mr_feedback {
    uint32_t weight[MR_SUBS_MAX]; /* in sum the total, of those that took part */
    bool begun;
};

/* A stripe of a message: where, and how long it took. */
struct mr_feedback_time {
    unsigned sub;
    uint64_t took_ns;
};

/*
 * A message is done: new weights of its subchannels, in load (the largest is MR_WEIGHT_MAX). num subchannels in all;
 * alpha above 0, up to 1. True if they are not those from before. Less than two stripes say nothing.
 */
bool mr_feedback_weigh(struct mr_feedback *f, struct mr_load *load, unsigned num, const struct mr_feedback_time t[],
                       unsigned n, double alpha, uint32_t total);

#endif
