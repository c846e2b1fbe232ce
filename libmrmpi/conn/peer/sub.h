/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A subchannel: a pair of rails, a LID path and a kind of link. Bytes are counted and weighed by subchannel. It has a
 * link for each of its service levels: the first for large messages, and others where smaller ones have another
 * level. A level without a link of its own uses that of the next larger messages. Both ends name it by both rails,
 * path and kind; its place in mr_peer.sub is its own end's.
 */
#ifndef MRMPI_SUB_H
#define MRMPI_SUB_H

#include "libmrmpi/conn/fabric/client.h"
#include "libmrmpi/verbs/link/link.h"
#include "libmrmpi/verbs/rail.h"

struct mr_peer;
struct mr_sub_own;
struct mr_connect_sub;

enum mr_sub_state {
    MR_SUB_CLOSED, /* no queue pairs */
    MR_SUB_OPENING,
    MR_SUB_OPEN,
    MR_SUB_BROKEN, /* a link of it failed, at either end; each end tells the other (conn/recovery.c) */
};

/* Is generation a of a subchannel later than b? They wrap: at most a hundred are apart. */
static inline bool mr_is_later(uint8_t a, uint8_t b)
{
    return (int8_t)(a - b) > 0;
}

struct mr_sub {
    struct mr_peer *peer;
    struct mr_rail *rail;
    uint8_t remote_rail, path;
    uint8_t kind;       /* enum mr_link_kind */
    uint8_t parity;     /* of the epochs that it serves: 0 or 1 (conn/epoch.c) */
    uint8_t epoch;      /* in which it is in use: of two that differ in parity the peer changes to and fro */
    uint8_t copy;       /* of those alike in all else, for classes of several lanes */
    bool spare;         /* of a pair of rails, or a path, that is used only while no other leads there */
    bool chosen;        /* spare; but large messages use the path beside others */
    bool closing;       /* nothing new goes over it: the peer's connections are given up (conn/) */
    uint16_t pkey;      /* of our rail: the partition that its queue pairs are in; while it is closed, were in */
    uint8_t generation; /* of its queue pairs, the present or the next ones; wraps */
    uint8_t peer_from;  /* those of the peer before this generation are gone */
    bool refused;       /* it broke since the peer's adapter refused an access to memory */
    bool lossy;         /* it broke since packets were lost on its way; until its port has been down */
    uint32_t doubt;     /* what evidence of loss takes off its weight, of MR_WEIGHT_MAX (conn/ways.c) */
    enum mr_sub_state state;
    unsigned num_links;   /* that there is memory for; some may be closed */
    struct mr_link *link; /* NULL: it was never opened */
    struct mr_link *level[MR_LEVELS];
    unsigned emptied;               /* mr_rail.emptied when it was asked last what is under way over it */
    struct mr_sub_own *own;         /* what conn/peer/ keeps of it, */
    struct mr_connect_sub *connect; /* and conn/ */
};

/* The link of a level for RDMA. It is never the link of packets, which would wait behind it. */
static inline struct mr_link *mr_sub_rdma_link(const struct mr_sub *sub, unsigned level)
{
    struct mr_link *l = sub->level[level];

    return l == sub->level[MR_LEVEL_PACKETS] ? sub->level[MR_LEVEL_BULK] : l;
}

/* For log messages: the ports of both ends and the path. Returns out. */
#define MR_SUB_NAME 144
const char *mr_sub_name(const struct mr_sub *sub, char out[MR_SUB_NAME]);
/* The service level that a level's messages have on it. */
uint8_t mr_sub_sl(const struct mr_sub *sub, enum mr_level level);
/* Parity and twice the copy: they tell apart those of the same rails, path and kind. */
uint8_t mr_sub_variant(const struct mr_sub *sub);
/* Names a subchannel and a generation of it in a control message. */
int32_t mr_sub_tag(const struct mr_sub *sub, uint8_t generation);
/* The generation in a tag. */
static inline uint8_t mr_tag_generation(uint32_t tag)
{
    return (uint8_t)(tag >> 21);
}
/* The subchannel here that a tag of the peer's names; NULL: there is none. */
struct mr_sub *mr_sub_tagged(struct mr_peer *p, uint32_t tag);

/* Control messages, in header kinds of the channel's own; those of large messages are in net/bulk/. */
enum mr_control {
    MR_CONTROL_BROKEN = MR_VC_KIND_CHANNEL, /* conn/: our end is broken. tag: mr_sub_tag(); rank: it loses packets */
    MR_CONTROL_GONE,   /* our end has drained: nothing arrives through it any more. tag: mr_sub_tag() */
    MR_CONTROL_ASK,    /* net/stripe/: has the stripe with the notification ctx landed? sreq: comes back */
    MR_CONTROL_TOLD,   /* the answer. rank: 1 if it has, or is not waited for any more; 0 if not */
    MR_CONTROL_PARKED, /* conn/: we give up our connections. tag: any subchannel */
    MR_CONTROL_IDLE,   /* conn/: nothing from our end is under way on this subchannel, which retires */
    MR_CONTROL_RING,   /* net/rings.c. rank: enum ring_control; tag: mr_sub_tag(); payload: struct mr_ring_says */
    MR_CONTROL_GRANT,  /* net/grant.c. ctx: kB/s on each level that goes ahead; tag: of all packets; 0: no limit */
    MR_CONTROL_HEALTH, /* net/health.c. ctx: our rails' health; tag: doubts of the ways from them (conn/route/health.h)
                        */
    MR_CONTROL_BULK,   /* from here on */
};

#endif
