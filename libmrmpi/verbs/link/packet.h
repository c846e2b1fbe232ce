/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of links (verbs.h): the interface of packet.c for links. */
#ifndef MRMPI_PACKET_H
#define MRMPI_PACKET_H

#include "libmrmpi/verbs/verbs.h"

/* A packet without content, for its tx. */
struct mr_packet *mr_packet_blank(void);
/*
 * The adapter has given the packet back. kept: a repetition may be needed. Returns its memory elsewhere, for the call
 * of its end.
 */
struct mr_zsend_from mr_packet_take_zsend(struct mr_packet *p, bool kept);
/* Its 16 bytes for the headers of parts. */
void *mr_packet_part_header(const struct mr_packet *p);
/*
 * The device of this queue pair is gone: requests posted there never come back, and count as returned. link: only
 * packets of this link (ud.c); NULL: all.
 */
void mr_packets_gone(const struct mr_qp *qp, const struct mr_link *link);
uint32_t mr_packet_lkey(const struct mr_packet *p, const struct mr_rail *rail);

#endif
