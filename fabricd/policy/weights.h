/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of the compiler (see compile.h): the low-priority table.
 *
 * A lane sends while its entry's count of 64-byte blocks is above zero. So an entry of w blocks lets
 * ceil(w / b) packets of b blocks go, up to b - 1 blocks more than its weight, and what is too much is not made good in
 * the next round. Entries are therefore multiples of the largest packet's data (its headers are one block more), and
 * rather few and heavy than many and light.
 *
 * Of all rounds that the table can hold the one is taken that comes first by: the largest relative error of a share,
 * down to half a percent; how far a share moves, in points, when classes send packets of different sizes, down to 1
 * point; how much of the round the lanes take that may send one packet, down to 2 percent; its length.
 */
#ifndef FABRICD_WEIGHTS_H
#define FABRICD_WEIGHTS_H

#include "fabricd/policy/compile.h"

#define WEIGHT_GROUPS_MAX POLICY_CLASSES_MAX

/* Lanes that divide a share evenly. */
struct weight_group {
    uint32_t want; /* in proportion to the other groups, at least 1 */
    unsigned lanes;
    const uint8_t *vl;
    double got; /* percent of all groups, with packets of full size; filled */
};

/*
 * Fill the low-priority table. single: lanes that may send one packet a round. mtu: the largest packets' data. False:
 * the table of cap entries is too short for a turn of every lane.
 */
bool weights_fill(struct weight_group *g, unsigned n, const uint8_t *single, unsigned num_single, unsigned mtu,
                  unsigned cap, struct qos_tables *t);

/* The blocks that an entry lets go at once if all packets have so many. */
unsigned weights_sent(unsigned weight, unsigned packet_blocks);

/* Entry k of mine of a lane; in a round they are spread, so that a lane need not wait for all others at once. */
struct vlarb_slot {
    unsigned k, mine;
    struct vlarb e;
    unsigned at, of; /* its place in the round, at / of; filled */
};
/* Sorts the slots and puts them into a table; returns n. */
unsigned vlarb_spread(struct vlarb_slot *slots, unsigned n, struct vlarb *out);

#endif
