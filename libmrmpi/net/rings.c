/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers with a ring here (verbs/link/ring.c): those with the most packets exchanged, MRMPI_RING_PEERS of them, because
 * each ring takes memory and a check at every poll. The receiver decides, for itself. A deserving peer is offered a
 * ring for each subchannel of kind ring, on the link of small messages. If another peer deserves a ring more, by the
 * rule of quota.h, the least useful peer's rings are withdrawn first.
 *
 * Offers go in packets of the virtual channel, so they come once and in order. They name the generation of the
 * subchannel: an offer for a broken subchannel is out of date.
 */
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/conn/conn.h"

enum ring_control {
    RING_OFFER,    /* write into this */
    RING_ACCEPT,   /* I do */
    RING_WITHDRAW, /* write no more */
    RING_END,      /* I do not, or no more: after count packets */
    RING_CONTROLS
};

static struct mr_link *link_of(struct mr_sub *sub)
{
    return sub->level[MR_LEVEL_SMALL];
}

static bool send_ring_control(struct mr_sub *sub, enum ring_control kind, const struct mr_ring_says *what)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_RING, .rank = (int32_t)kind, .tag = mr_sub_tag(sub, sub->generation)};

    return !mr_vc_send_control(sub->peer->vc, &hdr, what, sizeof *what);
}

/* ---- one subchannel ---------------------------------------------------------------------------------------------- */

static bool can_have_ring(const struct mr_sub *sub)
{
    return mr_kind_is(sub->kind, MR_IS_RING) && sub->state == MR_SUB_OPEN && !mr_sub_retires(sub);
}

static void offer_ring(struct mr_sub *sub)
{
    struct mr_link *l = link_of(sub);
    struct mr_ring_says says;

    if (mr_ring_make(l, &says)) {
        mr_log(MR_LOG_DEBUG, "rank %d on %s: no memory for a ring", sub->peer->rank, sub->peer->address->host);
        return;
    }
    if (!send_ring_control(sub, RING_OFFER, &says))
        mr_ring_drop(l);
}

static void withdraw_ring(struct mr_sub *sub)
{
    struct mr_ring_says says = {0};

    if (send_ring_control(sub, RING_WITHDRAW, &says))
        mr_ring_withdraw(link_of(sub));
}

/* Makes the present rings equal to the wanted ones. */
static void adjust_rings(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];

        if (!can_have_ring(sub))
            continue;
        if (mr_net_of(p)->rings && !mr_ring_exists(link_of(sub)))
            offer_ring(sub);
        else if (!mr_net_of(p)->rings && mr_ring_in_use(link_of(sub)))
            withdraw_ring(sub);
    }
}

/* ---- budget ------------------------------------------------------------------------------------------------------ */

struct holders {
    unsigned held, wanted; /* peers with rings, and peers that shall keep them */
    struct mr_peer *least, *best;
};

static bool has_rings(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (mr_kind_is(p->sub[i].kind, MR_IS_RING) && p->sub[i].state != MR_SUB_CLOSED &&
            mr_ring_exists(link_of(&p->sub[i])))
            return true;
    return false;
}

static bool deserves_rings(const struct mr_peer *p)
{
    if (!p->up || p->error || mr_net_of(p)->rings || p->counted < (uint32_t)mr_config.ring_after)
        return false;
    for (unsigned i = 0; i < p->num_now; i++)
        if (can_have_ring(&p->now[i]))
            return p->use || !mr_config.ring_after;
    return false;
}

static void count_ring_holder(struct holders *h, struct mr_peer *p)
{
    if (mr_net_of(p)->rings || has_rings(p))
        h->held++;
    if (mr_net_of(p)->rings && p->error)
        mr_net_of(p)->rings = false;
    h->wanted += mr_net_of(p)->rings;
    if (mr_net_of(p)->rings && (!h->least || p->use < h->least->use))
        h->least = p;
    if (deserves_rings(p) && (!h->best || p->use > h->best->use))
        h->best = p;
}

static struct holders find_ring_holders(void)
{
    struct holders h = {0};

    for (int r = 0; r < mr_peers_end(); r++)
        if (mr_peers.peer[r])
            count_ring_holder(&h, mr_peers.peer[r]);
    return h;
}

static void give_rings(struct mr_peer *p, const struct holders *h)
{
    mr_net_of(p)->rings = true;
    mr_stat_most(MR_STAT_RINGS_MOST, h->held + 1);
    mr_log(MR_LOG_DEBUG, "rank %d on %s writes into a ring from now on", p->rank, p->address->host);
}

/* Gives a ring to a deserving peer, or withdraws another's for it. False: nothing more can be done. */
static bool give_rings_to_one(void)
{
    struct holders h = find_ring_holders();

    if (!h.best)
        return false;
    switch (mr_quota_ask(h.held, h.wanted, (unsigned)mr_config.ring_peers, h.best->use,
                         h.least ? h.least->use : UINT32_MAX)) {
    case MR_QUOTA_OPEN:
        give_rings(h.best, &h);
        return true;
    case MR_QUOTA_MAKE_ROOM:
        mr_net_of(h.least)->rings = false;
        mr_stat_add(MR_STAT_RINGS_WITHDRAWN, 1);
        return false;
    case MR_QUOTA_WAIT:
    case MR_QUOTA_NO:
        break;
    }
    return false;
}

void mr_rings_tick(void)
{
    if (!mr_net.rings)
        return;
    while (give_rings_to_one())
        ;
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        if (p && p->up && !p->error)
            adjust_rings(p);
    }
}

void mr_rings_established(struct mr_peer *p)
{
    if (!mr_net.rings)
        return;
    if (!mr_config.ring_after)
        while (give_rings_to_one())
            ;
    adjust_rings(p);
}

/* ---- control messages -------------------------------------------------------------------------------------------- */

static void end_ring(struct mr_sub *sub)
{
    struct mr_ring_says says = {0};

    if (sub->state == MR_SUB_OPEN)
        says.count = mr_ring_stop(link_of(sub));
    send_ring_control(sub, RING_END, &says);
}

static void answer_offer(struct mr_sub *sub, const struct mr_ring_says *offered)
{
    struct mr_ring_says says;

    if (can_have_ring(sub) && !mr_ring_accept(link_of(sub), offered, &says))
        send_ring_control(sub, RING_ACCEPT, &says);
    else
        end_ring(sub);
}

/* The subchannel may not be open here yet, or no more. */
static void take_ring_control(struct mr_sub *sub, enum ring_control kind, const struct mr_ring_says *what)
{
    bool open = sub->state == MR_SUB_OPEN;

    if (kind == RING_OFFER)
        answer_offer(sub, what);
    else if (kind == RING_ACCEPT && open)
        mr_ring_accepted(link_of(sub), what);
    else if (kind == RING_WITHDRAW && open)
        end_ring(sub);
    else if (kind == RING_END && open)
        mr_ring_ended(link_of(sub), what->count);
}

bool mr_rings_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    uint32_t tag = (uint32_t)hdr->tag;
    struct mr_ring_says what;
    struct mr_sub *sub;

    if (hdr->kind != MR_CONTROL_RING)
        return false;
    sub = mr_sub_tagged(p, tag);
    if (!sub || !mr_kind_is(sub->kind, MR_IS_RING) || len != sizeof what || (uint32_t)hdr->rank >= RING_CONTROLS) {
        mr_log(MR_LOG_WARN, "rank %d on %s: a control message about a ring that makes no sense", p->rank,
               p->address->host);
        return true;
    }
    memcpy(&what, payload, sizeof what);
    if (mr_sub_tag(sub, sub->generation) != mr_sub_tag(sub, mr_tag_generation(tag)))
        return true; /* of a broken subchannel */
    take_ring_control(sub, (enum ring_control)hdr->rank, &what);
    return true;
}
