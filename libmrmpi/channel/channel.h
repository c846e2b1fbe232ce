/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel is one way to move bytes to a peer: the process itself, shared memory, the network. One file each,
 * behind struct mr_channel_ops; channel/vc.c picks among them and gives packets their sequence numbers.
 *
 * A channel does not order across links and knows no matching: it hands every arrived packet to mr_channel_up.arrived,
 * which sorts by sequence number and calls up. Channels know nothing of what is above them but struct mr_channel_up.
 * All functions are called with the library's lock held.
 */
#ifndef MRMPI_CHANNEL_H
#define MRMPI_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/packet.h"

struct mr_launch;
struct mr_vc_writer;
struct mr_channel_ops;

/*
 * What p2p/ reaches of a virtual channel without a call. The sizes are vc/'s: 0 until they are asked for
 * (mr_vc_eager_max), then they do not change, but for part. How short a message has to be for mr_vc_send_short the
 * channel says, and says anew when it changes. The rest belongs to p2p/ and is zero at first: the byte that goes with
 * every packet to the peer, and room for what it keeps of the peer.
 */
struct mr_vc_front {
    uint32_t eager_max, eager_most;
    uint32_t short_below; /* less than so many bytes; 0: no message */
    uint32_t
        part; /* of a message in several packets; 0: eager_max. At the peer's pace (conn/route/pace.h) it is less */
    uint8_t note;
    bool lends; /* a payload may be sent from where it lies (mr_vc_lend); said anew when it changes, too */
    _Alignas(8) unsigned char room[104];
};

/* A virtual channel as those below and above see it: the first member of vc/'s own struct. */
struct mr_vc {
    struct mr_vc_front front;
    int rank;  /* of the peer, in the world; negative: there was no memory for it */
    int error; /* nonzero: the peer is lost */
    uint32_t next_seq; /* of the next packet that we send, */
    uint32_t self;     /* and our rank in the world: as in its header */
    const struct mr_channel_ops *ops;
    void *data; /* the channel's own, its connection; NULL until it is set */
};
static inline struct mr_vc_front *mr_vc_front(struct mr_vc *vc)
{
    return &vc->front;
}
static inline int mr_vc_world_rank(const struct mr_vc *vc)
{
    return vc->rank;
}
/* From now on packets of messages that take several have no more payload than that; 0: than eager_max. */
static inline void mr_vc_set_part_max(struct mr_vc *vc, size_t part)
{
    vc->front.part = (uint32_t)part;
}
static inline void mr_vc_set_short_below(struct mr_vc *vc, size_t bytes)
{
    vc->front.short_below = (uint32_t)bytes;
}

static inline void mr_vc_set_lends(struct mr_vc *vc, bool lends)
{
    vc->front.lends = lends;
}

/* A region as a channel made it (the first member of its own struct); the ops that made it take it back. */
struct mr_region {
    const struct mr_channel_ops *channel;
    uint64_t rreq; /* mr_vc_expect */
};

/* A piece of a message. */
struct mr_vc_part {
    size_t at, len;
};

/* The send whose packet is sent from where it lies (mr_vc_lend). */
struct mr_vc_lender {
    const void *buf; /* all of its message */
    size_t len;
    bool answers;    /* it goes so only if something has come since the last packet went: else it is copied */
    void *cookie;
};

/* Data on its way between the program's memory and that of a window (mr_vc_move); its owner embeds it. */
struct mr_vc_move {
    void (*done)(struct mr_vc_move *m, int error); /* negative errno: none or some of it has been moved */
    bool attached; /* it is advertised as MR_VC_ATTACHED: the error is -EACCES if the peer has withdrawn it */
};

/* A word of a peer's memory on its way (mr_vc_word); its owner embeds it. */
struct mr_vc_word {
    struct mr_word word;
    struct mr_vc_move move; /* done: the error is -EIO if it may have been done, or not, and never will be any more */
    uint32_t way; /* the one that it has taken, never 0: words that take the same are done in order. Before: the one
                     that it has to take; 0: any */
};

struct mr_claims; /* channel/shm_claim.h */

/* Writes a payload of len bytes that does not lie in one piece. */
typedef void mr_vc_make_fn(void *to, size_t len, const void *what);

/*
 * All of init, ready, finalize, drained, lingers, reserve, peek, taken, send_made, lend, advertise, withdraw, put,
 * read, move, word, writer_open, get, claims, control may be NULL: nothing to do, or not supported.
 */
struct mr_channel_ops {
    const char *name;
    int (*init)(const struct mr_launch *launch); /* before the fence: publish addresses */
    int (*ready)(void);                          /* after the fence */
    void (*finalize)(void);
    int (*poll)(void); /* number of things done */
    void *const *pending; /* while this points to NULL poll has nothing to do; NULL: it may always have */
    bool (*drained)(void);
    /* After the last message: peers may still need answers of this rank. NULL: never */
    bool (*lingers)(void);
    unsigned (*waiting)(struct mr_vc *vc);        /* packets to that peer that wait for room; NULL: never any */
    bool (*reaches)(int world_rank);              /* this channel is the one for that peer (self, same node, any) */
    size_t (*eager_max)(int world_rank);          /* at the first send; 0: not known yet, ask again */
    unsigned (*eager_packets)(int world_rank);    /* of that, which an eager message may take; NULL: one */
    unsigned (*rate)(int world_rank, size_t len, uint32_t without, size_t *whole); /* as mr_vc_rate; NULL: not known */
    size_t (*packet_max)(int world_rank);         /* NULL: as eager_max */
    unsigned (*caps)(int world_rank, size_t len); /* enum mr_vc_caps, for a message of that length */
    int (*reserve)(struct mr_vc *vc, unsigned packets); /* as mr_vc_reserve; only for what has eager_packets or rate */
    int (*send)(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len); /* as mr_vc_send */
    /* as mr_vc_send_short; only for what says mr_vc_front.short_below */
    bool (*send_short)(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx);
    /* as mr_vc_peek and mr_vc_taken, but for the order of packets; NULL: nothing can be taken so */
    const void *(*peek)(struct mr_vc *vc, int rank, int tag, uint32_t ctx, struct mr_hdr *hdr);
    void (*taken)(struct mr_vc *vc);
    /* as mr_vc_send_made; NULL: the payload is made in scratch and sent from there */
    int (*send_made)(struct mr_vc *vc, const struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                     const void *what);
    /* as mr_vc_lend; for what says mr_vc_front.lends */
    int (*lend)(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len,
                const struct mr_vc_lender *lender);
    bool (*copies)(const struct mr_vc *vc, const void *buf, size_t len); /* as mr_vc_copies; NULL: no */
    int (*advertise)(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                  struct mr_remote *out);
    void (*withdraw)(struct mr_region *region);
    int (*put)(struct mr_vc *vc, const void *buf, size_t len, const struct mr_remote *dst, uint64_t rreq, void *cookie);
    int (*read)(struct mr_vc *vc, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src,
                void *cookie);
    int (*move)(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
                struct mr_vc_move *m);
    int (*word)(struct mr_vc *vc, const struct mr_remote *remote, struct mr_vc_word *w);
    struct mr_vc_writer *(*writer_open)(struct mr_vc *vc, const struct mr_remote *remote); /* writer.h */
    int (*get)(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset);
    struct mr_claims *(*claims)(struct mr_vc *vc, bool ours); /* as mr_vc_claims */
    /* a packet of its own kinds (MR_VC_KIND_CHANNEL), in order */
    void (*control)(int world_rank, const struct mr_hdr *hdr, const void *payload, size_t len);
};

extern const struct mr_channel_ops mr_channel_self; /* channel/self.c */
extern const struct mr_channel_ops mr_channel_shm;  /* channel/shm.c */
extern const struct mr_channel_ops mr_channel_net;  /* net/net.c and its neighbours: links over all rails */

/*
 * What channels call. channel/vc.c fills it in before it opens the first channel. arrived, put_sent, read_done,
 * put_landed and failed are called from a channel's poll only.
 */
struct mr_channel_up {
    /* A packet of world rank hdr->src is here, in any order; headers that make no sense are dropped there. */
    void (*arrived)(const struct mr_hdr *hdr, const void *payload, size_t len);
    /* As the upcalls of the same names in channel/vc.h; failed is passed up once for a peer. */
    void (*put_sent)(void *cookie, int error);
    void (*loan_ended)(void *cookie);
    void (*read_done)(void *cookie, int error);
    void (*put_landed)(int world_rank, uint64_t rreq, int error);
    void (*failed)(int world_rank, int error);
    struct mr_vc *(*get)(int world_rank); /* as mr_vc_get_peer */
    /* A packet of the channel's own kinds, numbered as all others: as mr_vc_send. */
    int (*send)(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len);
    uint32_t (*received)(const struct mr_vc *vc); /* packets that were delivered so far; wraps */
    size_t (*eager_max)(struct mr_vc *vc);        /* as mr_vc_eager_max */
};
extern MR_OWN struct mr_channel_up mr_channel_up;

/*
 *  Packets to all peers that wait, as copies, for room or for a connection, with the sends that p2p/ holds back
 *  because of them; kept by the channels and by p2p/. While it is 0 nobody has to ask.
 */
extern MR_OWN unsigned mr_channel_waiting;
/* So many times in a row no channel had anything to do; kept by channel/vc.c. */
extern MR_OWN unsigned mr_channel_idle;
/* With so many devices each memory is registered that is sent from, or moved; at least 1. Kept by the network. */
extern MR_OWN unsigned mr_channel_devices;
/* It is registered, with one of them at least, and stays so. Kept by the network, if there is one. */
extern MR_OWN bool (*mr_channel_is_registered)(const void *buf, size_t len);

#endif
