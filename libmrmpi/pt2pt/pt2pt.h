/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point communication: matching, the eager and rendezvous protocols, requests.
 *
 * Called by api/ and coll/ with the library's lock held. Sends and receives return a request; the caller completes it
 * by mr_wait/mr_test and frees it by mr_request_put. Waiting functions give the lock away while they wait.
 */
#ifndef MRMPI_PT2PT_H
#define MRMPI_PT2PT_H

#include "libmrmpi/core/core.h"
#include "libmrmpi/match/match.h"
#include "libmrmpi/progress/progress.h"

struct mr_schedule;

/* Or-ed with a communicator's context: the greetings of partitioned operations (derived/part.c). */
#define MR_CTX_GREETING 0x40000000u

enum mr_send_mode {
    MR_SEND_STANDARD,
    MR_SEND_SYNCHRONOUS,
    MR_SEND_READY,
    MR_SEND_BUFFERED, /* mr_bsend, mr_ibsend; not mr_send, mr_isend */
    MR_SEND_POISON, /* pt2pt's own: mr_isend_poison */
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
    bool waited;            /* a blocking send's */
    bool in_burst;          /* a send that counts in burst.h */
    struct mr_status status;
    struct mr_comm *comm;
    /* called once at completion, lock held; used by schedules (coll/) and generalized requests; may be NULL */
    void (*on_complete)(struct mr_request *req, void *arg);
    void *on_complete_arg;
    /* the rest belongs to pt2pt/ for sends and receives, to their maker for the other kinds */
    const void *send_buf;
    union {
        void *recv_buf;
        struct mr_schedule *schedule; /* MR_REQ_PERSISTENT_COLL */
        struct mr_part *part;         /* MR_REQ_PERSISTENT_PART */
    };
    size_t count;
    struct mr_type *type;
    int peer, tag; /* as asked: may be wildcards */
    uint32_t ctx;
    uint8_t mode;  /* enum mr_send_mode */
    uint8_t loans; /* a send's packets that adapters may still read from the program's memory */
    uint8_t way;   /* whether there may be some: enum mr_burst_way */
    bool ended : 1, recalled : 1; /* when there are none any more it is complete; is to be cancelled */
    struct mr_request *next, *prev; /* next: pt2pt's pool while free; else its user's */
    struct mr_rndv *proto;          /* state of a transfer that takes more than one packet */
    union {
        struct mr_match_entry match;   /* receives: in the posted queue */
        struct {
            uint64_t eager_id;         /* a send that was complete at once, which may be cancelled nevertheless: what
                                          the receiver knows the message by; 0: none. A poison: its error */
            struct mr_request *behind; /* a buffered send: the message itself, of which a reference is held */
            struct mr_vc *held_by;     /* a send that waits for room: whose, and its neighbours in that queue */
            struct mr_request *held_next, *held_prev;
        };
    };
};

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
/* The adapter has the message, or will as soon as there is room: it ends soon, whatever the receiver's program does. */
bool mr_send_leaves(const struct mr_request *req);
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

struct mr_request *mr_request_new(enum mr_request_kind kind, struct mr_comm *comm);
struct mr_request *mr_request_get(struct mr_request *r);
void mr_request_put(struct mr_request *r);
void mr_request_complete(struct mr_request *r); /* sets complete, wakes waiters, calls on_complete */
/* Until nothing is under way on c: neither what the program waits for nor what it has freed; the caller holds c. */
void mr_request_wait_for(const struct mr_comm *c);

enum mr_err mr_wait(struct mr_request *req); /* until complete; the error is in req->status */
bool mr_test(struct mr_request *req);        /* mr_progress_try */
/*
 * A room above whose packets are not messages: packet is called with each of the kinds that are its own (protocol.h),
 * in the order of the virtual channel, and peer_lost once for a peer that is. Both come out of mr_progress() only.
 */
struct mr_vc;
struct mr_hdr;
struct mr_above {
    void (*packet)(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
    void (*peer_lost)(struct mr_vc *vc, int error);
};
void mr_pt2pt_above(const struct mr_above *above);

#endif
