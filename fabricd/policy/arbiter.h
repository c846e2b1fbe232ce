/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an output port sends when its virtual lanes want more than the link can carry: the arbiter of the InfiniBand
 * specification (7.6.9), run over packets as they would come. No time and no network; a unit of time is what a byte
 * takes on the link.
 *
 * The rules are those that wait.h counts with. A lane always has packets, those of its list one after the other, or, if
 * it has a limit, as many of them as make so large a part of the link.
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
    unsigned num_packets; /* 0: it sends nothing */
    double most;          /* part of the link that it asks for, 0 to 1; 0: as much as it gets */
    struct arbiter_packet packet[ARBITER_PACKETS_MAX];
};

struct arbiter_sent {
    double bytes[ARBITER_LANES][POLICY_CLASSES_MAX]; /* by lane and owner */
    double time;                                     /* bytes, and what the link was idle */
};

/* Let the link carry so many bytes. Owners are below POLICY_CLASSES_MAX. A lane without a weight sends nothing. */
void arbiter_run(const struct qos_tables *t, const struct arbiter_lane lane[ARBITER_LANES], double bytes,
                 struct arbiter_sent *out);

#endif
