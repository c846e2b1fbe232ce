/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that move large messages share: bulk.c, expose.c, and track.c for those over links that lose writes. */
#ifndef MRMPI_BULK_H
#define MRMPI_BULK_H

#include "libmrmpi/rail/blocks.h"
#include "libmrmpi/rail/net.h"

enum stripe_state {
    STRIPE_WAITS,   /* for room on its subchannel, or for a subchannel */
    STRIPE_POSTED,  /* some of it at least */
    STRIPE_WRITTEN, /* tracked: all of it has left; the peer has yet to say that it has landed */
    STRIPE_ORPHAN,  /* written over a subchannel that broke: it may have landed */
    STRIPE_ASKED,   /* the peer was asked whether it has */
    STRIPE_DONE,
};

struct mr_stripe_op {
    struct mr_tx tx;
    struct mr_put *put;
    struct mr_sub *sub;        /* NULL: none is up */
    struct mr_sub *queued;     /* the one among whose queued bytes it is */
    struct mr_stripe_op *next; /* in the subchannel's waiting list, or the peer's homeless */
    uint64_t offset, len;
    uint64_t left;        /* bytes; tracked: blocks */
    uint64_t step, there; /* after a break: bytes that are posted at a time (0: all), and those known to have arrived */
    uint64_t begun_ns; /* if that is recorded (view.h): when it was posted; 0: it is not */
    uint32_t imm;
    enum stripe_state state;
    uint8_t generation; /* STRIPE_ORPHAN: of the subchannel that broke */
    bool measured;      /* the time when it was posted is known */
    uint64_t took_ns;   /* policies eq3 and eq4: how long it took; 0: it is not done, or was not measured */
    /* tracked: the first block of the first write in this round, and the rounds in a row in which that did not land */
    uint32_t probe;
    bool probed;
    uint8_t fruitless;
};

/* Sender: a message whose receiver tells what has landed. */
struct mr_track {
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

/* A part to be posted. */
struct mr_bulk_part {
    uint64_t at, len, taken; /* at: from the message's beginning; taken: of mr_stripe_op.left */
    uint32_t imm;
    bool last; /* of its stripe, at present */
};

/* ---- bulk.c ---- */
/* Write what is left of a stripe, over its subchannel or, if it has none, over any. */
void mr_bulk_restart(struct mr_stripe_op *s);
/* All stripes are done, or their peer is lost: put_sent or read_done is said, and the put is no more. */
void mr_bulk_finish(struct mr_put *put);

/* ---- expose.c ---- */
/*
 * Registers a message's memory. pinned: its pages must be there, for a sender that does not wait for them. 0; negative
 * errno: that was said. mr_bulk_release gives it back.
 */
int mr_bulk_enroll(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out);
void mr_bulk_release(struct mr_reg *r);

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
/* What the peer has exposed for that; 0 or -EPROTO. */
int mr_zcopy_begin(struct mr_put *put);

/* ---- track.c, sender ---- */
/* 0 or negative errno; before its stripes are begun. */
int mr_track_begin(struct mr_put *put);
void mr_track_end(struct mr_put *put);
/* The write that comes next; there is something left. */
void mr_track_cut(const struct mr_stripe_op *s, const struct mr_link *l, struct mr_bulk_part *part);
/* It has been posted. */
void mr_track_posted(struct mr_stripe_op *s, const struct mr_bulk_part *part);
/* All of a stripe that was left has been written. */
void mr_track_written(struct mr_stripe_op *s);

#endif
