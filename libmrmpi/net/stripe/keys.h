/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of large messages: registered through a cache, with one device or with all, or better copied. Also for
 * packets sent from the program's memory. A registration belongs to the caller until given back.
 */
#ifndef MRMPI_STRIPE_KEYS_H
#define MRMPI_STRIPE_KEYS_H

#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/stripe/transfers.h"

/* ---- cache.c ---- */
/* Devices are open: limits the cache of registrations, and chooses between pinning and on-demand paging. */
void mr_bulk_open_memory(void);
/* A poll of the network has found nothing: completions are not late any more because memory was registered. */
void mr_bulk_caught_up(void);

/* ---- keys.c ---- */
/* Rails here, and at the peer, that now carry large messages to the peer; all, while no subchannel does. Sets. */
struct mr_bulk_rails {
    uint32_t here, there;
};
/* without: set of rails here without a key. */
struct mr_bulk_rails mr_bulk_rails_to(const struct mr_peer *p, uint32_t without);
/* Subchannels that may not carry large messages now, without RDMA or refused by the policy: set. */
uint32_t mr_stripe_excluded(const struct mr_peer *p);
/*
 * mr_regs_get for memory read by the peer, and for the target of reads: with one device at the first use
 * (mr_bulk_one_suffices). without: set of the peer's rails without a key. -ENOKEY: no other rail leads there now.
 */
int mr_bulk_register_source(const struct mr_peer *p, void *buf, size_t len, struct mr_reg **out);
int mr_bulk_register_sink(const struct mr_peer *p, void *buf, size_t len, uint32_t without, struct mr_reg **out);
/* Some subchannels may have no key: memory was not registered with all devices, or a device was opened anew. */
static inline bool mr_bulk_may_lack(const struct mr_transfer *transfer)
{
    return transfer->partial || transfer->remote.lives != transfer->peer->lives || mr_verbs.lives;
}
/* Its memory there may be withdrawn before we hear of it. */
bool mr_bulk_is_of_attached(const struct mr_transfer *transfer);
/* Subchannels, by their place among the peer's present ones, without a key for the transfer's memory here or there. */
uint32_t mr_bulk_lacking(const struct mr_transfer *transfer);
/* Only such ones are left, and no other device can be told. */
bool mr_bulk_is_unreachable(const struct mr_transfer *transfer);
/*
 * True if both sides should copy the message, packet by packet and at the same time. Registration takes one side after
 * the other and one device after the other, perhaps for this time only: the message is short, and its memory has not
 * been used since it was mapped. Remembers the use.
 */
bool mr_bulk_copies(const struct mr_peer *p, const void *buf, size_t len);
/*
 * Memory is registered with one device first, and with the others at its next use: one of our rails to the peer carries
 * more than a processor copies, and registering with all devices would cost more time than they save. Messages are
 * read, not written.
 */
bool mr_bulk_one_suffices(const struct mr_peer *p);
unsigned mr_bulk_least_devices(void); /* with so many memory is registered at first, at least */
/*
 * Memory for sending packets to a peer, over the rails whose devices know it, registered until mr_bulk_give_back().
 * NULL: impossible.
 */
const struct mr_memory *mr_bulk_borrow(const struct mr_peer *p, const void *buf, size_t len);
void mr_bulk_give_back(const struct mr_memory *m);

#endif
