/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port's facts for peers, and whether the port can be used. For device.c, which opens rails, and for mrrun --explain,
 * which only reads.
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
 * Its partitions, in the form of mr_pkeys_of_table(), with the preferred one first (0: none). 0: its table is empty. A
 * device without such a table counts as a full member of the default partition.
 */
unsigned mr_port_pkeys(struct ibv_context *ctx, unsigned num, const struct ibv_port_attr *port, uint16_t preferred,
                       struct mr_pkey out[MR_PKEYS_MAX]);
/* NULL: usable; else the reason why not. */
const char *mr_port_unusable(const char *device, unsigned num, const struct ibv_port_attr *port, mr_rail_reject *reject,
                             void *arg);

#endif
