/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time that a packet may wait for the lanes of others, by the arbitration rules of the InfiniBand specification
 * (7.6.9). Pure arithmetic; no fabric is needed.
 *
 * The worst case at one output port. The lane has just lost its turn, and every other lane always has packets:
 * - one packet of the low-priority table is in service;
 * - a lane of the high-priority table waits for the entries of others up to its own next entry. With a high limit of 0
 *   one packet of the low-priority table goes between any two of the high-priority table; with a limit of n (1 to 254)
 *   one goes after every n * 4096 bytes; with 255 none does;
 * - a lane of the low-priority table waits for the entries of others up to its own next entry, and before each packet
 *   of these for the packets allowed by the high limit. An entry of weight w sends while its count of 64-byte blocks is
 *   above zero, so its last packet may exceed the weight.
 *
 * The result is for all links of a path: every port may be at its worst. Earlier packets of the same lane, and
 * receivers slower than the link, are not counted.
 */
#ifndef FABRICD_WAIT_H
#define FABRICD_WAIT_H

#include "fabricd/policy/compile.h"

#define WAIT_UNBOUNDED UINT64_MAX
#define WAIT_HOPS      3  /* links of a path if the fabric is not known: host, leaf, another leaf or spine, host */
#define WAIT_OVERHEAD  30 /* bytes of headers and checks around the data of a packet */

/* The data of the largest packets that travel; 0: as large as the MTU. */
struct wait_load {
    unsigned high_bytes; /* in lanes of the high-priority table */
    unsigned low_bytes;  /* in lanes of the low-priority table */
};

/*
 * Nanoseconds that the first packet of lane vl may wait on its way. WAIT_UNBOUNDED: there is no bound, because the lane
 * is in neither table or a high limit of 255 lets others starve the lane. 0 if c has no rate. load may be NULL: all
 * packets have full size. A lane in both tables counts as a lane of the high-priority table.
 */
uint64_t tables_wait_ns(const struct qos_tables *t, unsigned vl, const struct fabric_caps *c,
                        const struct wait_load *load);

#endif
