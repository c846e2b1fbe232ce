/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The room's state, and what its files want of each other and the rooms above of them, from the lowest to the highest.
 * Each file calls those below it only; what it does for one above is a return value or a function that it is given.
 */
#ifndef MRMPI_RNDV_H
#define MRMPI_RNDV_H

#include "libmrmpi/p2p/request/flow.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/p2p/rndv/transfer.h"

struct mr_transfers {
    struct mr_rndv **table; /* by index */
    uint32_t size, used, pending, num_free, *free;
    struct mr_rndv *active, *active_last;
    struct mr_stream *streams; /* all of them (stream.h) */
    struct mr_bounce *bounces; /* the same (tail.c) */
    unsigned num_bounces;
    uint64_t large_received; /* count of transfers that have met their receive */
    struct mr_near near;
    unsigned reads_if; /* enum mr_vc_caps: receivers shall read large messages over channels that have one of these */
};
extern MR_OWN struct mr_transfers mr_transfers;

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

/* ---- ready.c ---- */
/* A posted receive of a schedule, with its number, in whose operation both programs wait: announced, if it can be. */
void mr_ready_announce(struct mr_request *req, size_t all); /* all: mr_recv_announce */
void mr_ready_heeded(struct mr_vc *vc, size_t len); /* the sender of a message waits for READY */
bool mr_ready_comes(struct mr_vc *vc); /* this peer announces what could come eagerly, too */
void mr_ready_recall(struct mr_request *req); /* UNREADY; the peer may have begun to write */
void mr_ready_void(struct mr_request *req); /* announced, but what has come is eager, or has another length */
/* An offer of its length has met such a one. True: it will be written, or has been; false: it is as any other. head:
 * what of that has come. */
bool mr_ready_meet(struct mr_request *req, const struct mr_hdr *hdr, const void *head);
/* The peer is ready for this message: where it goes to. READY is forgotten; false: there is none of this length. */
bool mr_ready_take(struct mr_request *send, struct mr_vc *vc, uint64_t *rreq, struct mr_remote *remote);
void mr_ready_await(struct mr_rndv *r); /* it is offered; the peer's stream is there */
size_t mr_ready_head(const struct mr_rndv *r); /* READY has come for it: from which byte on it is written */
/* READY: the offer that is to be written now, or NULL. UNREADY. */
struct mr_rndv *mr_ready_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_ready_forget(struct mr_vc *vc, const struct mr_hdr *hdr);

/* ---- rndv.c ---- */
/* in_place: if the channel can, its bytes go from memory to memory; else in packets, once they are asked for */
enum mr_err mr_rndv_offer(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr, bool in_place);
void mr_rndv_accept(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload,
                    size_t len);
void mr_rndv_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_rndv_put_sent(void *cookie, int error);
void mr_rndv_put_landed(int world_rank, uint64_t rreq, int error);
void mr_rndv_fail_peer(struct mr_vc *vc);
void mr_rndv_ask_back(struct mr_rndv *r); /* CANCEL, unless its message has met a receive as far as is known */
/* The peer parts: sends of a message that no receive has met end with an error. One that begins now, and all others. */
void mr_rndv_in_vain(struct mr_rndv *r);
void mr_rndv_peer_parts(struct mr_vc *vc);
int mr_rndv_progress(void);
void mr_rndv_init(void);
void mr_rndv_free(void); /* nothing is under way */

#endif
