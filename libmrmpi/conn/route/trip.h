/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long an answer over a way may take. Pure. The owner keeps one struct for each way, all zero at first, and adds
 * the time from each question to its answer.
 *
 * There are two quantities, as with time-outs (conn/reliable/rtt.h). The mean contains the queues of the way: packets
 * wait behind large messages, each time about as long. The excess is the largest lateness beyond the mean; later
 * answers let the excess fade. Lateness comes from processors that others share: with soft-RoCE a processor moves the
 * packets of all ways, and what happened to one way will happen to another. So the largest excess of all ways to a
 * peer counts for each, but only the mean of the way itself.
 */
#ifndef MRMPI_TRIP_H
#define MRMPI_TRIP_H

#include <stdint.h>

#define MR_TRIP_TIMES 4 /* the excess, that an answer may be later than the mean */

struct mr_trip {
    uint64_t mean_ns; /* 0: no answer has come yet */
    uint64_t excess_ns;
};

static inline void mr_trip_add(struct mr_trip *t, uint64_t took_ns)
{
    uint64_t excess = !t->mean_ns ? took_ns / 2 : took_ns > t->mean_ns ? took_ns - t->mean_ns : 0;

    t->excess_ns = excess > t->excess_ns ? excess : t->excess_ns - (t->excess_ns - excess) / 8;
    t->mean_ns = t->mean_ns ? (3 * t->mean_ns + took_ns) / 4 : took_ns;
}

/* How long an answer over the way may take. excess_ns: the largest of all ways. */
static inline uint64_t mr_trip_most(const struct mr_trip *t, uint64_t excess_ns)
{
    return t->mean_ns + MR_TRIP_TIMES * excess_ns;
}

#endif
