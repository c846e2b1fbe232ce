/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path of a packet through the send window (window.h): pushed, sent, confirmed. Inline, because every short message
 * passes here; rare cases are in window.c.
 */
#ifndef MRMPI_WINDOW_PATH_H
#define MRMPI_WINDOW_PATH_H

#include <errno.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/conn/reliable/window.h"

int mr_window_grow(struct mr_window *w);
int mr_window_make_room(struct mr_window *w, unsigned num); /* the next num pushes will not fail: 0, or -ENOMEM */
void mr_window_advance(struct mr_window *w);
void mr_window_sent_again(struct mr_window *w, struct mr_kept *k);
struct mr_kept *mr_window_confirmed_more(struct mr_window *w, unsigned link, unsigned n);

/* k->len is set. 0 and k->seq is its number, or -ENOMEM and nothing has changed. */
static inline int mr_window_push(struct mr_window *w, struct mr_kept *k)
{
    if (unlikely(w->next - w->base == w->mask) && mr_window_grow(w) < 0)
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

/* The oldest waiting packet that may go now, repetitions first; NULL: none. It stays until mr_window_sent. */
static inline struct mr_kept *mr_window_ready(const struct mr_window *w)
{
    if (unlikely(w->again != NULL))
        return w->again->seq - w->base < w->limit ? w->again : NULL;
    if (w->fresh == w->next || w->fresh - w->base >= w->limit)
        return NULL;
    return w->slot[w->fresh & w->mask];
}

/* The last posted on the link. */
static inline void mr_window_append(struct mr_window_link *l, struct mr_kept *k)
{
    k->turn = l->posted++;
    k->next = NULL;
    k->prev = l->tail;
    if (l->tail)
        l->tail->next = k;
    else
        l->head = k;
    l->tail = k;
}

/*
 * The packet of mr_window_ready has been posted on a link. native: the link itself confirms it. All packets of a link
 * are of one kind until mr_window_link_lost. now_ns may be 0: the packet then gives no sample of the round-trip time,
 * and on a lossy link mr_window_check has to be called before mr_window_expired and mr_window_deadline, and before a
 * packet with a time goes over that link.
 */
static inline void mr_window_sent(struct mr_window *w, struct mr_kept *k, unsigned link, bool native, uint64_t now_ns)
{
    struct mr_window_link *l = &w->link[link];

    if (likely(k->seq == w->fresh)) {
        w->fresh++;
        k->tries = 1;
    } else {
        mr_window_sent_again(w, k);
    }
    k->link = (uint8_t)link;
    k->state = MR_KEPT_SENT;
    k->sent_ns = now_ns;
    mr_window_append(l, k);
    if (!native)
        w->lossy |= 1ull << link;
}

/* As many are under way as may be, or as the ring holds. */
static inline bool mr_window_is_full(const struct mr_window *w)
{
    return w->next - w->base >= w->clear;
}

/* Nothing waits, and the next packet may go as soon as it is there: mr_window_post. */
static inline bool mr_window_is_clear(const struct mr_window *w)
{
    return w->fresh == w->next && !w->again && !mr_window_is_full(w);
}

/*
 * The same as mr_window_push and mr_window_sent, for a packet just posted on a native link. The maxima are not renewed:
 * they count packets that wait for acknowledgements.
 */
static inline void mr_window_post(struct mr_window *w, struct mr_kept *k, unsigned link)
{
    struct mr_window_link *l = &w->link[link];

    k->seq = w->next;
    w->slot[k->seq & w->mask] = k;
    w->fresh = w->next = k->seq + 1;
    w->bytes += k->len;
    w->num++;
    k->link = (uint8_t)link;
    k->state = MR_KEPT_SENT;
    k->tries = 1;
    k->blind = false;
    k->sent_ns = 0;
    mr_window_append(l, k);
}

/*
 * A native link reports that the next n of its packets are with the peer. Packets that the peer has acknowledged before
 * count among the n. Returns the packets given back.
 */
static inline struct mr_kept *mr_window_confirmed(struct mr_window *w, unsigned link, unsigned n)
{
    struct mr_window_link *l;
    struct mr_kept *k;

    if (unlikely(link >= w->num_links))
        return NULL;
    l = &w->link[link];
    k = l->head;
    if (unlikely(n != 1 || !k || k->turn != l->passed || k->seq != w->base || w->lossy & 1ull << link))
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

/* A packet without a number was posted on the link, which confirms it like the others if native. */
static inline void mr_window_unnumbered(struct mr_window *w, unsigned link)
{
    w->link[link].posted++;
}

#endif
