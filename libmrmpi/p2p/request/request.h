/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests, which all operations of MPI that may take longer than their call have: made from a pool, counted, completed
 * once, waited for. With the library's lock held; waiting functions give it away while they wait.
 */
#ifndef MRMPI_REQUEST_H
#define MRMPI_REQUEST_H

#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/match/match.h"
#include "libmrmpi/p2p/progress/progress.h"

struct mr_schedule;

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
    bool in_burst : 1;      /* a send that counts in burst.h */
    bool crowded : 1;       /* a schedule's send: eager messages as this one delay each other */
    bool given_up : 1;      /* nobody waits for it any more: mr_recv_give_up */
    uint8_t nth;            /* of a schedule's messages (mr_isend_nth); 0: it has no number */
    struct mr_status status;
    struct mr_comm *comm;
    /* called once at completion, lock held; used by schedules (coll/) and generalized requests; may be NULL */
    void (*on_complete)(struct mr_request *req, void *arg);
    void *on_complete_arg;
    /* the rest belongs to p2p/ for sends and receives, to their maker for the other kinds */
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
    uint8_t mode;                   /* enum mr_send_mode */
    uint8_t zsends;                 /* a send's packets that adapters may still read from the program's memory */
    uint8_t protocol;               /* whether there may be some: enum mr_send_protocol */
    bool ended : 1, recalled : 1;   /* when there are none any more it is complete; is to be cancelled */
    struct mr_request *next, *prev; /* next: pt2pt's pool while free; else its user's */
    struct mr_rndv *proto;          /* state of a transfer that takes more than one packet */
    union {
        struct mr_match_entry match; /* receives: in the posted queue */
        struct {
            uint64_t eager_id;         /* a send that was complete at once, which may be cancelled nevertheless: what
                                          the receiver knows the message by; 0: none. A poison: its error */
            struct mr_request *behind; /* a buffered send: the message itself, of which a reference is held */
            struct mr_vc *held_by;     /* a send that waits for room: whose, and its neighbours in that queue */
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
/* Until nothing is under way on c: neither what the program waits for nor what it has freed; the caller holds c. */
void mr_request_wait_for(const struct mr_comm *c);

enum mr_err mr_wait(struct mr_request *req); /* until complete; the error is in req->status */
bool mr_test(struct mr_request *req);        /* mr_progress_try */

#endif
