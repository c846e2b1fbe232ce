/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meaning of the evidence about ways (conn/route/trust.h): the part of its rate that a way carries, whether the way
 * is worth its use, and the reduction of its subchannels' weights. Together with fabricd's health of the rails this is
 * the load's sick (conn/peer/subs.c): small messages take the healthiest way, large messages all ways worth their use.
 */
#include "libmrmpi/conn/internal.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

#define DOUBT_STEP   (MR_WEIGHT_MAX / 16) /* less changes nothing */
#define UNKNOWN_MBPS 10000                /* a port with unknown rate */

static uint32_t known_rate(const struct mr_sub *sub)
{
    uint32_t here = sub->rail->rate_mbps, there = sub->peer->address->rail[sub->remote_rail].rate_mbps;

    uint32_t least = here < there ? here : there;

    return least ? least : UNKNOWN_MBPS;
}

static bool carries(const struct mr_sub *sub)
{
    return sub->state == MR_SUB_OPEN && !sub->rail->down && !mr_sub_retires(sub);
}

static struct mr_trust_way describe_way(const struct mr_sub *sub)
{
    return (struct mr_trust_way){.rate_mbps = known_rate(sub), .mtu = 128u << sub->rail->addr.mtu};
}

uint32_t mr_way_value(const struct mr_sub *sub, uint64_t now_ns)
{
    struct mr_trust_way way = describe_way(sub);

    return mr_trust_value(mr_way_trust(sub), &way, now_ns);
}

/* The rate of the other open ways: of each other rail the best; without any, the best of the same rail. */
static uint32_t others_of(const struct mr_sub *way, uint64_t now_ns)
{
    const struct mr_peer *p = way->peer;
    uint32_t best[MR_RAILS_MAX] = {0}, sum = 0;

    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_sub *s = &p->sub[i];
        uint64_t rate = carries(s) && !mr_is_same_way(s, way) ? known_rate(s) : 0;

        rate = rate * mr_way_value(s, now_ns) / MR_TRUST_FULL;
        if (rate > best[s->rail->index])
            best[s->rail->index] = (uint32_t)rate;
    }
    for (unsigned r = 0; r < MR_RAILS_MAX; r++)
        sum += r == way->rail->index ? 0 : best[r];
    return sum ? sum : best[way->rail->index];
}

/* What fabricd leaves of a rail's weight is all that the way adds to the others; a stall holds up everything. */
bool mr_way_is_worth(const struct mr_sub *sub, uint64_t now_ns)
{
    struct mr_trust_way way = describe_way(sub);

    way.others_mbps = others_of(sub, now_ns);
    way.rate_mbps = (uint32_t)((uint64_t)way.rate_mbps * (MR_WEIGHT_MAX - mr_sub_sick(sub)) / MR_WEIGHT_MAX);
    return mr_way_value(sub, now_ns) > mr_trust_least(&way) || !way.others_mbps;
}

static uint32_t doubt_in_steps(const struct mr_sub *sub, uint64_t now_ns)
{
    uint32_t doubt = (MR_TRUST_FULL - mr_way_value(sub, now_ns)) * MR_WEIGHT_MAX / MR_TRUST_FULL;

    doubt -= doubt % DOUBT_STEP;
    return doubt && !mr_way_is_worth(sub, now_ns) ? MR_WEIGHT_MAX : doubt;
}

static void log_doubt(const struct mr_sub *sub, uint32_t doubt)
{
    char name[MR_SUB_NAME];

    mr_log(MR_LOG_DEBUG, "rank %d, %s: it loses packets, or has; %u percent of its weight are left", sub->peer->rank,
           mr_sub_name(sub, name), (MR_WEIGHT_MAX - doubt) * 100 / MR_WEIGHT_MAX);
}

void mr_ways_weigh(struct mr_peer *p, uint64_t now_ns)
{
    bool changed = false;

    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_trust *t = mr_way_trust(&p->sub[i]);
        uint32_t doubt = t->lost || t->stood_us ? doubt_in_steps(&p->sub[i], now_ns) : 0;

        if (doubt == p->sub[i].doubt)
            continue;
        if (mr_sub_is_current(&p->sub[i]))
            log_doubt(&p->sub[i], doubt);
        p->sub[i].doubt = doubt;
        changed = true;
    }
    if (!changed)
        return;
    mr_peer_take_health(p);
    mr_peer_tell_doubted(p);
}

void mr_ways_lose(const struct mr_sub *way, uint64_t now_ns)
{
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        if (!p || !mr_peers_share_host(r, way->peer->rank) || !p->up || p->error)
            continue;
        for (unsigned i = 0; i < p->num_subs; i++)
            if (carries(&p->sub[i]) && mr_is_shared_way(&p->sub[i], way) &&
                mr_trust_loss(mr_way_trust(&p->sub[i]), now_ns) <= MR_WAY_LOSES)
                mr_trust_tried(mr_way_trust(&p->sub[i]), 2, 2, now_ns);
    }
}

void mr_way_told(struct mr_sub *sub)
{
    if (!sub->lossy)
        mr_ways_lose(sub, mr_clock_ns());
    sub->lossy = true;
}
