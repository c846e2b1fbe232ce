/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that are silent. A link that carries nothing never fails, so a rank that only waits would not learn that its
 * peer is gone. While it waits it asks the adapters of peers from which nothing has come for a second: a write of no
 * bytes, which the adapter at the other end acknowledges by itself, however long the process there computes. Where no
 * acknowledgement comes the link breaks (mend.c).
 *
 * The path of a message does nothing for this: what has come of a peer is read off its virtual channel.
 */
#include "libmrmpi/rail/net.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

#define PING_NS 1000000000ull /* a peer is asked once in so long at most */

static bool ping(struct mr_sub *sub, unsigned level)
{
    struct mr_link *l = &sub->link[level];

    if (sub->state != MR_SUB_OPEN || mr_sub_retires(sub) || sub->rail->down || l->state != MR_LINK_OPEN || !l->ops->ping || l->ops->ping(l))
        return false;
    mr_stat_add(MR_STAT_PINGS, 1);
    return true;
}

void mr_ping_all(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs * MR_LEVELS; i++)
        ping(&p->sub[i / MR_LEVELS], i % MR_LEVELS);
}

/* One link each time, in turn. */
static void ping_next(struct mr_peer *p)
{
    unsigned n = p->num_subs * MR_LEVELS;

    for (unsigned k = 0; k < n; k++) {
        unsigned i = p->ping_turn++ % n;

        if (ping(&p->sub[i / MR_LEVELS], i % MR_LEVELS))
            return;
    }
}

/* Has anything come of it since this was asked last: a packet, or the confirmation of one of ours? */
static bool is_silent(struct mr_peer *p)
{
    uint32_t received = mr_vc_received(p->vc), confirmed = p->out.base;
    bool silent = received == p->heard_received && confirmed == p->heard_confirmed;

    p->heard_received = received;
    p->heard_confirmed = confirmed;
    return silent;
}

void mr_ping_silent(uint64_t now_ns)
{
    bool first = !mr_net.pinged_ns;

    if (now_ns - mr_net.pinged_ns < PING_NS)
        return;
    mr_net.pinged_ns = now_ns;
    for (int r = 0; !first && r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        if (p && p->up && !p->error && is_silent(p))
            ping_next(p);
    }
}
