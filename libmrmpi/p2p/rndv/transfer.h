/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers: operations of more than one packet, at sender and receiver. They lie in a table, by which peers name them:
 * an id sent to a peer is index and generation of a slot, never a pointer. A transfer belongs to its request until it
 * ends; transfers served by progress are in the list of active ones.
 */
#ifndef MRMPI_RNDV_TRANSFER_H
#define MRMPI_RNDV_TRANSFER_H

#include "libmrmpi/p2p/choice/copy_mode.h"
#include "libmrmpi/p2p/payload/payload.h"
#include "libmrmpi/p2p/request/protocol.h"
#include "libmrmpi/p2p/p2p.h"

enum mr_rndv_state {
    MR_RNDV_FREE,
    MR_RNDV_ACK,     /* sender: has sent the message, and waits for ACK */
    MR_RNDV_OFFERED, /* sender: RTS is out */
    MR_RNDV_MOVING,  /* its protocol moves the message */
};

/* Sender: the offer of a large message. */
struct mr_rndv_offer {
    bool counted, crosses;    /* is in its peer's batch (batch.h), and open (exchange.h) */
    bool cancelling;          /* CANCEL has been sent */
    bool vain;                /* since the peer parts: if it gives the message back, that is an error */
    bool awaits;              /* is among its stream's offers, which RTR may answer (ready.c) */
    bool sent;                /* the program's send is complete: the receiver reads the copy (bounce.c) */
    struct mr_bounce *bounce; /* the copy of the last part; NULL: none */
};

/* Both sides: the eager prefix, in PREFIX packets (prefix.c). */
struct mr_rndv_prefix {
    uint32_t len;
    uint32_t left; /* receiver: bytes that have not come yet */
};

/* Both sides: a message inside this node (near.c). */
struct mr_rndv_near {
    bool counted; /* among the transfers of this node */
    bool queued;  /* receiver: others of its peer come first */
    bool chosen, timed,
        started; /* receiver: choice.mode is; the time shall count; it is one of the first of its peer */
    struct mr_copy_choice choice; /* the copy mode, and where it counts */
    uint32_t claim_bit;           /* receiver: in mr_near.claims */
};

/* ---- what belongs to one protocol -------------------------------------------------------------------------------- */

/* packets.c, and share.c */
struct mr_rndv_packets {
    uint64_t told;      /* bytes acknowledged by CREDIT */
    uint64_t back_from; /* receiver: the bytes from here to total have been read already */
    bool left;          /* share: the sender has left the rest to the receiver, and said so */
    uint64_t data_seen; /* receiver, share: the stream's count of DATA packets when it last changed, ... */
    uint64_t silent_ns; /* ... and since when it is silent; 0: unknown */
};

/* split.c */
struct mr_rndv_split {
    struct mr_claim *claim; /* the chunks of either side */
    uint32_t chunk;         /* bytes */
    uint16_t ticket;
    int error; /* receiver: of a read */
};

/* A read that the channel has been asked for. */
struct mr_read {
    struct mr_rndv *of;
    bool open;
};

/* read.c: receiver */
struct mr_rndv_read {
    struct mr_read part[2];      /* the front, and the last bytes from the sender's bounce buffer */
    int error;                   /* of a read that has ended, while another part has not */
    bool owes_front, said_front; /* FRONT is to be sent, and was */
};

/* write.c, ready.c: receiver */
struct mr_rndv_landing {
    uint64_t told_ns; /* when the sender was told to write a crossing message; else 0 */
    bool announced;   /* RTR has been sent, and no offer come */
    bool landed;      /* all is written */
};

struct mr_rndv {
    uint32_t index, generation;
    enum mr_rndv_state state;
    const struct mr_protocol *by; /* moving; NULL: the receiver has not chosen yet */
    struct mr_request *req;
    struct mr_vc *vc;
    uint64_t peer_id;
    uint64_t total, done;        /* bytes: to transfer, transferred from the front */
    struct mr_remote remote;     /* memory of the peer, */
    struct mr_region *region;    /* and of the program here */
    struct mr_rndv *behind;      /* receiver, queued; sender, offered: the next one of its peer */
    struct mr_rndv *next, *prev; /* active ones */
    struct mr_rndv_offer offer;
    struct mr_rndv_prefix prefix;
    struct mr_rndv_near near;
    union {
        struct mr_rndv_packets packets;
        struct mr_rndv_split split;
        struct mr_rndv_read read;
        struct mr_rndv_landing landing;
    };
};

/* Large messages between ranks of this node (near.c). */
struct mr_near {
    struct mr_copy_modes modes;
    unsigned forced;          /* a mode + 1; 0: learnt */
    unsigned sends, receives; /* under way */
    uint32_t claims;          /* claims in use: bits */
    uint16_t ticket;          /* the last one */
};

struct mr_rndv *mr_rndv_new(struct mr_request *req, struct mr_vc *vc, enum mr_rndv_state state);
/* The protocol begins, or takes over from another one: its own part is zero. */
void mr_rndv_begin(struct mr_rndv *r, const struct mr_protocol *by);
/* The receiver shall choose once more. */
void mr_rndv_reopen(struct mr_rndv *r);
/* The peer, of another job, is not reached over rails, or not any more. */
static inline bool mr_rndv_unrailed(const struct mr_rndv *r)
{
    return !mr_vc_lost(r->vc) && r->vc->ops->guests;
}
static inline bool mr_rndv_sends(const struct mr_rndv *r)
{
    return r->req->kind == MR_REQ_SEND;
}
/* A send without a receive, as far as is known. */
static inline bool mr_rndv_is_unmet(const struct mr_rndv *r)
{
    return r->state == MR_RNDV_OFFERED || r->state == MR_RNDV_ACK;
}
void mr_rndv_drop(struct mr_rndv *r);
static inline uint64_t mr_rndv_id(const struct mr_rndv *r)
{
    return (uint64_t)r->generation << 32 | r->index;
}
/* The transfer named by a peer; NULL for an id that is stale or was never given to this peer. */
struct mr_rndv *mr_rndv_find(struct mr_vc *vc, uint64_t id);
void mr_rndv_activate(struct mr_rndv *r); /* served by progress: the last of all */
void mr_rndv_deactivate(struct mr_rndv *r);
bool mr_rndv_is_active(const struct mr_rndv *r);
struct mr_stream;
/* A receive waits for those before it; the first of the queue is active. And the turn of the next. */
void mr_rndv_queue(struct mr_stream *s, struct mr_rndv *r);
struct mr_rndv *mr_rndv_unqueue(struct mr_stream *s);
/* Sender: its bytes, to be copied into packets. */
static inline struct mr_payload mr_rndv_payload(const struct mr_rndv *r)
{
    return (struct mr_payload){.vc = r->vc, .buf = r->req->send_buf, .count = r->req->count, .type = r->req->type};
}
struct mr_hdr mr_rndv_header(const struct mr_rndv *r, enum mr_packet kind, uint64_t len);
int mr_rndv_tell(struct mr_rndv *r, enum mr_packet kind, uint64_t len, const void *payload, size_t payload_len);
void mr_rndv_finish(struct mr_rndv *r, enum mr_err error);
/* Receiver: all bytes are here. fin: the sender, whose memory was open for reading, waits for the report. */
void mr_rndv_received(struct mr_rndv *r, bool fin);
void mr_rndv_table_free(void);

#endif
