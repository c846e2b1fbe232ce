/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets that an output port sends when its virtual lanes want more than the link carries: the arbiter of the
 * InfiniBand specification (7.6.9), run over packets in their order. No time and no network; a unit of time is a byte
 * on the link.
 *
 * The rules are the same as in wait.h. A lane always has packets, the packets of its list in turn, or, with a limit, as
 * many as make up that part of the link.
 */
#ifndef FABRICD_ARBITER_H
#define FABRICD_ARBITER_H

#include "fabricd/policy/compile.h"

#define ARBITER_LANES       16
#define ARBITER_PACKETS_MAX 1024

/* On the wire, with its headers; owner is the caller's. */
struct arbiter_packet {
    uint16_t bytes;
    uint8_t owner;
};

struct arbiter_lane {
    unsigned num_packets; /* 0: the lane sends nothing */
    double most;          /* requested part of the link, 0 to 1; 0: as much as possible */
    struct arbiter_packet packet[ARBITER_PACKETS_MAX];
};

struct arbiter_sent {
    double bytes[ARBITER_LANES][POLICY_CLASSES_MAX]; /* by lane and owner */
    double time;                                     /* bytes, including idle time of the link */
};

/* Lets the link carry so many bytes. Owners are below POLICY_CLASSES_MAX. A lane without a weight sends nothing. */
void arbiter_run(const struct qos_tables *t, const struct arbiter_lane lane[ARBITER_LANES], double bytes,
                 struct arbiter_sent *out);

#endif
