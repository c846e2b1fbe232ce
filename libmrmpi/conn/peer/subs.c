/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subchannels of a peer: one for each pair of rails (conn/route/pair.h), path and kind of link. Chooses the
 * subchannels for packets, and weights.
 */
#include "libmrmpi/conn/peer/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/route/health.h"
#include "libmrmpi/conn/route/pair.h"
#include "libmrmpi/verbs/verbs.h"

const char *mr_sub_name(const struct mr_sub *sub, char out[MR_SUB_NAME])
{
    const struct mr_rail_addr *far = &sub->peer->address->rail[sub->remote_rail];

    snprintf(out, MR_SUB_NAME, "%s port %u to %s port %u, path %u", sub->rail->dev->name, sub->rail->port, far->device,
             far->port, sub->path);
    return out;
}

struct mr_sub *mr_sub_find(struct mr_peer *p, unsigned rail, unsigned remote, unsigned path, unsigned kind)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *s = &p->sub[i];

        if (s->rail->index == rail && s->remote_rail == remote && s->path == path && mr_sub_kind(s) == kind)
            return s;
    }
    return NULL;
}

uint8_t mr_sub_sl(const struct mr_sub *sub, enum mr_level level)
{
    return sub->own->sl[level];
}

uint8_t mr_sub_variant(const struct mr_sub *sub)
{
    return (uint8_t)(sub->parity | sub->copy << 1);
}

int32_t mr_sub_tag(const struct mr_sub *sub, uint8_t generation)
{
    _Static_assert(MR_RAILS_MAX <= 8, "a rail's number has three bits");
    return (int32_t)(sub->rail->index | (uint32_t)sub->remote_rail << 3 | (uint32_t)(sub->path & 0x7f) << 6 |
                     (uint32_t)mr_sub_kind(sub) << 13 | (uint32_t)generation << 21);
}

struct mr_sub *mr_sub_tagged(struct mr_peer *p, uint32_t tag)
{
    return mr_sub_find(p, tag >> 3 & 7, tag & 7, tag >> 6 & 0x7f, tag >> 13 & 0xff);
}

/*
 * The reduction of a way's weight for losses: the larger of both ends', because only the end whose packets are lost
 * sees losses.
 */
static uint32_t worse_doubt(const struct mr_sub *sub)
{
    uint32_t theirs = mr_health_of(sub->peer->doubts, sub->remote_rail);

    return sub->doubt > theirs ? sub->doubt : theirs;
}

uint32_t mr_sub_sick(const struct mr_sub *sub)
{
    return mr_health_both(sub->rail->sick, mr_health_of(sub->peer->sick, sub->remote_rail));
}

/*
 * A lossy way has its whole weight while worth its use: a stall holds up all rails, so a message finishes sooner over
 * all of a rail or without the rail. Small messages gain nothing by such a way.
 */
static uint32_t sick_of(const struct mr_sub *sub)
{
    return worse_doubt(sub) == MR_WEIGHT_MAX ? MR_WEIGHT_MAX : mr_sub_sick(sub);
}

static uint32_t small_sick_of(const struct mr_sub *sub)
{
    return mr_health_both(mr_sub_sick(sub), worse_doubt(sub));
}

/* Large messages go by RDMA over links of one kind. */
static void add_sub(struct mr_peer *p, const struct mr_pair *pair, unsigned ours, unsigned kind, unsigned copy,
                    unsigned lane)
{
    unsigned all = p->num_now + p->num_spare, parity = p->num_subs >= all;
    struct mr_sub *sub = &p->sub[p->num_subs++];
    unsigned place = (unsigned)(sub - p->sub) - parity * all;

    sub->peer = p;
    sub->rail = &mr_verbs.rail[pair->rail[ours]];
    sub->remote_rail = pair->rail[!ours];
    sub->path = pair->path;
    sub->kind = (uint8_t)kind;
    sub->copy = (uint8_t)copy;
    sub->own->lane = (uint8_t)lane;
    sub->parity = (uint8_t)parity;
    sub->spare = place >= p->num_now;
    if (kind == p->own->bulk_kind && !sub->spare)
        p->rdma |= 1u << place;
    p->own->loads[parity][place] = (struct mr_load){.weight = pair->weight,
                                                    .small_weight = pair->small_weight,
                                                    .sick = sick_of(sub),
                                                    .small_sick = small_sick_of(sub),
                                                    .after = mr_spread_is_far(sub->rail->index) ? MR_SCHED_FAR : 0,
                                                    .until = &sub->rail->until};
}

/* How many pairs the rail has that has the fewest, here or there. */
static unsigned least_pairs(const struct mr_pair *pair, unsigned num)
{
    unsigned least = num;

    for (unsigned end = 0; end < 2; end++)
        for (unsigned i = 0; i < num; i++) {
            unsigned n = 0;

            for (unsigned k = 0; k < num; k++)
                n += pair[k].rail[end] == pair[i].rail[end];
            least = n < least ? n : least;
        }
    return least;
}

/*
 * The number of copies with which a class of several lanes uses all lanes on every rail: its share is divided among
 * them there.
 */
static unsigned count_copies(const struct mr_pair *pair, unsigned num, unsigned num_kinds)
{
    unsigned lanes = mr_peers.qos.level[MR_LEVEL_BULK].num_lanes, least = least_pairs(pair, num);
    unsigned copies = least ? (lanes + least - 1) / least : 1;

    while (copies > 1 && copies * num * num_kinds > MR_SUBS_MAX)
        copies--;
    return copies ? copies : 1;
}

/* The end with more rails in these pairs; the lower rank if equal. */
static unsigned richer_end(const struct mr_pair *pair, unsigned num)
{
    unsigned rails[2] = {0};

    for (unsigned i = 0; i < num; i++)
        for (unsigned end = 0; end < 2; end++)
            rails[end] |= 1u << pair[i].rail[end];
    return __builtin_popcount(rails[1]) > __builtin_popcount(rails[0]);
}

/*
 * The subchannels of a rail have the lanes in turn; where there are too few for all lanes, rails begin with others.
 * Both ends count by the rails of the same end: each may open any subchannel anew, and its levels count then.
 */
static void add_subs_of_kind(struct mr_peer *p, unsigned kind, const struct mr_pair *pair, unsigned num, unsigned ours,
                             unsigned copies)
{
    unsigned on_rail[MR_RAILS_MAX] = {0}, most = 0, end = richer_end(pair, num);

    for (unsigned i = 0; i < num; i++) {
        unsigned n = ++on_rail[pair[i].rail[end]];

        most = n > most ? n : most;
    }
    for (unsigned r = 0; r < MR_RAILS_MAX; r++)
        on_rail[r] = r * most * copies;
    for (unsigned copy = 0; copy < copies; copy++)
        for (unsigned i = 0; i < num; i++)
            add_sub(p, &pair[i], ours, kind, copy, on_rail[pair[i].rail[end]]++);
}

/* Pairs in the order of the list: those in use first, then further paths of these, then spare pairs. */
struct pairs {
    struct mr_pair pair[MR_SUBS_MAX];
    unsigned num, paths, spares;
    unsigned copies; /* of the first two */
};

/* Further paths are for large messages. */
static void add_parity(struct mr_peer *p, const struct pairs *all, unsigned ours)
{
    const struct mr_pair *path = all->pair + all->num, *spare = path + all->paths;

    for (unsigned k = 0; k < mr_peers.kinds.num; k++)
        if (p->address->kinds >> mr_peers.kinds.kind[k] & 1)
            add_subs_of_kind(p, mr_peers.kinds.kind[k], all->pair, all->num, ours, all->copies);
    for (unsigned i = 0; i < all->paths; i++)
        for (unsigned copy = 0; copy < all->copies; copy++)
            add_sub(p, &path[i], ours, p->own->bulk_kind, copy, path[i].path * all->copies + copy);
    for (unsigned k = 0; k < mr_peers.kinds.num; k++)
        for (unsigned i = 0; i < all->spares && p->address->kinds >> mr_peers.kinds.kind[k] & 1; i++)
            add_sub(p, &spare[i], ours, mr_peers.kinds.kind[k], 0, all->num + i);
}

/* Memory for so many subchannels of each parity, and to choose among them. 0 or -ENOMEM. */
static int allocate_subs(struct mr_peer *p, unsigned num, unsigned spare)
{
    size_t n = num ? num + spare : 1;
    struct mr_sub_own *own;

    p->small = calloc(n, sizeof *p->small + sizeof *p->packet_turn.due);
    p->own->loads[0] = calloc(2 * n, sizeof *p->own->loads[0]);
    p->sub = calloc(2 * n, sizeof *p->sub + sizeof *own);
    if (!p->small || !p->own->loads[0] || !p->sub)
        return -ENOMEM;
    p->packet_turn.due = (uint64_t *)(p->small + n);
    p->own->loads[1] = p->own->loads[0] + n;
    own = (void *)(p->sub + 2 * n);
    for (size_t i = 0; i < 2 * n; i++)
        p->sub[i].own = &own[i];
    p->num_now = num;
    p->num_spare = num ? spare : 0;
    p->now = p->sub;
    p->load = p->own->loads[0];
    return 0;
}

/* The lower rank is the first end at both; of guests the first by job and rank (mr_guest_compare). */
static unsigned our_end(const struct mr_peer *p)
{
    return p->guest_run ? !p->cm.first : mr_peers.launch->rank > p->rank;
}

/* Both ends, the lower rank first. near: memory for our rails. */
static void describe_ends(const struct mr_peer *p, struct mr_rail_addr near[MR_RAILS_MAX], struct mr_pair_side sides[2])
{
    unsigned ours = our_end(p);

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        near[i] = mr_verbs.rail[i].addr;
    sides[ours] = (struct mr_pair_side){.rail = near,
                                        .num_rails = mr_verbs.num_rails,
                                        .paths = mr_config.paths ? (unsigned)mr_config.paths : 1,
                                        .all = !strcmp(mr_config.pairs, "all")};
    sides[!ours] = (struct mr_pair_side){.rail = p->address->rail,
                                         .num_rails = p->address->num_rails,
                                         .paths = p->address->paths ? p->address->paths : 1,
                                         .all = p->address->all_pairs};
}

/* Returns how many pairs there are. */
static unsigned match_pairs(struct mr_peer *p, unsigned most, struct mr_pair pair[MR_SUBS_MAX], unsigned *left_out)
{
    struct mr_rail_addr near[MR_RAILS_MAX];
    struct mr_pair_side sides[2];
    unsigned ours = our_end(p), num;

    describe_ends(p, near, sides);
    num = mr_pair_match(&sides[0], &sides[1], pair, most, left_out);
    p->packet_turn.kib_time = mr_sched_kib_time(mr_pair_weigh_for(pair, num, sides, ours, mr_peers.policy));
    p->packet_turn.uneven = false;
    for (unsigned i = 0; i < num; i++)
        p->packet_turn.uneven |= pair[i].small_weight < MR_WEIGHT_MAX || mr_spread_is_far(pair[i].rail[ours]);
    return num;
}

/*
 * The other pairs of rails that reach each other, behind the first num pairs, most at most; one path each. They are the
 * same at both ends, whatever MRMPI_PAIRS is there.
 */
static unsigned list_spares(const struct mr_peer *p, struct mr_pair pair[MR_SUBS_MAX], unsigned num, unsigned most)
{
    struct mr_pair all[MR_SUBS_MAX];
    struct mr_rail_addr near[MR_RAILS_MAX];
    struct mr_pair_side sides[2];
    unsigned n = 0, left_out, num_all;

    describe_ends(p, near, sides);
    for (unsigned s = 0; s < 2; s++) {
        sides[s].all = true;
        sides[s].paths = 1;
    }
    num_all = mr_pair_match(&sides[0], &sides[1], all, MR_SUBS_MAX, &left_out);
    for (unsigned i = 0; i < num_all && n < most && num + n < MR_SUBS_MAX; i++) {
        bool found = false;

        for (unsigned k = 0; k < num && !found; k++)
            found = !memcmp(pair[k].rail, all[i].rail, sizeof all[i].rail);
        if (found)
            continue;
        pair[num + n] = all[i];
        pair[num + n].weight = pair[num + n].small_weight = MR_WEIGHT_MAX;
        n++;
    }
    return num ? n : 0;
}

/*
 * Further paths of the present pairs, behind all pairs listed so far, most at most: path 1 of all, then path 2. Neither
 * end sets a number of paths of its own.
 */
static unsigned list_paths(const struct mr_peer *p, struct pairs *all, unsigned most)
{
    unsigned n = 0, ours = our_end(p);

    if (mr_config.paths || p->address->paths || !mr_kind_is(p->own->bulk_kind, MR_IS_CONNECTED))
        return 0;
    for (unsigned path = 1; path < MR_FABRIC_PATHS_MAX; path++)
        for (unsigned i = 0; i < all->num && n < most; i++) {
            unsigned here = mr_verbs.rail[all->pair[i].rail[ours]].addr.lmc;
            unsigned there = p->address->rail[all->pair[i].rail[!ours]].lmc;

            if (path >= 1u << (here < there ? here : there))
                continue;
            all->pair[all->num + n] = all->pair[i];
            all->pair[all->num + n++].path = (uint8_t)path;
        }
    return n;
}

/* A subchannel of the pair of a further path, and the used paths that share its ports. */
static unsigned sharing_paths(const struct mr_peer *p, const struct mr_sub *sub)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->num_now; i++)
        n += p->sub[i].rail == sub->rail && p->sub[i].remote_rail == sub->remote_rail && p->sub[i].kind == sub->kind &&
             p->sub[i].copy == sub->copy && (!mr_sub_is_path(&p->sub[i]) || p->sub[i].chosen);
    return n ? n : 1;
}

/* The paths of a pair of rails have equal parts of the pair's weight. */
static void divide_weights(struct mr_peer *p)
{
    uint32_t weight[MR_SUBS_MAX], most = 1;

    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_sub *first = &p->sub[i];

        if (mr_sub_is_path(first))
            first = mr_sub_find(p, first->rail->index, first->remote_rail, 0, mr_sub_kind(first));
        weight[i] = first ? p->own->loads[0][first - p->sub].weight / sharing_paths(p, first) : MR_WEIGHT_MAX;
        most = weight[i] > most ? weight[i] : most;
    }
    for (unsigned parity = 0; parity < 2; parity++)
        for (unsigned i = 0; i < p->num_now; i++)
            p->own->loads[parity][i].weight =
                weight[i] * MR_WEIGHT_MAX / most ? weight[i] * MR_WEIGHT_MAX / most : MR_WEIGHT_MIN;
}

static void reweigh_peer(struct mr_peer *p)
{
    unsigned kinds = (unsigned)__builtin_popcount(mr_peers.our_kinds & p->address->kinds), left_out;
    struct mr_pair pair[MR_SUBS_MAX];
    unsigned num = match_pairs(p, MR_SUBS_MAX / kinds, pair, &left_out);

    for (unsigned parity = 0; parity < 2; parity++)
        for (unsigned i = 0; i < p->num_now - p->own->num_added; i++) {
            p->own->loads[parity][i].weight = pair[i % num].weight;
            p->own->loads[parity][i].small_weight = pair[i % num].small_weight;
        }
    if (p->num_paths)
        divide_weights(p);
    mr_peer_tell_reweighed(p);
    mr_sub_prefer(p);
}

void mr_peers_reweigh(void)
{
    for (int i = 0; i < mr_peers_end(); i++)
        if (mr_peers.peer[i] && mr_peers.peer[i]->num_subs)
            reweigh_peer(mr_peers.peer[i]);
}

/* Packets waiting for room on a subchannel that now rests go over others; traffic under way ends there. */
void mr_peer_take_health(struct mr_peer *p)
{
    bool changed = false;

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_load *l = &p->own->loads[p->sub[i].parity][mr_sub_place(&p->sub[i])];
        uint32_t sick = sick_of(&p->sub[i]), small_sick = small_sick_of(&p->sub[i]);

        changed |= l->sick != sick || l->small_sick != small_sick;
        mr_peers.unwell |= small_sick != 0;
        l->sick = sick;
        l->small_sick = small_sick;
    }
    if (!changed)
        return;
    mr_sub_prefer(p);
    mr_peer_tell_moved(p);
}

/* Pairs of ranks begin with different rails; both of a pair with the same one: few completion queues have something. */
static void begin_turns(struct mr_peer *p, unsigned num)
{
    const struct mr_launch *l = mr_peers.launch;
    unsigned home;

    if (p->guest_run)
        home = p->guest_mix;
    else
        home = (unsigned)(l->local_rank + mr_peer_place(p->rank)) / 2 + (unsigned)l->node_of[p->rank] +
               (unsigned)l->node_of[l->rank];

    p->packet_turn.next = p->packet_turn.home = num ? home % num : 0;
    p->packet_turn.used = MR_SCHED_QUANTUM;
}

static void list_all(struct mr_peer *p, struct pairs *all, unsigned num_kinds, unsigned *left_out)
{
    struct mr_pair spare[MR_SUBS_MAX];
    unsigned room;

    all->num = match_pairs(p, MR_SUBS_MAX / num_kinds, all->pair, left_out);
    all->copies = count_copies(all->pair, all->num, num_kinds);
    memcpy(spare, all->pair, sizeof spare);
    all->spares = list_spares(p, spare, all->num, MR_SUBS_MAX / num_kinds - all->num * all->copies);
    room = MR_SUBS_MAX - (all->num * all->copies + all->spares) * num_kinds;
    all->paths = list_paths(p, all, room / all->copies);
    memcpy(all->pair + all->num + all->paths, spare + all->num, all->spares * sizeof *spare);
}

/* All pairs of rails, their paths and kinds of links, whether their ports are up or not. */
int mr_subs_make(struct mr_peer *p)
{
    struct pairs all = {.num = 0};
    unsigned kinds = mr_peers.our_kinds & p->address->kinds, num_kinds = (unsigned)__builtin_popcount(kinds);
    unsigned left_out;
    int err;

    if (!num_kinds) {
        mr_log(MR_LOG_ERROR, "rank %d on %s: it uses no kind of link that is used here (MRMPI_LINKS)", p->rank,
               p->address->host);
        return -EHOSTUNREACH;
    }
    p->own->bulk_kind = (uint8_t)mr_kinds_bulk(kinds);
    list_all(p, &all, num_kinds, &left_out);
    if (allocate_subs(p, all.num * num_kinds * all.copies, all.paths * all.copies + all.spares * num_kinds))
        return -ENOMEM;
    p->num_paths = all.paths * all.copies;
    p->until_paths = all.paths ? MR_PATHS_AFTER : 0;
    begin_turns(p, all.num);
    for (unsigned parity = 0; parity < 2; parity++)
        add_parity(p, &all, our_end(p));
    if (mr_steer_peer(p))
        return -ENOMEM;
    err = mr_peer_tell_made(p);
    if (err)
        return err;
    p->tracked = p->rdma && !mr_kind_is(p->own->bulk_kind, MR_IS_RELIABLE) && !mr_peers.kinds.native[p->own->bulk_kind];
    if (left_out)
        mr_log(MR_LOG_WARN, "rank %d on %s: %u paths are used, %u more are not; MRMPI_PATHS asks for fewer", p->rank,
               p->address->host, all.num, left_out);
    return 0;
}

void mr_sub_renew_fast(struct mr_peer *p)
{
    uint32_t ready = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        ready |= (uint32_t)(p->load[i].up && !(p->excluded >> i & 1)) << i;
        p->small[i] = p->now[i].level[MR_LEVEL_SMALL];
    }
    p->fast = p->up && !p->steer && !p->has_lossy_link;
    p->fast_link = p->fast && p->num_now - p->own->num_added == 1 && ready == 1 ? p->small[0] : NULL;
    mr_sched_even(&mr_peers.policy[MR_POLICY_SMALL], &p->packet_turn, ready, p->num_now);
}

void mr_subs_use_spares(struct mr_peer *p)
{
    for (unsigned i = p->num_now; i < p->num_now + p->num_spare; i++)
        if (p->sub[i].kind == p->own->bulk_kind)
            p->rdma |= 1u << i;
    p->num_now += p->num_spare;
    p->own->num_added += p->num_spare;
    p->num_spare = 0;
}

/* Adds the subchannels of paths to those handled, if not yet done. */
static void add_paths(struct mr_peer *p)
{
    unsigned n = p->own->num_added ? 0 : p->num_paths;

    p->num_now += n;
    p->own->num_added += n;
    p->num_spare -= n;
}

bool mr_subs_use_paths(struct mr_peer *p, unsigned rail, unsigned remote, uint32_t set)
{
    bool changed = false;

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];
        bool chosen = mr_sub_is_path(sub) && set >> sub->path & 1;

        if (!mr_sub_is_path(sub) || sub->rail->index != rail || sub->remote_rail != remote || sub->chosen == chosen)
            continue;
        sub->chosen = chosen;
        changed = true;
        if (chosen)
            add_paths(p);
        p->rdma |= 1u << mr_sub_place(sub);
    }
    if (changed)
        reweigh_peer(p);
    return changed;
}

void mr_sub_set_up(struct mr_sub *sub, bool up)
{
    sub->peer->own->loads[sub->parity][mr_sub_place(sub)].up = up;
}

void mr_subs_change_epoch(struct mr_peer *p, uint8_t epoch)
{
    struct mr_load *before = p->load;

    p->epoch = epoch;
    p->now = p->sub + (epoch & 1) * (p->num_now + p->num_spare);
    p->load = p->own->loads[epoch & 1];
    for (unsigned i = 0; i < p->num_now; i++) { /* the rails are the same */
        p->load[i].weight = before[i].weight;
        before[i].up = false;
    }
}

/* Large messages have links of their kind, but over none of the first pairs of rails. */
static bool lacks_bulk(const struct mr_peer *p, unsigned first)
{
    for (unsigned i = 0; i < first; i++)
        if (p->rdma >> i & 1 && p->load[i].up)
            return false;
    return p->rdma;
}

/*
 * While another pair of rails leads to the peer, spare pairs carry nothing new, except large messages: over chosen
 * paths, or if no other link of their kind is open. Returns the set open for large messages only.
 */
static uint32_t rest_spares(struct mr_peer *p)
{
    unsigned first = p->num_now - p->own->num_added;
    bool needed = true, bulk = lacks_bulk(p, first);
    uint32_t large = 0;

    for (unsigned i = 0; i < first; i++)
        needed &= !p->load[i].up;
    for (unsigned i = first; i < p->num_now; i++) {
        bool used = needed || p->now[i].chosen || (bulk && p->rdma >> i & 1);

        p->load[i].up = used && p->now[i].state == MR_SUB_OPEN && !p->now[i].rail->down;
        large |= (uint32_t)(p->load[i].up && !needed) << i;
    }
    return large;
}

void mr_sub_prefer(struct mr_peer *p)
{
    uint32_t of_kind[MR_LINK_KINDS] = {0}, up = 0, large = rest_spares(p);
    bool found = false;

    for (unsigned i = 0; i < p->num_now; i++)
        if (p->load[i].up && !(large >> i & 1))
            of_kind[p->now[i].kind] |= 1u << i;
    p->excluded = p->excluded_far = 0;
    for (unsigned k = 0; k < mr_peers.kinds.num; k++) {
        uint32_t all = of_kind[mr_peers.kinds.kind[k]], set = mr_spread_narrow(p, MR_POLICY_SMALL, all);

        of_kind[mr_peers.kinds.kind[k]] = set;
        up |= all;
        p->excluded |= found ? all : all & ~set;
        if (!found && mr_peers.policy[MR_POLICY_SMALL].kind->where == MR_WHERE_NEAR)
            p->excluded_far = all & ~set;
        if (!found && set &&
            (!mr_peers.kinds.native[mr_peers.kinds.kind[k]] || !mr_kind_is(mr_peers.kinds.kind[k], MR_IS_CONFIRMING)))
            mr_peer_tell_lossy(p);
        found |= set != 0;
    }
    p->excluded |= large;
    if (p->steer)
        p->excluded = mr_steer_set(p, of_kind, up | large);
    mr_sub_renew_fast(p);
    mr_peer_tell_preferred(p);
}
