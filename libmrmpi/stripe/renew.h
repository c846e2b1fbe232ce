/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of adapters that were opened anew. Memory stays advertised while an adapter fails and comes back; the keys that
 * peers know are worth nothing then. The owner registers that memory again, and tells its peers each new key with the
 * one that it takes the place of. Until a key is known the rail carries nothing of that memory.
 */
#ifndef MRMPI_STRIPE_RENEW_H
#define MRMPI_STRIPE_RENEW_H

#include "libmrmpi/stripe/puts.h"

/* What the peer told as one key is another one now. On the wire as in memory. */
struct mr_renewed_key {
    uint32_t was, is;
};

/* ---- renew.c: the owner ---- */
/* A region is advertised, and was withdrawn. */
void mr_renew_add(struct mr_bulk_region *r, const struct mr_remote *told, enum mr_access access);
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
