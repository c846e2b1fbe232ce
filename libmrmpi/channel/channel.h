/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual channels, and the channels that carry their packets.
 *
 * A virtual channel (struct mr_vc) leads to one rank of the job, or to a guest, a process of another job. vc.c delivers
 * its packets exactly once and in the order of mr_vc_send, whatever rails they took. A channel moves packets to some of
 * the ranks: the process itself (self.c), shared memory (shm.c), the network (net/), sockets (stream.c). Each channel
 * fills in a struct mr_channel_ops, the functions that several channels have. Functions of one channel are called by
 * name: those of shared memory at the end of this file, those of the network in net/net.h.
 *
 * A channel calls mr_vc_arrived() for each packet, in any order. The subsystem above fills in struct mr_vc_upcalls;
 * only mr_vc_poll() calls these, never a send. All functions are called with the library's lock held, and none blocks.
 */
#ifndef MRMPI_CHANNEL_H
#define MRMPI_CHANNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/packet.h"
#include "libmrmpi/base/reader.h"
#include "libmrmpi/channel/reorder.h"
#include "libmrmpi/channel/shm_claim.h"

struct mr_card;
struct mr_launch;
struct mr_channel_ops;

/*
 * The subsystem above embeds a struct mr_vc as the first member of its own struct, and gives the size of that in
 * mr_vc_upcalls.vc_size: vc.c allocates it, zeroed. The members up to zsends are for the path of a short message.
 */
struct mr_vc {
    /* Sizes in bytes. The first two are 0 until the peer's address is known (mr_vc_eager_max). */
    uint32_t eager_max, eager_most;
    uint32_t fast_below; /* shorter messages may go by ops->send_short; 0: none. Set by the channel */
    uint32_t part;     /* of a message in several packets; 0: eager_max. Less at the peer's pace (conn/route/pace.h) */
    uint8_t note;      /* goes with every packet to the peer. Set by the subsystem above */
    bool zsends;       /* packets may be sent from the program's memory (mr_net_zsend). Set by the channel */
    int rank;          /* of the peer, in the world, or its number (launch.h); negative: there was no memory for it */
    int error;         /* nonzero: the peer is lost */
    uint32_t next_seq; /* of the next packet to send, */
    uint32_t self;     /* and our rank in the world: as in its header */
    const struct mr_channel_ops *ops;
    void *data; /* the channel's own: its connection; NULL until there is one */
    size_t packet_max;
    struct mr_reorder in; /* packets that came early */
    void *stream;         /* of a guest: stream.c's own, whichever channel carries its packets */
};
static inline int mr_vc_world_rank(const struct mr_vc *vc)
{
    return vc->rank;
}
static inline bool mr_vc_lost(const struct mr_vc *vc) /* nothing comes from this peer any more, nor goes there */
{
    return vc->error;
}

/* A region made by a channel (the first member of its own struct); the ops that made it take it back. */
struct mr_region {
    const struct mr_channel_ops *channel;
    uint64_t rreq; /* mr_vc_expect */
};

/* A piece of a message. */
struct mr_vc_part {
    size_t at, len;
};

/* Data on its way between the program's memory and that of a window (mr_vc_move); its owner embeds it. */
struct mr_vc_move {
    void (*done)(struct mr_vc_move *m, int error); /* negative errno: none or some of it has been moved */
    bool attached; /* advertised as MR_VC_ATTACHED: the error is -EACCES if the peer has withdrawn it */
};

/* Writes a payload of len bytes not in one piece. */
typedef void mr_vc_make_fn(void *to, size_t len, const void *what);

/* drained, waiting, send_short, send_made, move, get, control may be NULL: nothing to do, or not supported. */
struct mr_channel_ops {
    const char *name;
    int (*init)(const struct mr_launch *launch); /* before the fence: publish addresses */
    void (*finalize)(void);
    int (*poll)(void);    /* number of things done */
    void *const *pending; /* while this points to NULL poll has nothing to do; NULL: it may always have */
    bool (*drained)(void);
    unsigned (*waiting)(struct mr_vc *vc); /* packets to that peer waiting for room; NULL: never any */
    bool guests;                           /* for processes of other jobs, and for no others */
    bool (*reaches)(int world_rank);       /* true if this channel is the one for that peer (self, same node, any) */
    void (*made)(struct mr_vc *vc);        /* NULL: nothing to do */
    void (*sizes)(struct mr_vc *vc);       /* sets eager_max, eager_most, packet_max; none, if not known yet */
    unsigned (*caps)(int world_rank, size_t len); /* enum mr_vc_caps, for a message of that length */
    int (*send)(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len); /* as mr_vc_send */
    /*
     * Sends an eager message of less than vc->fast_below bytes while no packet waits (mr_channel_waiting is 0), with
     * the number vc->next_seq, which the caller increments afterwards. False: nothing has happened, and the message
     * takes mr_vc_send.
     */
    bool (*send_short)(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx);
    /* as mr_vc_send_made; NULL: the payload is made in scratch and sent from there */
    int (*send_made)(struct mr_vc *vc, const struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                     const void *what);
    int (*advertise)(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                     struct mr_remote *out);
    void (*withdraw)(struct mr_region *region);
    int (*move)(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
                struct mr_vc_move *m);
    int (*get)(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset);
    /* a packet of the channel's own kinds (MR_VC_KIND_CHANNEL), in order */
    void (*control)(int world_rank, const struct mr_hdr *hdr, const void *payload, size_t len);
    const struct mr_guest_rails *rails; /* the channel to other hosts: it can carry for guests, too; else NULL */
};

/*
 * What the channel to other hosts does for guests there. The processes meet, and part, over the channel stream, which
 * calls these functions. Packets of both channels are put into one order, as those of several rails are.
 */
#define MR_OFFER_MAX 8192
struct mr_guest_rails {
    int (*begin)(const struct mr_launch *launch); /* opens the channel: the job's ranks share a node */
    /* For a guest of that number: where this process is. Returns its length. run: not 0, tells acquaintances apart. */
    size_t (*offer)(int number, uint32_t run, void *out);
    /* The guest's offer; run: of ours. begins: this end connects. Later mr_stream_railed or mr_stream_unrailed. */
    int (*meet)(struct mr_vc *vc, uint32_t run, const void *offer, size_t len, bool begins);
    void (*carry)(struct mr_vc *vc);           /* the vc's packets go this way, from now on (mr_vc_change) */
    bool (*idle)(struct mr_vc *vc);            /* nothing of ours is under way there */
    void (*part)(struct mr_vc *vc, int error); /* closes the way, whatever is under way: mr_stream_unrailed follows */
    bool (*forget)(int number);                /* frees what is left of closed ways. False: something is */
};

extern const struct mr_channel_ops mr_channel_self;   /* self.c */
extern const struct mr_channel_ops mr_channel_shm;    /* shm.c */
extern const struct mr_channel_ops mr_channel_stream; /* stream.c */
extern const struct mr_channel_ops mr_channel_ring;   /* to guests on this node */

/* ---- called by channels ------------------------------------------------------------------------------------------ */

/* A packet of world rank hdr->src is here, in any order; headers that make no sense are dropped. From polls only. */
void mr_vc_arrived(const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_vc_arrived_from(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len); /* of a guest */
void mr_vc_failed(int world_rank, int error); /* passed up once for a peer. From polls only */
/* A packet of the channel's own kinds, numbered as all others: as mr_vc_send. */
int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len);
uint32_t mr_vc_received(const struct mr_vc *vc); /* packets delivered so far; wraps */

/* ---- upcalls of channels and vc.c -------------------------------------------------------------------------------- */

struct mr_vc_upcalls {
    size_t vc_size; /* of the struct that begins with a struct mr_vc; 0: there is no more */
    /* A packet, in order. payload is valid during the call only. */
    void (*deliver)(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
    void (*noted)(struct mr_vc *vc, uint8_t note);                /* that of a packet of the channel's own */
    void (*put_sent)(void *cookie, int error);                    /* sender: buffer is free; error: negative errno */
    void (*zsend_done)(void *cookie);                             /* sender: one packet less is sent from the buffer */
    void (*read_done)(void *cookie, int error);                   /* reader: all bytes are there, or none come */
    void (*put_landed)(int world_rank, uint64_t rreq, int error); /* receiver: all bytes are there */
    void (*failed)(struct mr_vc *vc, int error);                  /* the peer cannot be reached any more */
};
extern MR_OWN struct mr_vc_upcalls mr_vc_up;

/* ---- life -------------------------------------------------------------------------------------------------------- */

/*
 * Opens the channels that the job needs, and publishes their addresses (mr_launch_put; the caller does the fence). far:
 * the channel to other hosts. After the fence the caller calls mr_shm_ready().
 */
int mr_vc_init(const struct mr_launch *launch, const struct mr_vc_upcalls *up, const struct mr_channel_ops *far);
void mr_vc_finalize(void); /* drains queues; the caller has synchronised the peers */
/* Handles completions, arrivals, connection set-up, deferred sends. Returns the number of things done; 0: idle. */
int mr_vc_poll(void);
/* True when nothing is queued or in flight on this side (for finalize). */
bool mr_vc_drained(void);
/* From here on nothing is said upwards: the subsystem above has gone. mr_vc_poll() still serves peers. */
void mr_vc_quiet(void);

extern MR_OWN struct mr_vc **mr_vcs;      /* by number; NULL: not made yet. For mr_vc_get_peer only */
struct mr_vc *mr_vc_make(int world_rank); /* if not made yet; never NULL */
/*
 * One more world rank, behind all of them: a peer that has always been lost. Every send there fails, with -EIDRM,
 * and nothing comes from there.
 */
static inline int mr_vc_nowhere(int world_size)
{
    return world_size;
}
static inline struct mr_vc *mr_vc_known_peer(int world_rank) /* NULL: not made yet */
{
    return mr_vcs[world_rank];
}
static inline struct mr_vc *mr_vc_get_peer(int world_rank) /* made on demand, never NULL */
{
    struct mr_vc *vc = mr_vcs[world_rank];

    return likely(vc != NULL) ? vc : mr_vc_make(world_rank);
}

/* ---- guests ------------------------------------------------------------------------------------------------------ */

/* Opens a channel with `guests`, unless open. 0 or a negative errno. */
int mr_vc_open_guests(const struct mr_channel_ops *ops);
/* As mr_guest_number(); a virtual channel can then be made for that number. */
int mr_vc_meet(const struct mr_card *card);
void mr_vc_forget(int number); /* its virtual channel, if any: nothing refers to that */
/* Packets of some peers ring no bell: waiters take short naps, and do not sleep. */
extern MR_OWN bool mr_vc_unrung;

/* Opens our socket, if it is not open; *card: as others reach this process. 0 or a negative errno, already logged. */
int mr_stream_open(struct mr_card *card);
/* Ends the connection to a guest, behind all packets. */
void mr_stream_leave(struct mr_vc *vc);
/*
 * No connection leads to the guest or from it, and none comes: its process has ended, or is lost. Or no packet was ever
 * sent in either direction: then the two can meet as strangers again.
 */
bool mr_stream_has_left(const struct mr_vc *vc);
void mr_stream_forget(struct mr_vc *vc); /* then */
/* Guests on other hosts can be offered rails: the channel to other hosts is open. */
void mr_stream_offer_rails(void);
/* Opens the channel to other hosts, if it is not. 0 or a negative errno. */
int mr_vc_open_far(void);
const struct mr_guest_rails *mr_vc_far(void); /* NULL: that channel is not open, or carries nothing for guests */
/* Another channel carries the packets that follow. */
void mr_vc_change(struct mr_vc *vc, const struct mr_channel_ops *ops);
void mr_stream_railed(struct mr_vc *vc); /* the channel to other hosts has connected the guest */
/*
 * There is no way over rails any more. MR_UNRAILED_GOES_ON: the stream carries the packets from now on; those that are
 * not confirmed come first (mr_stream_send_again), in their order. MR_UNRAILED_LOST: so is the guest, which
 * mr_stream_lose tells when nothing is under way any more.
 */
enum mr_unrailed { MR_UNRAILED_CLOSED, MR_UNRAILED_GOES_ON, MR_UNRAILED_LOST };
enum mr_unrailed mr_stream_unrailed(struct mr_vc *vc, int error);
void mr_stream_send_again(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_stream_lose(struct mr_vc *vc, int error);
/* Asks the guest's process by TCP. mr_stream_answers: the process has answered the last question. */
void mr_stream_ask(struct mr_vc *vc);
bool mr_stream_answers(const struct mr_vc *vc);
/*
 * Around a sleep with the library's lock: guests of this node wake by the descriptor *fd (-1: none). False: a packet is
 * there. After true with a descriptor, mr_stream_rise follows.
 */
bool mr_stream_doze(int *fd);
void mr_stream_rise(void);

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Asks the channel for the packet limits. Returns eager_max, or the minimum of any peer if unknown. */
size_t mr_vc_learn_sizes(struct mr_vc *vc);
static inline size_t mr_vc_eager_max(struct mr_vc *vc) /* payload bytes of an eager packet */
{
    return likely(vc->eager_max != 0) ? vc->eager_max : mr_vc_learn_sizes(vc);
}
static inline size_t mr_vc_eager_most(struct mr_vc *vc) /* of a message that may come unasked, in such packets */
{
    size_t least = mr_vc_eager_max(vc);

    return likely(vc->eager_most != 0) ? vc->eager_most : least;
}
static inline size_t
mr_vc_part_max(struct mr_vc *vc) /* longer messages are cut: a part of the message in each packet */
{
    size_t max = mr_vc_eager_max(vc);

    return vc->part && vc->part < max ? vc->part : max;
}
size_t mr_vc_packet_max(struct mr_vc *vc); /* of the packets that a longer message is cut into */
static inline unsigned mr_vc_caps(const struct mr_vc *vc, size_t len) /* for a message of that length */
{
    return vc->ops ? vc->ops->caps(vc->rank, len) : 0;
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static inline void mr_vc_number(const struct mr_vc *vc, struct mr_hdr *hdr) /* as the next packet */
{
    hdr->note = vc->note;
    hdr->seq = vc->next_seq;
    hdr->src = vc->self;
}
/*
 * Sends one packet with no more payload than eager_max or packet_max, whichever is more. hdr and payload may be reused
 * on return: they are copied, inlined or queued. Returns 0 or negative errno (the peer is unreachable, no memory).
 */
static inline int mr_vc_send(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    int err;

    if (unlikely(vc->error))
        return vc->error;
    mr_vc_number(vc, hdr);
    err = vc->ops->send(vc, hdr, payload, len);
    if (likely(!err))
        vc->next_seq++;
    return err;
}
/*
 * The same for a payload not in one piece: make writes it, to the channel's memory if possible, else to scratch (len
 * bytes of the caller's). Called before the return, once.
 */
int mr_vc_send_made(struct mr_vc *vc, struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                    const void *what);
static inline bool mr_vc_is_used(const struct mr_vc *vc) /* packets have been sent, or have come */
{
    return vc->next_seq || vc->in.expected;
}
static inline uint32_t mr_vc_packets(const struct mr_vc *vc) /* given to mr_vc_send so far; wraps */
{
    return vc->next_seq;
}
/*
 * Packets to it waiting, as copies, for room or a connection. There is no bound: a sender of many packets polls first.
 */
static inline unsigned mr_vc_waiting(struct mr_vc *vc)
{
    return !vc->error && vc->ops->waiting ? vc->ops->waiting(vc) : 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/*
 * Make [buf, buf + len) reachable for the peer by the means how: to be written into (MR_VC_PUT, MR_VC_DATAGRAMS) or to
 * be read (MR_VC_GET, MR_VC_READ, MR_VC_READ_ONCE), or both (MR_VC_WINDOW, MR_VC_ATTACHED). Registers it, cached or
 * alone.
 */
static inline int mr_vc_advertise(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how,
                                  struct mr_region **region, struct mr_remote *out)
{
    int err = vc->error ? vc->error : vc->ops->advertise(vc, buf, len, how, region, out);

    if (!err)
        (*region)->channel = vc->ops;
    return err;
}
static inline void mr_vc_withdraw(struct mr_region *region)
{
    if (region)
        region->channel->withdraw(region);
}
/*
 * Before advertising a region for a put, the owner sets rreq, the argument of put_landed. (A notification carries 32
 * bits only: the region's token stands for rreq on the wire.)
 */
static inline void mr_vc_expect(struct mr_region *region, uint64_t rreq)
{
    region->rreq = rreq;
}
/*
 * Writes len bytes at buf into memory that the peer has advertised as a window's (MR_VC_WINDOW, MR_VC_ATTACHED), or
 * reads them from there, striped over the rails; the peer is not told. m->done follows, perhaps before this returns: by
 * then a write is in the peer's memory, and no copy of it could come later. buf stays unchanged until then. len > 0.
 */
static inline int mr_vc_move(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
                             struct mr_vc_move *m)
{
    if (vc->error)
        return vc->error;
    return vc->ops->move ? vc->ops->move(vc, buf, len, remote, write, m) : -EOPNOTSUPP;
}
/* Read from the peer's advertised memory now (process_vm_readv). 0, -EPERM: the kernel refuses, or negative errno. */
static inline int mr_vc_get(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset)
{
    if (vc->error)
        return vc->error;
    return vc->ops->get ? vc->ops->get(vc, buf, len, src, offset) : -EOPNOTSUPP;
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

/*
 * Packets to all peers waiting, as copies, for room or for a connection, with the sends that p2p/ holds back because of
 * them; counted by the channels and by p2p/. While 0, nothing need be checked.
 */
extern MR_OWN unsigned mr_channel_waiting;
/* So many times in a row no channel had anything to do; kept by vc.c. */
extern MR_OWN unsigned mr_channel_idle;

/* ---- shared memory: called by name by higher subsystems ---------------------------------------------------------- */

/*
 * Receives take messages out of rings, large messages are moved by both sides (shm_claim.h), and waiting
 * (p2p/progress/progress.c) sleeps until a peer on this node rings.
 */

/* After the launcher's fence: attaches to the node's memory. 0 or negative errno, already logged. */
int mr_shm_ready(void);

static inline bool mr_shm_reaches(const struct mr_vc *vc)
{
    return vc->ops == &mr_channel_shm;
}

/*
 * Of such a peer: the payload of the next packet, if it has come, is all of an eager message and is the wanted one (tag
 * negative: of any), and *hdr; it stays there until mr_shm_taken. NULL: none has come. MR_PEEK_OTHER: another packet,
 * left to a poll.
 */
const void *mr_shm_peek(struct mr_vc *vc, int rank, int tag, uint32_t ctx, struct mr_hdr *hdr);
void mr_shm_taken(struct mr_vc *vc); /* the message has been delivered */

/* Its process has ended: the packets that it has written are delivered, and the peer is lost. Not from a poll. */
void mr_shm_lose(struct mr_vc *vc);

/* Our claims, or the peer's, for messages to us, or to the peer, moved by both. */
struct mr_claims *mr_shm_claims(struct mr_vc *vc, bool ours);

/*
 * Chunks of this rank's pool for data that is not a packet's (shm_pool.h), for the readers `by`. True: c->first and
 * c->at, until the readers have read so far, or are reclaimed. False: there are none nearby.
 */
struct mr_shm_chunks {
    size_t most;          /* the caller's: bytes of the pool that are used, from its beginning */
    uint32_t next, first; /* where the search begins; the first one taken, as others know it */
    void *at;
    bool fresh; /* never written before */
};
bool mr_shm_chunks_take(struct mr_shm_chunks *c, size_t len, struct mr_reader *by, uint64_t number);
/* Of len bytes in the pool of that rank of the node; NULL: there can be none. */
void *mr_shm_chunks_at(int world_rank, uint32_t first, size_t len);
void mr_shm_chunks_reclaim(const struct mr_reader *by);
/*
 * The time to make the pages of this rank's pool that do not exist yet. The pools of peers are about as new. Of an
 * unused pool the first pages are made, and timed for the model (base/model.h).
 */
uint64_t mr_shm_pool_ns(void);

/* More ranks on this node than allowed cores: known once all of them are here, false until then. */
bool mr_shm_oversubscribed(void);

/* True if there are peers on this node, which ring. */
bool mr_shm_can_sleep(void);

/*
 * With a core for each rank, around sleeps: from mr_shm_doze to mr_shm_rise peers check whether this rank sleeps, at
 * some cost. Both with the library's lock.
 */
void mr_shm_doze(void);
void mr_shm_rise(void);

/*
 * Sleeps until a packet from this node arrives or the time is over. Called with the library's lock, which is released
 * meanwhile. False, at once, without sleeping: there is work, packets of ours wait for space in a ring, done (which may
 * check other memory; NULL: none) returned true, or a peer may not know yet that this rank sleeps: come back soon.
 */
bool mr_shm_sleep(uint32_t timeout_us, bool (*done)(void *arg), void *arg);

/* Read by senders: not 0 if any rank of the node sleeps, or may. */
extern MR_OWN const uint32_t *mr_shm_bell;

/* After the packet, or other memory, has been written. */
static inline bool mr_shm_bell_rings(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the compiler's order, shm_sleep.c tells of the processor's */
    return __atomic_load_n(mr_shm_bell, __ATOMIC_RELAXED);
}

void mr_shm_ring_local(int local); /* this rank of the node shall poll again, if it sleeps */
void mr_shm_ring_all(const int *world, int n);

/*
 * Tells these ranks of the node (world ranks) to check again: memory that they may wait for has changed. Changes
 * written before the call are seen by any rank that then goes to sleep.
 */
static inline void mr_shm_ring(const int *world, int n)
{
    if (unlikely(mr_shm_bell_rings()))
        mr_shm_ring_all(world, n);
}

/* Wakes the other sleeping threads of this process: one of them may wait for the event just found. */
void mr_shm_wake(void);

#endif
