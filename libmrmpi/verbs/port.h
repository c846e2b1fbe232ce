/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a port to what peers have to know of it, and whether it can be used. For device.c, which opens rails, and for
 * mrrun --explain, which only looks.
 */
#ifndef MRMPI_VERBS_PORT_H
#define MRMPI_VERBS_PORT_H

#include <infiniband/verbs.h>

#include "libmrmpi/verbs/gid.h"
#include "libmrmpi/verbs/verbs.h"

/* *out was zero; its queue pairs and reads are the caller's. 0, or -ENODEV (said): no GID is as wished. */
int mr_port_describe(struct ibv_context *ctx, const char *device, unsigned num, const struct ibv_port_attr *port,
                     const struct mr_gid_wish *wish, struct mr_rail_addr *out, uint8_t *gid_index);
/*
 * Its partitions, as mr_pkeys_of_table() lists them, with the preferred one first (0: none is preferred). 0: its table
 * is empty. A device that has no such table counts as a full member of the default partition.
 */
unsigned mr_port_pkeys(struct ibv_context *ctx, unsigned num, const struct ibv_port_attr *port, uint16_t preferred,
                       struct mr_pkey out[MR_PKEYS_MAX]);
/* NULL: it can be used; else why not. */
const char *mr_port_unusable(const char *device, unsigned num, const struct ibv_port_attr *port, mr_rail_reject *reject,
                             void *arg);

#endif
