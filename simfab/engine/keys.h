/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks of partition and queue keys that packets go through in switches and at queue pairs. A packet that fails
 * is counted and told to the subnet manager here; the caller drops it.
 */
#ifndef SIMFAB_KEYS_H
#define SIMFAB_KEYS_H

#include "simfab/engine/hca.h"

/* Is the packet for this queue pair? By the key at its index of the port's table; UD: and by its queue key. */
bool keys_accept(struct qp *qp, const struct packet *p);

/* An enforcing port of a switch: may the packet come in, go out? */
bool keys_enter(struct port *in, const struct packet *p);
bool keys_leave(struct port *out, const struct packet *p);

#endif
