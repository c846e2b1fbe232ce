/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a peer with large messages in either direction. */
#ifndef MRMPI_RNDV_STREAM_H
#define MRMPI_RNDV_STREAM_H

#include "libmrmpi/p2p/choice/batch.h"
#include "libmrmpi/p2p/choice/exchange.h"
#include "libmrmpi/p2p/rndv/rndv.h"

/* The peer is ready for a message whose send has not begun here (ready.c). */
struct mr_rtr {
    struct mr_rtr *next;
    struct mr_hdr hdr;
    struct mr_remote remote;
};

struct mr_stream {
    struct mr_stream *next;
    struct mr_batch batch;
    /* Of messages copied by ranks of this node (near.c): the waiting receives, and the number of started ones. */
    struct mr_rndv *queued, *queued_last;
    unsigned started;
    enum mr_copy_mode mode; /* of these */
    uint64_t data_seen;     /* DATA packets of the peer */
    struct mr_exchange exchange;
    struct mr_rtr *ready;   /* announcements of the peer, */
    struct mr_rndv *offers; /* and offers that it may still announce */
    unsigned vain, rest; /* consecutive announcements not heeded by the peer; announcements left out until the next */
    bool announces;      /* eager messages are announced, too, and none was awaited in vain since the latest RTR */
    struct mr_bounce *bounce; /* of the last copies, if some of them are under way (bounce.c) */
    /* The prefix that is coming (prefix.c): `at` of its `len` bytes have. */
    uint64_t sreq;            /* the sender's id of its message */
    uint32_t at, len;         /* equal: none is coming */
    const struct mr_hdr *hdr; /* the offer, until it meets its receive: then NULL, */
    uint8_t *into;            /* and received so far here, */
    uint64_t to;              /* and then to this transfer */
};

struct mr_stream *mr_stream_of(struct mr_vc *vc); /* made if need be; NULL: no memory */
/* The program's send is complete, or was none: one less in its batch. */
void mr_stream_uncount(struct mr_rndv *r);
void mr_stream_drop(struct mr_vc *vc); /* that of a peer without transfers, if any */
void mr_streams_free(void);

#endif
