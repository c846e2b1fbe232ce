/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link is one way to one peer over one rail, one LID path and one service level. Each kind of link is one file with
 * one struct mr_link_ops, and one row of kinds.def. conn/peer/ opens links, chooses among the links to a peer, and
 * keeps order and uniqueness: a link knows no sequence numbers, no matching and no other link.
 *
 * Life: MR_LINK_CLOSED -> open() -> MR_LINK_OPENING -> connect() -> MR_LINK_OPEN -> an error or drain() ->
 * MR_LINK_BROKEN, while posted work comes back -> drained() -> MR_LINK_CLOSED, and open() works again. Callers hold the
 * library's lock; upcalls come out of mr_verbs_poll() only.
 */
#ifndef MRMPI_LINK_H
#define MRMPI_LINK_H

#include <sys/types.h>

#include "libmrmpi/verbs/link/kinds.h"
#include "libmrmpi/verbs/link/packet.h"
#include "libmrmpi/verbs/post.h"

enum mr_link_state { MR_LINK_CLOSED, MR_LINK_OPENING, MR_LINK_OPEN, MR_LINK_BROKEN };

struct mr_link;

/* The upcalls to the owner of a link. */
struct mr_link_events {
    /* Native links: the n oldest unconfirmed packets are with the peer. */
    void (*confirmed)(struct mr_link *l, unsigned n);
    /* The first request failed: the link is MR_LINK_BROKEN now, and wants to be drained. */
    void (*failed)(struct mr_link *l, const struct mr_wc *wc);
    /*
     * All posted requests have come back: the adapter no longer touches their memory. The link is MR_LINK_CLOSED now.
     */
    void (*drained)(struct mr_link *l);
    /* Before that: the queue pair of a reliable link, for mr_qp_keep(). False: it goes away. NULL: always. */
    bool (*left)(struct mr_link *l, struct mr_qp *qp);
};

/* The other end of a link, and how to get there. */
struct mr_link_end {
    const struct mr_rail_addr *addr;
    uint32_t qpn, local_psn, remote_psn; /* of the peer's queue pair for this link */
    uint8_t sl, path;                    /* path: LID path bits on both sides */
};

/* One part of a large transfer. */
struct mr_link_part {
    void *local; /* only read from by a write */
    uint64_t len, raddr;
    uint32_t lkey, rkey;
    const uint32_t *imm; /* write: the peer gets a notification; NULL: no notification */
    bool wakes;          /* needs a completion when done, even if nobody waits */
};

/* Short writes to one region; data longer than qp.max_inline is in memory with this lkey. */
struct mr_link_list {
    const struct mr_short_write *one;
    unsigned num;
    uint32_t rkey, lkey;
};

/* An atomic change in the peer's memory, which begins at raddr, and a read; the result is in memory with this lkey. */
struct mr_link_atomic {
    const struct mr_atomic *atomic;
    uint64_t raddr;
    uint32_t rkey, lkey;
};

/*
 * Datagrams for a queue pair of the peer that waits for them (verbs/pool.c): MR_QP_RUN at most, each with size bytes of
 * data, except perhaps the last. The poster embeds a struct mr_link_run; done() is called when they have left, or never
 * will.
 */
struct mr_link_run {
    struct mr_tx tx;
    struct mr_link *link;
    struct mr_link_run *next, **at; /* among the posted runs of its link */
    void (*done)(struct mr_link_run *run);
};
struct mr_link_datagram {
    struct mr_piece data;
    uint32_t size, imm; /* imm: of the first; counts up */
    uint32_t qpn, qkey;
};

/* Its traits (kinds.h) say which optional operations a kind has. */
struct mr_link_ops {
    /* Make this end on the rail. Sets l->qpn; 0 or negative errno. */
    int (*open)(struct mr_link *l, struct mr_rail *rail);
    int (*connect)(struct mr_link *l, const struct mr_link_end *to);
    /*
     * Posts one packet; the packet must not change while p->posted, nor until it is confirmed or the link has drained.
     * -EAGAIN: no room now.
     */
    int (*send)(struct mr_link *l, struct mr_packet *p);
    /*
     * RDMA; NULL: the link has none. tx comes back when this part and all earlier parts are done; NULL: nobody waits.
     * -EAGAIN: no room. A part has l->rail->max_msg bytes at most.
     */
    int (*write)(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx);
    int (*read)(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx);
    /*
     * Short writes, as one list, or as many of them as there is room for: *posted, also after an error. tx comes back
     * when they and all earlier requests are done. NULL: the link has none. -EAGAIN: no room.
     */
    int (*write_list)(struct mr_link *l, const struct mr_link_list *list, struct mr_tx *tx, unsigned *posted);
    /*
     * An atomic change of the peer's memory by its adapter. NULL: the link has none. tx comes back when done, if the
     * adapters at both ends have atomics; after an error the change may have been made. -EAGAIN: no room.
     */
    int (*atomic)(struct mr_link *l, const struct mr_link_atomic *w, struct mr_tx *tx);
    /*
     * Datagrams without a header of ours. NULL: the link has none. Returns the number of posted bytes of d->data, full
     * datagrams or all of it; -EAGAIN: no room.
     */
    ssize_t (*run)(struct mr_link *l, const struct mr_link_datagram *d, struct mr_link_run *run);
    /* Ask the peer's adapter for a sign of life: without one the link fails. -EAGAIN: not now. NULL: nothing answers.
     */
    int (*keepalive)(struct mr_link *l);
    /*
     * Finds out whether all posted requests are done: confirmed() follows. NULL: confirmed() comes without a request.
     */
    int (*flush)(struct mr_link *l);
    /* Gives up: posted requests come back flushed, then drained() is called. */
    void (*drain)(struct mr_link *l);
    /* Takes the link away at once, with requests posted or not; for the end. */
    void (*close)(struct mr_link *l);
    /* The same for a link on which nothing was ever posted; arrivals are still handed up. */
    void (*leave)(struct mr_link *l);
    /* Before drained(): nothing can land any more by its queue pair. NULL: nothing is left to be done then. */
    void (*emptied)(struct mr_link *l);
};

/* The state of a link without a queue pair of its own. */
struct mr_link_datagrams {
    struct mr_qp *qp; /* the rail's */
    struct mr_ud_to to;
    uint32_t mtu;
    unsigned posted; /* packets and runs of this link that have not come back */
    struct mr_link_run *runs;
    struct mr_later later;
};

struct mr_link {
    const struct mr_link_ops *ops;
    const struct mr_link_events *events;
    void *owner;
    struct mr_rail *rail;
    enum mr_link_state state;
    uint8_t kind;  /* enum mr_link_kind. Set by the owner, like ops */
    uint8_t index; /* the owner's number of the link */
    uint8_t sl, path;
    uint16_t pkey; /* the rail's: its partition. Set by the owner, like ops */
    bool bulk;     /* for large messages. Set by the owner, like native */
    bool deep;     /* its send queue is deep: packets wait long for their turn in the fabric. Set by the owner */
    bool lossy;    /* packets are lost on its way (mr_qp.lossy). Set by the owner */
    bool native;   /* its packets need no acknowledgement beside confirmed() */
    uint32_t qpn;
    bool keepalive_sent; /* and not done yet */
    uint8_t stuck;       /* conn/silence.c: looks in a row without progress of its traffic */
    bool owed;           /* the same: a signaled request had not come back when it was first stuck */
    uint32_t seen;       /* the same: the progress by then */
    struct mr_tx keepalive;
    struct mr_ring_link *ring; /* verbs/link/ring.h; NULL: none, in either direction */
    union {
        struct mr_qp qp;
        struct mr_link_datagrams ud;
    };
};

#define MR_LINK_DEEP  4u    /* times the usual depth of a send queue, */
#define MR_LINK_SHORT 2048u /* for packets up to so many bytes: more long packets under way would only fill buffers */

/* A deep link takes no packet of that length now. */
static inline bool mr_link_is_deep_enough(const struct mr_link *l, size_t len)
{
    return l->deep && len > MR_LINK_SHORT && l->qp.room <= l->qp.depth - l->qp.depth / MR_LINK_DEEP;
}

#define MR_KIND(id, name, ops, traits, help) extern const struct mr_link_ops ops;
#include "libmrmpi/verbs/link/kinds.def"
#undef MR_KIND
extern const struct mr_link_ops *const mr_link_ops[MR_LINK_KINDS];

#endif
