/* SPDX-License-Identifier: BSD-3-Clause */
/* The common code of links with a queue pair of their own (rc.c, uc.c, ring.c). */
#ifndef MRMPI_CONNECTED_H
#define MRMPI_CONNECTED_H

#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/post.h"

int mr_connected_open(struct mr_link *l, struct mr_rail *rail, enum mr_qp_type type);
int mr_connected_connect(struct mr_link *l, const struct mr_link_end *to);
int mr_connected_send(struct mr_link *l, struct mr_packet *p);
/* The packet no longer uses the request; packets confirmed by the request may be given back. */
void mr_connected_packet_done(struct mr_wr *wr, const struct mr_wc *wc);
/* Into memory that the peer polls, inline; its end is not reported. -EAGAIN: no room. */
int mr_connected_write_u32(struct mr_link *l, uint32_t word, uint64_t raddr, uint32_t rkey);
int mr_connected_write(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx);
int mr_connected_write_list(struct mr_link *l, const struct mr_link_list *list, struct mr_tx *tx, unsigned *posted);
int mr_connected_read(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx);
int mr_connected_atomic(struct mr_link *l, const struct mr_link_atomic *w, struct mr_tx *tx);
int mr_connected_keepalive(struct mr_link *l);
int mr_connected_ask(struct mr_link *l);
void mr_connected_drain(struct mr_link *l);
void mr_connected_close(struct mr_link *l);
void mr_connected_leave(struct mr_link *l);

#endif
