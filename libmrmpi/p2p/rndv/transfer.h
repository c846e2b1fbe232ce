/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers: operations of more than one packet, at sender and receiver. They lie in a table, by which peers name them:
 * an id sent to a peer is index and generation of a slot, never a pointer. A transfer belongs to its request until it
 * ends; transfers served by progress are in the list of active ones.
 */
#ifndef MRMPI_RNDV_TRANSFER_H
#define MRMPI_RNDV_TRANSFER_H

#include "libmrmpi/p2p/choice/copy_mode.h"
#include "libmrmpi/p2p/request/protocol.h"
#include "libmrmpi/p2p/p2p.h"

enum mr_rndv_state {
    MR_RNDV_FREE,
    MR_RNDV_ACK,        /* sender: waits for ACK */
    MR_RNDV_OFFERED,    /* sender: RTS is out */
    MR_RNDV_PUTTING,    /* sender: the channel is writing */
    MR_RNDV_PUSHING,    /* sender: DATA going out */
    MR_RNDV_WRITING,    /* sender, split copy: writes into the receiver's memory */
    MR_RNDV_PUSHED,     /* sender, shared, split copy: its part is done, the receiver may be reading still */
    MR_RNDV_BOUNCE,     /* sender: the program's send is complete, the receiver is reading the copy */
    MR_RNDV_QUEUED,     /* receiver: others of the node come first */
    MR_RNDV_GETTING,    /* receiver: reads chunk by chunk */
    MR_RNDV_LANDING,    /* receiver: the peer writes into advertised memory */
    MR_RNDV_READING,    /* receiver: the channel is reading */
    MR_RNDV_DRAINING,   /* receiver: DATA coming in */
    MR_RNDV_SPLIT_OPEN, /* receiver: DATA coming in, and can read by itself */
    MR_RNDV_SPLITTING,  /* receiver: reads, while the sender writes */
};

/* The parts of a transfer's state that belong to one protocol each. */

/* Sender: the offer of a large message. */
struct mr_rndv_offer {
    bool counted, crosses;    /* is in its peer's batch (batch.h), and open (exchange.h) */
    bool cancelling;          /* CANCEL has been sent */
    bool vain;                /* since the peer parts: if it gives the message back, that is an error */
    struct mr_bounce *bounce; /* the copy of the last part; NULL: none */
};

/* Both sides: the eager prefix, in PREFIX packets (prefix.c). */
struct mr_rndv_prefix {
    uint32_t len;
    uint32_t left; /* receiver: bytes that have not come yet */
};

/* A read that the channel has been asked for. */
struct mr_read {
    struct mr_rndv *of;
    bool open;
};

/* Receiver: reads from the sender's memory (read.c). */
struct mr_rndv_read {
    struct mr_read part[2];      /* the front, and the last bytes from the sender's bounce buffer */
    int error;                   /* of a read that has ended, while another part has not */
    bool owes_front, said_front; /* FRONT is to be sent, and was */
};

/* Receiver: announced to the sender before the offer (rtr.c). Sender: waits for RTR. */
struct mr_rndv_rtr {
    bool announced, landed; /* receiver: RTR has been sent and no offer come; all is written nevertheless */
    bool met;               /* receiver: the offer has come, too; its eager prefix is not written */
    bool awaited;           /* sender: is among its stream's offers */
};

/* Both sides: copies by the ranks of a node (node_copy.c). */
struct mr_rndv_copy {
    struct mr_copy_choice choice; /* the copy mode, and where it counts */
    bool chosen;                  /* choice.mode is */
    bool timed, started;          /* receiver: the time shall count; it is one of the first of its peer */
    bool counted;                 /* among the transfers of this node */
    bool shared;                  /* pushed and read at once: ends with FIN */
    bool left;                    /* the sender has left the rest to the receiver, and said so */
    uint64_t back_from;           /* receiver: the bytes from here to total have been read already */
    uint64_t data_seen;           /* receiver, shared: the stream's count of DATA packets when it last changed, ... */
    uint64_t silent_ns;           /* ... and since when it is silent; 0: unknown */
    struct mr_claim *claim;       /* split copy: the chunks of either side */
    uint32_t chunk, claim_bit;    /* bytes; receiver: in mr_near.claims */
    uint16_t ticket;
};

struct mr_rndv {
    uint32_t index, generation;
    enum mr_rndv_state state;
    struct mr_request *req;
    struct mr_vc *vc;
    uint64_t peer_id;
    uint64_t total, done, told;  /* bytes: to transfer, transferred from the front, acknowledged by CREDIT */
    uint64_t told_ns;            /* receiver, landing: when the sender was told to write a crossing message; else 0 */
    struct mr_remote remote;     /* memory of the peer, */
    struct mr_region *region;    /* and of the program here */
    struct mr_rndv *behind;      /* receiver, queued; sender, offered: the next one of its peer */
    struct mr_rndv *next, *prev; /* active ones: the first QUEUED, GETTING, SHARING, HALVING, PUSHING, WRITING */
    struct mr_rndv_offer offer;
    struct mr_rndv_prefix prefix;
    struct mr_rndv_read read;
    struct mr_rndv_rtr rtr;
    struct mr_rndv_copy copy;
};

/* Large messages between ranks of this node (node_copy.c). */
struct mr_near {
    struct mr_copy_modes modes;
    unsigned forced;          /* a mode + 1; 0: learnt */
    unsigned sends, receives; /* under way */
    uint32_t claims;          /* claims in use: bits */
    uint16_t ticket;          /* the last one */
};

struct mr_rndv *mr_rndv_new(struct mr_request *req, struct mr_vc *vc, enum mr_rndv_state state);
/* The peer, of another job, is not reached over rails, or not any more. */
static inline bool mr_rndv_unrailed(const struct mr_rndv *r)
{
    return !mr_vc_lost(r->vc) && r->vc->ops->guests;
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
struct mr_stream;
/* A receive waits for those before it; the first of the queue is active. And the turn of the next. */
void mr_rndv_queue(struct mr_stream *s, struct mr_rndv *r);
struct mr_rndv *mr_rndv_unqueue(struct mr_stream *s);
struct mr_hdr mr_rndv_header(const struct mr_rndv *r, enum mr_packet kind, uint64_t len);
int mr_rndv_tell(struct mr_rndv *r, enum mr_packet kind, uint64_t len, const void *payload, size_t payload_len);
void mr_rndv_finish(struct mr_rndv *r, enum mr_err error);
/* Has the sender push the data in packets; state: MR_RNDV_DRAINING or MR_RNDV_SPLIT_OPEN. */
void mr_rndv_ask(struct mr_rndv *r, enum mr_rndv_state state);
void mr_rndv_table_free(void);

#endif
