/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel to peers on other hosts: multirail over links. A packet takes the subchannel with the least carried,
 * among those with room; packets without room, or without a connection yet, wait in the peer's window and go out from
 * poll. Slow receivers hold senders back through the HCA (no receive buffer: the sender's queue pair waits and tries
 * again), so a sender's queues fill and the rest waits in the window too.
 */
#include <errno.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/internal.h"

/* Packets over lossy links cost more. */
bool mr_net_copies(const struct mr_vc *vc, const void *buf, size_t len)
{
    struct mr_peer *p = mr_peer_get(mr_vc_world_rank(vc));

    return p && mr_net_caps(p->rank, len) & MR_VC_READ && mr_bulk_copies(p, buf, len);
}

static int net_advertise(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                         struct mr_remote *out)
{
    struct mr_peer *p = mr_peer_get(mr_vc_world_rank(vc));

    return p ? mr_bulk_advertise(p, buf, len, how, region, out) : -ENOMEM;
}

/* A rank in the launcher's fence repairs nothing: its packets must have arrived before. */
static bool is_all_confirmed(void)
{
    bool all = true;

    for (int r = 0; r < mr_peers_end(); r++)
        if (mr_peers.peer[r] && !mr_keepalive_confirm(mr_peers.peer[r]))
            all = false;
    return all;
}

static bool net_drained(void)
{
    mr_net.parting = true;
    if (mr_peers.relying || !mr_bulk_is_idle() || mr_peers.backlogged || mr_peers.failing)
        return false;
    for (const struct mr_peer *p = mr_peers.connecting; p; p = p->next_connecting)
        if (mr_window_waiting(&p->out))
            return false;
    return is_all_confirmed();
}

/*
 * A peer that has lost our last ACK repeats its packets, and waits for the ACK. A peer whose way to us has broken asks
 * for another, which may be known here only from earlier breaks.
 */
bool mr_net_lingers(void)
{
    return mr_net.has_lossy_link || mr_stats[MR_STAT_BROKEN];
}

/* Without packets there is no peer yet, and nothing under way. */
void mr_net_lose(struct mr_vc *vc)
{
    struct mr_peer *p = mr_peers.peer[mr_vc_world_rank(vc)];

    if (p)
        mr_peer_lost(p, -ECONNRESET);
    else
        mr_vc_failed(mr_vc_world_rank(vc), -ECONNRESET);
}

static bool net_reaches(int rank)
{
    return mr_peer_is_remote(rank);
}

static void net_control(int rank, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_peer *p = mr_peer_of((uint32_t)rank);

    if (p && !p->error && !mr_bulk_control(p, hdr, payload, len) && !mr_rings_control(p, hdr, payload, len) &&
        !mr_grant_control(p, hdr, len) && !mr_net_health_control(p, hdr) && !mr_epoch_control(p, hdr) &&
        !mr_budget_control(p, hdr))
        mr_recovery_control(p, hdr);
}

const struct mr_channel_ops mr_channel_net = {
    .name = "net",
    .init = mr_net_init,
    .finalize = mr_net_finalize,
    .poll = mr_net_poll,
    .drained = net_drained,
    .waiting = mr_net_waiting,
    .reaches = net_reaches,
    .sizes = mr_net_sizes,
    .caps = mr_net_caps,
    .send = mr_net_send,
    .send_short = mr_net_send_short,
    .send_made = mr_net_send_made,
    .advertise = net_advertise,
    .withdraw = mr_bulk_withdraw,
    .move = mr_net_move,
    .control = net_control,
    .rails = &mr_net_guests,
};
