/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists: short writes to one window of a peer, with copies of their data, which go over one subchannel as one list.
 * To the rest of the room a list is a put with one stripe (mr_put.list): it waits for room, moves to another
 * subchannel and is repeated as any other. What it has of its own is here: how it is filled, posted, and ended.
 *
 * A writer fills one list at a time. It belongs to the owner of a window's keys until it is closed; lists that are
 * under way then keep it until they have ended.
 */
#ifndef MRMPI_BULK_BATCH_H
#define MRMPI_BULK_BATCH_H

#include "libmrmpi/net/stripe/puts.h"
#include "libmrmpi/channel/writer.h"

#define MR_WLIST_WRITES MR_QP_LIST
#define MR_WLIST_MOST   MR_WRITER_MOST

struct mr_bulk_writer {
    struct mr_vc_writer base;
    struct mr_peer *peer;
    struct mr_remote remote;
    struct mr_put *filling; /* NULL: nothing is collected */
    bool listed, closed;
    struct mr_bulk_writer *next; /* if it is listed: of the peer's that may have something to post */
};

/* The data of all writes is in one piece. */
struct mr_wlist {
    struct mr_bulk_writer *writer;
    unsigned num;
    uint32_t serial; /* the owner's name for the memory there, */
    bool attached;   /* which may be withdrawn */
    struct mr_short_write write[MR_WLIST_WRITES];
    unsigned char data[MR_WLIST_WRITES * MR_WLIST_MOST];
};

/* ---- wlist.c ---- */
/* One for the writer to fill; it counts as open. 0 or -ENOMEM. */
int mr_wlist_begin(struct mr_bulk_writer *w);
/* It is filled; returns it. */
struct mr_put *mr_wlist_close(struct mr_bulk_writer *w);
/* As mr_stripe_post: what is left of it, as far as there is room. */
int mr_wlist_post(struct mr_stripe_op *s, struct mr_link *l);
/* It has been written, or with an error never will be; it is in no list. -EACCES: its memory was withdrawn. */
void mr_wlist_end(struct mr_put *put, int error);
void mr_wlists_free(void);

#endif
