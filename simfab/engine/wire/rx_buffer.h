/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places in the receive buffers at the far ends of links. A packet occupies its place from sending until the far node
 * has finished with the packet; then the sender's credits return.
 */
#ifndef SIMFAB_RX_BUFFER_H
#define SIMFAB_RX_BUFFER_H

#include <stdint.h>

struct link_dir;
struct packet;

/* The place that the copies of a multicast packet share: free again when the last copy has left. */
struct mcast_hold {
    uint32_t copies;
    struct link_dir *link;
    uint64_t lane_bytes; /* arg of link_release_at */
};

/* The receiver has freed the place that p occupies (if any). */
void link_release(struct packet *p);

/* The same for a place whose packet has gone on: arg is lane << 32 | bytes. An event function. */
void link_release_at(void *link, uint64_t arg);

/* One copy has left or is gone. An event function: obj is the struct mcast_hold. */
void mcast_copy_left(void *hold, uint64_t unused);

#endif
