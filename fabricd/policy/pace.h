/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pace of reads: if an adapter's bus is slower than its cable, packets for this host fill the adapter's receive
 * buffers, and lanes no longer matter. Large messages arrive by reads of the processes here, so each process gets a
 * rate for its reads. The rates keep the bus slightly below full, and divide the bus among classes by share. Pure.
 *
 * The bus is divided among the classes that want it, by share, and within a class among its processes, equally. Unused
 * parts go to the others.
 */
#ifndef FABRICD_PACE_H
#define FABRICD_PACE_H

#include "fabricd/policy/compile.h"

/* Of the bus, with several classes on a host: the rest keeps buffers empty, and carries unrequested traffic. */
#define PACE_PERCENT 96

struct pace_process {
    unsigned class_index;
    uint32_t want_kb; /* 10^3 bytes a second on each rail; FD_READS_ALL: as much as it gets */
    double part;      /* out: of the whole. With a smaller want: the part for a want of all */
};

struct pace_claim {
    double weight, want, part; /* want: of the whole, or more; part: out */
};

/* Gives each claim its part by weight, at most its want; the rest goes to the others. At most one claim per class. */
void pace_fill(struct pace_claim *c, unsigned n, double room);

/* room_kb: from rails_bus_room. share: of each class, in any unit. */
void pace_divide(const double share[POLICY_CLASSES_MAX], uint32_t room_kb, struct pace_process *p, unsigned n);

#endif
