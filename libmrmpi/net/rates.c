/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process's rates of traffic ahead of the bulk and of reads, from fabricd's values for each rail; they may change.
 */
#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/verbs/verbs.h"

/* As fabricd says of this process and each of its rails at present. */
void mr_rates_take(void)
{
    uint64_t now_ns = mr_clock_ns();

    mr_peers.ahead_limited = mr_net.peers_pace;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail *r = &mr_verbs.rail[i];
        uint64_t rate = mr_ahead_rate(r->rate_mbps, mr_fabric_ahead(r->dev->name, r->port), MR_FABRIC_AHEAD_ALL);

        for (unsigned l = 0; l < MR_LEVEL_PACKETS; l++)
            mr_ahead_set(&mr_peers.ahead[i][l], rate, now_ns);
        mr_ahead_set(&mr_net.adapter[i], rate ? mr_ahead_time(mr_fabric_messages(), MR_FABRIC_AHEAD_ALL) : 0, now_ns);
        mr_net.message_ns[i] = mr_ahead_message_ns(r->rate_mbps);
        mr_peers.ahead_limited |= rate != 0;
    }
    mr_net_renew_shorts();
}

/* Bytes, at most. */
static size_t reads_under_way(const struct mr_rail *rail)
{
    size_t parts = 0;

    for (int r = 0; r < mr_peers_end(); r++) {
        const struct mr_peer *p = mr_peers.peer[r];

        for (unsigned i = 0; p && p->num_large && i < p->num_now; i++) {
            const struct mr_link *l = p->now[i].rail == rail ? p->now[i].level[MR_LEVEL_BULK] : NULL;

            parts += l && mr_kind_is(l->kind, MR_IS_CONNECTED) ? l->qp.depth - l->qp.room : 0;
        }
    }
    return parts * MR_PACE_LONG;
}

/* fabricd's present values for each rail. Traffic under way when a limit comes is the first to count against it. */
void mr_rates_take_paces(uint64_t now_ns)
{
    bool before = mr_peers.paced;

    mr_peers.paced = false;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail *r = &mr_verbs.rail[i];
        uint64_t kb = mr_fabric_pace(r->dev->name, r->port);

        bool alone = mr_peers.pace[i].bucket.rate == MR_PACE_ALONE;

        mr_pace_set(&mr_peers.pace[i], kb * 1000, r->count[MR_RAIL_BYTES_RECEIVED], now_ns);
        if (alone && mr_pace_limits(&mr_peers.pace[i]))
            mr_peers.pace[i].bucket.left -= (int64_t)reads_under_way(r);
        mr_peers.paced |= kb != 0;
    }
    if (!before && mr_peers.paced)
        mr_net.reads = (struct mr_pace_report){.since_ns = now_ns};
}

void mr_rates_tell_reads(uint64_t now_ns)
{
    struct mr_pace_report before = mr_net.reads;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        mr_pace_arrived(&mr_peers.pace[i], mr_verbs.rail[i].count[MR_RAIL_BYTES_RECEIVED], now_ns);
    if (mr_pace_report(&mr_net.reads, mr_peers.pace, mr_verbs.num_rails, now_ns) &&
        !mr_fabric_tell_reads(mr_net.reads.told))
        mr_net.reads.told = before.told; /* later */
}
