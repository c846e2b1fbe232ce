/* SPDX-License-Identifier: BSD-3-Clause */
/* Short writes to windows are collected in writer.c, and begun as other messages are. */
#ifndef MRMPI_BULK_INTERNAL_H
#define MRMPI_BULK_INTERNAL_H

#include <errno.h>

#include "libmrmpi/net/bulk/bulk.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/net/stripe/wlist.h"

/* Nothing goes to this peer: a negative errno. */
static inline int mr_bulk_refuses(const struct mr_vc *vc)
{
    const struct mr_peer *p = vc->data;

    if (vc->error)
        return vc->error;
    return p ? p->error : -ENOTCONN;
}

/* ---- bulk.c ---- */
/* The list is full, or goes now. s->len of its stripe is set. */
void mr_bulk_begin_list(struct mr_transfer *transfer);
/* A transfer with these stripes, begun like shape; NULL: no memory. And: it is under way. */
struct mr_transfer *mr_bulk_make(const struct mr_transfer *shape, const struct mr_stripe *plan, unsigned n);
void mr_bulk_list(struct mr_transfer *transfer);
/* The level for a window's reads or writes in pieces of up to `most` bytes. */
uint8_t mr_bulk_write_level(size_t most);

/* ---- writer.c ---- */
void mr_writers_post(struct mr_peer *p);
void mr_writers_end(struct mr_peer *p); /* the peer is lost */

#endif
