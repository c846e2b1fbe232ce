/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links of kind ring: reliable connections whose short packets the sender writes into a ring in the receiver's memory,
 * which the receiver polls. All else goes as over rc: packets that are longer than a slot or find none free, and large
 * messages by RDMA.
 *
 * A link begins without rings. The receiver makes one and offers it; the sender answers, and writes from then on. The
 * receiver may withdraw it; the sender stops, says how many packets it has written, and when those have been read the
 * memory is given back. net/rings.c decides which peers have one and carries these messages. Either direction has a
 * ring or has none by itself.
 *
 * When a link breaks, what has landed in its ring is still handed up: the sender's adapter may have confirmed it. That
 * is done when the queue pair has drained, since nothing can land any more then.
 */
#ifndef MRMPI_RING_H
#define MRMPI_RING_H

#include "libmrmpi/verbs/link/link.h"
#include "libmrmpi/verbs/rail.h"

/* What one end of a link tells the other of its rings; bounds are checked by those who read it. */
struct mr_ring_says {
    uint64_t slots_addr, words_addr;
    uint32_t slots_rkey, words_rkey;
    uint32_t num, size;
    uint32_t count; /* packets that were written, of one that ends */
    uint32_t heads; /* 1: after each packet the count of packets is written, too */
};
_Static_assert(sizeof(struct mr_ring_says) == 40, "on the wire");

/* packet: as in struct mr_verbs_handlers. num, longest: slots of a ring, bytes of the longest packet in one. */
void mr_rings_init(void (*packet)(struct mr_rail *rail, const void *data, size_t len), enum mr_ring_design design,
                   unsigned num, size_t longest);
/* Hand up what has come. The number of packets. Only while mr_rings_num. */
int mr_rings_poll(void);
extern MR_OWN unsigned mr_rings_num; /* rings that are polled */

/* ---- the receiver: the memory is here ---------------------------------------------------------------------------- */

/* Make a ring for what comes over this link, which is open and has none. 0 or negative errno. */
int mr_ring_make(struct mr_link *l, struct mr_ring_says *out);
/* There is one, or it is not yet given back. */
bool mr_ring_exists(const struct mr_link *l);
/* The peer writes into it: it may be withdrawn. */
bool mr_ring_in_use(const struct mr_link *l);
void mr_ring_accepted(struct mr_link *l, const struct mr_ring_says *says);
/* The peer is asked to stop. */
void mr_ring_withdraw(struct mr_link *l);
/* Nobody was told of it. */
void mr_ring_drop(struct mr_link *l);
/* It has stopped, after so many packets of this link in all, or does not begin. */
void mr_ring_ended(struct mr_link *l, uint32_t count);

/* ---- the sender ------------------------------------------------------------------------------------------------ */

/* Write into the peer's ring from now on. 0; -EINVAL: it cannot be one; or another negative errno. */
int mr_ring_accept(struct mr_link *l, const struct mr_ring_says *offer, struct mr_ring_says *out);
/* No more. How many packets were written over this link so far. */
uint32_t mr_ring_stop(struct mr_link *l);

#endif
