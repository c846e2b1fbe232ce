/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links of kind ring: reliable connections whose short packets the sender writes into a ring in the receiver's memory,
 * which the receiver polls. All else goes as over rc: packets longer than a slot or without a free slot, and large
 * messages by RDMA.
 *
 * A link begins without rings. The receiver makes a ring and offers it; the sender answers, and writes from then on.
 * The receiver may withdraw the ring; the sender stops, reports the number of written packets, and when these have been
 * read the memory is given back. net/rings.c decides which peers have a ring and carries these messages. Each direction
 * has a ring of its own, or none.
 *
 * When a link breaks, packets in its ring are still handed up, because the sender's adapter may have confirmed them.
 * This happens after the queue pair has drained, when nothing can land any more.
 */
#ifndef MRMPI_RING_H
#define MRMPI_RING_H

#include "libmrmpi/verbs/link/link.h"
#include "libmrmpi/verbs/rail.h"

/* One end's message to the other about its rings; the reader checks bounds. */
struct mr_ring_says {
    uint64_t slots_addr, words_addr;
    uint32_t slots_rkey, words_rkey;
    uint32_t num, size;
    uint32_t count; /* written packets, of a ring that ends */
    uint32_t heads; /* 1: after each packet the count of packets is written, too */
};
_Static_assert(sizeof(struct mr_ring_says) == 40, "on the wire");

/* packet: as in struct mr_verbs_handlers. num, longest: slots of a ring, bytes of the longest packet in one. */
void mr_rings_init(void (*packet)(struct mr_rail *rail, const void *data, size_t len), enum mr_ring_design design,
                   unsigned num, size_t longest);
/* Hands up arrived packets. Returns their number. Only while mr_rings_num. */
int mr_rings_poll(void);
extern MR_OWN unsigned mr_rings_num; /* polled rings */

/* ---- the receiver: the memory is here ---------------------------------------------------------------------------- */

/* Makes a ring for arrivals over this link, which is open and has none. 0 or negative errno. */
int mr_ring_make(struct mr_link *l, struct mr_ring_says *out);
/* True if there is a ring, or a ring not yet given back. */
bool mr_ring_exists(const struct mr_link *l);
/* True if the peer writes into the ring: it may be withdrawn. */
bool mr_ring_in_use(const struct mr_link *l);
void mr_ring_accepted(struct mr_link *l, const struct mr_ring_says *says);
/* The peer is asked to stop. */
void mr_ring_withdraw(struct mr_link *l);
/* Nobody knows the ring. */
void mr_ring_drop(struct mr_link *l);
/* The peer has stopped, after so many packets of this link in all, or does not begin. */
void mr_ring_ended(struct mr_link *l, uint32_t count);

/* ---- the sender ------------------------------------------------------------------------------------------------ */

/* Writes into the peer's ring from now on. 0; -EINVAL: an impossible ring; or another negative errno. */
int mr_ring_accept(struct mr_link *l, const struct mr_ring_says *offer, struct mr_ring_says *out);
/* No more. How many packets were written over this link so far. */
uint32_t mr_ring_stop(struct mr_link *l);

#endif
