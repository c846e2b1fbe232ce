/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kinds of links to be open to each peer, and the number of peers with connections of rationed kinds, present or
 * planned.
 */
#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/internal.h"

static bool sub_is_rationed(const struct mr_sub *sub)
{
    return mr_peers.rationed >> sub->kind & 1;
}

static bool has_queue_pairs(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (sub_is_rationed(&p->sub[i]) && p->sub[i].state != MR_SUB_CLOSED)
            return true;
    return false;
}

void mr_ration_recount(struct mr_peer *p)
{
    bool holds = mr_peers.rationed && (p->connect->wanted & mr_peers.rationed || has_queue_pairs(p));

    if (holds == p->connect->holds)
        return;
    p->connect->holds = holds;
    mr_connect.num_held += holds ? 1u : -1u;
    mr_stat_most(MR_STAT_RATIONED_MOST, mr_connect.num_held);
    if (!holds)
        mr_connect.budget_ns = 0; /* a peer may wait for its place */
}

void mr_ration_want(struct mr_peer *p, uint8_t kinds)
{
    bool before = p->connect->wanted & mr_peers.rationed, after = kinds & mr_peers.rationed;

    p->connect->wanted = kinds;
    mr_connect.num_rationed += (unsigned)after - (unsigned)before;
    mr_ration_recount(p);
}

void mr_ration_asked(struct mr_peer *p, unsigned kind)
{
    mr_ration_want(p, p->connect->wanted | (uint8_t)(1u << kind));
}

void mr_ration_lost(struct mr_peer *p)
{
    mr_ration_want(p, 0);
}
