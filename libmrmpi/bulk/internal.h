/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files that move large messages share: put.c, stripe.c, moves.c, bulk.c, advertise.c, and track.c for those over
 * links that lose writes.
 */
#ifndef MRMPI_BULK_INTERNAL_H
#define MRMPI_BULK_INTERNAL_H

#include "libmrmpi/bulk/blocks.h"
#include "libmrmpi/bulk/bulk.h"
#include "libmrmpi/bulk/filter.h"
#include "libmrmpi/route/adapt.h"
#include "libmrmpi/route/feedback.h"
#include "libmrmpi/verbs/regcache.h"

_Static_assert(MR_SUBS_MAX <= MR_STRIPES_MAX, "one notification tells all stripes");

/* Of all peers. */
struct mr_bulk {
    struct mr_regcache regs;
    struct mr_targets targets;
    struct mr_catches *catches; /* targets of track.c; NULL: none yet */
    unsigned open_puts;
    unsigned num_catching;                    /* large receives that wait for what is late */
    struct mr_inflow *starved, **starved_end; /* those that wait for a queue pair, in order (zcopy_wait.c) */
    unsigned starving;                        /* so many */
    bool serve_due;                           /* there may be one for them */
    uint64_t served_ns;
    uint32_t inflow_serial;
    struct mr_gush *gushes; /* spare ones (zcopy_out.c) */
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

enum stripe_state {
    STRIPE_WAITS,   /* for room on its subchannel, or for a subchannel */
    STRIPE_POSTED,  /* some of it at least */
    STRIPE_WRITTEN, /* tracked: all of it has left; the peer has yet to say that it has landed */
    STRIPE_UNCONFIRMED,  /* written over a subchannel that broke: it may have landed */
    STRIPE_ASKED,   /* the peer was asked whether it has */
    STRIPE_DONE,
};

struct mr_stripe_op {
    struct mr_tx tx;
    struct mr_put *put;
    struct mr_sub *sub;        /* NULL: none is up */
    struct mr_sub *queued;     /* the one among whose queued bytes it is */
    struct mr_stripe_op *next; /* in the subchannel's waiting list, or the peer's unassigned */
    uint64_t offset, len;
    uint64_t left;        /* bytes; tracked: blocks */
    uint64_t step, there; /* after a break: bytes that are posted at a time (0: all), and those known to have arrived */
    uint64_t begun_ns; /* if that is recorded (view.h): when it was posted; 0: it is not */
    uint32_t imm;
    enum stripe_state state;
    uint8_t generation; /* STRIPE_UNCONFIRMED: of the subchannel that broke */
    bool measured;      /* the time when it was posted is known */
    uint64_t took_ns;   /* policies eq3 and eq4: how long it took; 0: it is not done, or was not measured */
    /* tracked: the first block of the first write in this round, and the rounds in a row in which that did not land */
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

/* How the stripes of a message are posted whose receiver tells what has landed (track.c). */
struct mr_track_ops {
    /* The write that comes next; there is something left. */
    void (*cut)(const struct mr_stripe_op *s, const struct mr_link *l, struct mr_bulk_part *part);
    void (*posted)(struct mr_stripe_op *s, const struct mr_bulk_part *part);
    void (*written)(struct mr_stripe_op *s); /* all of a stripe that was left */
    void (*end)(struct mr_put *put);
};

/* Sender: a message whose receiver tells what has landed. */
struct mr_track {
    const struct mr_track_ops *ops;
    struct mr_blocks todo; /* to be written in this round */
    uint32_t written;      /* blocks, in this round */
    uint8_t block_shift;
    uint8_t round; /* 0: the first; another for each time that the receiver has named what is missing */
    bool asked;    /* the receiver has been told that all of this round has been written */
    bool early;    /* it has said before that, that all is there */
};

/* A message on its way, by writes or by reads of ours. */
struct mr_put {
    struct mr_filter filter;
    struct mr_peer *peer;
    struct mr_put *next, *prev;
    struct mr_reg *reg;
    unsigned char *local; /* only read from unless the put is a read */
    struct mr_remote remote;
    void *cookie;
    struct mr_track *track; /* NULL: the links say what has landed */
    uint32_t size;          /* as datagrams: of each; 0: by RDMA. Then there are no stripes, but */
    unsigned pours;         /* words of the receiver's, on which something is posted still, or to be posted, */
    bool landed;            /* and in the end that it has all of it (zcopy_out.c) */
    bool read;
    uint8_t level; /* enum mr_level: of the whole message, by its length when it was begun */
    uint64_t begun_ns; /* if its stripes are measured */
    unsigned num;
    struct mr_stripe_op stripe[];
};

struct region {
    struct mr_region base;
    struct mr_reg *reg;
    void *addr;
    uint64_t len;
    bool lands; /* peers write here, and say so by its token */
    uint32_t token;
    int rank;
    struct mr_catch *caught;  /* tracked: what has landed */
    struct mr_inflow *inflow; /* the same of one that comes as datagrams */
};

/* ---- memory.c ---- */
/*
 * Registers a message's memory. pinned: its pages must be there, for a sender that does not wait for them. 0; negative
 * errno: that was said. mr_bulk_release gives it back.
 */
int mr_bulk_enroll(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out);
void mr_bulk_release(struct mr_reg *r);

/* ---- cache.c ---- */
void mr_bulk_open_cache(void);
void mr_bulk_close_cache(void);

/* ---- put.c ---- */
/* A control message. If it cannot be sent the peer is lost. */
void mr_bulk_say(struct mr_peer *p, struct mr_hdr *hdr, const void *payload, size_t len);
/* NULL: no subchannel has it now. What each has is what take_shortest goes by (sched.c). */
void mr_stripe_queue_on(struct mr_stripe_op *s, struct mr_sub *sub);
/* All stripes are done, or their peer is lost: put_sent or read_done is said, and the put is no more. */
void mr_bulk_finish(struct mr_put *put);

/* ---- stripe.c ---- */
/* Weights follow what subchannels carry, if there is more than one, and memory. Many peers never get large messages. */
bool mr_stripe_is_measured(struct mr_peer *p);
/*
 * Post a stripe, as far as there is room. begin_ns: 0, or when its message was begun. One of a medium message does not
 * wait behind those of large ones, for whose link there is no room.
 */
void mr_stripe_start(struct mr_stripe_op *s, uint64_t begin_ns);
/* One that waited. Its time counts from begin_ns if its first part is posted now; 0: it is not measured. 0, -EAGAIN: the
 * rest waits, or another negative errno. */
int mr_stripe_push(struct mr_stripe_op *s, uint64_t begin_ns);
/* Those of medium messages before those of large ones. */
void mr_stripe_enqueue(struct mr_stripe_op *s);
void mr_stripe_done(struct mr_wr *wr, const struct mr_wc *wc);
void mr_stripe_finish(struct mr_stripe_op *s, int error);
void mr_stripe_see_part(struct mr_stripe_op *s, bool failed);

/* ---- moves.c ---- */
/* The subchannels that large messages do not take now: they have no RDMA, or the policy does not want them. */
uint32_t mr_stripe_without_rdma(const struct mr_peer *p);
/* Over whichever subchannel it may take; if there is none it waits for one. */
void mr_stripe_find_home(struct mr_stripe_op *s);
/* Stripes that waited for room, and after connecting. True if some still wait. */
bool mr_stripes_resume(struct mr_peer *p);
/* As struct mr_peer_events. settle: for each stripe that was written over a subchannel and may have landed, once the
 * peer's end of that generation is gone, ask by its notification. */
void mr_stripes_unmeasure(struct mr_peer *p);
void mr_stripes_drained(struct mr_sub *sub);
bool mr_stripes_settle(struct mr_sub *sub);
bool mr_stripes_use(const struct mr_sub *sub);
void mr_stripes_move(struct mr_peer *p);
bool mr_stripes_control(struct mr_peer *p, const struct mr_hdr *hdr);

/* ---- track.c, zcopy_in.c, zcopy_serve.c, zcopy_out.c: as mr_bulk_watch, mr_bulk_serve, mr_bulk_finalize ---- */
void mr_track_poll(struct mr_peer *p, uint64_t now_ns);
void mr_zcopy_poll(struct mr_peer *p, uint64_t now_ns);
uint64_t mr_zcopy_serve(void);
void mr_zcopy_clear(void);

/* ---- track.c: words, notifications with MR_RUN_FLAG ---- */
bool mr_track_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_track_landed(uint32_t imm);

/* ---- zcopy_in.c, zcopy_out.c ---- */
/* Control messages about large messages that go as datagrams: true if it is one. */
bool mr_zcopy_in_control(struct mr_peer *p, const struct mr_hdr *hdr);
bool mr_zcopy_out_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/* Post what has been cleared, as far as there is room. True: some waits. */
bool mr_zcopy_resume(struct mr_peer *p);
/* What comes over this subchannel comes over others. */
void mr_zcopy_sub_broken(struct mr_sub *sub);
/* The peer is lost: stop its queue pairs, of which mr_peer.num_pending counts those that are not back yet. */
void mr_zcopy_lost(struct mr_peer *p);
/* After that, and after its links have drained. */
void mr_zcopy_abandon(struct mr_peer *p);
/* At the end. */
void mr_zcopy_free(struct mr_peer *p);

/* ---- track.c, receiver ---- */
int mr_track_open(struct region *r, uint64_t len, struct mr_remote *out);
void mr_track_close(struct region *r);

/* How long what is late is waited for, after all has left the sender. */
uint64_t mr_track_hold(const struct mr_peer *p);

/* ---- zcopy_in.c, zcopy_wait.c ---- */
/* Is it better to come as datagrams into posted places than as packets, and can it now? */
bool mr_zcopy_can(const struct mr_peer *p, uint64_t len);
int mr_zcopy_open(struct region *r, struct mr_peer *p, struct mr_remote *out);
void mr_zcopy_close(struct region *r);

/* ---- zcopy_out.c ---- */
/* What the peer has advertised for that; 0 or -EPROTO. */
int mr_zcopy_begin(struct mr_put *put);

/* ---- track.c, sender ---- */
/* 0 or negative errno; before its stripes are begun. */
int mr_track_begin(struct mr_put *put);

#endif
