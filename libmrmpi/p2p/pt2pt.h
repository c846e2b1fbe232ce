/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point communication: sends, receives, probes.
 *
 * Called by api/ and coll/ with the library's lock held. Sends and receives return a request; the caller completes it
 * by mr_wait/mr_test and frees it by mr_request_put. Waiting functions give the lock away while they wait.
 */
#ifndef MRMPI_PT2PT_H
#define MRMPI_PT2PT_H

#include "libmrmpi/p2p/request/request.h"

int mr_pt2pt_init(void); /* opens the rails too: mr_vc_init */
/* Completes what must be completed and synchronises with all peers: after it nobody needs this process any more. */
void mr_pt2pt_end_together(void);
void mr_pt2pt_finalize(void); /* after that: nothing is under way */
/* Waits until nothing of this process is under way to others; offers that nobody has accepted are not waited for. */
void mr_pt2pt_quiesce(void);

/* ctx: comm->context for users, comm->context | 1 for collectives. *req is NULL on error. dest may be MR_PROC_NULL. */
enum mr_err mr_isend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                     uint32_t ctx, enum mr_send_mode mode, struct mr_request **req);
enum mr_err mr_irecv(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm,
                     uint32_t ctx, struct mr_request **req);
/*
 * Messages of a collective's schedule have a number among those of the operation from one rank to another, from 1, the
 * same on both. As mr_isend, of such a message; and a receive that has been posted for one, for which its program
 * waits, as the sender's does: it is announced, so that the sender may write without asking (p2p/rndv/rtr.c). all:
 * bytes of such messages that a rank of the operation sends or receives at a time, at most, or 0: it is little, or not
 * known.
 */
enum mr_err mr_isend_nth(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                         uint32_t ctx, uint8_t nth, size_t all, struct mr_request **req);
void mr_recv_announce(struct mr_request *req, uint8_t nth, size_t all);
/* All of this memory is sent to ranks, or filled by them, of whom this is one. True: it is registered, and worth it. */
bool mr_pt2pt_keep(struct mr_comm *comm, int peer, const void *buf, size_t len, bool filled);
/*
 * Those that are complete when the function returns, without a request: a short message has been sent, or one that had
 * come is here. False: nothing has happened. *id: what mr_request_sent wants of a send; *status: a receive's.
 */
bool mr_isend_now(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                  uint32_t ctx, uint64_t *id);
bool mr_irecv_now(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm, uint32_t ctx,
                  struct mr_status *status);
/* The adapter has the message, or will as soon as there is room: it ends soon, whatever the receiver's program does. */
bool mr_send_leaves(const struct mr_request *req);
/* Do any packets or sends of this process wait for room? */
bool mr_sends_wait(void);
/* Instead of a collective's message: the receive that it meets ends with this error. */
enum mr_err mr_isend_poison(enum mr_err why, int dest, int tag, struct mr_comm *comm, uint32_t ctx,
                            struct mr_request **req);
/* Blocking forms with their short cuts (no request is made for a small send or an already arrived message). */
enum mr_err mr_send(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                    uint32_t ctx, enum mr_send_mode mode);
enum mr_err mr_recv(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm, uint32_t ctx,
                    struct mr_status *status);

/* See mr_progress_try. */
bool mr_iprobe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status);
enum mr_err mr_probe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status);
/* Matched probe: takes the message out of the queue; NULL: none. For MR_PROC_NULL it gives mr_message_no_proc. */
struct mr_message;
extern struct mr_message *const mr_message_no_proc;
enum mr_err mr_mprobe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_message **msg,
                      struct mr_status *status);
struct mr_message *mr_improbe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status);
enum mr_err mr_imrecv(void *buf, size_t count, struct mr_type *type, struct mr_message *msg, struct mr_request **req);
/*
 * Receives that have not matched end at once. A send goes back to being under way until the receiver has said whether
 * it still had the message; one that is complete because its data left at once may be asked back too.
 */
enum mr_err mr_cancel(struct mr_request *req);

/*
 * For inquiries (pending.c): receives that no message has met, sends whose message no receive has met or that wait for
 * room, and messages that have come and no receive takes. ctx names the communicator; comm is NULL for a message.
 */
enum mr_pending_kind { MR_PENDING_RECV, MR_PENDING_SEND, MR_PENDING_MESSAGE };
struct mr_pending {
    enum mr_pending_kind kind;
    const struct mr_comm *comm;
    uint32_t ctx;
    int peer, tag;     /* a rank of the communicator; of a receive also MR_ANY_SOURCE, MR_ANY_TAG */
    uint64_t bytes;    /* of a receive: its room */
    const char *state; /* of a send: "no receive has met it", ...; else NULL */
};
void mr_pt2pt_each_pending(void (*tell)(const struct mr_pending *p, void *arg), void *arg);

/* Messages that no receive had taken when mr_pt2pt_finalize() was called, and the first of them. */
struct mr_unreceived {
    unsigned count;
    int peer, tag;
};
struct mr_unreceived mr_pt2pt_unreceived(void);

/*
 * A receive or send of a collective operation that cannot succeed any more ends soon, with an error, though its peer is
 * neither lost nor ready: the peer may never begin this operation, since its program has seen an error before. What
 * comes for the receive later is taken, and dropped, so that its sender does not wait for ever. A send that no receive
 * has met is cancelled: it is to be replaced by a poison. Once for each request.
 */
void mr_give_up(struct mr_request *req);
/* A member of the communicator, or of the one that it is part of, is lost. */
bool mr_comm_lacks(const struct mr_comm *c);
/* The process with this rank in the world has called MPI_Finalize, and all that it had sent before is here. */
bool mr_peer_parts(int world_rank);
/* told is called, out of mr_progress(), when a process is lost. */
void mr_pt2pt_on_loss(void (*told)(void));

struct mr_above;
void mr_pt2pt_above(const struct mr_above *above); /* registers a room above (p2p/request/protocol.h) */

#endif
