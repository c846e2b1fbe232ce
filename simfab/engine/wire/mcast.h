/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast in switches. A switch copies a packet to the ports of its multicast forwarding table, which the subnet
 * manager writes, except to the port by which the packet came.
 *
 * The copies of a packet occupy one place in the receive buffer of that port. The place is free again when the last
 * copy has left (struct mcast_hold). Copies share their data.
 */
#ifndef SIMFAB_MCAST_H
#define SIMFAB_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#define MCAST_LID_FIRST 0xc000u
#define MCAST_LID_LAST  0xfffeu /* 0xffff is the permissive LID */

#define MCAST_QPN 0xffffffu /* the destination queue pair of every multicast packet */

struct link_dir;
struct packet;
struct port;

static inline bool mcast_lid(uint16_t lid)
{
    return lid >= MCAST_LID_FIRST && lid <= MCAST_LID_LAST;
}

/* In a switch: to the ports that the tables say. Takes the packet. */
void mcast_forward(struct port *in, struct packet *p);

/* The place in a receive buffer that several copies share. */
struct mcast_hold {
    uint32_t copies;
    struct link_dir *link;
    uint64_t lane_bytes; /* what link_release_at wants */
};

/* One copy has left or is gone. An event function: obj is the struct mcast_hold. */
void mcast_copy_left(void *hold, uint64_t unused);

#endif
