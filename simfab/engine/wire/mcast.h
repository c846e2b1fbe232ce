/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast in switches. A switch copies a packet to the ports of its multicast forwarding table, written by the subnet
 * manager, except to the packet's input port.
 *
 * The copies of a packet share a place in the receive buffer of the input port (struct mcast_hold), and their data.
 */
#ifndef SIMFAB_MCAST_H
#define SIMFAB_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

#define MCAST_LID_FIRST 0xc000u
#define MCAST_LID_LAST  0xfffeu /* 0xffff is the permissive LID */

#define MCAST_QPN 0xffffffu /* the destination queue pair of every multicast packet */

static inline bool mcast_lid(uint16_t lid)
{
    return lid >= MCAST_LID_FIRST && lid <= MCAST_LID_LAST;
}

/*
 * The ports of the switch that forward a packet to the group lid. A group without an entry in the table has the default
 * port. *known: the table names members.
 */
uint32_t mcast_outputs(const struct port *in, uint16_t lid, uint8_t ports[FABRIC_PORTS_MAX], bool *known);

#endif
