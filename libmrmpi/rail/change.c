/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Service levels that change while a job runs. To each peer there are two sides, alike in pairs of rails, paths and
 * kinds of links, of which one is in use and the other closed. When fabricd says something new the other side is opened
 * on the new levels, in one round of connecting, while messages go on over the first. When that is done it is the one
 * that counts (mr_peer.turn says how often that has happened): what waits for room, and all that comes, goes over it.
 * What is posted on the old side is finished there. Each end says when nothing more of its own is under way on a
 * subchannel of the old side; when both have, it is closed. In the same way a connection is closed that has been given
 * up (budget.c).
 *
 * Whoever hears of new levels begins; what both ends hear differently is settled by who began last.
 */
#include "libmrmpi/rail/net.h"

#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

#define PAUSE_NS 10000000ull /* between two attempts */

/*
 * Links that a subchannel may have: the window has places for so many, and the other side needs some as well. With more
 * than sixteen subchannels they may not suffice all the same (open_sub in wireup.c).
 */
static unsigned links_each(const struct mr_peer *p)
{
    unsigned n = MR_WINDOW_LINKS / 2 / p->num_now;

    return n < 2 ? 2 : n;
}

/*
 * The first of its lanes. There are subchannels for all lanes of the class in which a peer was met; where it has more
 * now each peer uses some of them, and peers spread over all. The same at both ends.
 */
static unsigned first_lane(const struct mr_peer *p, unsigned num_lanes)
{
    uint32_t a, b, mix;

    if (p->num_now >= num_lanes)
        return 0;
    a = (uint32_t)mr_net.launch->rank;
    b = (uint32_t)p->rank;
    mix = a < b ? a * 0x9e3779b1u + b : b * 0x9e3779b1u + a;
    mix = (mix ^ mix >> 16) * 0x85ebca6bu; /* all bits come to count for all */
    mix = (mix ^ mix >> 13) * 0xc2b2ae35u;
    return (mix ^ mix >> 16) % num_lanes;
}

bool mr_change_has_room(const struct mr_peer *p)
{
    return links_each(p) > 2;
}

/* Where there are too few links medium messages go with the large ones, those of the larger sizes first. */
void mr_change_levels(const struct mr_sub *sub, uint8_t sl[MR_LEVELS])
{
    unsigned left = links_each(sub->peer) - 1 - mr_change_has_room(sub->peer);
    bool apart[MR_LEVELS] = {false};

    for (unsigned l = 0; l < MR_LEVELS; l++) {
        const struct mr_fabric_level *level = &mr_net.qos.level[l];

        sl[l] = level->sl[(first_lane(sub->peer, level->num_lanes) + sub->lane) % level->num_lanes];
    }
    for (unsigned l = 0; l < MR_LEVEL_PACKETS && left; l++) {
        apart[l] = sl[l] != sl[l + 1];
        left -= apart[l];
    }
    for (unsigned l = MR_LEVEL_PACKETS; l-- > 0;)
        if (!apart[l])
            sl[l] = sl[l + 1];
}

void mr_change_all(void)
{
    for (int r = 0; r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        if (!p || p->error || p->cm.state == MR_CM_IDLE)
            continue;
        p->change = true;
        p->change_ns = 0;
        mr_mend(p);
    }
}

/* ---- the old side ------------------------------------------------------------------------------------------------ */

/* What was posted unsignaled is not known to be done before something later is. */
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
    bool idle = !mr_bulk_uses(sub);

    for (unsigned l = 0; l < sub->num_links; l++)
        idle &= link_is_idle(&sub->link[l]);
    return idle;
}

/* True while there is something to look after. */
static bool close_when_idle(struct mr_sub *sub)
{
    if (!mr_sub_retires(sub) || sub->state != MR_SUB_OPEN)
        return false;
    if (!sub->told && is_idle(sub))
        sub->told = mr_mend_tell_idle(sub);
    if (sub->told && sub->heard)
        mr_sub_close(sub);
    return true;
}

void mr_change_heard(struct mr_sub *sub, uint8_t generation)
{
    if (sub->generation == generation)
        sub->heard = true;
    mr_mend(sub->peer);
}

/* ---- the new side ------------------------------------------------------------------------------------------------ */

static bool has_other_levels(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_sub *sub = &p->now[i];
        uint8_t sl[MR_LEVELS];

        mr_change_levels(sub, sl);
        if (sub->state == MR_SUB_OPEN && !sub->closing && memcmp(sub->sl, sl, sizeof sl))
            return true;
    }
    return false;
}

static bool other_side_is_closed(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (!mr_sub_is_current(&p->sub[i]) && p->sub[i].state != MR_SUB_CLOSED)
            return false;
    return true;
}

void mr_change_failed(struct mr_peer *p)
{
    p->change = true;
    mr_mend(p);
}

void mr_change_opened(struct mr_peer *p, uint8_t turn)
{
    struct mr_load *before = p->load;

    if (!mr_is_later(turn, p->turn))
        return;
    p->turn = turn;
    p->now = p->sub + (turn & 1) * p->num_now;
    p->load = p->loads[turn & 1];
    for (unsigned i = 0; i < p->num_now; i++) { /* the rails are the same */
        p->load[i].weight = before[i].weight;
        before[i].up = false;
    }
    mr_stat_add(MR_STAT_CHANGED, 1);
    mr_log(MR_LOG_DEBUG, "rank %d on %s: service levels %u and %u from now on", p->rank, p->card->host,
           p->now[0].sl[MR_LEVEL_SMALL], p->now[0].sl[MR_LEVEL_BULK]);
    mr_bulk_move(p);
    mr_mend(p);
}

bool mr_change_poll(struct mr_peer *p, uint64_t now_ns)
{
    bool more = false;

    for (unsigned i = 0; i < p->num_subs; i++)
        more |= close_when_idle(&p->sub[i]);
    if (p->change && !has_other_levels(p))
        p->change = false;
    if (!p->change)
        return more;
    if (now_ns >= p->change_ns && other_side_is_closed(p) && mr_peer_reopen(p, NULL)) {
        p->change = false; /* unless the round fails, or more is heard meanwhile */
        p->change_ns = now_ns + PAUSE_NS;
    }
    return true;
}
