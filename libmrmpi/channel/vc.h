/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual channel: the one thing that p2p/ knows of a peer. Below it, subchannels are (HCA, port, LMC path,
 * service level) or shared memory or the process itself; each is driven by a channel (channel/channel.h).
 *
 * Promises: packets of one virtual channel are delivered exactly once and in the order of mr_vc_send, whatever
 * subchannels they took (sequence numbers are per virtual channel). A put is reported at the sender when its buffer may
 * be reused, and at the receiver when every byte has landed.
 *
 * All functions are called with the library's lock held. None of them blocks; upcalls come only out of mr_vc_poll(),
 * never out of mr_vc_send or mr_vc_put (channel self is no exception: it queues).
 */
#ifndef MRMPI_VC_H
#define MRMPI_VC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/channel/channel.h"

struct mr_vc_upcalls {
    /* A packet, in order. payload is valid during the call only. */
    void (*deliver)(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
    void (*noted)(struct mr_vc *vc, uint8_t note); /* that of a packet which is the channel's own */
    void (*put_sent)(void *cookie, int error);                      /* sender: buffer is free; error: negative errno */
    void (*loan_ended)(void *cookie); /* sender: one packet less is sent from the buffer */
    void (*read_done)(void *cookie, int error);                     /* reader: all bytes are there, or none come */
    void (*put_landed)(struct mr_vc *vc, uint64_t rreq, int error); /* receiver: all bytes are there */
    void (*failed)(struct mr_vc *vc, int error);                    /* the peer cannot be reached any more */
};

/* Opens the devices, publishes the addresses (mr_launch_put; the caller does the fence), sets up shared memory. */
int mr_vc_init(const struct mr_launch *launch, const struct mr_vc_upcalls *up);
int mr_vc_ready(void);     /* after the launcher's fence: attach to the node's shared memory, read addresses lazily */
void mr_vc_finalize(void); /* drains what is queued; peers have been synchronised by the caller */
/* Handles completions, arrivals, connection set-up, deferred sends. Returns the number of things done; 0: idle. */
int mr_vc_poll(void);
/* True when nothing is queued or in flight on this side (for finalize). */
bool mr_vc_drained(void);
/* From here on nothing is said upwards: p2p/ has gone. What peers still need is served by mr_vc_poll(). */
void mr_vc_quiet(void);
/* True while peers may still need this process to poll: a channel says so. */
bool mr_vc_lingers(void);

extern MR_OWN struct mr_vc **mr_vcs; /* by world rank; NULL: not made yet. For mr_vc_get_peer only */
struct mr_vc *mr_vc_make(int world_rank); /* if it is not made yet; never NULL */
static inline struct mr_vc *mr_vc_known_peer(int world_rank) /* NULL: not made yet */
{
    return mr_vcs[world_rank];
}
static inline struct mr_vc *mr_vc_get_peer(int world_rank) /* made on demand, never NULL */
{
    struct mr_vc *vc = mr_vcs[world_rank];

    return __builtin_expect(vc != NULL, 1) ? vc : mr_vc_make(world_rank);
}
/* Asks the channel how long packets may be, and keeps the answer. Returns eager_max, the least that a peer may have
 * while that is not known. */
size_t mr_vc_learn_sizes(struct mr_vc *vc);
static inline size_t mr_vc_eager_max(struct mr_vc *vc) /* payload bytes of a packet that may come unasked */
{
    size_t max = mr_vc_front(vc)->eager_max;

    return __builtin_expect(max != 0, 1) ? max : mr_vc_learn_sizes(vc);
}
static inline size_t mr_vc_eager_most(struct mr_vc *vc) /* of a message that may come unasked, in such packets */
{
    size_t least = mr_vc_eager_max(vc);

    return __builtin_expect(mr_vc_front(vc)->eager_most != 0, 1) ? mr_vc_front(vc)->eager_most : least;
}
static inline size_t mr_vc_part_max(struct mr_vc *vc) /* what is longer is cut: a part of the message in each packet */
{
    size_t max = mr_vc_eager_max(vc), part = mr_vc_front(vc)->part;

    return part && part < max ? part : max;
}
/*
 * MB/s at which rails to the peer carry a large message now: all of them together, or the fastest of unequal rails, if
 * the message is not cut while all are busy. 0: the message is cut, or the rate is not known. *whole: with several
 * rails, a shorter piece goes over one of them. without: set of rails here that have no key.
 */
unsigned mr_vc_rate(const struct mr_vc *vc, size_t len, uint32_t without, size_t *whole);
size_t mr_vc_packet_max(struct mr_vc *vc);               /* of the packets that a longer message is cut into */
unsigned mr_vc_caps(const struct mr_vc *vc, size_t len); /* for a message of that length */
static inline bool mr_vc_lost(const struct mr_vc *vc) /* nothing comes from this peer any more, nor goes there */
{
    return vc->error;
}

/* Send one packet with no more payload than eager_max or packet_max, whichever is more. hdr and payload may be reused
 * on return: they are copied, inlined or queued. Returns 0 or negative errno (the peer is unreachable, no memory). */
static inline int mr_vc_send(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    int err;

    if (__builtin_expect(vc->error, 0))
        return vc->error;
    hdr->note = vc->front.note;
    hdr->seq = vc->next_seq;
    hdr->src = vc->self;
    err = vc->ops->send(vc, hdr, payload, len);
    if (__builtin_expect(!err, 1))
        vc->next_seq++;
    return err;
}
/*
 * The same from where the payload lies: 1: it stays as it is until loan_ended(lender->cookie). 0: it was copied.
 * Negative errno as above. Only where mr_vc_front.lends is set.
 */
static inline int mr_vc_lend(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len,
                             const struct mr_vc_lender *lender)
{
    int lent;

    if (__builtin_expect(vc->error, 0))
        return vc->error;
    hdr->note = vc->front.note;
    hdr->seq = vc->next_seq;
    hdr->src = vc->self;
    lent = vc->ops->lend(vc, hdr, payload, len, lender);
    if (__builtin_expect(lent >= 0, 1))
        vc->next_seq++;
    return lent;
}
/* Send an eager message of less than mr_vc_front.short_below bytes, while no packet waits (mr_channel_waiting is 0).
 * False: it has to go by mr_vc_send, and nothing has happened. */
static inline bool mr_vc_send_short(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx)
{
    if (__builtin_expect(!vc->ops->send_short(vc, payload, len, rank, tag, ctx), 0))
        return false;
    vc->next_seq++;
    return true;
}
static inline bool mr_vc_can_peek(const struct mr_vc *vc) /* packets can be taken without a poll */
{
    return vc->ops && vc->ops->peek;
}
/* Then: the payload of the next one, if it has come, is all of an eager message and is this one (tag negative: of any),
 * and *hdr; it stays there until mr_vc_taken. NULL: none has come. MR_PEEK_OTHER: what has come is left to a poll. */
const void *mr_vc_peek(struct mr_vc *vc, int rank, int tag, uint32_t ctx, struct mr_hdr *hdr);
void mr_vc_taken(struct mr_vc *vc); /* it has been delivered */
/* Before several packets that are one message: there is memory for all of them, if they are sent at once. Then they are
 * refused only if the peer is unreachable, and it never waits for the rest of a message. 0 or negative errno. */
int mr_vc_reserve(struct mr_vc *vc, unsigned packets);
/*
 * The same for a payload that does not lie in one piece: make writes it, to where the channel wants it if it can, else
 * to scratch (len bytes of the caller's). It is called before the return, once.
 */
int mr_vc_send_made(struct mr_vc *vc, struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                    const void *what);

bool mr_vc_is_used(const struct mr_vc *vc); /* packets have been sent, or have come */
static inline uint32_t mr_vc_packets(const struct mr_vc *vc) /* given to mr_vc_send so far; wraps */
{
    return vc->next_seq;
}
/* Packets to it that wait, as copies, for room or a connection. There is no bound: who sends many polls first. */
unsigned mr_vc_waiting(struct mr_vc *vc);
/*
 * Make [buf, buf + len) reachable for the peer in the way how: to be written into (MR_VC_PUT, MR_VC_DATAGRAMS) or to be
 * read (MR_VC_GET, MR_VC_READ, MR_VC_READ_ONCE), or both (MR_VC_WINDOW, MR_VC_ATTACHED). Registers it, cached or alone.
 */
int mr_vc_advertise(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                 struct mr_remote *out);
void mr_vc_withdraw(struct mr_region *region);
bool mr_vc_copies(const struct mr_vc *vc, const void *buf, size_t len); /* its packets take less than that would */
/*
 * Who advertises a region for a put says so here, before it tells the peer: rreq is what put_landed will be called
 * with. (A notification carries 32 bits only: the region's token stands for rreq on the wire.)
 */
void mr_vc_expect(struct mr_region *region, uint64_t rreq);

/*
 * Write buf into the peer's advertised memory, striped over the rails. cookie comes back in put_sent; rreq is given to
 * the peer's put_landed (it is what the peer gave to mr_vc_expect for this region). len > 0. The region for the local
 * buffer is taken and released inside.
 */
int mr_vc_put(struct mr_vc *vc, const void *buf, size_t len, const struct mr_remote *dst, uint64_t rreq, void *cookie);

/*
 * Read a part of a message of size bytes into its place in buf, from the first bytes of the peer's advertised memory,
 * striped over the rails. cookie comes back in read_done; the peer is not told. part.len > 0. The region for the local
 * buffer, all of it, is taken and released inside.
 */
int mr_vc_read(struct mr_vc *vc, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src,
               void *cookie);

/*
 * Write len bytes at buf into memory that the peer has advertised as a window's (MR_VC_WINDOW, MR_VC_ATTACHED), or
 * read them from there, striped over the rails; the peer is not told. m->done follows, perhaps before this returns: by
 * then a write is in the peer's memory, and no copy of it could come later. buf stays as it is until then. len > 0.
 */
int mr_vc_move(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
               struct mr_vc_move *m);
/* Read from the peer's advertised memory now (process_vm_readv). 0, -EPERM: the kernel refuses, or negative errno. */
int mr_vc_get(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset);
/* Our claims, or the peer's, by which messages to us, or to the peer, are moved by both; NULL: there are none. */
struct mr_claims *mr_vc_claims(struct mr_vc *vc, bool ours);
#endif
