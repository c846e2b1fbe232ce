/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point communication: what api/, rma/, coll/ and io/ use of p2p/. Requests, sends, receives, probes,
 * operations made of these (buffered and partitioned sends), and progress: polling the network, and waiting.
 *
 * All functions are called with the library's lock held. Waiting functions release the lock while they wait. Sends and
 * receives return a request; the caller completes it by mr_wait/mr_test and frees it by mr_request_put.
 */
#ifndef MRMPI_P2P_H
#define MRMPI_P2P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/match/match.h"

struct mr_schedule;
struct mr_vc;
struct mr_hdr;

/* ---- life -------------------------------------------------------------------------------------------------------- */

int mr_pt2pt_init(void); /* opens the rails too: mr_vc_init */
/*
 * Completes all operations that must complete and synchronises with all peers: afterwards no rank needs this process
 * any more.
 */
void mr_pt2pt_end_together(void);
void mr_pt2pt_finalize(void); /* afterwards nothing is under way */
/* Waits until nothing of this process is under way to others; offers not accepted by a receive are not waited for. */
void mr_pt2pt_quiesce(void);

/* ---- progress (progress/progress.c) ------------------------------------------------------------------------------ */

int mr_progress(void);                    /* one poll; returns the number of things done */
extern MR_OWN unsigned mr_progress_polls; /* polls made so far, of all kinds */
/*
 * For a caller that will come again (test, probe): polls until done(arg), which is returned, or until there is no work;
 * a limited number of times. Gives others a chance if not done.
 */
bool mr_progress_try(bool (*done)(void *arg), void *arg);
void mr_progress_some(void); /* the same, if the result takes long to find out */
/* Wait politely (spin, yield, sleep) until done(arg); polls the network, gives the lock away in between. */
void mr_progress_until(bool (*done)(void *arg), void *arg);
/* A poll for a program outside MPI functions: none of its code is called, such as an operation of a reduction. */
int mr_progress_aside(void);

enum mr_progress_when {
    MR_PROGRESS_ALWAYS, /* in each poll, including aside */
    MR_PROGRESS_IN_MPI, /* not aside */
};
/* A folder's pending work: poll is called, and returns the number of things done, while *pending is not NULL. */
void mr_progress_register(enum mr_progress_when when, void *const *pending, int (*poll)(void));
/*
 * News of the launcher, as an inquiry: each time *news has another value, an idle waiter calls answer once, with its
 * idle time. news NULL: there are none.
 */
void mr_progress_inquiry(const volatile uint32_t *news, void (*answer)(uint64_t waited_ns));

/* ---- requests (request/request.c) -------------------------------------------------------------------------------- */

/* The context of the last messages of a job; communicators count up from 0. */
#define MR_CTX_FINALIZE 0xfffffffeu
/* Or-ed with a communicator's context: the greetings of partitioned operations (p2p/derived/part.c). */
#define MR_CTX_GREETING 0x40000000u

enum mr_send_mode {
    MR_SEND_STANDARD,
    MR_SEND_SYNCHRONOUS,
    MR_SEND_READY,
    MR_SEND_BUFFERED, /* mr_bsend, mr_ibsend; not mr_send, mr_isend */
    MR_SEND_POISON,   /* pt2pt's own: mr_isend_poison */
};

struct mr_status {
    int source, tag; /* ranks of the communicator; MR_PROC_NULL / MR_ANY_TAG for an empty one */
    enum mr_err error;
    bool cancelled;
    uint64_t bytes;
};

enum mr_request_kind {
    MR_REQ_SEND,
    MR_REQ_RECV,
    MR_REQ_SENDRECV,
    MR_REQ_PART,  /* a round of a partitioned operation */
    MR_REQ_FLUSH, /* of an attached buffer */
    MR_REQ_COLL,
    MR_REQ_RMA,
    MR_REQ_PERSISTENT_SEND,
    MR_REQ_PERSISTENT_RECV,
    MR_REQ_PERSISTENT_PART,
    MR_REQ_PERSISTENT_COLL,
    MR_REQ_GENERALIZED
};

struct mr_request {
    int refs;
    int handle; /* for the api's table; 0: none yet */
    enum mr_request_kind kind;
    volatile bool complete; /* written under the lock, read by waiters under the lock */
    bool active;            /* persistent requests: started and not yet completed */
    bool waited : 1;        /* a blocking send's */
    bool in_burst : 1;      /* a send counted in burst.h */
    bool crowded : 1;       /* a schedule's send: eager messages as this one delay each other */
    bool given_up : 1;      /* no longer waited for: mr_recv_give_up */
    uint8_t nth;            /* of a schedule's messages (mr_isend_nth); 0: it has no number */
    struct mr_status status;
    struct mr_comm *comm;
    /* called once at completion, lock held; used by schedules (coll/) and generalized requests; may be NULL */
    void (*on_complete)(struct mr_request *req, void *arg);
    void *on_complete_arg;
    /* the rest belongs to p2p/ for sends and receives, to their maker for the other kinds */
    union {
        const void *send_buf;
        struct api_copy *copy; /* MR_REQ_PERSISTENT_PART, MR_REQ_PERSISTENT_COLL: api/request.h */
    };
    union {
        void *recv_buf;
        struct mr_schedule *schedule; /* MR_REQ_PERSISTENT_COLL */
        struct mr_part *part;         /* MR_REQ_PERSISTENT_PART */
        struct mr_request *receive;   /* MR_REQ_SENDRECV, until complete */
    };
    size_t count;
    struct mr_type *type;
    int peer, tag; /* as asked: may be wildcards */
    uint32_t ctx;
    uint8_t mode;                   /* enum mr_send_mode */
    uint8_t zsends;                 /* a send's packets that adapters may still read from the program's memory */
    uint8_t protocol;               /* whether there may be some: enum mr_send_protocol */
    bool ended : 1, recalled : 1;   /* when there are none any more it is complete; is to be cancelled */
    struct mr_request *next, *prev; /* next: pt2pt's pool while free; else its user's */
    struct mr_rndv *proto;          /* state of a transfer of more than one packet */
    union {
        struct mr_match_entry match; /* receives: in the posted queue */
        struct {
            uint64_t eager_id; /* a send complete at once, which may be cancelled nevertheless: the receiver's name of
                                  the message; 0: none. A poison: its error */
            struct mr_request *behind; /* a buffered send: the message itself, with a reference held */
            struct mr_vc *held_by;     /* a send waiting for room: its channel, and its neighbours in that queue */
            struct mr_request *held_next, *held_prev;
        };
    };
};

/* Of a receive: its message has come, or has been offered. */
static inline bool mr_request_has_met(const struct mr_request *recv)
{
    return recv->complete || (recv->proto && !recv->match.queue);
}

struct mr_request *mr_request_new(enum mr_request_kind kind, struct mr_comm *comm);
/* Requests of operations that were complete at once (mr_isend_now, mr_irecv_now). NULL: no memory. */
struct mr_request *mr_request_sent(struct mr_comm *comm, int dest, int tag, uint32_t ctx, uint64_t id);
struct mr_request *mr_request_received(const struct mr_status *status);
struct mr_request *mr_request_get(struct mr_request *r);
void mr_request_put(struct mr_request *r);
void mr_request_complete(struct mr_request *r); /* sets complete, wakes waiters, calls on_complete */
/*
 * Waits until nothing is under way on c: neither operations that the program waits for nor freed ones; the caller holds
 * c.
 */
void mr_request_wait_for(const struct mr_comm *c);

enum mr_err mr_wait(struct mr_request *req); /* until complete; the error is in req->status */
bool mr_test(struct mr_request *req);        /* mr_progress_try */
/*
 * True if only this process could still complete the request, by a message to itself, of which none is under way: a
 * receive from any source after the end of all others. A call that blocks for such requests alone would never return,
 * so the call ends one of them with an error. mr_wait does so itself.
 */
bool mr_never_ends(struct mr_request *req);
void mr_end_unheard(struct mr_request *req);

/* ---- sends, receives, probes ------------------------------------------------------------------------------------- */

/* ctx: comm->context for users, comm->context | 1 for collectives. *req is NULL on error. dest may be MR_PROC_NULL. */
enum mr_err mr_isend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                     uint32_t ctx, enum mr_send_mode mode, struct mr_request **req);
enum mr_err mr_irecv(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm,
                     uint32_t ctx, struct mr_request **req);
/*
 * Messages of a collective's schedule are numbered among those of the operation from one rank to another, from 1, the
 * same on both sides. Like mr_isend, for such a message; and a posted receive for one, in whose operation its program
 * waits, as the sender's does: it is announced, so that the sender may write without asking (p2p/rndv/ready.c). all:
 * most bytes of such messages that a rank of the operation sends or receives at a time, or 0: little, or unknown.
 */
enum mr_err mr_isend_nth(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                         uint32_t ctx, uint8_t nth, size_t all, struct mr_request **req);
void mr_recv_announce(struct mr_request *req, uint8_t nth, size_t all);
/* All of this memory is sent to ranks, or filled by them, including this rank. True: registered, and worth it. */
bool mr_pt2pt_keep(struct mr_comm *comm, int peer, const void *buf, size_t len, bool filled);
/*
 * Operations complete at the return, without a request: a short message was sent, or a message that had come was
 * received. False: nothing has happened. *id: for mr_request_sent, of a send; *status: a receive's.
 */
bool mr_isend_now(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                  uint32_t ctx, uint64_t *id);
bool mr_irecv_now(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm, uint32_t ctx,
                  struct mr_status *status);
/* The adapter has the message, or will as soon as there is room: it ends soon, whatever the receiver's program does. */
bool mr_send_leaves(const struct mr_request *req);
/* Do any packets or sends of this process wait for room? */
bool mr_sends_wait(void);
/* In place of a collective's message: the matching receive ends with this error. */
enum mr_err mr_isend_poison(enum mr_err why, int dest, int tag, struct mr_comm *comm, uint32_t ctx,
                            struct mr_request **req);
/* Blocking forms with their short cuts (no request is made for a small send or an already arrived message). */
enum mr_err mr_send(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                    uint32_t ctx, enum mr_send_mode mode);
enum mr_err mr_recv(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm, uint32_t ctx,
                    struct mr_status *status);

/* See mr_progress_try. In vain: mr_probe_fate. */
bool mr_iprobe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status);
/*
 * No message is here: MR_SUCCESS if one may come. Else the sender has failed, or, from any source, a process whose
 * failure is not acknowledged (MR_ERR_PROC_FAILED_PENDING), or the communicator is revoked.
 */
enum mr_err mr_probe_fate(int src, struct mr_comm *comm, uint32_t ctx);
enum mr_err mr_probe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status);
/* Matched probe: takes the message out of the queue. NULL: none (mr_probe_fate). MR_PROC_NULL: mr_message_no_proc. */
struct mr_message;
extern struct mr_message *const mr_message_no_proc;
enum mr_err mr_mprobe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_message **msg,
                      struct mr_status *status);
struct mr_message *mr_improbe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status);
enum mr_err mr_imrecv(void *buf, size_t count, struct mr_type *type, struct mr_message *msg, struct mr_request **req);
/*
 * Unmatched receives end at once. A send is under way again until the receiver has said whether it still had the
 * message; a send that was complete at once may be taken back too.
 */
enum mr_err mr_cancel(struct mr_request *req);

/* ---- made of sends and receives (derived/): requests are owned as those of mr_isend and mr_irecv ----------------- */

/* Once, at the end, when no message is under way any more. */
void mr_derived_finalize(void);

/* Both under one request, whose status is the receive's. The second sends and receives in the same buffer. */
struct mr_message_args {
    const void *buf; /* a receive writes there */
    size_t count;
    struct mr_type *type;
    int peer, tag;
};
enum mr_err mr_isendrecv(const struct mr_message_args *send, const struct mr_message_args *recv, struct mr_comm *comm,
                         struct mr_request **req);
enum mr_err mr_isendrecv_replace(void *buf, size_t count, struct mr_type *type, int dest, int stag, int src, int rtag,
                                 struct mr_comm *comm, struct mr_request **req);

/*
 * Partitioned communication (part.c). An operation is made once and started many times; the requests under way are of
 * kind MR_REQ_PART. info on the arguments as for mr_isend; `count` elements in each partition.
 */
struct mr_part;
struct mr_part_args {
    const void *buf; /* a receive writes there */
    int partitions;
    size_t count;
    struct mr_type *type;
    int peer, tag;
};
enum mr_err mr_part_new(bool sender, const struct mr_part_args *args, struct mr_comm *comm, struct mr_request **req);
void mr_part_free(struct mr_part *p); /* not under way */
enum mr_err mr_part_start(struct mr_part *p, struct mr_request **req);
int mr_part_count(const struct mr_part *p); /* partitions */
bool mr_part_is_send(const struct mr_part *p);
enum mr_err mr_part_ready(struct mr_part *p, int partition);
bool mr_part_arrived(struct mr_part *p, int partition); /* true while not under way */

/*
 * Attached buffers (bsend.c). A buffered send takes its bytes + MR_BSEND_OVERHEAD at most of the buffer of its
 * communicator, else of the session that the communicator comes from, else of the process. `slot` is where a buffer is
 * attached: comm->buffer, session->buffer or mr_bsend_process. Detaching and flushing wait until the messages in the
 * buffer are gone.
 */
#define MR_BSEND_OVERHEAD 96
struct mr_buffer {
    void *at;
    size_t bytes;
    bool automatic; /* no memory of the program's, but as much of ours as the messages need */
};
extern struct mr_bsend *mr_bsend_process;
enum mr_err mr_buffer_attach(struct mr_bsend **slot, struct mr_buffer buffer);
struct mr_buffer mr_buffer_detach(struct mr_bsend **slot); /* the attached buffer; none: of 0 bytes */
void mr_buffer_flush(struct mr_bsend **slot);
/* Complete when the messages that are in the buffer now are gone. */
enum mr_err mr_buffer_iflush(struct mr_bsend **slot, struct mr_request **req);
enum mr_err mr_bsend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                     uint32_t ctx);
enum mr_err mr_ibsend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                      uint32_t ctx, struct mr_request **req);
/* Releases messages in detached buffers. They refer to their communicators until then. */
void mr_bsend_reap(void);

/* ---- inquiries, and the end of processes ------------------------------------------------------------------------- */

/*
 * For inquiries (pending.c): receives without a message, sends without a receive or waiting for room, and messages
 * without a receive. ctx names the communicator; comm is NULL for a message.
 */
enum mr_pending_kind { MR_PENDING_RECV, MR_PENDING_SEND, MR_PENDING_MESSAGE };
struct mr_pending {
    enum mr_pending_kind kind;
    const struct mr_comm *comm;
    uint32_t ctx;
    int peer, tag;     /* a rank of the communicator; of a receive also MR_ANY_SOURCE, MR_ANY_TAG */
    uint64_t bytes;    /* of a receive: its room */
    const char *state; /* "no receive has met it", "under way, by read", ...; NULL: a posted receive, a message */
};
void mr_pt2pt_each_pending(void (*tell)(const struct mr_pending *p, void *arg), void *arg);

/* Messages that no receive had taken when mr_pt2pt_finalize() was called, and the first of them. */
struct mr_unreceived {
    unsigned count;
    int peer, tag;
};
struct mr_unreceived mr_pt2pt_unreceived(void);

/*
 * A receive or send of a collective operation that can no longer succeed ends soon, with an error, though its peer is
 * neither lost nor ready: the peer may never begin this operation, since its program has seen an error before. A later
 * message for the receive is taken, and dropped, so that its sender does not wait without end. A send without a receive
 * is cancelled, to be replaced by a poison. Once for each request.
 */
void mr_give_up(struct mr_request *req);
/* The process with this rank in the world has called MPI_Finalize, and all its earlier messages are here. */
bool mr_peer_parts(int world_rank);

/* ---- failed processes (fault/, revoke.c) ------------------------------------------------------------------------- */

/*
 * MR_ERR_PROC_FAILED if a member of the communicator, or of its parent, is lost; MR_ERR_REVOKED once it is revoked: the
 * error of its collective operations.
 */
enum mr_err mr_comm_fault(const struct mr_comm *c);
/* Of an operation with MPI_PROC_NULL: success at once, or MR_ERR_REVOKED for the program's operations. */
static inline enum mr_err mr_no_peer_fate(const struct mr_comm *comm, uint32_t ctx)
{
    if (likely(comm->fault != MR_ERR_REVOKED || ctx != comm->context))
        return MR_SUCCESS;
    return mr_fail(MR_ERR_REVOKED, "the communicator has been revoked");
}
/* Failed members, in the order of the news here, the acknowledged ones first: world ranks of at most so many; their
 * number. */
unsigned mr_comm_failed(const struct mr_comm *c, int *world, unsigned most);
void mr_comm_ack(struct mr_comm *c, unsigned num); /* the first so many of them */
bool mr_comm_unacked(const struct mr_comm *c);
/* A receive from any source without a message, on a communicator with failures that are not acknowledged. */
bool mr_recv_is_pending(const struct mr_request *r);

void mr_comm_revoke(struct mr_comm *c);
/*
 * own is the communicator of a window or file made from c. When c is revoked, mr_comm_fault(own) becomes
 * MR_ERR_REVOKED; messages of own go on, because operations under way come to their ends. Only where processes meet at
 * the object's end whatever has happened: under mrrun --recover, and with members of several jobs.
 */
void mr_comm_set_source(struct mr_comm *own, const struct mr_comm *c);

/*
 * Agreement of the living members, of both groups of an intercommunicator: the bits of their votes, ANDed, and the
 * largest number. It is the same at all who live, whoever fails meanwhile. agreed is called once, by a poll or before
 * the return; all its arguments are valid during the call. Several agreements of a communicator are decided in order.
 */
struct mr_vote {
    uint32_t flags, number;
    uint64_t again; /* 0, or which further agreement about the same this is: of these each has one of its own */
    bool common;    /* both groups of an intercommunicator get the bits of all votes, not those of the other group */
};
struct mr_era_value;
struct mr_agreed {
    uint32_t flags, number;
    uint32_t nth;      /* of the agreements of this communicator that are about something new */
    enum mr_err error; /* PROC_FAILED: of a member whose failure not all have acknowledged */
    const struct mr_group *group;
    const struct mr_era_value *value;
};
typedef void mr_agreed_fn(const struct mr_agreed *d, void *arg);
enum mr_err mr_agree(struct mr_comm *c, uint32_t ctx, struct mr_vote vote, mr_agreed_fn *agreed, void *arg);
/* All agree that this member of the group has failed. */
bool mr_agreed_failed(const struct mr_agreed *d, int member);

/* ---- processes of other jobs (guest.c) --------------------------------------------------------------------------- */

struct mr_card;

int mr_guest_open(struct mr_card *ours);       /* makes this process reachable; 0 or a negative errno, already logged */
int mr_guest_meet(const struct mr_card *card); /* the number of the process; as mr_guest_number() */
void mr_guests_greet(const struct mr_group *g); /* opens connections to its guests, if these are few */
void mr_guests_leave(void);                     /* ends connections that no communicator needs */
/* Frees all state of guests that have ended, or failed, unless a group names them or something is under way. */
void mr_guests_forget(void);
bool mr_process_lost(int number);
/* The launcher's file says that this other rank of the job has ended: its loss follows by a poll (fault/lost.c). */
void mr_end_read(int world_rank);

/* A door: a place of a process, known by a number, at which processes of other jobs ask for a connection. */
enum mr_door_word {
    MR_DOOR_ASK,
    MR_DOOR_OPEN,   /* the door's process accepts: the two are the leaders of two groups now */
    MR_DOOR_CLOSED, /* there is no such door */
};
int mr_door_send(int number, enum mr_door_word word, uint64_t door, uint64_t ask); /* 0 or a negative errno */

/* ---- upcalls ------------------------------------------------------------------------------------------------------
 */

/* Packets of these kinds and higher belong to the subsystem above that has set mr_p2p_up.packet. */
#define MR_PKT_ABOVE 0x40

/* What p2p/ calls above it, out of mr_progress() only. NULL: the event does not matter. */
struct mr_p2p_upcalls {
    /* rma/: a packet of its own, in the order of the virtual channel; the loss of a peer, once */
    void (*packet)(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
    void (*peer_lost)(struct mr_vc *vc, int error);
    void (*process_lost)(void); /* coll/: after that, once for each lost peer */
    void (*door)(int from, enum mr_door_word word, uint64_t door, uint64_t ask); /* coll/ */
};
extern MR_OWN struct mr_p2p_upcalls mr_p2p_up;

#endif
