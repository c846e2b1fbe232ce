/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder's state, and its interface for its own files and higher folders, from the lowest to the highest. Each file
 * calls lower files only; work for a higher file is a return value or a callback.
 */
#ifndef MRMPI_RNDV_H
#define MRMPI_RNDV_H

#include "libmrmpi/p2p/request/flow.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/p2p/rndv/transfer.h"

struct mr_rndvs {
    struct mr_rndv **table; /* by index */
    uint32_t size, used, pending, num_free, *free;
    struct mr_rndv *active, *active_last;
    struct mr_stream *streams; /* all of them (stream.h) */
    struct mr_bounce *bounces; /* the same (bounce.c) */
    unsigned num_bounces;
    uint64_t large_received; /* transfers that have met their receive */
    struct mr_near near;
    unsigned reads_if; /* enum mr_vc_caps: receivers read large messages over channels with one of these */
};
extern MR_OWN struct mr_rndvs mr_rndvs;

/* ---- bounce.c ---- */
/* Copies the last bytes of a message; *out: where. False: there is no room. */
bool mr_bounce_offer(struct mr_rndv *r, size_t bounce, struct mr_remote *out);
void mr_bounce_release(struct mr_rndv *r);
void mr_bounce_front(struct mr_rndv *r);       /* the program's send is complete */
void mr_bounce_forget(const struct mr_vc *vc); /* of a peer without transfers */
void mr_bounce_free_all(void);

/* ---- prefix.c ---- */
/*
 * Decides the eager prefix and bounce buffer of an offered message. Returns the number of bounce buffers: then *bounce
 * is its place.
 */
unsigned mr_prefix_divide(struct mr_rndv *r, const struct mr_remote *remote, struct mr_remote *bounce);
int mr_prefix_send(struct mr_rndv *r); /* 0 or negative errno as mr_vc_send */
/* RTS with a prefix, which comes from now on. False: damaged. */
bool mr_prefix_offered(struct mr_vc *vc, const struct mr_hdr *hdr);
/* No receive is posted for this offer: it is kept, and its prefix will be. */
void mr_prefix_keep(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
/* A piece has come for r, which may be over with it. */
void mr_prefix_copy(struct mr_rndv *r, size_t at, const void *payload, size_t len);
void mr_prefix_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
/* An offer with a prefix has met its receive. Returns how much has come, behind the offer's payload; r gets the rest.
 */
size_t mr_prefix_meet(struct mr_rndv *r, const struct mr_hdr *hdr);
void mr_prefix_forget(struct mr_vc *vc, const struct mr_hdr *hdr); /* the offer is taken back */
void mr_prefix_fail_peer(struct mr_vc *vc);

/* ---- packets.c: this and share.c ---- */
struct mr_protocol;
/* Sender: GO has come. False: damaged. Then sends what has room: true when all is out, false also after an error. */
bool mr_packets_asked(struct mr_rndv *r, const struct mr_hdr *go, const struct mr_protocol *by);
bool mr_packets_push(struct mr_rndv *r, int *n); /* n: packets sent, or 1 after an error */
void mr_packets_credit(struct mr_rndv *r, const struct mr_hdr *credit);
void mr_packets_ask(struct mr_rndv *r); /* receiver: begins, also in the middle of another protocol */
/* Receiver: copies DATA as far as is wanted. True: all is here. */
bool mr_packets_take(struct mr_rndv *r, const struct mr_hdr *data, const void *payload, size_t len);

/* ---- read.c ---- */
void mr_read_done(void *cookie, int error);

/* ---- write.c: this and ready.c ---- */
/* Sender: the answer is in order; fills r->remote. And writes to there, from a byte on. */
bool mr_write_allowed(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_write_begin(struct mr_rndv *r, uint64_t rreq, size_t from, size_t len);
void mr_write_packet(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len); /* receiver */
void mr_write_stale(struct mr_vc *vc, const struct mr_hdr *hdr); /* a packet for a receive that is over */

/* ---- ready.c ---- */
/* A posted receive of a schedule, with its number, in whose operation both programs wait: announced, if possible. */
void mr_rtr_announce(struct mr_request *req, size_t all); /* all: mr_recv_announce */
void mr_rtr_heeded(struct mr_vc *vc, size_t len);         /* the sender of a message waits for RTR */
bool mr_rtr_comes(struct mr_vc *vc);                      /* this peer announces receives of eager messages, too */
void mr_rtr_recall(struct mr_request *req);               /* RTR_CANCEL; the peer may have begun to write */
void mr_rtr_void(struct mr_request *req); /* announced, but an eager message has come, or one of another length */
/*
 * An offer of its length has met such a receive. True: written, or will be; false: like any other. prefix: its received
 * part.
 */
bool mr_rtr_meet(struct mr_request *req, const struct mr_hdr *hdr, const void *prefix);
/*
 * The receiver has said RTR before: the message is written at once, and its offer is only for the order of messages.
 * err: 0 or negative errno of the offer. False: it has not, and nothing has happened.
 */
bool mr_ready_offer(struct mr_rndv *r, struct mr_hdr *hdr, unsigned caps, int *err);
/* RTR: the offer that is to be written now, or NULL. RTR_CANCEL. */
struct mr_rndv *mr_rtr_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_rtr_forget(struct mr_vc *vc, const struct mr_hdr *hdr);

/* ---- share.c, split.c, near.c ---- */
void mr_share_begin(struct mr_rndv *r);
bool mr_split_begin(struct mr_rndv *r); /* false: there is no claim for it */
void mr_near_report(void);              /* to the log: the learnt modes */

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
/* The peer parts: sends of a message without a receive end with an error. A send that begins now, and all others. */
void mr_rndv_in_vain(struct mr_rndv *r);
void mr_rndv_peer_parts(struct mr_vc *vc);
bool mr_rndv_leaves(const struct mr_rndv *r); /* the channel writes it */
bool mr_rndv_knows(const struct mr_vc *vc);   /* some transfer is the peer's */
void mr_rndv_forget(struct mr_vc *vc);        /* the peer, without transfers, goes */
int mr_rndv_progress(void);
void mr_rndv_init(void);
void mr_rndv_free(void); /* nothing is under way */

#endif
