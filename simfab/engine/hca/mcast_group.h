/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast on unreliable datagrams: queue pairs attach to a group (MLID and MGID) at their adapter, and the
 * adapter gives each of them the packets of the group.
 */
#ifndef SIMFAB_MCAST_GROUP_H
#define SIMFAB_MCAST_GROUP_H

#include <stdint.h>

struct hca_port;
struct packet;
struct qp;

/*
 * Attach a queue pair to a group, or detach it: 0, EINVAL (not a datagram queue pair, not a group's address, not
 * attached) or ENOMEM (the adapter's limits). To attach twice is to attach once.
 */
int mcast_attach(struct qp *qp, const uint8_t gid[16], uint16_t lid);
int mcast_detach(struct qp *qp, const uint8_t gid[16], uint16_t lid);
void mcast_forget(struct qp *qp); /* detaches the queue pair from all groups */

#define MCAST_GROUPS_MAX 8192u /* of an adapter */
#define MCAST_QPS_MAX    248u  /* of a group at an adapter */

/* How many queue pairs of the port the packet is for. */
uint32_t mcast_receivers(struct hca_port *hp, const struct packet *p);

/* Give the packet to each of them. It stays the caller's. Returns how many there were. */
uint32_t mcast_deliver(struct hca_port *hp, struct packet *p);

/* A multicast packet leaves the adapter: a copy for the port's own receivers, or NULL if it has none. */
struct packet *mcast_own_copy(struct hca_port *hp, const struct packet *p);

#endif
