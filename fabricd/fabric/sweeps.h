/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detects sweeps of a subnet manager, by the activity count of its SMInfo (IBTA volume 1, 14.2.5.13): opensm counts the
 * management packets that it has sent. A light sweep takes one packet per switch, a heavy sweep, which may change
 * forwarding tables, several per switch and one per port. Pure.
 */
#ifndef FABRICD_FABRIC_SWEEPS_H
#define FABRICD_FABRIC_SWEEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last look at the master. Zero: none. */
struct sweeps {
    bool known;
    bool was_busy; /* a heavy sweep was under way, and may have ended after the look */
    uint64_t guid;
    uint32_t count;
};

/*
 * A look at the master in a subnet of so many switches. True: forwarding tables may have changed since the look before,
 * or may be changing. The first look at a master is such a look, because nothing is known of the time before.
 */
bool sweeps_take(struct sweeps *s, uint64_t guid, uint32_t count, unsigned switches);

/*
 * The master's GUID and activity count from the SMInfoRecords of the subnet administration (15.2.5.10): num of size
 * bytes each. False: no record is a master's.
 */
bool sweeps_master(const uint8_t *record, size_t num, size_t size, uint64_t *guid, uint32_t *count);

#endif
