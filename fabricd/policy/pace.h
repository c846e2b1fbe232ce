/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pace of reads: where an adapter's bus is slower than its cable, packets for this host fill the adapter's receive
 * buffers, and lanes no longer matter. Large messages come by reads of the processes here, so they are told how fast
 * each may read, such that the bus is never more than nearly busy, and classes have it by their shares. Pure.
 *
 * The bus is divided among the classes that want it, by share, and in a class among its processes, alike. What one
 * does not want is left to the others.
 */
#ifndef FABRICD_PACE_H
#define FABRICD_PACE_H

#include "fabricd/policy/compile.h"

/* Of the bus, where several classes are on a host: the rest keeps buffers empty, and carries what nobody asked for. */
#define PACE_PERCENT 96

struct pace_process {
    unsigned class_index;
    uint32_t want_kb; /* 10^3 bytes a second on each rail; FD_READS_ALL: as much as it gets */
    double part;      /* out: of all that there is. For one that wants less: what it would have if it wanted all */
};

struct pace_claim {
    double weight, want, part; /* want: of what there is, or more; part: out */
};

/* To each in proportion to its weight, but no more than it wants: the rest is the others'. At most one a class. */
void pace_fill(struct pace_claim *c, unsigned n, double room);

/* room_kb: from rails_bus_room. share: of each class, in any unit. */
void pace_divide(const double share[POLICY_CLASSES_MAX], uint32_t room_kb, struct pace_process *p, unsigned n);

#endif
