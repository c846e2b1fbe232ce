/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pt2pt's inside: the room's state, and what its files want of each other, from the lowest to the highest. Each file
 * calls those below it only; what it does for one above is a return value or a function that it is given.
 */
#ifndef MRMPI_PT2PT_INTERNAL_H
#define MRMPI_PT2PT_INTERNAL_H

#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/match/match.h"
#include "libmrmpi/choice/alone.h"
#include "libmrmpi/choice/burst.h"
#include "libmrmpi/pt2pt/message.h"
#include "libmrmpi/pt2pt/protocol.h"
#include "libmrmpi/pt2pt/pt2pt.h"
#include "libmrmpi/pt2pt/transfer.h"
#include "libmrmpi/vc/vc.h"

struct mr_pt2pt {
    struct mr_match_table posted, unexpected;
    struct mr_request *free_requests;
    struct mr_message *free_messages; /* those with room MR_MESSAGE_SMALL */
    unsigned num_free_messages;
    struct mr_rndv **rndv; /* table by index */
    uint32_t rndv_size, rndv_used, rndv_pending, rndv_num_free, *rndv_free;
    struct mr_rndv *active, *active_last;
    struct mr_stream *streams; /* all of them (flow.h) */
    struct mr_bounce *bounces; /* the same (tail.c) */
    unsigned num_bounces;
    size_t window;         /* of credits for eager messages, for each peer */
    struct mr_vc *holding; /* channels with sends that wait for room (flow.c) */
    uint64_t data_seen, large_received; /* counts of DATA packets, of transfers that have met their receive */
    bool peer_lost;        /* some peer: receives ask whether it is theirs */
    struct mr_near near;
    const struct mr_above *above; /* NULL: none has registered */
    unsigned reads_if;   /* enum mr_vc_caps: receivers shall read large messages over channels that have one of these */
    uint8_t *scratch;    /* one piece of data on its way from or to a buffer with holes */
    struct mr_burst burst;
    struct mr_alone alone;
};
extern MR_OWN struct mr_pt2pt mr_pt2pt;

#define MR_SCRATCH (256u << 10)

/* ---- request.c ---- */
/* Nothing of it is known yet. In pieces, which the compiler clears with stores: a string instruction begins slowly. */
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
/* The next of the pool, which is not empty. For one in flight refs is 2: the protocol drops its own at completion. */
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
void mr_request_completed(struct mr_request *r); /* what is rare of mr_request_complete */
/* As mr_request_complete, of a send or a receive: the protocol drops its reference. */
static inline void mr_request_end(struct mr_request *r)
{
    r->complete = true;
    if (__builtin_expect(mr_threaded || r->on_complete, 0))
        mr_request_completed(r);
    if (__builtin_expect(r->refs == 1, 0))
        mr_request_put(r);
    else
        r->refs--;
}
/* One in flight. NULL: no memory. */
struct mr_request *mr_request_start(enum mr_request_kind kind, struct mr_comm *comm, struct mr_type *type);
void mr_request_pool_free(void);

/* Where the bytes of (buf, type) begin, if they are in one piece. */
static inline void *mr_plain(const void *buf, const struct mr_type *type)
{
    return (char *)buf + type->true_lb;
}

/* Data with holes, from offset on, and how mr_vc_send_made has it packed. */
struct mr_holes {
    const void *buf;
    size_t count;
    const struct mr_type *type;
    size_t offset;
};
static inline void mr_holes_pack(void *to, size_t len, const void *holes)
{
    const struct mr_holes *h = holes;

    mr_type_pack(h->buf, h->count, h->type, h->offset, to, len);
}

/* As mr_wait. What completes it may have come already: then there is nothing to remember from one look to the next. */
static inline enum mr_err mr_wait_here(struct mr_request *req)
{
    bool looked = !mr_threaded;

    while (!req->complete)
        if (!looked || !mr_progress()) {
            mr_progress_wait(&req->complete, looked);
            break;
        }
    return req->status.error;
}

/* ---- tail.c ---- */
/* Copies the last bytes of a message; *out: where. False: there is no room. */
bool mr_tail_offer(struct mr_rndv *r, size_t tail, struct mr_remote *out);
void mr_tail_release(struct mr_rndv *r);
void mr_tail_front(struct mr_rndv *r); /* the peer has said FRONT */
void mr_tail_free_all(void);

/* ---- read.c ---- */
/* Reads what the sender has offered, but for the head. False: it cannot be read; nothing has happened. */
bool mr_read_begin(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_read_done(void *cookie, int error);
/* A piece of the head has come: the transfer may be over with it. */
void mr_read_head(struct mr_rndv *r, size_t at, const void *payload, size_t len);

/* ---- head.c ---- */
/* Finds what of a message that is offered shall be head and tail. Number of its tails: then *tail is where that is. */
unsigned mr_head_divide(struct mr_rndv *r, const struct mr_remote *remote, struct mr_remote *tail);
int mr_head_send(struct mr_rndv *r); /* 0 or negative errno as mr_vc_send */
/* RTS with a head: from now on that comes. False: it is damaged. */
bool mr_head_offered(struct mr_vc *vc, const struct mr_hdr *hdr);
/* No receive is posted for this offer: it is kept, and its head will be. */
void mr_head_keep(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_head_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
/* An offer with a head has met its receive. Returns how much has come, behind the offer's payload; r gets the rest. */
size_t mr_head_meet(struct mr_rndv *r, const struct mr_hdr *hdr);
void mr_head_forget(struct mr_vc *vc, const struct mr_hdr *hdr); /* the offer is taken back */
void mr_head_fail_peer(struct mr_vc *vc);

/* ---- rndv.c ---- */
/* in_place: if the channel can, its bytes go from memory to memory; else in packets, once they are asked for */
enum mr_err mr_rndv_offer(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr, bool in_place);
void mr_rndv_accept(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload,
                    size_t len);
void mr_rndv_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_rndv_put_sent(void *cookie, int error);
void mr_rndv_put_landed(struct mr_vc *vc, uint64_t rreq, int error);
void mr_rndv_fail_peer(struct mr_vc *vc);
int mr_rndv_progress(void);

/* ---- recv.c ---- */
/* A message has met its receive: what it takes is started or done. */
void mr_recv_match(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_recv_meet(struct mr_request *req, const struct mr_hdr *hdr);                    /* its first half: the status */
/* A part of an eager one comes to its place, without what has no room. All of its bytes are there. */
void mr_recv_fill(struct mr_request *req, size_t at, const void *payload, size_t len);
void mr_recv_taken(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr);
void mr_recv_arrived(struct mr_message *m); /* one that is whole meets its receive, or is kept */
void mr_recv_peer_lost(void); /* receives posted for this peer end with an error */
bool mr_recv_never_comes(struct mr_comm *comm, int src); /* of this rank, if it is not here yet: the peer is lost */
/* ---- parts.c ---- */
/* An eager message of more than one packet; hdr as of one that has one. lender: NULL, or it may go by mr_lend. */
int mr_parts_send(struct mr_vc *vc, struct mr_hdr *hdr, const void *buf, size_t count, const struct mr_type *type,
                  struct mr_request *lender);
/* A packet of such a message. False: it is damaged. */
bool mr_parts_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_parts_fail_peer(struct mr_vc *vc);

/* ---- send.c ---- */
int mr_send_progress(void); /* starts held sends for which there is room now; number of them */
/* ---- cancel.c ---- */
bool mr_cancel_recall(struct mr_request *req); /* asks for an eager message back. False: there is nobody to ask */
void mr_cancel_asked(struct mr_vc *vc, const struct mr_hdr *hdr); /* CANCEL */
void mr_cancel_done(struct mr_vc *vc, const struct mr_hdr *hdr);  /* CANCELLED */

#endif
