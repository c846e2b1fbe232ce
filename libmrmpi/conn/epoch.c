/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epochs: service levels change while a job runs. Each peer has two sets of subchannels, equal in pairs of rails, paths
 * and kinds of links, for the epochs of even and odd number. The set of the present epoch is in use; the other set is
 * closed. When fabricd has new levels, the other set is opened on them in one handshake, while messages go on over the
 * first. After that handshake the next epoch is the present epoch (mr_peer.epoch is its number). Packets waiting for
 * room, and all later packets, go over its subchannels. Posts on the old subchannels are finished there. Each end sends
 * MR_CONTROL_IDLE when nothing of its own is under way on an old subchannel; after both have, the subchannel is closed.
 * A connection given up (budget.c) is closed in the same way.
 *
 * The end that receives new levels begins. If the ends receive different levels, those of the later handshake hold.
 *
 * While both sets are open they share the window's places for links. With many subchannels, the new ones may have one
 * link each, although small messages have a level of their own. Once the old set is closed there is room: one more
 * epoch begins.
 */
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/conn/reliable/window_path.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

#define PAUSE_NS 10000000ull /* between two attempts */

void mr_epoch_all(void)
{
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        if (!p || p->error || p->cm.state == MR_CM_IDLE)
            continue;
        p->connect->change = true;
        p->connect->change_ns = 0;
        mr_peer_due(p);
    }
}

/* ---- the old epoch ----------------------------------------------------------------------------------------------- */

/* Unsignaled posts are not known to be done before a later signaled post is. */
static bool link_is_idle(struct mr_link *l)
{
    if (l->state != MR_LINK_OPEN || !mr_window_link_busy(&((struct mr_sub *)l->owner)->peer->out, l->index))
        return true;
    if (l->ops->flush)
        l->ops->flush(l);
    return false;
}

static bool is_idle(struct mr_sub *sub)
{
    bool idle = !mr_peer_ask_uses(sub);

    for (unsigned l = 0; l < sub->num_links; l++)
        idle &= link_is_idle(&sub->link[l]);
    return idle;
}

/* Tells the peer that nothing from here is under way on the subchannel. False: not now. */
static bool tell_idle(struct mr_sub *sub)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_IDLE, .tag = mr_sub_tag(sub, sub->generation)};

    return !mr_vc_send_control(sub->peer->vc, &hdr, NULL, 0);
}

/* True while there is something to watch. */
static bool close_when_idle(struct mr_sub *sub)
{
    if (!mr_sub_retires(sub) || sub->state != MR_SUB_OPEN)
        return false;
    if (!sub->connect->told && is_idle(sub))
        sub->connect->told = tell_idle(sub);
    if (sub->connect->told && sub->connect->heard)
        mr_sub_close(sub);
    return true;
}

bool mr_epoch_control(struct mr_peer *p, const struct mr_hdr *hdr)
{
    struct mr_sub *sub = hdr->kind == MR_CONTROL_IDLE ? mr_sub_tagged(p, (uint32_t)hdr->tag) : NULL;

    if (!sub)
        return hdr->kind == MR_CONTROL_IDLE;
    if (sub->generation == mr_tag_generation((uint32_t)hdr->tag))
        sub->connect->heard = true;
    mr_peer_due(p);
    return true;
}

/* ---- the new epoch ----------------------------------------------------------------------------------------------- */

static bool has_other_levels(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_now; i++)
        if (p->now[i].state == MR_SUB_OPEN && !p->now[i].closing && !mr_levels_hold(&p->now[i]))
            return true;
    return false;
}

static bool other_epoch_is_closed(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (!mr_sub_is_current(&p->sub[i]) && p->sub[i].state != MR_SUB_CLOSED)
            return false;
    return true;
}

/*
 * True if the subchannels in use would have more links if opened now, in the next epoch. The other set is closed. Only
 * links of the opening here count, not the links made by the peer, too: links that the peer lacks for other reasons
 * would be missing again. So this is true once after a change: then the subchannels in use have more links than would
 * be left.
 */
static bool lacks_links(const struct mr_peer *p)
{
    unsigned extra = 0;
    bool crowded = false;

    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_sub *sub = &p->now[i];
        bool open = sub->state == MR_SUB_OPEN;

        if (open ? sub->closing : mr_sub_is_wanted(sub) && !sub->rail->down)
            return false; /* gives back its part of the room, or takes one */
        crowded |= open && mr_levels_crowd(sub);
        extra += open ? mr_levels_extra_links(sub) : 0;
    }
    return crowded && mr_levels_spare_links(p, NULL) > extra;
}

void mr_epoch_failed(struct mr_peer *p)
{
    p->connect->change = true;
    mr_peer_due(p);
}

void mr_epoch_opened(struct mr_peer *p, uint8_t epoch)
{
    if (!mr_is_later(epoch, p->epoch))
        return;
    mr_subs_change_epoch(p, epoch);
    mr_stat_add(MR_STAT_CHANGED, 1);
    mr_log(MR_LOG_DEBUG, "rank %d on %s: service levels %u and %u from now on", p->rank, p->address->host,
           mr_sub_sl(&p->now[0], MR_LEVEL_SMALL), mr_sub_sl(&p->now[0], MR_LEVEL_BULK));
    mr_peer_tell_moved(p);
    mr_peer_due(p);
}

bool mr_epoch_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin)
{
    bool more = false, closed;

    for (unsigned i = 0; i < p->num_subs; i++)
        more |= close_when_idle(&p->sub[i]);
    closed = other_epoch_is_closed(p);
    if (p->connect->change && !has_other_levels(p))
        p->connect->change = false;
    if (!p->connect->change && !(closed && lacks_links(p)))
        return more;
    if (now_ns >= p->connect->change_ns && closed && begin(p, NULL)) {
        p->connect->change = false; /* unless the handshake fails, or levels change again */
        p->connect->change_ns = now_ns + PAUSE_NS;
    }
    return true;
}
