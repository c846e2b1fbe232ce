/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of newly opened adapters. Memory stays advertised while an adapter fails and returns. The peers' keys are then
 * useless, and for memory advertised meanwhile they have none. The owner registers the memory again, and sends its
 * peers each new key, together with a key by which they know the memory. Until a key is known the rail carries nothing
 * of that memory.
 */
#ifndef MRMPI_STRIPE_RENEW_H
#define MRMPI_STRIPE_RENEW_H

#include "libmrmpi/net/stripe/transfers.h"

/* A new key, of the memory with this key of a rail in that life of the rail. On the wire as in memory. */
struct mr_renewed_key {
    uint32_t told, is;
    uint16_t rail, life;
};
_Static_assert(sizeof(struct mr_renewed_key) == 12, "on the wire");

/* ---- renew.c: the owner ---- */
/* A region is advertised, and was withdrawn. partial: its token names the rails without a key, for good. */
void mr_renew_add(struct mr_bulk_region *r, const struct mr_remote *told, enum mr_access access, bool partial);
void mr_renew_remove(struct mr_bulk_region *r);
/* The device was opened anew. 0 or negative errno: some memory cannot be registered. */
int mr_renew_device(const struct mr_device *dev);
/* ---- renewed.c: the peers ---- */
/* A control message with keys: true if it was such a message. */
bool mr_renew_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/* The set of the peer's rails without a known key of this memory now. */
uint32_t mr_renew_lacking(const struct mr_peer *p, const struct mr_remote *remote);
/* Some rail lacks a key, and the peer has sent all its keys: the memory was withdrawn there. */
bool mr_renew_is_withdrawn(const struct mr_peer *p, const struct mr_remote *remote);
void mr_renew_free(struct mr_peer *p);

#endif
