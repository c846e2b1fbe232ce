/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of a rail: datagrams for connecting (ud.c), and the queue pairs and addresses of packets as datagrams
 * (udp.c).
 */
#ifndef MRMPI_VERBS_DATAGRAM_H
#define MRMPI_VERBS_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/verbs/rail.h"

struct ibv_ah;
struct mr_qp;

/* ---- for connecting ---- */

#define MR_UD_MAX 1024 /* longest datagram */

/*
 * Sends one datagram from rail. 0, or negative errno (-EAGAIN: too many in flight, or not in this partition now).
 * Datagrams get lost without a report.
 */
struct mr_ud_way {
    uint16_t pkey; /* of the rail's: the partition of the datagram */
    uint8_t sl;
    uint8_t path; /* of the other rail's LIDs, as in its connections */
    uint32_t qpn; /* the queue pair of the other rail for that partition (struct mr_partition) */
    const struct mr_rail_addr *to;
};
int mr_ud_send(struct mr_rail *rail, const struct mr_ud_way *way, const void *data, size_t len);

/* ---- packets ---- */

#define MR_SEGMENTS_MAX 64 /* datagrams that one packet may be cut into */

/* Where datagrams go. */
struct mr_ud_to {
    struct ibv_ah *ah;
    uint32_t qpn, qkey;
};

/* The queue pair of a rail for datagrams of this level in a partition; NULL: there is none, or it does not work now. */
struct mr_qp *mr_udp_qp(struct mr_rail *rail, uint16_t pkey, unsigned level);
int mr_udp_address(struct mr_rail *rail, const struct mr_rail_addr *to, uint32_t qpn, uint8_t sl, uint8_t path,
                   struct mr_ud_to *out);
void mr_udp_forget(struct mr_ud_to *to);
/* Bytes of the longest datagram between two ports. */
uint32_t mr_udp_mtu(const struct mr_rail_addr *a, const struct mr_rail_addr *b);

#endif
