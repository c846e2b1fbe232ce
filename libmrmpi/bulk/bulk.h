/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages between hosts: memory that is advertised to a peer, writes into it and reads from it, in stripes over the
 * subchannels that have RDMA, or as datagrams that land in the program's memory. Called by the channel (net/) with the
 * library's lock held; what is done is said by mr_channel_up (put_sent, read_done, put_landed).
 */
#ifndef MRMPI_BULK_H
#define MRMPI_BULK_H

#include "libmrmpi/peer/peer.h"

/* What large messages keep of a subchannel. */
struct mr_bulk_sub {
    uint64_t queued;    /* bytes of the stripes that it was given and that are not done */
    unsigned flows;     /* parts of large messages that come or go over it as datagrams */
    uint8_t fruitless;  /* those in a row of which nothing came */
    struct mr_stripe_op *waiting, **waiting_end; /* stripes that found no room */
};

/* A peer, and what large messages keep of it. Every peer is the first member of one (mr_peers.peer_size). */
struct mr_bulk_peer {
    struct mr_peer base;
    struct mr_bulk_sub *sub;      /* as base.sub; NULL: not listed yet */
    struct mr_put *puts;          /* not yet complete */
    struct mr_stripe_op *unassigned; /* stripes that look for a subchannel */
    unsigned num_unconfirmed;             /* stripes that may have landed over a subchannel that broke */
    struct mr_sched stripe_turn;
    struct mr_adapt *adapt;       /* NULL: no part of a large message has gone over one of several subchannels */
    struct mr_feedback *feedback; /* the same for MR_WEIGHTS_PAPER */
    struct mr_catch *catching;    /* large receives of which all should have landed by now */
    uint8_t write_shift;          /* how long writes to it shall be: 1 << write_shift; 0: not known yet */
    uint8_t hasty;                /* how often it was taken for lost what came after all */
    struct mr_inflow *inflows;    /* large receives that come as datagrams, */
    unsigned num_late;            /* of which all should have landed, */
    unsigned num_starving;        /* receives that have none yet, */
    struct mr_pour *pouring;      /* and what is to be sent in this way */
    struct mr_sched inflow_turn;
};

/* Subscribes to what happens to peers; mr_peers.launch is set. */
void mr_bulk_init(void);
/* Devices are open: how much may be registered, and whether pages are pinned. */
void mr_bulk_open_memory(void);
/* Peers have been freed. */
void mr_bulk_finalize(void);
/* No large message of ours is under way. */
bool mr_bulk_is_idle(void);
/* Parts of large messages are late, or wait for a queue pair of the pool that is not there. */
bool mr_bulk_is_late(void);
int mr_bulk_advertise(struct mr_peer *p, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                   struct mr_remote *out);
void mr_bulk_withdraw(struct mr_region *region);
int mr_bulk_put(struct mr_peer *p, const void *buf, size_t len, const struct mr_remote *dst, void *cookie);
/* While all rails have messages to carry, those shorter than so many times MRMPI_STRIPE_MIN are not cut. */
#define MR_STRIPE_BUSY 4
int mr_bulk_read(struct mr_peer *p, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src,
                 void *cookie);
/* What waited for room, and after connecting. True if some still waits. */
bool mr_bulk_resume(struct mr_peer *p);
/* A notification: what has arrived. */
void mr_bulk_landed(uint32_t imm);
/* A control message about a large message: true if it is one. */
bool mr_bulk_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/*
 * From poll, of a peer that is watched. idle: all that has come was handled; then what is missing is asked for again, if
 * its time is up. True: look again.
 */
bool mr_bulk_watch(struct mr_peer *p, bool idle, uint64_t now_ns);
/* Queue pairs for messages that wait for one. The time, if the clock was read, or 0. */
uint64_t mr_bulk_serve(void);

#endif
