/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rail of one rank goes with which rail of another. Pure: from two addresses to a list, the same at both ends.
 *
 * Rails are paired within a subnet. On InfiniBand a subnet is a prefix of GIDs; on RoCE it is a version and a family of
 * addresses. In each subnet the k-th rail of one side goes with the k-th of the other, as addresses list them, or, if
 * all pairs together carry more so, in the order of their ports' rates. The side that has fewer there begins again with
 * its first, so that every rail of the other one has a pair. If both ranks want all pairs, every two rails of a subnet
 * are one. For each LID path of a pair there is a subchannel.
 */
#ifndef MRMPI_PAIR_H
#define MRMPI_PAIR_H

#include "libmrmpi/conn/route/sched.h"
#include "libmrmpi/verbs/rail.h"

/*
 * Without a wish for paths (MRMPI_PATHS) a pair has path 0, and large messages further paths if fabricd knows disjoint
 * ones, when so many bytes of large messages have gone: a fast rail carries about half in the time of a handshake.
 */
#define MR_PATHS_AFTER (1u << 20)

/* What a rank says of itself. */
struct mr_pair_side {
    const struct mr_rail_addr *rail;
    unsigned num_rails;
    unsigned paths; /* LID paths that it wants, at least 1 */
    bool all;       /* it wants all pairs */
};

struct mr_pair {
    uint8_t rail[2]; /* of the first side, of the second */
    uint8_t path;
    uint32_t weight;       /* at first (mr_pair_weigh) */
    uint32_t small_weight; /* struct mr_load's (conn/peer/spread.c) */
};

/* Can a packet go from one to the other? */
bool mr_pair_reaches(const struct mr_rail_addr *a, const struct mr_rail_addr *b);
/*
 * At most so many, and MR_SUBS_MAX; where there are more, each pair has fewer paths, and *left_out says how many are
 * left out. Both ends come to the same if they agree on the first side: it is the lower rank.
 */
unsigned mr_pair_match(const struct mr_pair_side *first, const struct mr_pair_side *second,
                       struct mr_pair out[MR_SUBS_MAX], unsigned most, unsigned *left_out);
/*
 * Weights by the ports' rates (by_rate; else all ports count the same): a port that several subchannels share gives
 * each its part. The largest is MR_WEIGHT_MAX. Returns what that one gets of its port, in Mb/s.
 */
uint32_t mr_pair_weigh(struct mr_pair *pair, unsigned n, const struct mr_pair_side *first,
                       const struct mr_pair_side *second, bool by_rate);

/*
 * First weights as the policies of small and of large messages of side[ours] have them: policy[MR_POLICY_CLASSES]. What
 * a text gives to a rail that several subchannels share is divided among them; a rail that it leaves out counts 1.
 * Returns what the fastest gets by the ports' rates, in Mb/s.
 */
uint32_t mr_pair_weigh_for(struct mr_pair *pair, unsigned n, const struct mr_pair_side side[2], unsigned ours,
                           const struct mr_policy policy[]);

#endif
