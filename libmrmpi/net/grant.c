/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grants of ahead budgets to this process's senders, and from its peers: see grant.h. Senders are found by the packets
 * that virtual channels count anyway, once per interval; the path of a packet does nothing for this. Grants go in
 * packets of the virtual channel, so the last message holds. Such a message does not count as traffic, or messages
 * would be answered by messages.
 */
#include "libmrmpi/net/grant.h"

#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/verbs/verbs.h"

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static uint64_t own_budget(void)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        all += mr_peers.ahead[i][MR_LEVEL_SMALL].bucket.rate;
    return all;
}

/* The peers from which packets have come since the last call. */
static struct mr_peer *find_active(uint32_t *num)
{
    struct mr_grants *g = &mr_net.grants;
    struct mr_peer *active = NULL;

    *num = 0;
    if (mr_peers.arrived == g->arrived)
        return NULL;
    g->arrived = mr_peers.arrived;
    g->met = 0;
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];
        uint32_t received;

        if (!p)
            continue;
        g->met++;
        received = mr_vc_received(p->vc);
        if (!p->up || p->error || received == mr_net_of(p)->grant_seen)
            continue;
        mr_net_of(p)->grant_seen = received;
        mr_net_of(p)->next_active = active;
        active = p;
        (*num)++;
    }
    return active;
}

/*
 * For all packets together, with a slow bus: this process's pace of reads, or half of it while it reads. *held: senders
 * use much of it.
 */
static uint64_t own_pace(uint64_t passed_ns, bool *held)
{
    struct mr_grants *g = &mr_net.grants;
    uint64_t rate = 0, bytes = 0, came;
    bool reads = g->parts != mr_peers.paced_parts, alone = false;

    for (unsigned i = 0; mr_peers.paced && i < mr_verbs.num_rails; i++) {
        rate += mr_peers.pace[i].bucket.rate;
        alone |= mr_peers.pace[i].bucket.rate == MR_PACE_ALONE;
        bytes += mr_verbs.rail[i].count[MR_RAIL_BYTES_RECEIVED];
    }
    came = bytes - g->bytes;
    g->bytes = bytes;
    g->parts = mr_peers.paced_parts;
    if (alone)
        rate = MR_PACE_ALONE;
    else if (reads)
        rate /= 2;
    *held = came * 1000000 / (passed_ns / 1000 + 1) > rate / 2;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        mr_peers.pace[i].held = *held && rate;
    return rate;
}

static void tell_grant(struct mr_peer *p, uint32_t kb, uint32_t pace_kb, bool held)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_GRANT, .ctx = kb, .tag = (int)pace_kb};

    if ((kb == mr_net_of(p)->grant_told && !mr_grant_pace_differs(mr_net_of(p)->pace_told, pace_kb, held)) ||
        mr_vc_send_control(p->vc, &hdr, NULL, 0))
        return;
    mr_net_of(p)->grant_told = kb;
    mr_net_of(p)->pace_told = pace_kb;
    mr_net.grants.said = true;
}

/* At the end nothing new is said: the peer may have gone. */
void mr_grant_tick(uint64_t now_ns)
{
    struct mr_grants *g = &mr_net.grants;
    struct mr_peer *active;
    uint32_t num, kb, pace_kb;
    uint64_t pace;
    bool held;

    if (mr_net.parting || now_ns - g->ticked_ns < MR_GRANT_NS + g->met * MR_GRANT_PEER_NS)
        return;
    pace = own_pace(now_ns - g->ticked_ns, &held);
    g->ticked_ns = now_ns;
    active = find_active(&num);
    pace_kb = pace == MR_PACE_ALONE ? MR_FABRIC_PACE_ALONE : mr_grant_part(pace, num);
    kb = mr_grant_part(own_budget(), mr_grant_count(g, num));
    for (struct mr_peer *p = active; p; p = mr_net_of(p)->next_active)
        tell_grant(p, kb, pace_kb, held);
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

/* Traffic under way when a limit comes is the first to count against it. */
static void hold_to_pace(struct mr_peer *p, uint32_t kb)
{
    bool alone;

    if (!mr_net_of(p)->pace && kb) {
        mr_net_of(p)->pace = calloc(1, sizeof *mr_net_of(p)->pace);
        if (mr_net_of(p)->pace)
            mr_net_of(p)->pace->late_ns = MR_PACE_LATE_NS;
    }
    if (!mr_net_of(p)->pace)
        return;
    alone = mr_net_of(p)->pace->bucket.rate == MR_PACE_ALONE;
    mr_pace_set(mr_net_of(p)->pace, kb * 1000ull, 0, mr_clock_ns());
    if (alone && mr_pace_limits(mr_net_of(p)->pace))
        mr_pace_take(mr_net_of(p)->pace, MR_PACE_UNDER_WAY);
    p->vc->part = mr_pace_limits(mr_net_of(p)->pace) ? MR_PACE_PACKET - MR_WIRE_MAX : 0;
    mr_net.peers_pace = mr_peers.ahead_limited = true;
    mr_net_renew_shorts();
}

bool mr_grant_control(struct mr_peer *p, const struct mr_hdr *hdr, size_t len)
{
    uint64_t now_ns;

    if (hdr->kind != MR_CONTROL_GRANT)
        return false;
    mr_net_of(p)->grant_seen++;
    if (len || hdr->ctx > MR_GRANT_MOST_KB ||
        ((uint32_t)hdr->tag > MR_GRANT_MOST_KB && (uint32_t)hdr->tag != MR_FABRIC_PACE_ALONE)) {
        mr_log(MR_LOG_WARN, "rank %d on %s: a message about a budget that cannot be", p->rank, p->address->host);
        return true;
    }
    hold_to_pace(p, (uint32_t)hdr->tag);
    if (!p->granted && hdr->ctx)
        p->granted = calloc(MR_LEVEL_PACKETS, sizeof *p->granted);
    if (!p->granted)
        return true; /* no limit, or no memory: then the budgets of the rails alone bind */
    now_ns = mr_clock_ns();
    for (unsigned l = 0; l < MR_LEVEL_PACKETS; l++)
        mr_ahead_set(&p->granted[l], hdr->ctx * 1000ull, now_ns);
    return true;
}
