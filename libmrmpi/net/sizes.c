/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits for messages to a peer: the length of packets, the most packets of a message, and RDMA. */
#include <errno.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/net/internal.h"

#define SLOW_MBPS 10000 /* 4X SDR */

static unsigned rail_rate(const struct mr_rail_addr *a)
{
    return (unsigned)(mr_ahead_rate(a->rate_mbps, 1, 1) / 1000000);
}

/*
 * Rails for large messages: their number at the end with fewer, the best rate, in MB/s; and what their health leaves of
 * their rates: of all together, and of the rail with most.
 */
struct strength {
    unsigned num, best, all, most;
    bool alike;
};

static void add_rail(struct strength *s, const struct mr_rail_addr *a, uint32_t sick)
{
    unsigned rate = rail_rate(a), left = (unsigned)((uint64_t)rate * (MR_WEIGHT_MAX - sick) / MR_WEIGHT_MAX);

    s->alike &= !s->num || rate == s->best;
    s->best = rate > s->best ? rate : s->best;
    s->most = left > s->most ? left : s->most;
    s->all += left;
    s->num++;
}

static unsigned least_rate(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static struct strength strength_of(const struct mr_peer *p, uint32_t without)
{
    struct mr_bulk_rails set = mr_bulk_rails_to(p, without);
    struct strength here = {.alike = true}, there = {.alike = true};

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (set.here >> i & 1)
            add_rail(&here, &mr_verbs.rail[i].addr, mr_verbs.rail[i].sick);
    for (unsigned i = 0; i < p->address->num_rails; i++)
        if (set.there >> i & 1)
            add_rail(&there, &p->address->rail[i], mr_health_of(p->sick, i));
    return (struct strength){.num = least_rate(here.num, there.num),
                             .best = least_rate(here.best, there.best),
                             .all = least_rate(here.all, there.all),
                             .most = least_rate(here.most, there.most),
                             .alike = here.alike && there.alike && here.best == there.best};
}

static bool rails_are_alike(void)
{
    struct strength s = {.alike = true};

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        add_rail(&s, &mr_verbs.rail[i].addr, 0);
    return s.alike;
}

/*
 * Use RDMA read only if every rail supports it, because a message is cut over all. The peer checks its own rails. A
 * read saves the CTS, whose work the adapter does; its cost, one more packet after the data, shows only on old
 * InfiniBand adapters, whose bus goes one way at a time. Short reads are not faster than copies if one of them may wait
 * for a slow rail: of unequal rails only the fast ones have a key then (mr_bulk_one_suffices).
 */
unsigned mr_net_find_caps(void)
{
    unsigned caps = MR_VC_PUT | MR_VC_READ | MR_VC_READ_FIRST;
    uint64_t all = 0;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        all += mr_verbs.rail[i].rate_mbps;
        if (mr_verbs.rail[i].rate_mbps >= mr_model.outrun_mbps)
            caps |= MR_VC_ONE_OUTRUNS;
        if (!mr_verbs.rail[i].addr.reads)
            caps &= ~(unsigned)(MR_VC_READ | MR_VC_READ_FIRST);
        if (mr_verbs.rail[i].rate_mbps <= SLOW_MBPS && !mr_verbs.rail[i].addr.global)
            caps &= ~(unsigned)MR_VC_READ_FIRST;
    }
    if (rails_are_alike() ? all >= mr_model.outrun_mbps : mr_bulk_least_devices() == 1)
        caps |= MR_VC_OUTRUNS;
    return caps;
}

/* Where the address cannot be had sends fail anyway. 0: it has not come yet. */
static size_t find_eager_max(int rank)
{
    struct mr_peer *p = mr_peer_get(rank);
    int err = p ? mr_peer_fetch_address(p) : -ENOMEM;

    if (err == -EAGAIN)
        return 0;
    if (err || p->address->eager_max > mr_config.eager_max)
        return mr_config.eager_max;
    return p->address->eager_max;
}

/*
 * The limit of the fast path: 0 if more than the turn must be checked: rules, lossy links, limits on traffic ahead of
 * the bulk. Otherwise a message of one short packet, of the level of small messages.
 */
void mr_net_renew_short(struct mr_peer *p)
{
    size_t most = MR_PACKET_SHORT - MR_WIRE_MAX,
           max[] = {mr_peers.qos.level[MR_LEVEL_SMALL].max, mr_config.eager_max, p->address->eager_max};

    if (p->vc->ops != &mr_channel_net)
        return; /* a guest, whose packets go another way */
    for (unsigned i = 0; i < sizeof max / sizeof *max; i++)
        most = max[i] < most ? max[i] : most;
    p->vc->fast_below = p->fast && !mr_peers.ahead_limited ? (uint32_t)most + 1 : 0;
    /* a slow rail confirms late: only the fast ones have a key */
    p->vc->zsends = p->fast && !mr_net.zsends_no_more && (strength_of(p, 0).alike || mr_bulk_one_suffices(p));
}

void mr_net_renew_shorts(void)
{
    for (int i = 0; i < mr_peers_end(); i++)
        if (mr_peers.peer[i])
            mr_net_renew_short(mr_peers.peer[i]);
}

/* The best rail carries all but a third: prefixes and bounce buffers save more. */
static bool best_prevails(const struct strength *s)
{
    return s->all - s->most <= s->all / 3;
}

/* Of several messages of len bytes each goes over the best rail as a whole: the others' part is short (stripe_least) */
static bool stays_whole(const struct strength *s, size_t len)
{
    uint64_t shortest = MR_STRIPE_BUSY * mr_config.stripe_min / 2;

    return len * (uint64_t)(s->all - s->most) < shortest * s->all;
}

/* Rails are unequal by their rates, or by their health. */
unsigned mr_net_rate(const struct mr_vc *vc, size_t len, uint32_t without, size_t *whole)
{
    const struct mr_peer *p = mr_peers.peer[mr_vc_world_rank(vc)];
    struct strength s;

    *whole = 0;
    if (!p || !p->address->magic)
        return 0;
    if (mr_verbs.num_rails > 1 && mr_peers.policy[MR_POLICY_LARGE].kind->where != MR_WHERE_ALL)
        return 0; /* packets go where the other policy says */
    s = strength_of(p, without);
    if (!s.alike || best_prevails(&s))
        return best_prevails(&s) && (s.num == 1 || stays_whole(&s, len)) ? s.best : 0;
    *whole = s.num > 1 ? MR_STRIPE_BUSY * mr_config.stripe_min : 0;
    return s.num * s.best;
}

/* Long messages in pieces of one datagram each. */
static size_t find_packet_max(size_t eager_max)
{
    size_t least = eager_max;

    if (mr_net.by_ring && mr_kind_is(mr_peers.kinds.kind[0], MR_IS_RING))
        return least < mr_config.ring_size ? least : mr_config.ring_size;
    if (!mr_kind_is(mr_peers.kinds.kind[0], MR_IS_DATAGRAM))
        return least;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail_addr *a = &mr_verbs.rail[i].addr;
        size_t fits = mr_udp_mtu(a, a) - MR_WIRE_MAX - MR_ACK_WIRE_MAX;

        least = fits < least ? fits : least;
    }
    return least;
}

/* Eager messages of several packets go over unequal rails, too: packets go where they arrive in order (sched.h). */
void mr_net_sizes(struct mr_vc *vc)
{
    size_t max = find_eager_max(mr_vc_world_rank(vc));

    if (!max)
        return;
    vc->eager_max = (uint32_t)max;
    vc->eager_most = vc->eager_max * (unsigned)mr_config.eager_packets;
    vc->packet_max = find_packet_max(max);
}

/*
 * Capabilities of both ends. Until the address has come: ours, and the peer checks again; except for messages that are
 * only offered because the address is missing: they would have memory registered, the program's stack perhaps, which a
 * forked child then lacks.
 */
unsigned mr_net_caps(int rank, size_t len)
{
    struct mr_peer *p = mr_peers.rationed ? mr_peer_get(rank) : mr_peers.peer[rank];
    unsigned common = !p ? 0 : p->address->magic ? p->address->kinds & mr_peers.our_kinds : mr_peers.our_kinds;
    unsigned bulk = mr_kinds_bulk(common);
    unsigned datagrams = mr_kinds_that_are(common, MR_IS_DATAGRAM) && mr_config.ud_pool ? MR_VC_DATAGRAMS : 0;

    if (p && !p->address->magic && len <= mr_config.eager_max)
        return 0;
    if (p && common && mr_peers.rules.num && !mr_steer_by_rdma(p, len))
        return 0;
    if (p && mr_peers.rationed && !mr_budget_rdma(p))
        return datagrams;
    if (mr_net.by_ring && mr_kind_is(bulk, MR_IS_RING))
        return 0; /* sent through the ring, in packets */
    if (mr_kind_is(bulk, MR_IS_READING))
        return mr_net.caps | datagrams | (mr_net.caps & MR_VC_READ ? MR_VC_WINDOW | MR_VC_ATTACHED : 0u) |
               (mr_net.caps & MR_VC_READ_FIRST && !mr_peers.paced && !mr_peers.ahead_limited ? MR_VC_WRITE_BACK : 0u);
    return datagrams | (bulk < MR_LINK_KINDS ? mr_net.caps & MR_VC_PUT : 0);
}
