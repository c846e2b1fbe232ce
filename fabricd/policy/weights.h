/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of the compiler (see compile.h): the low-priority table.
 *
 * A lane sends while its entry's count of 64-byte blocks is above zero. An entry of w blocks lets ceil(w / b) packets
 * of b blocks go, up to b - 1 blocks more than its weight, and the next round does not compensate. Entries are
 * therefore multiples of the largest packet's data (its headers are one block more), and rather few and heavy than many
 * and light.
 *
 * Among all rounds that fit into the table the compiler takes the first by: the largest relative error of a share, down
 * to half a percent; the movement of a share, in points, when classes send packets of different sizes, down to 1 point;
 * the part of the round for lanes with single packets, down to 2 percent; its length.
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
 * Fills the low-priority table. single: lanes that may send one packet per round. mtu: the largest packets' data.
 * False: the table of cap entries is too short for a turn of every lane.
 */
bool weights_fill(struct weight_group *g, unsigned n, const uint8_t *single, unsigned num_single, unsigned mtu,
                  unsigned cap, struct qos_tables *t);

/* The blocks that an entry lets go at once if all packets have packet_blocks. */
unsigned weights_sent(unsigned weight, unsigned packet_blocks);

/* Entry number k among mine of a lane. A round spreads the entries, so a lane need not wait for all others at once. */
struct vlarb_slot {
    unsigned k, mine;
    struct vlarb e;
    unsigned at, of; /* position in the round, at / of; filled */
};
/* Sorts the slots and puts them into a table; returns n. */
unsigned vlarb_spread(struct vlarb_slot *slots, unsigned n, struct vlarb *out);

#endif
