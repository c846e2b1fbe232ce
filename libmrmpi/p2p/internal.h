/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internal interface of p2p's files, from the lowest to the highest. Each file calls lower files only; work for a
 * higher file is a return value or a callback.
 */
#ifndef MRMPI_PT2PT_INTERNAL_H
#define MRMPI_PT2PT_INTERNAL_H

#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/p2p/payload/payload.h"
#include "libmrmpi/p2p/request/flow.h"
#include "libmrmpi/p2p/rndv/rndv.h"

/* ---- recv.c ---- */
/* A message has met its receive: starts or finishes the transfer. */
void mr_recv_match(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_recv_meet(struct mr_request *req, const struct mr_hdr *hdr); /* its first half: the status */
/* Puts a part of an eager message in its place, without the excess. All of its bytes are there. */
void mr_recv_fill(struct mr_request *req, size_t at, const void *payload, size_t len);
void mr_recv_taken(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr);
void mr_recv_arrived(struct mr_message *m); /* a whole message meets its receive, or is kept */
void mr_recv_end(struct mr_request *req,
                 enum mr_err err); /* the receive ends: no message has met it, and no written message can */
void mr_recv_peer_lost(void);      /* receives of messages that never come end with an error */
/*
 * Of a message of this rank that is not here yet: an error if the peer is lost, or parts, or the communicator has been
 * revoked. blocked: this process sends nothing before. waited: a blocking call waits for the message, which may be that
 * of a failed process.
 */
enum mr_err mr_recv_fate(struct mr_comm *comm, int src, uint32_t ctx, bool blocked, bool waited);
int mr_recv_end_awaited(void); /* the awaited receive ends with an error if its message never comes; 1 if so */
/* ---- parts.c ---- */
int mr_parts_send(const struct mr_payload *p, struct mr_hdr *hdr); /* of several packets; hdr as of one packet */
/* A packet of such a message. False: it is damaged. */
bool mr_parts_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_parts_fail_peer(struct mr_vc *vc);

/* ---- send.c ---- */
int mr_send_progress(void); /* starts held sends for which there is room now; returns their number */
/* ---- cancel.c ---- */
bool mr_cancel_recall(struct mr_request *req); /* asks for an eager message back. False: there is no rank to ask */
void mr_cancel_asked(struct mr_vc *vc, const struct mr_hdr *hdr); /* CANCEL */
void mr_cancel_done(struct mr_vc *vc, const struct mr_hdr *hdr);  /* CANCELLED */

/* ---- revoke.c ---- */
void mr_revoke_packet(const struct mr_hdr *hdr); /* REVOKE */
void mr_revoke_made(struct mr_comm *c);
void mr_revoke_lost(int world_rank);
void mr_revoke_end(void); /* the program sends nothing any more: the world may be used again */
void mr_revoke_free(void);

/* ---- give_up.c ---- */
/*
 * A message taken back at once: it ends when the peer has answered; the peer then has read everything sent before, and
 * we everything the peer sent. NULL: the peer is lost, or there is no memory.
 */
struct mr_request *mr_flush_peer(int world_rank);

/* guest.c */
void mr_door_packet(struct mr_vc *vc, const struct mr_hdr *hdr);
void mr_guests_part(void); /* at the end: guests hear of it, and have all messages */

#endif
