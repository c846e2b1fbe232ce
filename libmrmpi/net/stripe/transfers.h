/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the code for large messages: its state, transfers and their stripes, advertised regions. net/bulk/ begins
 * transfers and owns regions; a transfer is freed by mr_bulk_finish(). Their memory is in keys.h, writes over links
 * that lose them in track.h, lists of short writes in wlist.h, datagrams in net/zcopy/.
 */
#ifndef MRMPI_STRIPE_TRANSFERS_H
#define MRMPI_STRIPE_TRANSFERS_H

#include "libmrmpi/net/stripe/blocks.h"
#include "libmrmpi/conn/conn.h"
#include "libmrmpi/net/stripe/filter.h"
#include "libmrmpi/net/stripe/adapt.h"
#include "libmrmpi/net/stripe/feedback.h"
#include "libmrmpi/verbs/verbs.h"

_Static_assert(MR_SUBS_MAX <= MR_STRIPES_MAX, "one notification tells all stripes");

/* A subchannel's part in large messages. */
struct mr_bulk_sub {
    uint64_t queued;                             /* bytes of assigned stripes that are not done */
    unsigned flows;                              /* datagram batches and sends under way over it */
    uint8_t fruitless;                           /* batches in a row of which nothing arrived */
    struct mr_stripe_op *waiting, **waiting_end; /* stripes waiting for room */
};

/* A peer's part in large messages. Every peer is the first member of one (mr_peers.peer_size). */
struct mr_bulk_peer {
    struct mr_peer base;
    struct mr_bulk_sub *sub;         /* as base.sub; NULL: not listed yet */
    struct mr_transfer *transfers;   /* not yet complete */
    struct mr_stripe_op *unassigned; /* stripes without a subchannel */
    unsigned num_unconfirmed;        /* stripes that may have landed over a broken subchannel */
    unsigned num_refused;            /* stripes ending after the withdrawal of their memory there */
    struct mr_sched stripe_turn;
    struct mr_adapt *adapt;            /* NULL: no stripe has gone over one of several subchannels */
    struct mr_feedback *feedback;      /* the same for MR_WEIGHTS_PAPER */
    uint8_t write_shift;               /* log2 of the longest tracked write to it; 0: not known yet */
    uint8_t spurious;                  /* how often data was requested again that was only late */
    struct mr_track_recv *late_recvs;  /* tracked receives waiting for late writes */
    struct mr_dgram_recv *dgram_recvs; /* open datagram receives, */
    unsigned num_late_batches;         /* their batches waiting for late datagrams, */
    unsigned num_starving;             /* and those of them waiting for a queue pair */
    struct mr_dgram_send *dgram_sends; /* cleared datagrams not posted yet */
    struct mr_sched dgram_turn;
    struct mr_bulk_writer *collecting; /* writers with writes to post (writer.c) */
    struct mr_renewed *renewed;        /* keys that took the place of others (renew.c); NULL: none have */
};

/* For all peers. */
struct mr_bulk {
    struct mr_targets targets;
    struct mr_track_recvs *tracked; /* NULL: none yet */
    unsigned open_transfers;
    unsigned num_late;                            /* tracked receives and datagram batches waiting for late data */
    struct mr_dgram_recv *starved, **starved_end; /* receives waiting for a queue pair, in order (zcopy_wait.c) */
    unsigned starving;                            /* their number */
    bool serve_due;                               /* a queue pair may be free for them */
    uint64_t served_ns;
    uint32_t dgram_serial;
    bool few;                         /* memory may be registered with some devices (mr_bulk_one_suffices) */
    unsigned home;                    /* the device that the last such memory was registered with */
    struct mr_dgram_post *free_posts; /* zcopy_out.c */
    struct mr_transfer *free_lists;   /* wlist.c */
    struct mr_bulk_region *regions;   /* renew.c: all regions advertised to peers */
};
extern struct mr_bulk mr_bulk;

static inline struct mr_bulk_peer *mr_bulk_of(const struct mr_peer *p)
{
    return (struct mr_bulk_peer *)p;
}
static inline struct mr_bulk_sub *mr_bulk_sub_of(const struct mr_sub *sub)
{
    return &mr_bulk_of(sub->peer)->sub[sub - sub->peer->sub];
}

enum mr_stripe_state {
    MR_STRIPE_WAITS,       /* for room on its subchannel, or for a subchannel */
    MR_STRIPE_POSTED,      /* some of it at least */
    MR_STRIPE_WRITTEN,     /* tracked: all of it has left; the peer has not confirmed the landing yet */
    MR_STRIPE_UNCONFIRMED, /* written over a broken subchannel: may have landed */
    MR_STRIPE_ASKED,       /* the peer was asked whether it has landed */
    MR_STRIPE_REFUSED,     /* ends with -EACCES */
    MR_STRIPE_DONE,
};

struct mr_stripe_op {
    struct mr_tx tx;
    struct mr_transfer *transfer;
    struct mr_sub *sub;        /* NULL: unassigned */
    struct mr_sub *queued;     /* the subchannel whose queued bytes include it */
    struct mr_stripe_op *next; /* in the subchannel's waiting list, or the peer's unassigned */
    uint64_t offset, len;
    uint64_t left;        /* bytes; tracked: blocks */
    uint64_t step, there; /* after a break: bytes posted at a time (0: all), and bytes known to have arrived */
    uint64_t begun_ns;    /* when it was posted, for the record (view.h); 0: not recorded */
    uint32_t imm;
    enum mr_stripe_state state;
    uint8_t generation; /* MR_STRIPE_UNCONFIRMED: of the broken subchannel */
    bool measured;      /* the time of the post is known */
    uint64_t took_ns;   /* policies eq3 and eq4: its duration; 0: not done, or not measured */
    /*
     * tracked: the first block of the first write in this round, and the consecutive rounds in which that write did not
     * land
     */
    uint32_t probe;
    bool probed;
    uint8_t fruitless;
};

/* A part to be posted. */
struct mr_bulk_part {
    uint64_t at, len, taken; /* at: from the message's beginning; taken: of mr_stripe_op.left */
    uint32_t imm;
    bool last; /* of its stripe, at present */
};

/* A message under way, by RDMA writes or reads, or as datagrams. */
struct mr_transfer {
    struct mr_filter filter;
    struct mr_peer *peer;
    struct mr_transfer *next, *prev;
    struct mr_reg *reg;   /* NULL: none is needed, the data goes with the request */
    unsigned char *local; /* only read from unless the transfer is a read */
    struct mr_remote remote;
    void *cookie;
    struct mr_vc_move *move;        /* a window's: the peer is not told; NULL: a message, or */
    const struct mr_atomic *atomic; /* of a move: an atomic operation, once, over its subchannel only */
    struct mr_wlist *list;          /* short writes to a window (wlist.h) */
    struct mr_track *track;         /* track.h; NULL: the adapter's completions confirm the landing */
    uint32_t size;                  /* bytes of each datagram; 0: by RDMA. With datagrams there are no stripes, but */
    unsigned num_sends;             /* the receiver's CLEAR messages not done yet, */
    bool landed;                    /* and in the end its LANDED (zcopy_out.c) */
    bool read, refused;             /* refused: the memory there of a move or a list was withdrawn */
    bool partial;                   /* read: not all devices know the memory, here or there */
    uint8_t level;                  /* enum mr_level: of the whole message, by its length when it was begun */
    uint64_t begun_ns;              /* if its stripes are measured */
    unsigned num;
    struct mr_stripe_op stripe[];
};

/* Memory that a peer writes into (a target) or reads. */
struct mr_bulk_region {
    struct mr_region base;
    struct mr_reg *reg;
    void *addr;
    uint64_t len;
    bool is_target, alone; /* the peer's notifications name it by its token; registered alone (mr_regs_get_alone) */
    bool stays;            /* datagrams: none is moved there (MR_VC_DATAGRAMS_STAY) */
    bool offered;          /* counts in mr_peers.offered */
    uint32_t token;
    int rank;
    struct mr_track_recv *tracked; /* target over links that lose writes */
    struct mr_dgram_recv *dgrams;  /* target of datagrams */
    uint32_t told[MR_RAILS_MAX];   /* its keys, as the peer knows them, */
    uint32_t lives;                /* of these lives of the rails */
    bool partial;                  /* rails without a key have none later */
    enum mr_access access;         /* its access if registered alone */
    struct mr_bulk_region *next, **at;
};

/* ---- renewed.c ---- */
#define MR_RENEW_KEYS (MR_CONTROL_BULK + 7) /* control message. rank: rail; ctx: its life; tag: the last one */
/* The key of a peer's rail for this memory, also after its adapter was opened anew. 0: it is not known. */
uint32_t mr_renewed_key(const struct mr_peer *p, const struct mr_remote *remote, unsigned rail);
static inline uint32_t mr_bulk_key(const struct mr_transfer *transfer, unsigned rail)
{
    if (likely(transfer->remote.lives == transfer->peer->lives))
        return transfer->remote.rkey[rail];
    return mr_renewed_key(transfer->peer, &transfer->remote, rail);
}

/* ---- transfer.c ---- */
/* Sends a control message. If that fails the peer is lost. */
void mr_bulk_send_control(struct mr_peer *p, struct mr_hdr *hdr, const void *payload, size_t len);
/* Counts the stripe's bytes as queued on sub; NULL: on none. Policy take_shortest compares these counts (sched.c). */
void mr_stripe_queue_on(struct mr_stripe_op *s, struct mr_sub *sub);
/* All stripes are done, or the peer is lost: calls put_sent or read_done, and frees the transfer. */
void mr_bulk_finish(struct mr_transfer *transfer);

/* ---- stripe.c ---- */
/* Weights follow completions, if the peer has more than one subchannel, and there is memory for the measurements. */
bool mr_stripe_is_measured(struct mr_peer *p);
/*
 * Posts a stripe, as far as there is room; the rest waits. begin_ns: when its message was begun; 0: not measured. A
 * medium message's stripe does not wait behind large ones that wait for room on their own link.
 */
void mr_stripe_start(struct mr_stripe_op *s, uint64_t begin_ns);
/* Posts more of a stripe that waited, or its next step. begin_ns as above. 0; -EAGAIN: the rest waits; another negative
 * errno. */
int mr_stripe_post(struct mr_stripe_op *s, uint64_t begin_ns);
/* Adds it to its subchannel's waiting list, medium messages before large ones. */
void mr_stripe_enqueue(struct mr_stripe_op *s);
/* The end of a stripe; the last one ends its transfer. */
void mr_stripe_finish(struct mr_stripe_op *s, int error);
/* Completion of a stripe's work request. */
void mr_stripe_done(struct mr_wr *wr, const struct mr_wc *wc);
/* Records the stripe's end (view.h). */
void mr_stripe_record(struct mr_stripe_op *s, bool failed);

/* ---- moves.c ---- */
/* Chooses a subchannel for the stripe and starts it; without an open one, the stripe waits, unassigned. */
void mr_stripe_assign(struct mr_stripe_op *s);
/* Its stripes wait no more, for a subchannel or for room: the transfer ends before they have been sent. */
void mr_stripes_leave(struct mr_transfer *transfer);
/* Starts unassigned stripes and those waiting for room. True: some still wait. */
bool mr_stripes_resume(struct mr_peer *p);
/* As struct mr_peer_events. mr_stripes_confirm (.due): once the peer's end of a broken generation is gone, asks whether
 * its unconfirmed stripes have landed. */
void mr_stripes_unmeasure(struct mr_peer *p);
void mr_stripes_drained(struct mr_sub *sub);
bool mr_stripes_confirm(struct mr_sub *sub);
bool mr_stripes_use(const struct mr_sub *sub);
void mr_stripes_move(struct mr_peer *p);
/* Handles MR_CONTROL_ASK and MR_CONTROL_TOLD: true for one of these. */
bool mr_stripes_control(struct mr_peer *p, const struct mr_hdr *hdr);

#endif
