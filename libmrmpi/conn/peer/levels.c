/* SPDX-License-Identifier: BSD-3-Clause */
/* The service levels and lanes of messages on a subchannel: fabricd's for the class, as far as there are links. */
#include "libmrmpi/conn/peer/internal.h"

#include <string.h>

#include "libmrmpi/launch/launch.h"

/*
 * Links for a subchannel: the window has a limited number of places, and the other epoch needs some as well. With more
 * than sixteen subchannels the places may still not suffice (mr_sub_open).
 */
static unsigned links_each(const struct mr_peer *p)
{
    unsigned n = MR_WINDOW_LINKS / 2 / (p->num_now - p->own->num_added);

    return n < 2 ? 2 : n;
}

/*
 * The first of its lanes. There are subchannels for all lanes of the class at the peer's meeting. If the class has more
 * lanes now, each peer uses some of them, and peers spread over all. The same at both ends.
 */
static unsigned first_lane(const struct mr_peer *p, unsigned num_lanes)
{
    uint32_t a, b, mix;

    if (p->num_now - p->own->num_added >= num_lanes)
        return 0;
    a = (uint32_t)mr_peers.launch->rank;
    b = (uint32_t)p->rank;
    mix = p->guest_run ? p->guest_mix : a < b ? a * 0x9e3779b1u + b : b * 0x9e3779b1u + a;
    mix = (mix ^ mix >> 16) * 0x85ebca6bu; /* all bits come to count for all */
    mix = (mix ^ mix >> 13) * 0xc2b2ae35u;
    return (mix ^ mix >> 16) % num_lanes;
}

bool mr_levels_have_room(const struct mr_peer *p)
{
    return links_each(p) > 2;
}

unsigned mr_levels_spare_links(const struct mr_peer *p, const struct mr_sub *except)
{
    unsigned left = MR_WINDOW_LINKS - (unsigned)__builtin_popcountll(p->own->link_ids), closed = 0;

    for (unsigned i = 0; i < p->num_subs; i++)
        closed += &p->sub[i] != except && p->sub[i].state == MR_SUB_CLOSED && (!p->sub[i].spare || p->sub[i].chosen);
    return left > closed ? left - closed : 0;
}

/* A level without a link for lack of room goes with the next. */
bool mr_levels_hold(const struct mr_sub *sub)
{
    uint8_t sl[MR_LEVELS];

    mr_levels_of(sub, sl);
    for (unsigned l = MR_LEVEL_BULK; l-- > 0;)
        if (sub->own->crowded >> l & 1)
            sl[l] = sl[l + 1];
    return !memcmp(sub->own->sl, sl, sizeof sl);
}

bool mr_levels_crowd(const struct mr_sub *sub)
{
    return sub->own->crowded;
}

unsigned mr_levels_extra_links(const struct mr_sub *sub)
{
    return sub->own->extra;
}

/* With too few links, medium messages go with the large ones, those of the larger sizes first. */
void mr_levels_of(const struct mr_sub *sub, uint8_t sl[MR_LEVELS])
{
    unsigned left = links_each(sub->peer) - 1 - mr_levels_have_room(sub->peer);
    bool apart[MR_LEVELS] = {false};

    for (unsigned l = 0; l < MR_LEVELS; l++) {
        const struct mr_fabric_level *level = &mr_peers.qos.level[l];

        sl[l] = level->sl[(first_lane(sub->peer, level->num_lanes) + sub->own->lane) % level->num_lanes];
    }
    for (unsigned l = 0; l < MR_LEVEL_PACKETS && left; l++) {
        apart[l] = sl[l] != sl[l + 1];
        left -= apart[l];
    }
    for (unsigned l = MR_LEVEL_PACKETS; l-- > 0;)
        if (!apart[l])
            sl[l] = sl[l + 1];
}
