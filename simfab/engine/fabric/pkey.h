/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partition keys: 15 bits name the partition, and one bit marks a full member. Limited members of a partition do not
 * talk to each other. A table entry without partition (0x0000, 0x8000) is empty. Used by both planes. (InfiniBand
 * Architecture Specification, volume 1, 10.9)
 */
#ifndef SIMFAB_PKEY_H
#define SIMFAB_PKEY_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

#define PKEY_FULL      0x8000u
#define PKEY_PARTITION 0x7fffu

/* PortInfo's enforcement bits, as port->partition_enforce has them */
#define PKEY_ENFORCE_IN  8u
#define PKEY_ENFORCE_OUT 4u

static inline bool pkey_same_partition(uint16_t a, uint16_t b)
{
    return (a & PKEY_PARTITION) && !((a ^ b) & PKEY_PARTITION);
}

/* May the owners of the two keys talk? */
static inline bool pkey_match(uint16_t a, uint16_t b)
{
    return pkey_same_partition(a, b) && ((a | b) & PKEY_FULL);
}

/* Where in its table a port has a key that matches the packet's; -1: nowhere. */
static inline int pkey_find(const struct port *p, uint16_t packet)
{
    for (int i = 0; i < FABRIC_PKEYS; i++)
        if (pkey_match(p->pkeys[i], packet))
            return i;
    return -1;
}

/*
 * True if an enforcing port of a switch lets the packet in: its key must be in the port's table, set by the manager to
 * the table of the port at the other end; a limited member may not pose as a full one.
 */
static inline bool pkey_may_enter(const struct port *p, uint16_t packet)
{
    if (!(p->partition_enforce & PKEY_ENFORCE_IN))
        return true;
    for (int i = 0; i < FABRIC_PKEYS; i++)
        if (pkey_same_partition(p->pkeys[i], packet) && (p->pkeys[i] & PKEY_FULL || !(packet & PKEY_FULL)))
            return true;
    return false;
}

/* True if the port lets the packet out: the port at the other end would accept the key. */
static inline bool pkey_may_leave(const struct port *p, uint16_t packet)
{
    return !(p->partition_enforce & PKEY_ENFORCE_OUT) || pkey_find(p, packet) >= 0;
}

#endif
