/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pairs of two ranks' rails. Pure: from two addresses to a list, the same at both ends.
 *
 * Rails are paired within a subnet. On InfiniBand a subnet is a prefix of GIDs; on RoCE a version and a family of
 * addresses. In each subnet the k-th rail of one side is paired with the k-th of the other, in the order of the
 * addresses, or, if all pairs together carry more so, in the order of their ports' rates. The side with fewer rails
 * there begins again with its first, so every rail of the other side has a pair. If both ranks want all pairs, every
 * two rails of a subnet are a pair. For each LID path of a pair there is a subchannel.
 */
#ifndef MRMPI_PAIR_H
#define MRMPI_PAIR_H

#include "libmrmpi/conn/route/sched.h"
#include "libmrmpi/verbs/verbs.h"

/*
 * Without a wish for paths (MRMPI_PATHS) a pair has path 0, and large messages get further paths if fabricd knows
 * disjoint ones, after so many bytes of large messages: a fast rail carries about half in the time of a handshake.
 */
#define MR_PATHS_AFTER (1u << 20)

/* A rank's side of the pairing. */
struct mr_pair_side {
    const struct mr_rail_addr *rail;
    unsigned num_rails;
    unsigned paths; /* wanted LID paths, at least 1 */
    bool all;       /* wants all pairs */
};

struct mr_pair {
    uint8_t rail[2]; /* of the first side, of the second */
    uint8_t path;
    uint32_t weight;       /* at first (mr_pair_weigh) */
    uint32_t small_weight; /* struct mr_load's (conn/peer/spread.c) */
};

/* True if a packet can go from one to the other. */
bool mr_pair_reaches(const struct mr_rail_addr *a, const struct mr_rail_addr *b);
/*
 * At most so many, and MR_SUBS_MAX; with more, each pair has fewer paths, and *left_out is the number left out. Both
 * ends get the same result if they agree on the first side: the lower rank.
 */
unsigned mr_pair_match(const struct mr_pair_side *first, const struct mr_pair_side *second,
                       struct mr_pair out[MR_SUBS_MAX], unsigned most, unsigned *left_out);
/*
 * Weights by the ports' rates (by_rate; else all ports count the same): a port shared by several subchannels gives each
 * its part. The largest is MR_WEIGHT_MAX. Returns the largest subchannel's part of its port, in Mb/s.
 */
uint32_t mr_pair_weigh(struct mr_pair *pair, unsigned n, const struct mr_pair_side *first,
                       const struct mr_pair_side *second, bool by_rate);

/*
 * First weights by the policies of small and of large messages of side[ours]: policy[MR_POLICY_CLASSES]. A text's
 * weight for a rail shared by several subchannels is divided among them; a rail without a weight counts 1. Returns the
 * rate of the fastest by the ports' rates, in Mb/s.
 */
uint32_t mr_pair_weigh_for(struct mr_pair *pair, unsigned n, const struct mr_pair_side side[2], unsigned ours,
                           const struct mr_policy policy[]);

#endif
