/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections within a budget (M. Koop, T. Jones, D. Panda, "MVAPICH-Aptus: Scalable High-Performance Multi-Transport
 * MPI over InfiniBand", IPDPS 2008, section 4). Where datagrams may be used beside connections, all peers can be
 * reached by those, which cost next to nothing; connections, whose queue pairs take memory here and in the adapter, are
 * for so many peers: those to whom most is sent. A peer gets one when enough messages have gone there (MRMPI_RC_AFTER),
 * or with its first large message; if there are as many as may be (MRMPI_RC_PEERS), only if another one deserves it
 * less, whose connection is closed then, by both ends, when nothing is under way on it (change.c). The budget is soft:
 * what a peer opens is not refused, and a large message that was promised is moved.
 */
#include "libmrmpi/rail/net.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

#define TICK_NS     10000000ull
#define LARGE_COUNT 64 /* packets that a large message counts for */

static uint8_t connected_kinds(void)
{
    uint8_t set = 0;

    for (unsigned k = 0; k < mr_net.kinds.num; k++)
        if (mr_link_kinds[mr_net.kinds.kind[k]]->connected)
            set |= (uint8_t)(1u << mr_net.kinds.kind[k]);
    return set;
}

void mr_budget_init(void)
{
    uint8_t all = 0;

    for (unsigned k = 0; k < mr_net.kinds.num; k++)
        all |= (uint8_t)(1u << mr_net.kinds.kind[k]);
    mr_net.rationed = connected_kinds();
    if (mr_net.rationed == all)
        mr_net.rationed = 0; /* nothing else leads anywhere */
}

static void want(struct mr_peer *p, uint8_t kinds)
{
    bool before = p->wanted & mr_net.rationed, after = kinds & mr_net.rationed;

    p->wanted = kinds;
    mr_net.num_rationed += (unsigned)after - (unsigned)before;
}

/* Everybody is found by the launcher's rank order, so a job that begins with all to all keeps the first ones. */
void mr_budget_first(struct mr_peer *p, uint8_t kinds)
{
    bool preferred = mr_net.rationed >> mr_net.kinds.kind[0] & 1;
    bool now = preferred && !mr_config.rc_after && mr_net.num_rationed < (unsigned)mr_config.rc_peers;
    bool only = !(kinds & ~mr_net.rationed);

    want(p, now || only ? kinds : kinds & (uint8_t)~mr_net.rationed);
}

void mr_budget_asked(struct mr_peer *p, unsigned kind)
{
    want(p, p->wanted | (uint8_t)(1u << kind));
}

void mr_budget_lost(struct mr_peer *p)
{
    want(p, 0);
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static void park(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];

        if (!(mr_net.rationed >> sub->kind & 1) || sub->state != MR_SUB_OPEN)
            continue;
        sub->closing = true;
        p->loads[sub->side][mr_sub_place(sub)].up = false;
    }
    want(p, p->wanted & (uint8_t)~mr_net.rationed);
    mr_sub_prefer(p);
    mr_bulk_move(p);
    mr_mend(p);
}

void mr_budget_heard(struct mr_peer *p)
{
    if (p->wanted & mr_net.rationed && p->card.kinds & ~mr_net.rationed)
        park(p);
}

static bool can_spare(const struct mr_peer *p)
{
    return p && p->up && !p->error && p->wanted & mr_net.rationed && p->card.kinds & ~mr_net.rationed && !p->puts &&
           !p->orphans;
}

static struct mr_peer *least_useful(void)
{
    struct mr_peer *least = NULL;

    for (int r = 0; r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        if (can_spare(p) && (!least || p->use < least->use))
            least = p;
    }
    return least;
}

static void evict(struct mr_peer *p)
{
    mr_log(MR_LOG_DEBUG, "rank %d on %s: its connection is closed for another rank's", p->rank, p->card.host);
    mr_stat_add(MR_STAT_EVICTED, 1);
    mr_mend_tell_parked(p);
    park(p);
}

/* ---- opening -------------------------------------------------------------------------------------------------------
 */

static bool has_room(void)
{
    return mr_net.num_rationed < (unsigned)mr_config.rc_peers;
}

/* Somebody who is worth less than half of this one. */
static bool make_room(const struct mr_peer *p)
{
    struct mr_peer *least = has_room() ? NULL : least_useful();

    if (least && least != p && 2 * least->use < p->use)
        evict(least);
    return has_room();
}

static void open_connections(struct mr_peer *p)
{
    want(p, p->wanted | (mr_net.rationed & p->card.kinds));
    mr_mend(p);
}

bool mr_budget_rdma(struct mr_peer *p)
{
    if (!mr_net.rationed || p->wanted & mr_net.rationed)
        return true;
    p->use += LARGE_COUNT;
    if (!p->card.kinds || !make_room(p))
        return !p->card.kinds && has_room(); /* we have not met, and shall */
    open_connections(p);
    return true;
}

void mr_budget_need(struct mr_peer *p)
{
    if (mr_net.rationed && !(p->wanted & mr_net.rationed))
        open_connections(p);
}

/* ---- time
 * ------------------------------------------------------------------------------------------------------------ */

/* Packets in both directions, half of what is older than a tick forgotten. */
static void count_use(struct mr_peer *p)
{
    uint32_t packets = p->out.next + mr_vc_received(p->vc);

    p->use = p->use / 2 + (packets - p->counted);
    p->counted = packets;
}

static bool deserves(const struct mr_peer *p)
{
    return p->up && !p->error && !(p->wanted & mr_net.rationed) && p->card.kinds & mr_net.rationed &&
           p->counted >= (uint32_t)mr_config.rc_after && p->use;
}

void mr_budget_tick(uint64_t now_ns)
{
    struct mr_peer *best = NULL;

    if (now_ns - mr_net.budget_ns < TICK_NS)
        return;
    mr_net.budget_ns = now_ns;
    for (int r = 0; r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        if (!p)
            continue;
        count_use(p);
        if (!deserves(p))
            continue;
        if (has_room())
            open_connections(p);
        else if (!best || p->use > best->use)
            best = p;
    }
    while (mr_net.num_rationed > (unsigned)mr_config.rc_peers && least_useful())
        evict(least_useful());
    if (best && make_room(best))
        open_connections(best);
}
