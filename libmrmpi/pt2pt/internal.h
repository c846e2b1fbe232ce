/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pt2pt's inside: the packets, the state of a transfer, and what its files want of each other.
 *
 * Protocols, as seen on the virtual channel (S sender, R receiver):
 * - eager: S EAGER(payload), or EAGER(first part), EAGER(rest)... with nothing between (parts.c)
 * - synchronous: S EAGER(payload, ACK wanted); R ACK when it is matched
 * - get: S RTS(where the data is); R reads it, R FIN
 * - shared: S RTS(where the data is); R GO; S DATA... from the front, while R, whenever no DATA comes, reads from the
 *   back; R FIN when all is there. Two cores that both copy, through memory that stays in their caches, are faster than
 *   one that copies once; but a sender that computes instead costs the receiver nothing.
 * - put: S RTS; R CTS(where to write); S writes, or sends what lands there, both are told by the channel
 * - read: S RTS(where the data is); the channel reads for R, R FIN. RTS may announce a head: so many bytes from the
 *   front follow it, S HEAD..., with nothing between, and R reads the rest (head.c, read.c). RTS may offer the last
 *   bytes as a copy of the sender's, the tail: R FRONT when it has read the others, and FIN when it has all (tail.c)
 * - copy: S RTS; R GO; S DATA..., R CREDIT now and then; for data that is not in one piece, when the kernel refuses
 *   single copy, and for short messages to a receiver that keeps enough of this sender's already
 * A receiver tells by a byte of every packet, and by GRANT when it has nothing else to send, how many bytes of eager
 * messages have met their receives (credit.h).
 *
 * A send that waits for the receiver (OFFERED, ACK) can be cancelled: S CANCEL; if the message is among the unexpected
 * ones still, R CANCELLED; if not, the answer to the message itself is on its way already and nothing is said. Eager
 * messages, to which there is no answer, carry a number that CANCEL names; then R says CANCELLED or ACK.
 *
 * The receiver decides, knowing what the sender offers. A receiver with less room than the message asks only for what
 * fits.
 *
 * Ids that travel (sreq, rreq) are index and generation of a slot in the table of transfers, never pointers: a stale or
 * damaged one is recognised.
 */
#ifndef MRMPI_PT2PT_INTERNAL_H
#define MRMPI_PT2PT_INTERNAL_H

#include "libmrmpi/base/base.h"
#include "libmrmpi/pt2pt/match.h"
#include "libmrmpi/pt2pt/pt2pt.h"
#include "libmrmpi/rail/vc.h"

enum mr_packet {
    MR_PKT_EAGER = MR_VC_KIND_EAGER,
    MR_PKT_RTS,
    MR_PKT_CTS,
    MR_PKT_GO,
    MR_PKT_DATA,   /* hdr.len: offset of the payload */
    MR_PKT_CREDIT, /* hdr.len: bytes that have arrived */
    MR_PKT_FIN,    /* from the receiver; hdr.len: 0 or a positive errno */
    MR_PKT_FAIL,   /* from the sender, who cannot write after all */
    MR_PKT_ACK,
    MR_PKT_CANCEL,    /* from the sender, who would like to have its message back */
    MR_PKT_CANCELLED, /* from the receiver: nobody had asked for it, and it is gone */
    MR_PKT_GRANT,     /* hdr.len: bytes of eager messages that have met their receives, in all */
    MR_PKT_FRONT,     /* from the receiver: it has all that it reads of the program's memory */
    MR_PKT_HEAD,      /* hdr.len: offset of the payload. RTS said in hdr.rreq how many bytes come in such packets */
};

enum mr_packet_flags {
    MR_FLAG_ACK = 1,    /* EAGER: the sender waits for ACK */
    MR_FLAG_GET = 2,    /* RTS: the payload is a struct mr_remote of the data */
    MR_FLAG_PUT = 4,    /* RTS: the sender can write into exposed memory */
    MR_FLAG_DATAGRAMS = 32, /* RTS: the sender can send to memory that is exposed for datagrams */
    MR_FLAG_READ = 16,  /* RTS: the payload is a struct mr_remote of the data, for the channel to read; and perhaps
                           another one, of where its last bytes are as well */
    MR_FLAG_POISON = 8, /* EAGER: no data, but an error of the sender's (sreq: its class) */
    MR_FLAG_PART = MR_VC_FLAG_PART, /* EAGER: one of several packets of a message of hdr.len bytes; rreq: its place */
};

/* A transfer that takes more than one packet. */
enum mr_rndv_state {
    MR_RNDV_FREE,
    MR_RNDV_ACK,      /* sender: waits for ACK */
    MR_RNDV_OFFERED,  /* sender: RTS is out */
    MR_RNDV_PUTTING,  /* sender: the channel is writing */
    MR_RNDV_PUSHING,  /* sender: DATA going out */
    MR_RNDV_PUSHED,   /* sender, shared: all DATA is out, the receiver may be reading still */
    MR_RNDV_TAIL,     /* sender: the program's send is complete, the receiver is reading the copy */
    MR_RNDV_GETTING,  /* receiver: reads chunk by chunk */
    MR_RNDV_LANDING,  /* receiver: the peer writes into exposed memory */
    MR_RNDV_READING,  /* receiver: the channel is reading */
    MR_RNDV_DRAINING, /* receiver: DATA coming in */
    MR_RNDV_SHARING,  /* receiver: DATA coming in, and can read by itself */
};

struct mr_rndv {
    uint32_t index, generation;
    enum mr_rndv_state state;
    struct mr_request *req;
    struct mr_vc *vc;
    uint64_t peer_id;
    uint64_t total, done, told; /* bytes: to transfer, transferred from the front, acknowledged by CREDIT */
    uint64_t tail;              /* receiver: what lies from here to total has been read already */
    uint64_t data_seen;         /* receiver, shared: the count of DATA packets when it last looked, ... */
    unsigned silence;           /* ... and the looks since it changed */
    uint32_t head, head_left;   /* bytes that travel in HEAD packets; receiver: of those, what has not come yet */
    struct mr_read {
        struct mr_rndv *of;
        bool open;
    } read[2];                  /* receiver, reading: what the channel has been asked to read, and the tail */
    int error;                  /* receiver, reading: of the one that has ended, while the other has not */
    bool owes_front;            /* receiver, reading: FRONT is to be said */
    bool counted;               /* sender: is in its peer's batch (batch.h) */
    struct mr_bounce *bounce;   /* sender: where its tail is; NULL: it has none */
    bool cancelling;            /* sender: CANCEL has been sent */
    bool shared;                /* pushed and read at once: ends with FIN */
    struct mr_remote remote;
    struct mr_region *region;
    struct mr_rndv *next, *prev; /* in the list of active ones: GETTING, SHARING, PUSHING */
};

/* An unexpected message: an EAGER or RTS packet that no receive was posted for. Or one of several packets while it comes
 * (parts.c): then len is what has come, and req the receive whose buffer it goes to, or NULL: to payload. */
struct mr_message {
    struct mr_match_quad match;
    struct mr_message *next; /* in the pool */
    struct mr_vc *vc;
    struct mr_request *req;
    struct mr_hdr hdr;
    size_t len, room;
    uint8_t payload[];
};

struct mr_pt2pt {
    struct mr_match_table posted, unexpected;
    struct mr_request *free_requests;
    struct mr_message *free_messages; /* those with room MR_MESSAGE_SMALL */
    unsigned num_free_messages;
    struct mr_rndv **rndv; /* table by index */
    uint32_t rndv_size, rndv_used, rndv_pending;
    uint32_t *rndv_free;
    uint32_t rndv_num_free;
    struct mr_rndv *active, *active_last;
    struct mr_part *forgotten; /* freed while their greetings are on their way */
    struct mr_stream *streams; /* all of them (flow.h) */
    struct mr_bounce *bounces; /* the same (tail.c) */
    unsigned num_bounces;
    size_t window;         /* of credits for eager messages, for each peer */
    struct mr_vc *holding; /* channels with sends that wait for room (flow.c) */
    uint64_t data_seen;    /* counts DATA packets */
    uint64_t eager_ids;    /* counts the eager messages of nonblocking sends */
    bool peer_lost;        /* some peer has been lost: receives have to ask whether it is theirs */
    bool get_refused;      /* the kernel has refused single copy once */
    int (*poll_active)(void), (*poll_holding)(void); /* while there are transfers or channels in these lists */
    int (*polls[4])(void);                           /* always */
    unsigned num_polls;
    unsigned reads_if;   /* enum mr_vc_caps: receivers shall read large messages over channels that have one of these */
    unsigned spin_shift; /* how often the time to spin has been halved (progress.c) */
    uint8_t *scratch;    /* one piece of data on its way from or to a buffer with holes */
};
extern struct mr_pt2pt mr_pt2pt;

#define MR_MESSAGE_SMALL 256
#define MR_SCRATCH       (256u << 10)

/* Or-ed with a communicator's context: the greetings of partitioned operations (part.c). */
#define MR_CTX_GREETING 0x40000000u

/* ---- request.c ---- */
/* A request in flight: counted twice, for the user and for the protocol, which drops its own at completion. */
struct mr_request *mr_request_start(enum mr_request_kind kind, struct mr_comm *comm, struct mr_type *type);
void mr_request_pool_free(void);
/* Calls f for every request under way on c, freed or not; f may let others begin and end. True: there were some. */
bool mr_request_each(const struct mr_comm *c, void (*f)(struct mr_request *r));

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

/* ---- message.c ---- */
struct mr_message *mr_message_new(struct mr_vc *vc, const struct mr_hdr *hdr, size_t room); /* empty; never NULL */
void mr_message_insert(struct mr_message *m); /* no receive is posted for it: kept until one asks */
void mr_message_keep(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len); /* both */
/* The oldest unexpected message that a receive with these arguments would take. */
struct mr_message *mr_message_find(int src, int tag, uint32_t ctx);
void mr_message_free(struct mr_message *m);
void mr_message_pool_free(void);

/* ---- send.c ---- */
int mr_send_progress(void); /* starts held sends for which there is room now; number of them */

/* ---- recv.c ---- */
/* A message has met its receive: what it takes is started or done. */
void mr_recv_match(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_recv_meet(struct mr_request *req, const struct mr_hdr *hdr);                    /* its first half: the status */
void mr_recv_taken(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr); /* an eager one's bytes are there */
void mr_recv_arrived(struct mr_message *m); /* one that is whole meets its receive, or is kept */
void mr_recv_peer_lost(void); /* receives posted for this peer end with an error */
/* A message from this rank, and not here yet, will never be: the peer is lost. */
bool mr_recv_never_comes(struct mr_comm *comm, int src);

/* ---- transfer.c ---- */
struct mr_rndv *mr_rndv_new(struct mr_request *req, struct mr_vc *vc, enum mr_rndv_state state);
void mr_rndv_drop(struct mr_rndv *r);
static inline uint64_t mr_rndv_id(const struct mr_rndv *r)
{
    return (uint64_t)r->generation << 32 | r->index;
}
/* The transfer that a peer means; NULL for an id that is stale or was never given to this peer. */
struct mr_rndv *mr_rndv_find(struct mr_vc *vc, uint64_t id);
void mr_rndv_activate(struct mr_rndv *r); /* progress shall serve it: the last of them all */
void mr_rndv_deactivate(struct mr_rndv *r);
struct mr_hdr mr_rndv_header(const struct mr_rndv *r, enum mr_packet kind, uint64_t len);
int mr_rndv_tell(struct mr_rndv *r, enum mr_packet kind, uint64_t len, const void *payload, size_t payload_len);
void mr_rndv_finish(struct mr_rndv *r, enum mr_err error);
void mr_rndv_table_free(void);

/* ---- rndv.c ---- */
enum mr_err mr_rndv_offer(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr);
void mr_rndv_accept(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload,
                    size_t len);
void mr_rndv_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_rndv_put_sent(void *cookie, int error);
void mr_rndv_put_landed(struct mr_vc *vc, uint64_t rreq, int error);
void mr_rndv_fail_peer(struct mr_vc *vc);
int mr_rndv_progress(void);

/* ---- read.c ---- */
/* Reads what the sender has offered, but for the head. False: it cannot be read; nothing has happened. */
bool mr_read_begin(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_read_done(void *cookie, int error);
/* A piece of the head has come: the transfer may be over with it. */
void mr_read_head(struct mr_rndv *r, size_t at, const void *payload, size_t len);

/* ---- head.c ---- */
/* Finds what of a message that is offered shall be head and tail. Number of its tails: then *tail is where that is. */
unsigned mr_head_divide(struct mr_rndv *r, struct mr_remote *tail);
int mr_head_send(struct mr_rndv *r); /* 0 or negative errno as mr_vc_send */
/* RTS with a head: from now on that comes. False: it is damaged. */
bool mr_head_offered(struct mr_vc *vc, const struct mr_hdr *hdr);
/* No receive is posted for this offer: it is kept, and its head will be. */
void mr_head_keep(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_head_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
/* An offer with a head has met its receive. Returns how much has come, behind the offer's payload; the rest goes to r. */
size_t mr_head_meet(struct mr_rndv *r, const struct mr_hdr *hdr);
void mr_head_forget(struct mr_vc *vc, const struct mr_hdr *hdr); /* the offer is taken back */
void mr_head_fail_peer(struct mr_vc *vc);

/* ---- tail.c ---- */
/* Copies the last bytes of a message; *out: where. False: there is no room. */
bool mr_tail_offer(struct mr_rndv *r, size_t tail, struct mr_remote *out);
void mr_tail_release(struct mr_rndv *r);
void mr_tail_front(struct mr_rndv *r); /* the peer has said FRONT */
void mr_tail_free_all(void);

/* ---- parts.c ---- */
/* An eager message of more than one packet; hdr as of one that has one. 0 or negative errno as mr_vc_send. */
int mr_parts_send(struct mr_vc *vc, struct mr_hdr *hdr, const void *buf, size_t count, const struct mr_type *type);
/* A packet of such a message. False: it is damaged. */
bool mr_parts_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_parts_fail_peer(struct mr_vc *vc);

/* ---- cancel.c ---- */
void mr_cancel_asked(struct mr_vc *vc, const struct mr_hdr *hdr); /* CANCEL */
void mr_cancel_done(struct mr_vc *vc, const struct mr_hdr *hdr);  /* CANCELLED */

/* ---- end.c ---- */
/* Until nothing is under way at any rank: all must call it. */
void mr_end_together(void);

/* ---- part.c ---- */
void mr_part_finalize(void);

/* ---- bsend.c ---- */
void mr_bsend_finalize(void);

#endif
