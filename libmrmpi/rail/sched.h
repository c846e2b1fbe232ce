/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication scheduler: which subchannel takes a packet, and how a large message is cut over several. Pure: from
 * data to data. Weights are relative; equal ones give round robin and even striping (rail/adapt.h has them follow what is
 * measured).
 */
#ifndef MRMPI_SCHED_H
#define MRMPI_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#define MR_SUBS_MAX 32 /* subchannels to one peer: pairs of rails times LID paths */

#define MR_WEIGHT_MAX 1024u
#define MR_WEIGHT_MIN 32u

struct mr_load {
    bool up;
    uint32_t weight; /* up to MR_WEIGHT_MAX */
};

struct mr_sched {
    unsigned next;                /* whose turn it is */
    unsigned plans;               /* made since all subchannels had a part */
    uint32_t credit[MR_SUBS_MAX]; /* of those whose weight is not the largest */
};

struct mr_stripe {
    unsigned sub;
    uint64_t offset, len;
};

/* The next subchannel in turn that is up; n if none is. Each comes as often as its weight says. */
unsigned mr_sched_pick(struct mr_sched *s, const struct mr_load *load, unsigned n);

/*
 * Cut [0, len) into stripes, each on a subchannel of its own; the cuts are multiples of align. Messages shorter than
 * stripe_min stay whole, and no stripe is made shorter than about half of it: a subchannel whose part would be less gets
 * none, but for one message in MR_PLANS_PROBE, so that it is not forgotten. Returns the number of stripes (0: no
 * subchannel is up); their offsets ascend and they cover the message without gaps.
 */
#define MR_PLANS_PROBE 64
unsigned mr_sched_plan(struct mr_sched *s, const struct mr_load *load, unsigned n, uint64_t len, uint64_t stripe_min,
                       uint64_t align, struct mr_stripe out[MR_SUBS_MAX]);

#endif
