/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * News for all living members of a communicator: each member that hears them for the first time passes them on to the
 * members 1, 2, 4, ... places before and behind, or to the next living member in that direction if one of these has
 * failed. When a member fails later, the others pass the news on again (p2p/revoke.c). So the chain of living
 * neighbours is whole at any time, and the longer steps make it short.
 */
#include "libmrmpi/p2p/fault/fault.h"

#include "libmrmpi/p2p/request/state.h"

static bool lives(const struct mr_group *g, int rank)
{
    const struct mr_vc *vc = mr_vc_known_peer(g->world[rank]);

    return !vc || !mr_vc_lost(vc);
}

static void tell_from(const struct mr_group *g, int me, int step, const struct mr_hdr *hdr)
{
    int at = me + step, on = step < 0 ? -1 : 1;

    for (int i = 0; i < g->size; i++, at += on) {
        at = (at % g->size + g->size) % g->size;
        if (at == me)
            return;
        if (lives(g, at)) {
            struct mr_hdr copy = *hdr;

            mr_vc_send(mr_vc_get_peer(g->world[at]), &copy, NULL, 0);
            return;
        }
    }
}

void mr_flood(const struct mr_comm *c)
{
    struct mr_group *all = mr_comm_everybody(c);
    struct mr_hdr hdr = {.kind = MR_PKT_REVOKE, .ctx = c->context};
    int me;

    if (!all)
        return; /* others pass the news on */
    hdr.sreq = mr_group_name(all);
    me = mr_group_find(all, mr_comm_world->rank);
    for (int step = 1; step < all->size; step *= 2) {
        tell_from(all, me, step, &hdr);
        tell_from(all, me, -step, &hdr);
    }
    mr_group_put(all);
}
