/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast on unreliable datagrams. Queue pairs attach to a group (MLID and MGID) at their adapter; switches copy a
 * packet to the ports of its multicast forwarding table, which the subnet manager writes, except to the one it came by.
 *
 * The copies that a switch makes of a packet occupy one place in the receive buffer it came by: it is given back when
 * the last of them has left (struct mcast_hold). Copies share their data.
 */
#ifndef SIMFAB_MCAST_H
#define SIMFAB_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#define MCAST_LID_FIRST 0xc000u
#define MCAST_LID_LAST  0xfffeu /* 0xffff is the permissive LID */

#define MCAST_QPN 0xffffffu /* the destination queue pair of every multicast packet */

struct hca;
struct hca_port;
struct link_dir;
struct packet;
struct port;
struct qp;

static inline bool mcast_lid(uint16_t lid)
{
    return lid >= MCAST_LID_FIRST && lid <= MCAST_LID_LAST;
}

/*
 * Attach a queue pair to a group, or detach it: 0, EINVAL (not a datagram queue pair, not a group's address, not
 * attached) or ENOMEM (the adapter's limits). To attach twice is to attach once.
 */
int mcast_attach(struct qp *qp, const uint8_t gid[16], uint16_t lid);
int mcast_detach(struct qp *qp, const uint8_t gid[16], uint16_t lid);
void mcast_forget(struct qp *qp); /* detach it from everything */

#define MCAST_GROUPS_MAX 8192u /* of an adapter */
#define MCAST_QPS_MAX    248u  /* of a group at an adapter */

/* How many queue pairs of the port the packet is for. */
uint32_t mcast_receivers(struct hca_port *hp, const struct packet *p);

/* Give the packet to each of them. It stays the caller's. Returns how many there were. */
uint32_t mcast_deliver(struct hca_port *hp, struct packet *p);

/* A multicast packet leaves the adapter: a copy for the port's own receivers, or NULL if it has none. */
struct packet *mcast_own_copy(struct hca_port *hp, const struct packet *p);

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
