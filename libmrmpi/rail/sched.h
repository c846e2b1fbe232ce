/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication scheduler: which subchannel takes a packet, and how a large message is cut over several. Pure: from
 * data to data. Weights are relative; equal ones give even striping and, to packets of one length, round robin (rail/adapt.h
 * has them follow what is measured).
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
    unsigned next;             /* whose turn it is, among equals */
    unsigned plans;            /* made since all subchannels had a part */
    uint64_t now;              /* what the one that was taken last had carried before */
    uint64_t due[MR_SUBS_MAX]; /* what each has carried, in bytes of the heaviest: less goes first */
};

struct mr_stripe {
    unsigned sub;
    uint64_t offset, len;
};

/*
 * Of the subchannels that are up, the one that has carried the least for its weight, in turn among equals; none of those
 * in the set but (bit i: subchannel i); n if there is none. By bytes, not by packets: of a program that sends a short and a
 * long message in turn, one rail must not get all long ones.
 */
unsigned mr_sched_pick(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint32_t but);
/* It has taken a packet, or a message, of len bytes. */
void mr_sched_charge(struct mr_sched *s, const struct mr_load *load, unsigned n, unsigned i, uint64_t len);

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
