/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of adapters that were opened anew. Memory stays advertised while an adapter fails and comes back; the keys that
 * peers know are worth nothing then, and of memory that was advertised while it was away they know none. The owner
 * registers that memory again, and tells its peers each new key with one that they know the memory by. Until a key is
 * known the rail carries nothing of that memory.
 */
#ifndef MRMPI_STRIPE_RENEW_H
#define MRMPI_STRIPE_RENEW_H

#include "libmrmpi/net/stripe/puts.h"

/* A new key, of the memory that was told with this key of a rail in that life of the rail. On the wire as in memory. */
struct mr_renewed_key {
    uint32_t told, is;
    uint16_t rail, life;
};
_Static_assert(sizeof(struct mr_renewed_key) == 12, "on the wire");

/* ---- renew.c: the owner ---- */
/* A region is advertised, and was withdrawn. partial: its token says for which rails it has no key, for good. */
void mr_renew_add(struct mr_bulk_region *r, const struct mr_remote *told, enum mr_access access, bool partial);
void mr_renew_remove(struct mr_bulk_region *r);
/* The device was opened anew. 0 or negative errno: some memory cannot be registered. */
int mr_renew_device(const struct mr_device *dev);
/* ---- renewed.c: the peers ---- */
/* A control message with keys: true if it was one. */
bool mr_renew_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/* The set of the peer's rails for which no key of this memory is known now. */
uint32_t mr_renew_lacking(const struct mr_peer *p, const struct mr_remote *remote);
/* Some rail lacks one, and the peer has told all that it has: the memory was withdrawn there. */
bool mr_renew_is_withdrawn(const struct mr_peer *p, const struct mr_remote *remote);
void mr_renew_free(struct mr_peer *p);

#endif
