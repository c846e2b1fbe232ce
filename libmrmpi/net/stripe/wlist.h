/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists: short writes to one window of a peer, with copies of their data, sent over one subchannel as one list. To the
 * rest of the folder a list is a transfer with one stripe: it waits for room, moves to another subchannel and is
 * repeated like any other. Filling, posting and ending a list are here.
 *
 * A writer fills one list at a time. The writer belongs to the owner of a window's keys until it is closed; lists under
 * way then keep the writer until they have ended.
 */
#ifndef MRMPI_BULK_BATCH_H
#define MRMPI_BULK_BATCH_H

#include "libmrmpi/net/stripe/transfers.h"
#include "libmrmpi/net/stripe/writer.h"

#define MR_WLIST_WRITES MR_QP_LIST
#define MR_WLIST_MOST   MR_WRITER_MOST

struct mr_bulk_writer {
    struct mr_net_writer base;
    struct mr_peer *peer;
    struct mr_remote remote;
    struct mr_transfer *filling; /* NULL: nothing is collected */
    bool listed, closed;
    struct mr_bulk_writer *next; /* if listed: the next of the peer's writers with something to post */
};

/* The data of all writes is in one piece. */
struct mr_wlist {
    struct mr_bulk_writer *writer;
    unsigned num;
    uint32_t serial; /* the owner's name for the memory there, */
    bool attached;   /* the memory may be withdrawn */
    struct mr_short_write write[MR_WLIST_WRITES];
    unsigned char data[MR_WLIST_WRITES * MR_WLIST_MOST];
};

/* ---- wlist.c ---- */
/* A list for the writer to fill; it counts as open. 0 or -ENOMEM. */
int mr_wlist_begin(struct mr_bulk_writer *w);
/* The list is full; returns it. */
struct mr_transfer *mr_wlist_close(struct mr_bulk_writer *w);
/* As mr_stripe_post: the rest of the list, as far as there is room. */
int mr_wlist_post(struct mr_stripe_op *s, struct mr_link *l);
/*
 * The list has been written, or with an error never will be; it is in no list of waiting ones. -EACCES: its memory was
 * withdrawn.
 */
void mr_wlist_end(struct mr_transfer *transfer, int error);
void mr_wlists_free(void);

#endif
