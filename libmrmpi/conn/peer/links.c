/* SPDX-License-Identifier: BSD-3-Clause */
/* The links of a subchannel: one for large messages, and others for smaller ones where their service level differs. */
#include "libmrmpi/conn/peer/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

static unsigned take_link_id(struct mr_peer *p)
{
    unsigned id = ~p->own->link_ids ? (unsigned)__builtin_ctzll(~p->own->link_ids) : MR_WINDOW_LINKS;

    if (id == MR_WINDOW_LINKS || mr_window_reserve(&p->out, id + 1))
        return MR_WINDOW_LINKS;
    p->own->link_ids |= 1ull << id;
    return id;
}

static void forget_link(struct mr_peer *p, struct mr_link *l)
{
    if (l->index < MR_WINDOW_LINKS)
        p->own->link_ids &= ~(1ull << l->index);
    l->index = MR_WINDOW_LINKS;
}

void mr_sub_forget_links(struct mr_sub *sub)
{
    for (unsigned l = 0; l < sub->num_links; l++)
        forget_link(sub->peer, &sub->link[l]);
}

static void close_link(struct mr_sub *sub, struct mr_link *l)
{
    if (l->state != MR_LINK_CLOSED)
        l->ops->close(l);
    forget_link(sub->peer, l);
}

/* Nothing was sent over them. */
static void close_links(struct mr_sub *sub)
{
    for (unsigned l = 0; l < sub->num_links; l++)
        close_link(sub, &sub->link[l]);
}

/*
 * Memory for num links, at the first opening, because many subchannels are never opened. All are closed. 0 or -ENOMEM.
 */
static int make_links(struct mr_sub *sub, unsigned num)
{
    struct mr_link *links;

    if (num <= sub->num_links)
        return 0;
    links = calloc(num, sizeof *links);
    if (!links)
        return -ENOMEM;
    for (unsigned l = 0; l < num; l++)
        links[l].index = MR_WINDOW_LINKS;
    free(sub->link);
    sub->link = links;
    sub->num_links = num;
    for (unsigned l = 0; l < MR_LEVELS; l++)
        sub->level[l] = links;
    return 0;
}

/* Large messages go by RDMA over the subchannel. */
static bool sub_has_rdma(const struct mr_sub *sub)
{
    return sub->kind == sub->peer->own->bulk_kind;
}

/*
 * True if this level wants another link than the next larger messages: its service level differs. Packets sent with the
 * bulk do, too, where the bulk goes by RDMA: requests of a queue pair begin in order, so these packets would wait
 * behind all writes, and behind reads beyond the adapter's limit. If small messages have a level of their own, and
 * there are many subchannels, these packets have no link of their own. Packets take a further path only while no other
 * leads to the peer: then they go with the bulk.
 */
static bool wants_link(const struct mr_sub *sub, const uint8_t sl[MR_LEVELS], unsigned l)
{
    if (mr_sub_is_path(sub) && (l == MR_LEVEL_PACKETS || l == MR_LEVEL_SMALL))
        return false;
    if (l == MR_LEVEL_PACKETS && sub_has_rdma(sub))
        return sl[MR_LEVEL_SMALL] == sl[l] || mr_levels_have_room(sub->peer);
    return l == MR_LEVEL_BULK || sl[l] != sl[l + 1];
}

static unsigned count_links(const struct mr_sub *sub, const uint8_t sl[MR_LEVELS])
{
    unsigned n = 0;

    for (unsigned l = 0; l < MR_LEVELS; l++)
        n += wants_link(sub, sl, l);
    return n;
}

/*
 * Packets that share a lane with the bulk wait in the fabric as long as its buffers hold, before they are confirmed.
 * Short packets have the share of their class only if many are under way: their queue is deep.
 */
static int open_link(struct mr_sub *sub, struct mr_link *link, const struct mr_link_events *events, bool bulk,
                     bool deep)
{
    *link = (struct mr_link){.ops = mr_link_ops[sub->kind],
                             .kind = sub->kind,
                             .events = events,
                             .owner = sub,
                             .index = (uint8_t)take_link_id(sub->peer),
                             .pkey = sub->pkey,
                             .bulk = bulk,
                             .deep = deep,
                             .lossy = sub->lossy,
                             .native = mr_peers.kinds.native[sub->kind]};
    return link->index < MR_WINDOW_LINKS ? link->ops->open(link, sub->rail) : -ENOSPC;
}

/* Links for a subchannel: for large messages, and for the levels that want their own. */
int mr_sub_open(struct mr_sub *sub, const struct mr_link_events *events)
{
    unsigned n = 0;
    uint8_t sl[MR_LEVELS];
    bool apart;

    mr_levels_of(sub, sl);
    if (make_links(sub, count_links(sub, sl)))
        return -ENOMEM;
    apart = sl[MR_LEVEL_SMALL] != sl[MR_LEVEL_BULK] || sub_has_rdma(sub);
    sub->own->crowded = 0;
    for (unsigned l = MR_LEVELS; l-- > 0;) {
        bool wanted = wants_link(sub, sl, l);
        int err;

        if (n && (!wanted || !mr_levels_spare_links(sub->peer, sub))) {
            sub->own->crowded |= (uint8_t)(wanted << l);
            sub->level[l] = sub->level[l + 1];
            sub->own->sl[l] = sub->own->sl[l + 1];
            continue;
        }
        err = open_link(sub, &sub->link[n], events, apart && l != MR_LEVEL_SMALL && l != MR_LEVEL_PACKETS,
                        l == MR_LEVEL_PACKETS && mr_peers.ahead_limited);
        if (err && n && sl[l] == sl[l + 1]) { /* can do without */
            forget_link(sub->peer, &sub->link[n]);
            sub->level[l] = sub->level[l + 1];
            sub->own->sl[l] = sub->own->sl[l + 1];
            continue;
        }
        if (err) {
            close_links(sub);
            return err;
        }
        sub->level[l] = &sub->link[n++];
        sub->own->sl[l] = sl[l];
    }
    sub->own->extra = (uint8_t)(n - 1);
    sub->epoch = (uint8_t)(sub->peer->epoch + !mr_sub_is_current(sub));
    sub->closing = false;
    sub->state = MR_SUB_OPENING;
    return 0;
}

/*
 * A subchannel opened in a failed handshake. No packet was sent there. If connected, the peer may think that it is
 * open, and have sent: the generation is over, but arrivals are taken in.
 */
bool mr_sub_unopen(struct mr_sub *sub)
{
    bool connected = sub->link[0].state == MR_LINK_OPEN;

    if (connected) {
        for (unsigned l = 0; l < sub->num_links; l++)
            if (sub->link[l].state == MR_LINK_OPEN)
                sub->link[l].ops->leave(&sub->link[l]);
        sub->generation++;
    }
    close_links(sub);
    sub->state = MR_SUB_CLOSED;
    return connected;
}

static bool has_own_link(struct mr_link *const level[MR_LEVELS], unsigned l)
{
    return l == MR_LEVEL_BULK || level[l] != level[l + 1];
}

struct mr_cm_sub mr_sub_describe(const struct mr_sub *sub)
{
    struct mr_cm_sub s = {.rail = (uint8_t)sub->rail->index,
                          .remote = sub->remote_rail,
                          .path = sub->path,
                          .kind = mr_sub_kind(sub),
                          .epoch = sub->epoch,
                          .needed = sub->peer->needed,
                          .pkey = sub->pkey,
                          .generation = sub->generation};

    for (unsigned l = 0; l < MR_LEVELS; l++) {
        s.level[l].qpn = sub->level[l]->qpn & 0xffffff;
        s.level[l].sl = sub->own->sl[l];
        s.own |= (uint8_t)(has_own_link(sub->level, l) << l);
    }
    return s;
}

static void close_unused_links(struct mr_sub *sub)
{
    for (unsigned i = 0; i < sub->num_links; i++) {
        bool used = false;

        for (unsigned l = 0; l < MR_LEVELS; l++)
            used |= sub->level[l] == &sub->link[i];
        if (!used && sub->link[i].state != MR_LINK_CLOSED)
            close_link(sub, &sub->link[i]);
    }
}

/*
 * The links made by both ends. Messages of a level without a link at one end go on that of the next larger ones: larger
 * messages would crowd the lane of smaller ones, but not the other way round.
 */
int mr_sub_connect(struct mr_sub *sub, const struct mr_rail_addr *to, const struct mr_cm_sub *remote,
                   const struct mr_cm_sub *sls, uint32_t local_psn, uint32_t remote_psn)
{
    struct mr_link *made[MR_LEVELS];

    memcpy(made, sub->level, sizeof made);
    for (unsigned l = MR_LEVELS; l-- > 0;) {
        struct mr_link_end end = {.addr = to,
                                  .qpn = remote->level[l].qpn,
                                  .local_psn = local_psn,
                                  .remote_psn = remote_psn,
                                  .sl = sls->level[l].sl & 15,
                                  .path = sub->path};
        int err;

        if (l != MR_LEVEL_BULK && !(has_own_link(made, l) && remote->own >> l & 1)) {
            sub->level[l] = sub->level[l + 1];
            sub->own->sl[l] = sub->own->sl[l + 1];
            continue;
        }
        err = made[l]->ops->connect(made[l], &end);
        if (err)
            return err;
        sub->level[l] = made[l];
        sub->own->sl[l] = end.sl;
    }
    close_unused_links(sub);
    return 0;
}
