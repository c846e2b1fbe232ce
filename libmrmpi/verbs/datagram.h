/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and addresses of packets as datagrams (udp.c), for links; bounds of datagrams. */
#ifndef MRMPI_VERBS_DATAGRAM_H
#define MRMPI_VERBS_DATAGRAM_H

#include "libmrmpi/verbs/verbs.h"

#define MR_UD_MAX 1024 /* longest datagram */

#define MR_SEGMENTS_MAX 64 /* most datagrams of a packet */

/* The queue pair of a rail for datagrams of this level in a partition; NULL: there is none, or it does not work now. */
struct mr_qp *mr_udp_qp(struct mr_rail *rail, uint16_t pkey, unsigned level);
int mr_udp_address(struct mr_rail *rail, const struct mr_rail_addr *to, uint32_t qpn, uint8_t sl, uint8_t path,
                   struct mr_ud_to *out);
void mr_udp_forget(struct mr_ud_to *to);

#endif
