/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send window of one direction of a virtual channel: packets handed over by the caller and not yet confirmed. Pure:
 * no network, no clock, no locks; times are the caller's.
 *
 * A packet gets its sequence number here (32 bits, wrapping) and keeps it, whichever links it takes and how often. A
 * packet is confirmed in one of two ways:
 * - A native link (RC) confirms its packets in the order of posting (mr_window_confirmed).
 * - For a lossy link (UC, UD) only the peer's acknowledgement counts (loss.h mr_window_acked), which may name packets
 *   of native links too. A packet of a lossy link without a timely acknowledgement is sent again (mr_window_expired).
 *   Confirmed packets are given back at once, even while older ones are missing: a slow link holds only its own memory.
 */
#ifndef MRMPI_WINDOW_H
#define MRMPI_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/kept.h"
#include "libmrmpi/conn/reliable/rtt.h"

#define MR_WINDOW_LINKS      64
#define MR_WINDOW_LIMIT_MAX  32767 /* packets in flight */
#define MR_WINDOW_SLOTS_KEEP 1024  /* a larger empty ring is freed */

struct mr_window_link {
    struct mr_kept *head, *tail; /* in flight, in the order of posting */
    uint32_t posted;             /* number of packets, ever; wraps */
    uint32_t passed;             /* native: how many of them are confirmed; lossy: 1 + the highest turn acknowledged */
    uint32_t overdue;            /* lossy: time-outs of packets sent after the last packet known to have arrived */
    uint32_t
        contradicted;    /* the time-outs of packets with or after which another link took a packet that has arrived */
    uint32_t answers;    /* of the peer, to later questions; one for each of these time-outs at most */
    uint32_t answered;   /* the number of time-outs at the last answer */
    uint64_t overdue_ns; /* the time of the first of these packets */
    uint64_t counted_ns; /* the time of the last */
    uint64_t proved_ns;  /* when the latest packet that proved the link was sent */
};

struct mr_window {
    uint32_t base;  /* the oldest unconfirmed packet */
    uint32_t next;  /* of the next push */
    uint32_t limit; /* packets with seq - base >= limit are not sent; 1 to MR_WINDOW_LIMIT_MAX */
    uint32_t mask;  /* slots of the ring - 1, as many as it holds; 0: no ring */
    uint32_t clear; /* the lesser of limit and mask */
    uint32_t fresh; /* the oldest packet never sent */
    uint32_t num;   /* packets kept */
    uint32_t num_again;
    uint32_t num_links;          /* with places: mr_window_reserve */
    uint64_t lossy;              /* set of links: bit i is link i */
    struct mr_kept **slot;       /* by seq; NULL: confirmed */
    struct mr_window_link *link; /* [num_links] */
    struct mr_kept *again;       /* to be sent again, ascending */
    uint64_t bytes;              /* of the packets kept */
    struct mr_rtt rtt;
    uint64_t expired_ns; /* the last time-out */
    uint64_t rest_ns;    /* no time-out before */
    bool probing;        /* the peer has not been heard of since */
    /* counters; the maxima are those at a push */
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
 * Places for links 0 to links - 1, before their first use; places in use are unchanged. 0 or -ENOMEM. A peer has a few
 * links and there are many peers, so there are only the requested places.
 */
int mr_window_reserve(struct mr_window *w, unsigned links);
/* The peer allows so many packets in flight; less than 1 counts as 1, which serves as a probe of a full receiver. */
void mr_window_set_limit(struct mr_window *w, unsigned limit);

static inline unsigned mr_window_waiting(const struct mr_window *w)
{
    return w->num_again + (w->next - w->fresh);
}

#endif
