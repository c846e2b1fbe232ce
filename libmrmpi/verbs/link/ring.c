/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections with rings: verbs.h explains, slots.h counts. */
#include "libmrmpi/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/link/connected.h"
#include "libmrmpi/verbs/up.h"
#include "libmrmpi/verbs/link/slots.h"
#include "libmrmpi/verbs/memory/memory.h"
#include "libmrmpi/verbs/link/packet.h"

#define PAGE  4096
#define BATCH 16 /* packets of a ring before the next one is polled */

_Static_assert(MR_ACK_WIRE_MAX + MR_SLOT_TRAILER <= MR_PACKET_SPARE, "an ACK and the trailer lie behind a packet");

enum state {
    NONE,
    OFFERED,
    USED,
    WITHDRAWN, /* the peer has not stopped yet */
    ENDING     /* all but the last packets, up to end, have been read */
};

/* Written by the peer: one page for each link, as long as it lives. */
struct words {
    uint32_t freed;                /* packets that the peer has read of its ring */
    _Alignas(64) uint32_t counter; /* packets that the peer has written into ours, if reported */
};

struct mr_ring_link {
    struct mr_link *link;
    /* from the peer */
    struct mr_slots_in in;
    const uint32_t *counter; /* NULL: the trailers are used */
    enum state state;
    uint32_t end;
    struct mr_memory slots_memory;
    struct mr_ring_link *next, **at; /* among the polled ones */
    /* to the peer */
    struct mr_slots_out out;
    bool writes, counts;
    uint64_t raddr;
    uint32_t rkey;
    /* of both */
    struct words *words;
    struct mr_memory words_memory;
    uint64_t peer_words;
    uint32_t peer_words_rkey;
    bool knows_words; /* the peer has reported their place */
};

static struct {
    enum mr_ring_design design;
    unsigned num;
    uint32_t size;
    struct mr_ring_link *polled;
    bool ending; /* one of them is */
} rings;
unsigned mr_rings_num;

void mr_rings_init(enum mr_ring_design design, unsigned num, size_t longest)
{
    rings.design = design;
    rings.num = mr_slots_num(num);
    rings.size = mr_slots_size(longest);
    rings.polled = NULL;
    rings.ending = false;
    mr_rings_num = 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Whole pages, so that nothing else is missing in a forked child. */
static void *ring_memory_take(size_t bytes, struct mr_memory *memory)
{
    size_t pages = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    void *at = aligned_alloc(PAGE, pages);

    if (!at)
        return NULL;
    memset(at, 0, pages);
    if (!mr_memory_register(at, pages, MR_ACCESS_TARGET, memory))
        return at;
    free(at);
    return NULL;
}

static void ring_memory_give_back(void *at, struct mr_memory *memory)
{
    if (at)
        mr_memory_deregister(memory);
    free(at);
}

static struct mr_ring_link *ring_get(struct mr_link *l)
{
    struct mr_ring_link *r = l->ring ? l->ring : calloc(1, sizeof *r);

    if (!r || l->ring)
        return r;
    r->link = l;
    r->words = ring_memory_take(sizeof *r->words, &r->words_memory);
    if (!r->words) {
        free(r);
        return NULL;
    }
    return l->ring = r;
}

static void free_slots(struct mr_ring_link *r)
{
    if (r->state == NONE)
        return;
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
    mr_rings_num--;
    ring_memory_give_back(r->in.at, &r->slots_memory);
    r->in.at = NULL;
    r->state = NONE;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

int mr_ring_make(struct mr_link *l, struct mr_ring_says *out)
{
    size_t bytes = (size_t)rings.num * rings.size;
    struct mr_ring_link *r = ring_get(l);
    void *at = r && r->state == NONE ? ring_memory_take(bytes, &r->slots_memory) : NULL;

    if (!at)
        return -ENOMEM;
    r->state = OFFERED;
    r->counter = rings.design == MR_RING_BASIC ? &r->words->counter : NULL;
    mr_slots_begin(&r->in, rings.num, rings.size, r->counter != NULL, at);
    r->at = &rings.polled;
    r->next = rings.polled;
    if (r->next)
        r->next->at = &r->next;
    rings.polled = r;
    mr_rings_num++;
    *out = (struct mr_ring_says){.slots_addr = (uintptr_t)at,
                                 .slots_rkey = mr_memory_rkey(&r->slots_memory, l->rail),
                                 .words_addr = (uintptr_t)r->words,
                                 .words_rkey = mr_memory_rkey(&r->words_memory, l->rail),
                                 .num = rings.num,
                                 .size = rings.size,
                                 .counts = r->counter != NULL};
    return 0;
}

bool mr_ring_exists(const struct mr_link *l)
{
    return l->ring && l->ring->state != NONE;
}

bool mr_ring_in_use(const struct mr_link *l)
{
    return l->ring && l->ring->state == USED;
}

void mr_ring_drop(struct mr_link *l)
{
    free_slots(l->ring);
}

static void learn_words(struct mr_ring_link *r, const struct mr_ring_says *says)
{
    r->peer_words = says->words_addr;
    r->peer_words_rkey = says->words_rkey;
    r->knows_words = true;
}

void mr_ring_accepted(struct mr_link *l, const struct mr_ring_says *says)
{
    if (!l->ring || l->ring->state != OFFERED)
        return;
    learn_words(l->ring, says);
    l->ring->state = USED;
}

void mr_ring_withdraw(struct mr_link *l)
{
    if (mr_ring_in_use(l))
        l->ring->state = WITHDRAWN;
}

/* Not freed at once: the control message may have come by this very ring, or wait for packets there. */
void mr_ring_ended(struct mr_link *l, uint32_t count)
{
    if (!mr_ring_exists(l))
        return;
    l->ring->state = ENDING;
    l->ring->end = count;
    rings.ending = true;
}

/* So much is free of the ring; no room now: at the next poll. */
static void tell_freed(struct mr_ring_link *r)
{
    if (r->state != USED || r->link->state != MR_LINK_OPEN || !r->knows_words)
        return;
    if (mr_connected_write_u32(r->link, r->in.read, r->peer_words + offsetof(struct words, freed), r->peer_words_rkey))
        return;
    r->in.told = r->in.read;
    mr_stat_add(MR_STAT_RING_CREDITS, 1);
}

static inline __attribute__((always_inline)) int poll_ring(struct mr_ring_link *r)
{
    struct mr_slot_trailer t;
    int n = 0;

    while (n < BATCH && mr_slots_poll(&r->in, r->counter, &t)) {
        const void *packet = mr_slots_packet(&r->in, &t);

        if (r->writes)
            mr_slots_freed16(&r->out, t.freed);
        if (unlikely(!packet)) {
            mr_log(MR_LOG_WARN, "rail %u: a packet of %u bytes in a ring cannot be: dropped", r->link->rail->index,
                   t.len);
        } else {
            mr_rail_add(r->link->rail, MR_RAIL_PACKETS_RECEIVED, 1);
            mr_rail_add(r->link->rail, MR_RAIL_BYTES_RECEIVED, t.len);
            mr_verbs_up.packet(r->link->rail, packet, t.len);
        }
        mr_slots_next(&r->in);
        n++;
    }
    return n;
}

static __attribute__((noinline)) void end_rings(void)
{
    struct mr_ring_link *r, *next;

    rings.ending = false;
    for (r = rings.polled; r; r = next) {
        next = r->next;
        if (r->state != ENDING)
            continue;
        if (r->in.read == r->end)
            free_slots(r);
        else
            rings.ending = true;
    }
}

int mr_rings_poll(void)
{
    int n = 0;

    for (struct mr_ring_link *r = rings.polled; r; r = r->next) {
        n += poll_ring(r);
        if (unlikely(mr_slots_owes(&r->in)))
            tell_freed(r);
    }
    if (unlikely(rings.ending))
        end_rings();
    return n;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

int mr_ring_accept(struct mr_link *l, const struct mr_ring_says *offer, struct mr_ring_says *out)
{
    struct mr_ring_link *r;

    if (!mr_slots_sane(offer->num, offer->size))
        return -EINVAL;
    r = ring_get(l);
    if (!r || r->writes)
        return r ? -EINVAL : -ENOMEM;
    r->out.num = offer->num;
    r->out.size = offer->size;
    r->raddr = offer->slots_addr;
    r->rkey = offer->slots_rkey;
    r->counts = offer->counts;
    learn_words(r, offer);
    r->writes = true;
    *out = (struct mr_ring_says){.words_addr = (uintptr_t)r->words,
                                 .words_rkey = mr_memory_rkey(&r->words_memory, l->rail)};
    return 0;
}

uint32_t mr_ring_stop(struct mr_link *l)
{
    if (!l->ring)
        return 0;
    l->ring->writes = false;
    l->ring->out.freed = l->ring->out.sent; /* the ring is read to its end before there is another */
    return l->ring->out.sent;
}

/* No room is known of: the peer may have told of some by a write. */
static __attribute__((noinline)) bool is_full(struct mr_ring_link *r)
{
    mr_slots_freed(&r->out, __atomic_load_n(&r->words->freed, __ATOMIC_ACQUIRE));
    if (mr_slots_full(&r->out))
        mr_stat_add(MR_STAT_RING_FULL, 1);
    return mr_slots_full(&r->out);
}

/* The packet, and then the count of packets: that of this packet, for any later posts. */
static __attribute__((noinline)) int ring_put_with_counter(struct mr_ring_link *r, struct mr_packet *p, size_t len,
                                                           uint64_t raddr, uint32_t lkey)
{
    struct mr_qp *qp = &r->link->qp;
    uint32_t counter = r->out.sent + 1;
    int err;

    if (!mr_qp_has_room(qp, 2))
        return -EAGAIN;
    err = mr_qp_put(qp, p->data, len, lkey, raddr, r->rkey, false, NULL);
    if (err)
        return err;
    p->tx.wr.done = mr_connected_packet_done;
    err = mr_qp_put(qp, &counter, sizeof counter, 0, r->peer_words + offsetof(struct words, counter),
                    r->peer_words_rkey, true, &p->tx);
    p->posted = !err;
    return err;
}

static int ring_put(struct mr_ring_link *r, struct mr_packet *p, size_t size)
{
    struct mr_qp *qp = &r->link->qp;
    size_t len = size + MR_SLOT_TRAILER;
    uint64_t raddr = r->raddr + mr_slots_place(&r->out, size);
    struct mr_tx *tx = NULL;
    uint32_t lkey = 0;
    int err;

    mr_slots_trailer(&r->out, size, r->in.read, p->data + size);
    if (len > qp->max_inline)
        lkey = mr_packet_lkey(p, r->link->rail);
    if (unlikely(r->counts))
        return ring_put_with_counter(r, p, len, raddr, lkey);
    if (len > qp->max_inline || mr_qp_must_signal(qp)) {
        p->tx.wr.done = mr_connected_packet_done;
        tx = &p->tx;
    }
    err = mr_qp_put(qp, p->data, len, lkey, raddr, r->rkey, true, tx);
    p->posted = tx && !err;
    return err;
}

static int ring_send(struct mr_link *l, struct mr_packet *p)
{
    struct mr_ring_link *r = l->ring;
    size_t size = p->size + p->ack_len;
    int err;

    if (!r || !r->writes || p->zsend.from || !mr_slots_fits(&r->out, size) || (mr_slots_full(&r->out) && is_full(r)))
        return mr_connected_send(l, p);
    if (unlikely(!mr_qp_has_room(&l->qp, 1)))
        return -EAGAIN;
    err = ring_put(r, p, size);
    if (unlikely(err))
        return err;
    r->out.sent++;
    r->in.told = r->in.read; /* the trailer has it */
    mr_stat_add(MR_STAT_RING_SENT, 1);
    return 0;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Both directions, at once. read: first hands up arrivals. Nothing can land any more. */
static void close_rings(struct mr_link *l, bool read)
{
    struct mr_ring_link *r = l->ring;

    if (!r)
        return;
    while (read && r->state != NONE && poll_ring(r))
        ;
    free_slots(r);
    ring_memory_give_back(r->words, &r->words_memory);
    free(r);
    l->ring = NULL;
}

static int ring_open(struct mr_link *l, struct mr_rail *rail)
{
    return mr_connected_open(l, rail, MR_QP_RC);
}

static void ring_close(struct mr_link *l)
{
    mr_connected_close(l);
    close_rings(l, false);
}

/* The peer cannot have been offered anything yet. */
static void ring_leave(struct mr_link *l)
{
    mr_connected_leave(l);
    close_rings(l, false);
}

static void ring_emptied(struct mr_link *l)
{
    close_rings(l, true);
}

const struct mr_link_ops mr_link_ring = {
    .open = ring_open,
    .connect = mr_connected_connect,
    .send = ring_send,
    .write = mr_connected_write,
    .write_list = mr_connected_write_list,
    .atomic = mr_connected_atomic,
    .read = mr_connected_read,
    .keepalive = mr_connected_keepalive,
    .ask = mr_connected_ask,
    .flush = mr_connected_keepalive,
    .drain = mr_connected_drain,
    .close = ring_close,
    .leave = ring_leave,
    .emptied = ring_emptied,
};
