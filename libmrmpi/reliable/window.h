/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send window of one direction of a virtual channel: the packets that the caller has handed over and that are not
 * yet confirmed. Pure: no network, no clock, no locks; times are the caller's.
 *
 * A packet gets its sequence number here (32 bits, wrapping) and keeps it, whichever links it takes and how often. It
 * is confirmed in one of two ways:
 * - A native link (RC) confirms its packets in the order in which they were posted on it (mr_window_confirmed).
 * - For a lossy link (UC, UD) only the peer's acknowledgement counts (loss.h mr_window_acked), which may name
 * packets of native links too. A packet of a lossy link that is not acknowledged in time is sent again
 * (mr_window_expired).
 * Confirmed packets are given back at once, even while older ones are missing: a slow link holds only its own memory.
 */
#ifndef MRMPI_WINDOW_H
#define MRMPI_WINDOW_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/reliable/kept.h"
#include "libmrmpi/reliable/rtt.h"

#define MR_WINDOW_LINKS      64
#define MR_WINDOW_LIMIT_MAX  32767 /* packets in flight */
#define MR_WINDOW_SLOTS_KEEP 1024  /* an empty ring that is larger is freed */

struct mr_window_link {
    struct mr_kept *head, *tail; /* in flight, in the order of posting */
    uint32_t posted;             /* number of packets, ever; wraps */
    uint32_t passed;             /* native: how many of them are confirmed; lossy: 1 + the highest turn acknowledged */
    uint32_t overdue;    /* lossy: time-outs of packets sent after the last one that it is known to have brought */
    uint32_t answers;    /* of the peer, to questions that were asked after */
    uint64_t overdue_ns; /* the first packet of those was sent */
    uint64_t counted_ns; /* the last of them */
    uint64_t proved_ns;  /* when the latest packet that proved the link was sent */
};

struct mr_window {
    uint32_t base;  /* the oldest that is not confirmed */
    uint32_t fresh; /* the oldest that was never sent */
    uint32_t next;  /* of the next push */
    uint32_t limit; /* packets with seq - base >= limit are not sent; 1 to MR_WINDOW_LIMIT_MAX */
    uint32_t mask;  /* slots of the ring - 1, as many as it holds; 0: no ring */
    uint32_t num;   /* packets kept */
    uint32_t num_again;
    uint32_t num_links;          /* that there are places for: mr_window_reserve */
    uint64_t lossy;              /* set of links: bit i is link i */
    struct mr_kept **slot;       /* by seq; NULL: confirmed */
    struct mr_window_link *link; /* [num_links] */
    struct mr_kept *again;       /* to be sent again, ascending */
    uint64_t bytes;              /* of the packets kept */
    struct mr_rtt rtt;
    uint64_t expired_ns; /* the last time-out */
    uint64_t rest_ns;    /* no time-out before */
    bool probing;        /* the peer has not been heard of since */
    /* counters */
    uint32_t num_most;
    uint64_t bytes_most;
    uint64_t resent, timeouts, gaps;
};

/* limit: packets in flight. Allocates nothing. */
void mr_window_init(struct mr_window *w, unsigned limit);
/* Gives back all that is kept, ascending. The window is then as after mr_window_init. */
struct mr_kept *mr_window_free(struct mr_window *w);
/* Before the first push: the number of the first packet, if it is not 0. */
void mr_window_start(struct mr_window *w, uint32_t seq);
/*
 * Places for links 0 to links - 1, before anything is said of them; those that are in use stay as they are. 0 or
 * -ENOMEM. A peer has a few links and there are many peers, so there are no more places than are asked for.
 */
int mr_window_reserve(struct mr_window *w, unsigned links);
/* The peer grants so many packets in flight; less than 1 counts as 1, which serves as a probe of a full receiver. */
void mr_window_set_limit(struct mr_window *w, unsigned limit);

static inline unsigned mr_window_waiting(const struct mr_window *w)
{
    return w->num_again + (w->next - w->fresh);
}

/* ---- the path of a packet -------------------------------------------------------------------------------------- */

int mr_window_grow(struct mr_window *w);
int mr_window_make_room(struct mr_window *w, unsigned num); /* the next num pushes will not fail: 0, or -ENOMEM */
void mr_window_advance(struct mr_window *w);
void mr_window_sent_again(struct mr_window *w, struct mr_kept *k);
struct mr_kept *mr_window_confirmed_more(struct mr_window *w, unsigned link, unsigned n);

/* k->len is set. 0 and k->seq is its number, or -ENOMEM and nothing has changed. */
static inline int mr_window_push(struct mr_window *w, struct mr_kept *k)
{
    if (__builtin_expect(w->next - w->base == w->mask, 0) && mr_window_grow(w) < 0)
        return -ENOMEM;
    k->seq = w->next++;
    k->state = MR_KEPT_WAITING;
    k->tries = 0;
    k->blind = false;
    w->slot[k->seq & w->mask] = k;
    w->bytes += k->len;
    if (++w->num > w->num_most)
        w->num_most = w->num;
    if (w->bytes > w->bytes_most)
        w->bytes_most = w->bytes;
    return 0;
}

/* The oldest that waits and may go now, those to be sent again first; NULL: none. It stays until mr_window_sent. */
static inline struct mr_kept *mr_window_ready(const struct mr_window *w)
{
    if (__builtin_expect(w->again != NULL, 0))
        return w->again->seq - w->base < w->limit ? w->again : NULL;
    if (w->fresh == w->next || w->fresh - w->base >= w->limit)
        return NULL;
    return w->slot[w->fresh & w->mask];
}

/*
 * The packet that mr_window_ready gave has been posted on a link. native: the link itself confirms it. All packets of a
 * link are of one kind until mr_window_link_lost. now_ns may be 0: the packet then gives no sample of the round-trip
 * time, and on a lossy link mr_window_look has to be called before mr_window_expired and mr_window_deadline, and before
 * a packet with a time goes over that link.
 */
static inline void mr_window_sent(struct mr_window *w, struct mr_kept *k, unsigned link, bool native, uint64_t now_ns)
{
    struct mr_window_link *l = &w->link[link];

    if (__builtin_expect(k->seq == w->fresh, 1)) {
        w->fresh++;
        k->tries = 1;
    } else {
        mr_window_sent_again(w, k);
    }
    k->link = (uint8_t)link;
    k->state = MR_KEPT_SENT;
    k->sent_ns = now_ns;
    k->turn = l->posted++;
    k->next = NULL;
    k->prev = l->tail;
    if (l->tail)
        l->tail->next = k;
    else
        l->head = k;
    l->tail = k;
    if (!native)
        w->lossy |= 1ull << link;
}

/*
 * A native link says that the next n of the packets posted on it are with the peer. Those that the peer has
 * acknowledged before count among the n. Returns the packets that are given back.
 */
static inline struct mr_kept *mr_window_confirmed(struct mr_window *w, unsigned link, unsigned n)
{
    struct mr_window_link *l;
    struct mr_kept *k;

    if (__builtin_expect(link >= w->num_links, 0))
        return NULL;
    l = &w->link[link];
    k = l->head;
    if (__builtin_expect(n != 1 || !k || k->turn != l->passed || k->seq != w->base || w->lossy & 1ull << link, 0))
        return mr_window_confirmed_more(w, link, n);
    l->passed++;
    l->head = k->next;
    if (k->next)
        k->next->prev = NULL;
    else
        l->tail = NULL;
    k->state = MR_KEPT_DONE;
    k->next = NULL;
    w->bytes -= k->len;
    w->num--;
    w->base++;
    if (w->base == w->next ? w->mask >= MR_WINDOW_SLOTS_KEEP : !w->slot[w->base & w->mask])
        mr_window_advance(w);
    return k;
}

/* Are packets under way on the link that are not confirmed? */
static inline bool mr_window_link_busy(const struct mr_window *w, unsigned link)
{
    return link < w->num_links && w->link[link].head;
}

/* A packet without a number was posted on the link, which confirms it like the others if it is native. */
static inline void mr_window_unnumbered(struct mr_window *w, unsigned link)
{
    w->link[link].posted++;
}

#endif
