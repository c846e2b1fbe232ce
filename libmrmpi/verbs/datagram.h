/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of a rail: those for connecting (ud.c), and the queue pairs and addresses of packets that go as such
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
 * Send one datagram from rail to the UD queue pair at to. 0, or negative errno (-EAGAIN: too many in flight). Datagrams
 * get lost; nobody is told.
 */
int mr_ud_send(struct mr_rail *rail, const struct mr_rail_addr *to, uint8_t sl, const void *data, size_t len);

/* ---- packets ---- */

#define MR_SEGMENTS_MAX 64 /* datagrams that one packet may be cut into */

/* Where datagrams go. */
struct mr_ud_to {
    struct ibv_ah *ah;
    uint32_t qpn, qkey;
};

/* The queue pair of a rail for datagrams of this level; NULL: there is none, or it does not work now. */
struct mr_qp *mr_udp_qp(struct mr_rail *rail, unsigned level);
int mr_udp_address(struct mr_rail *rail, const struct mr_rail_addr *to, uint32_t qpn, uint8_t sl, uint8_t path,
                   struct mr_ud_to *out);
void mr_udp_forget(struct mr_ud_to *to);
/* Bytes of the longest datagram between two ports. */
uint32_t mr_udp_mtu(const struct mr_rail_addr *a, const struct mr_rail_addr *b);

#endif
