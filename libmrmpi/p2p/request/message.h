/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kept messages: the unexpected ones, in a table by the keys of possible receives; and messages of several packets. The
 * code that takes a message out of the table, or has made one, frees it or inserts it.
 */
#ifndef MRMPI_REQUEST_MESSAGE_H
#define MRMPI_REQUEST_MESSAGE_H

#include "libmrmpi/base/retained.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/channel/channel.h"

#define MR_MESSAGE_SMALL 256 /* bytes; there is a pool of messages up to this length */

/*
 * An unexpected message: an EAGER or RTS packet without a posted receive. Or a message of several packets while it
 * comes (parts.c): then len is the received length, and req the receive of its buffer, or NULL: kept. Kept data stays
 * in its receive buffers while these are retained; from the first buffer not retained, it is in own, at its place.
 */
struct mr_message {
    struct mr_match_quad match;
    struct mr_message *next; /* in the pool */
    struct mr_vc *vc;
    struct mr_request *req;
    struct mr_hdr hdr;
    size_t len, room;
    struct mr_retained *retained, *retained_last;
    size_t retained_len; /* bytes in them */
    uint8_t own[];
};

struct mr_message *mr_message_new(struct mr_vc *vc, const struct mr_hdr *hdr, size_t room); /* empty; never NULL */
void mr_message_insert(struct mr_message *m); /* no receive is posted: kept until one comes */
void mr_message_keep(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len); /* both */
/* Adds the next packet. There is room. */
void mr_message_add(struct mr_message *m, const void *payload, size_t len);
/* The oldest unexpected message that a receive with these arguments would take. */
struct mr_message *mr_message_find(int src, int tag, uint32_t ctx);
void mr_message_free(struct mr_message *m);
void mr_message_pool_free(void);

#endif
