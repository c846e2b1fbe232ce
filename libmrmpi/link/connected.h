/* SPDX-License-Identifier: BSD-3-Clause */
/* What links with a queue pair of their own have in common (rc.c, uc.c). */
#ifndef MRMPI_CONNECTED_H
#define MRMPI_CONNECTED_H

#include "libmrmpi/link/link.h"

int mr_connected_open(struct mr_link *l, struct mr_rail *rail, enum mr_qp_type type);
int mr_connected_connect(struct mr_link *l, const struct mr_link_end *to);
int mr_connected_send(struct mr_link *l, struct mr_packet *p);
int mr_connected_write(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx);
int mr_connected_read(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx);
int mr_connected_ping(struct mr_link *l);
void mr_connected_drain(struct mr_link *l);
void mr_connected_close(struct mr_link *l);
void mr_connected_leave(struct mr_link *l);

#endif
