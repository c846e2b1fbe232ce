/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the folders of point-to-point communication (p2p/request/, p2p/rndv/, p2p/); beginning and end of requests
 * there.
 */
#ifndef MRMPI_REQUEST_STATE_H
#define MRMPI_REQUEST_STATE_H

#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/p2p/choice/alone.h"
#include "libmrmpi/p2p/choice/burst.h"
#include "libmrmpi/p2p/request/message.h"
#include "libmrmpi/p2p/request/protocol.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/p2p/progress/progress.h"

struct mr_pt2pt {
    struct mr_match_table posted, unexpected;
    struct mr_request *free_requests;
    struct mr_message *free_messages; /* messages with room MR_MESSAGE_SMALL */
    unsigned num_free_messages;
    size_t window;         /* of credits for eager messages, for each peer */
    struct mr_vc *holding; /* channels with sends waiting for room (flow.c) */
    unsigned num_taken;    /* messages that receives took out of a ring, and tries (recv.c) */
    struct mr_vc *ended;   /* the last peer that is lost, or parts: receives ask whether it is theirs; NULL: none */
    unsigned num_lost;     /* number of lost peers */
    uint8_t *scratch;      /* one piece of data on its way from or to a buffer with holes */
    struct mr_burst burst;
    struct mr_alone alone;
};
extern MR_OWN struct mr_pt2pt mr_pt2pt;

#define MR_SCRATCH (256u << 10)

/* Clears a request, in pieces, which the compiler clears with stores: a string instruction begins slowly. */
static inline void mr_request_prepare(struct mr_request *r, enum mr_request_kind kind, struct mr_comm *comm)
{
    enum { PIECE = 64, REST = sizeof *r % PIECE };

    for (size_t at = 0; at + PIECE <= sizeof *r; at += PIECE)
        memset((char *)r + at, 0, PIECE);
    memset((char *)r + sizeof *r - REST, 0, REST);
    r->kind = kind;
    r->comm = comm;
    r->status.source = MR_PROC_NULL;
    r->status.tag = MR_ANY_TAG;
}
/*
 * Takes the next request of the non-empty pool. For one in flight refs is 2: the protocol drops its own at completion.
 */
static inline struct mr_request *mr_request_take(enum mr_request_kind kind, struct mr_comm *comm, int refs)
{
    struct mr_request *r = mr_pt2pt.free_requests;

    mr_pt2pt.free_requests = r->next;
    mr_request_prepare(r, kind, comm);
    r->refs = refs;
    if (comm)
        comm->refs++;
    return r;
}
void mr_request_completed(struct mr_request *r); /* the rare part of mr_request_complete */
/* As mr_request_complete, of a send or a receive: the protocol drops its reference. */
static inline void mr_request_end(struct mr_request *r)
{
    r->complete = true;
    if (unlikely(mr_threaded || r->on_complete))
        mr_request_completed(r);
    if (unlikely(r->refs == 1))
        mr_request_put(r);
    else
        r->refs--;
}
/* A request in flight. NULL: no memory. */
struct mr_request *mr_request_start(enum mr_request_kind kind, struct mr_comm *comm, struct mr_type *type);
void mr_request_pool_free(void);
/* The requests under way on c that are not a caller's own. */
void mr_request_each(const struct mr_comm *c, void (*f)(struct mr_request *r));

/* The beginning of the bytes of (buf, type), if in one piece. */
static inline void *mr_data_at(const void *buf, const struct mr_type *type)
{
    return (char *)buf + type->true_lb;
}

/* As mr_wait. The completing event may have come already: then nothing must be remembered between polls. */
static inline enum mr_err mr_wait_here(struct mr_request *req)
{
    bool polled = !mr_threaded;

    while (!req->complete)
        if (!polled || !mr_progress()) {
            mr_progress_wait(req, polled);
            break;
        }
    return req->status.error;
}

#endif
