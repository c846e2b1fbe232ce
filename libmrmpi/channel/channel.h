/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel is one way to move bytes to a peer: the process itself, shared memory, the network. One file each,
 * behind struct mr_channel_ops; rail/vc.c picks among them and gives packets their sequence numbers.
 *
 * A channel does not order across subchannels and knows no matching: it hands every arrived packet to mr_vc_arrived(),
 * which sorts by sequence number and calls up.
 */
#ifndef MRMPI_CHANNEL_H
#define MRMPI_CHANNEL_H

#include "libmrmpi/rail/vc.h"

struct mr_launch;

/* All of init, ready, finalize, drained, lingers, reserve, send_made, expose, unexpose, put, read, get, word may be
 * NULL: nothing to do, or not supported. */
struct mr_channel_ops {
    const char *name;
    int (*init)(const struct mr_launch *launch); /* before the fence: publish addresses */
    int (*ready)(void);                          /* after the fence */
    void (*finalize)(void);
    int (*poll)(void); /* number of things done */
    bool (*drained)(void);
    /* After the last message: peers may still need answers of this rank. NULL: never */
    bool (*lingers)(void);
    unsigned (*waiting)(struct mr_vc *vc);        /* packets to that peer that wait for room; NULL: never any */
    bool (*reaches)(int world_rank);              /* this channel is the one for that peer (self, same node, any) */
    size_t (*eager_max)(int world_rank);          /* at the first send; 0: not known yet, ask again */
    unsigned (*eager_packets)(int world_rank);    /* of that, which an eager message may take; NULL: one */
    bool (*eager_alone)(int world_rank, size_t len, bool quiet); /* as mr_vc_eager_alone; NULL: never */
    unsigned (*rate)(int world_rank, size_t *whole); /* as mr_vc_rate; NULL: not known */
    size_t (*packet_max)(int world_rank);         /* NULL: as eager_max */
    unsigned (*caps)(int world_rank, size_t len); /* enum mr_vc_caps, for a message of that length */
    int (*reserve)(struct mr_vc *vc, unsigned packets); /* as mr_vc_reserve; only for what has eager_packets or rate */
    int (*send)(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len); /* as mr_vc_send */
    /* as mr_vc_send_made; NULL: the payload is made in scratch and sent from there */
    int (*send_made)(struct mr_vc *vc, const struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                     const void *what);
    int (*expose)(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                  struct mr_remote *out);
    void (*unexpose)(struct mr_region *region);
    int (*put)(struct mr_vc *vc, const void *buf, size_t len, const struct mr_remote *dst, uint64_t rreq, void *cookie);
    int (*read)(struct mr_vc *vc, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src,
                void *cookie);
    int (*get)(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset);
    /* a packet of its own kinds (MR_VC_KIND_CHANNEL), in order */
    void (*word)(int world_rank, const struct mr_hdr *hdr, const void *payload, size_t len);
};

extern const struct mr_channel_ops mr_channel_self; /* channel/self.c */
extern const struct mr_channel_ops mr_channel_shm;  /* channel/shm.c */
extern const struct mr_channel_ops mr_channel_net;  /* rail/net.c and its neighbours: links over all rails */

/*
 * What channels call, only from their poll.
 * arrived: a packet of world rank hdr->src is here, in any order; headers that make no sense are dropped there.
 * put_sent, read_done, put_landed, failed: as the upcalls of the same names. failed is passed up once for a peer.
 */
void mr_vc_arrived(const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_vc_put_sent(void *cookie, int error);
void mr_vc_read_done(void *cookie, int error);
void mr_vc_put_landed(int world_rank, uint64_t rreq, int error);
void mr_vc_failed(int world_rank, int error);

/* A word of the channel's own for a peer (its connection); NULL until set. */
void *mr_vc_channel_data(const struct mr_vc *vc);
void mr_vc_set_channel_data(struct mr_vc *vc, void *data);

/* A region as a channel made it (the first member of its own struct); the ops that made it take it back. */
struct mr_region {
    const struct mr_channel_ops *channel;
    uint64_t rreq; /* mr_vc_expect */
};

#endif
