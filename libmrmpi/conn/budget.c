/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections within a budget (M. Koop, T. Jones, D. Panda, "MVAPICH-Aptus: Scalable High-Performance Multi-Transport
 * MPI over InfiniBand", IPDPS 2008, section 4). If datagrams may be used beside connections, datagrams reach all peers
 * at next to no cost. Connections take memory for queue pairs, here and in the adapter, and are for a limited number of
 * peers with the most traffic. A peer gets a connection after enough messages (MRMPI_RC_AFTER), or with its first large
 * message. At the limit (MRMPI_RC_PEERS), a peer gets a connection only if another peer deserves its own less
 * (quota.h); both ends first close the other peer's connection, when nothing is under way there (epoch.c).
 *
 * The limit follows from the queue pairs that the adapters serve at full rate (verbs/contexts.h), in equal parts for
 * the ranks of the job's fullest host.
 *
 * The budget is each rank's own. A rank without room leaves a requested connection out of its answer, or refuses, and
 * is asked again after a pause, if the connection still matters. Only a large message that was promised by RDMA, and
 * lost its connection before the transfer, gets a connection beyond the budget: otherwise two full ranks would wait for
 * each other. In a job with more ranks than the budget, nothing is promised before there is a connection, so this is
 * rare.
 */
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/conn/route/quota.h"

#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

#define TICK_NS     10000000ull
#define LARGE_COUNT 64 /* packets equivalent to a large message */

/* Ranks on the fullest host, and the largest number of ranks on other hosts seen by any rank. */
static void count_ranks(const struct mr_launch *launch, unsigned *fullest, unsigned *others)
{
    int *ranks = calloc((size_t)launch->num_nodes, sizeof *ranks), fewest = launch->size, most = 1;

    *fullest = *others = (unsigned)launch->size;
    if (!ranks)
        return;
    for (int r = 0; r < launch->size; r++)
        ranks[launch->node_of[r]]++;
    for (int n = 0; n < launch->num_nodes; n++) {
        fewest = ranks[n] < fewest ? ranks[n] : fewest;
        most = ranks[n] > most ? ranks[n] : most;
    }
    free(ranks);
    *fullest = (unsigned)most;
    *others = (unsigned)(launch->size - fewest);
}

bool mr_budget_exceeded(const struct mr_launch *launch)
{
    unsigned fullest, others;

    count_ranks(launch, &fullest, &others);
    if (!mr_config.rc_peers)
        mr_config.rc_peers = (int)mr_quota_peers(mr_verbs_contexts(), fullest);
    return others > (unsigned)mr_config.rc_peers;
}

void mr_budget_init(void)
{
    unsigned all = mr_kinds_set(&mr_peers.kinds);

    mr_peers.rationed = (uint8_t)mr_kinds_that_are(all, MR_IS_CONNECTED);
    if (mr_peers.rationed == all)
        mr_peers.rationed = 0; /* nothing else leads anywhere */
    mr_connect.suffices = !mr_budget_exceeded(mr_peers.launch);
}

static unsigned budget_limit(void)
{
    return (unsigned)mr_config.rc_peers;
}

/* Nothing else leads there. */
static bool has_no_other(uint8_t kinds)
{
    return !(kinds & ~mr_peers.rationed);
}

/* Packets would go over a connection if there were one. */
static bool would_be_used(const struct mr_peer *p)
{
    return mr_peers.rules.num ? mr_steer_wants(p, mr_peers.rationed) : mr_peers.rationed >> mr_peers.kinds.kind[0] & 1;
}

/* The first peers that are met have the connections, as long as there is room. */
void mr_budget_first(struct mr_peer *p, uint8_t kinds)
{
    bool now = would_be_used(p) && !mr_config.rc_after && mr_connect.num_held < budget_limit();

    mr_ration_want(p, now || has_no_other(kinds) ? kinds : kinds & (uint8_t)~mr_peers.rationed);
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static bool kind_is_rationed(const struct mr_sub *sub)
{
    return mr_peers.rationed >> sub->kind & 1;
}

static void park_connections(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];

        if (!kind_is_rationed(sub) || sub->state != MR_SUB_OPEN)
            continue;
        sub->closing = true;
        mr_sub_set_up(sub, false);
    }
    mr_ration_want(p, p->connect->wanted & (uint8_t)~mr_peers.rationed);
    mr_sub_prefer(p);
    mr_peer_tell_moved(p);
    mr_peer_due(p);
}

bool mr_budget_control(struct mr_peer *p, const struct mr_hdr *hdr)
{
    if (hdr->kind != MR_CONTROL_PARKED)
        return false;
    if (p->connect->wanted & mr_peers.rationed && p->address->kinds & ~mr_peers.rationed)
        park_connections(p);
    return true;
}

static void tell_parked(struct mr_peer *p)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_PARKED, .tag = mr_sub_tag(&p->sub[0], 0)};

    mr_vc_send_control(p->vc, &hdr, NULL, 0);
}

static bool can_spare(const struct mr_peer *p)
{
    return p && p->up && !p->error && p->connect->wanted & mr_peers.rationed &&
           p->address->kinds & ~mr_peers.rationed && !p->num_large;
}

static struct mr_peer *least_useful(void)
{
    struct mr_peer *least = NULL;

    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        if (can_spare(p) && (!least || p->use < least->use))
            least = p;
    }
    return least;
}

static void evict_peer(struct mr_peer *p)
{
    mr_log(MR_LOG_DEBUG, "rank %d on %s: its connection is closed for another rank's", p->rank, p->address->host);
    mr_stat_add(MR_STAT_EVICTED, 1);
    tell_parked(p);
    park_connections(p);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* True if there is room for p now. If another connection must be closed first, its closing begins. */
static bool has_room_for(const struct mr_peer *p)
{
    struct mr_peer *least = mr_connect.num_held < budget_limit() ? NULL : least_useful();

    switch (mr_quota_ask(mr_connect.num_held, mr_connect.num_rationed, budget_limit(), p->use,
                         least ? least->use : UINT32_MAX)) {
    case MR_QUOTA_OPEN:
        return true;
    case MR_QUOTA_MAKE_ROOM:
        evict_peer(least);
        break;
    case MR_QUOTA_WAIT:
    case MR_QUOTA_NO:
        break;
    }
    return false;
}

static void open_connections(struct mr_peer *p)
{
    mr_ration_want(p, p->connect->wanted | (mr_peers.rationed & p->address->kinds));
    mr_peer_due(p);
}

static bool has_open_rdma(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_now; i++)
        if (p->rdma >> i & 1 && p->load[i].up)
            return true;
    return false;
}

bool mr_budget_rdma(struct mr_peer *p)
{
    bool all = mr_connect.suffices;

    if (!mr_peers.rationed || (p->connect->wanted & mr_peers.rationed && (all || has_no_other(p->connect->wanted))))
        return true;
    if (p->connect->wanted & mr_peers.rationed)
        return has_open_rdma(p);
    p->use += LARGE_COUNT;
    if (!p->address->kinds)
        return all; /* we have not met, and shall */
    if (mr_clock_ns() >= p->connect->ask_ns && has_room_for(p))
        open_connections(p);
    return all && p->connect->wanted & mr_peers.rationed;
}

/* Beyond the budget if necessary; then another connection closes as soon as possible. */
void mr_budget_need(struct mr_peer *p)
{
    if (!mr_peers.rationed || p->connect->wanted & mr_peers.rationed)
        return;
    open_connections(p);
    if (mr_connect.num_rationed > budget_limit() && least_useful())
        evict_peer(least_useful());
}

bool mr_budget_allows(struct mr_peer *p, bool needed)
{
    if (p->connect->wanted & mr_peers.rationed || has_no_other(p->address->kinds & mr_peers.our_kinds) ||
        has_room_for(p))
        return true;
    if (needed)
        return true; /* the tick closes another one's */
    mr_stat_add(MR_STAT_REFUSED, 1);
    return false;
}

void mr_budget_refused(struct mr_peer *p)
{
    if (has_no_other(p->connect->wanted))
        return;
    if (p->connect->refusals < UINT8_MAX)
        p->connect->refusals++;
    p->connect->ask_ns = mr_clock_ns() + mr_quota_pause(p->connect->refusals);
    mr_ration_want(p, p->connect->wanted & (uint8_t)~mr_peers.rationed);
    if (p->needed)
        mr_budget_need(p);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* Packets in both directions. */
static void count_use(struct mr_peer *p, uint64_t passed_ns)
{
    uint32_t packets = p->out.next + mr_vc_received(p->vc), more = packets - p->counted;

    p->use = mr_quota_use(p->use, more);
    p->rate = mr_quota_rate(p->rate, more, passed_ns);
    p->counted = packets;
}

static bool deserves_connection(const struct mr_peer *p, uint64_t now_ns)
{
    return p->up && !p->error && !(p->connect->wanted & mr_peers.rationed) && p->address->kinds & mr_peers.rationed &&
           p->counted >= (uint32_t)mr_config.rc_after && p->use && now_ns >= p->connect->ask_ns && would_be_used(p);
}

static struct mr_peer *most_deserving(uint64_t now_ns)
{
    struct mr_peer *best = NULL;

    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        if (p && deserves_connection(p, now_ns) && (!best || p->use > best->use))
            best = p;
    }
    return best;
}

bool mr_budget_tick(uint64_t now_ns)
{
    struct mr_peer *best;
    uint64_t passed = now_ns - mr_connect.budget_ns;

    if (passed < TICK_NS)
        return false;
    mr_connect.budget_ns = now_ns;
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        if (!p)
            continue;
        count_use(p, passed);
        if (mr_peers.rules.num && mr_steer_is_stale(p))
            mr_sub_prefer(p);
    }
    while ((best = most_deserving(now_ns)) && mr_connect.num_held < budget_limit())
        open_connections(best);
    while (mr_connect.num_rationed > budget_limit() && least_useful())
        evict_peer(least_useful());
    if (best && has_room_for(best))
        open_connections(best);
    return true;
}
