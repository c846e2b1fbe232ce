/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adaptive striping as printed: the weights of the subchannels follow the times of the stripes of one message (Liu,
 * Vishnu and Panda, SC 2004, section 4.5, Equations 3 and 4). Pure. Meant for measurements beside net/stripe/adapt.h,
 * the better choice for users.
 *
 *     W'[i] = (1 - alpha) W[i] + alpha Wtotal (W[i]/t[i]) / sum of W[k]/t[k]        Equation 3: alpha = 1
 *
 * Weights are whole numbers whose sum stays Wtotal. The paper leaves two things open: losses by rounding go to the
 * subchannels with the largest losses, and an active subchannel keeps a weight of at least 1, because a weight of 0
 * would stay 0 for ever. A message over some of the subchannels redistributes their weights only.
 */
#ifndef MRMPI_FEEDBACK_H
#define MRMPI_FEEDBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/conn/conn.h"

struct mr_feedback {
    uint32_t weight[MR_SUBS_MAX]; /* in sum the total, of the subchannels in use */
    bool begun;
};

/* A stripe of a message: where, and how long it took. */
struct mr_feedback_time {
    unsigned sub;
    uint64_t took_ns;
};

/*
 * A message is done: new weights of its subchannels, in load (the largest is MR_WEIGHT_MAX). num subchannels in all;
 * alpha above 0, up to 1. True if they have changed. Less than two stripes say nothing.
 */
bool mr_feedback_weigh(struct mr_feedback *f, struct mr_load *load, unsigned num, const struct mr_feedback_time t[],
                       unsigned n, double alpha, uint32_t total);

#endif
