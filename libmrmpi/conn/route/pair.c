/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairing of rails; see pair.h for the order. */
#include "libmrmpi/conn/route/pair.h"

#include <string.h>

/* The rails of both sides in one subnet. */
struct subnet {
    uint8_t rail[2][MR_RAILS_MAX];
    unsigned num[2];
};

bool mr_pair_reaches(const struct mr_rail_addr *a, const struct mr_rail_addr *b)
{
    return a->global == b->global && (a->global ? a->gid_kind == b->gid_kind : !memcmp(a->gid, b->gid, 8));
}

static unsigned paths_of(const struct mr_rail_addr *a, const struct mr_rail_addr *b, unsigned want)
{
    unsigned lmc = a->lmc < b->lmc ? a->lmc : b->lmc;

    return want < 1u << lmc ? want : 1u << lmc;
}

static void add_rails(struct subnet *s, unsigned side, const struct mr_pair_side *of, const struct mr_rail_addr *like)
{
    for (unsigned i = 0; i < of->num_rails; i++)
        if (mr_pair_reaches(like, &of->rail[i]))
            s->rail[side][s->num[side]++] = (uint8_t)i;
}

/* Mb/s of all pairs together, of the k-th with the k-th; 0 if the rate of some port is not known. */
static uint64_t rate_in_order(const struct subnet *s, const struct mr_pair_side *side[2])
{
    unsigned rich = s->num[1] > s->num[0], most = s->num[rich], least = s->num[!rich];
    uint64_t sum = 0;

    for (unsigned k = 0; k < most; k++) {
        uint32_t own = side[rich]->rail[s->rail[rich][k]].rate_mbps;
        uint32_t shared = side[!rich]->rail[s->rail[!rich][k % least]].rate_mbps;
        uint32_t part = shared / (most / least + (k % least < most % least));

        if (!own || !shared)
            return 0;
        sum += own < part ? own : part;
    }
    return sum;
}

static void sort_by_rate(struct subnet *s, unsigned side, const struct mr_pair_side *of)
{
    uint8_t *rail = s->rail[side];

    for (unsigned i = 1; i < s->num[side]; i++)
        for (unsigned k = i; k > 0 && of->rail[rail[k]].rate_mbps > of->rail[rail[k - 1]].rate_mbps; k--) {
            uint8_t slower = rail[k - 1];

            rail[k - 1] = rail[k];
            rail[k] = slower;
        }
}

/* The fastest with the fastest, if ports of different rates would meet otherwise, and so more can be carried. */
static void choose_order(struct subnet *s, const struct mr_pair_side *first, const struct mr_pair_side *second)
{
    const struct mr_pair_side *side[2] = {first, second};
    struct subnet sorted = *s;
    uint64_t rate = rate_in_order(s, side);

    sort_by_rate(&sorted, 0, first);
    sort_by_rate(&sorted, 1, second);
    if (rate && rate_in_order(&sorted, side) > rate)
        *s = sorted;
}

/* Subnets that both sides are in, in the order of the first side's rails. */
static unsigned find_subnets(const struct mr_pair_side *first, const struct mr_pair_side *second,
                             struct subnet out[MR_RAILS_MAX])
{
    unsigned n = 0, seen = 0;

    for (unsigned i = 0; i < first->num_rails; i++) {
        struct subnet *s = &out[n];

        if (seen & 1u << i)
            continue;
        *s = (struct subnet){.num = {0, 0}};
        add_rails(s, 0, first, &first->rail[i]);
        add_rails(s, 1, second, &first->rail[i]);
        for (unsigned k = 0; k < s->num[0]; k++)
            seen |= 1u << s->rail[0][k];
        if (!s->num[1])
            continue;
        choose_order(s, first, second);
        n++;
    }
    return n;
}

/*
 * All pairs: first the k-th with the k-th, then each with the next one, and so on. So every rail has its part even if
 * the rest is cut off.
 */
static unsigned list_all_pairs(const struct subnet *subnet, unsigned num, bool all,
                               struct mr_pair out[MR_RAILS_MAX * MR_RAILS_MAX])
{
    unsigned n = 0;

    for (unsigned shift = 0; shift < MR_RAILS_MAX; shift++)
        for (const struct subnet *s = subnet; s < subnet + num; s++) {
            unsigned rich = s->num[1] > s->num[0], most = s->num[rich], least = s->num[!rich];

            for (unsigned k = 0; k < most && shift < (all ? least : 1); k++) {
                struct mr_pair *p = &out[n++];

                *p = (struct mr_pair){.path = 0};
                p->rail[rich] = s->rail[rich][k];
                p->rail[!rich] = s->rail[!rich][(k + shift) % least];
            }
        }
    return n;
}

static unsigned count_subs(const struct mr_pair *pair, unsigned n, const struct mr_pair_side *first,
                           const struct mr_pair_side *second, unsigned paths)
{
    unsigned subs = 0;

    for (unsigned i = 0; i < n; i++)
        subs += paths_of(&first->rail[pair[i].rail[0]], &second->rail[pair[i].rail[1]], paths);
    return subs;
}

unsigned mr_pair_match(const struct mr_pair_side *first, const struct mr_pair_side *second,
                       struct mr_pair out[MR_SUBS_MAX], unsigned most, unsigned *left_out)
{
    struct subnet subnet[MR_RAILS_MAX];
    struct mr_pair pair[MR_RAILS_MAX * MR_RAILS_MAX];
    unsigned num = list_all_pairs(subnet, find_subnets(first, second, subnet), first->all && second->all, pair);
    unsigned paths = first->paths < second->paths ? first->paths : second->paths;
    unsigned wanted = count_subs(pair, num, first, second, paths), n = 0;

    while (paths > 1 && count_subs(pair, num, first, second, paths) > most)
        paths--;
    for (unsigned i = 0; i < num; i++) {
        unsigned each = paths_of(&first->rail[pair[i].rail[0]], &second->rail[pair[i].rail[1]], paths);

        for (unsigned path = 0; path < each && n < most; path++) {
            out[n] = pair[i];
            out[n++].path = (uint8_t)path;
        }
    }
    *left_out = wanted - n;
    return n;
}

/* A subchannel's share of a port, in 1/1024 Mb/s. A port with unknown rate counts as the fastest one. */
static uint64_t share_of_port(const struct mr_rail_addr *rail, unsigned sharers, uint32_t fastest, bool by_rate)
{
    uint64_t rate = by_rate && rail->rate_mbps ? rail->rate_mbps : fastest;

    return (rate << 10) / sharers;
}

uint32_t mr_pair_weigh(struct mr_pair *pair, unsigned n, const struct mr_pair_side *first,
                       const struct mr_pair_side *second, bool by_rate)
{
    const struct mr_pair_side *side[2] = {first, second};
    unsigned sharers[2][MR_RAILS_MAX] = {{0}};
    uint64_t part[MR_SUBS_MAX], largest = 1;
    uint32_t fastest = 1;

    for (unsigned i = 0; i < n; i++)
        for (unsigned s = 0; s < 2; s++) {
            const struct mr_rail_addr *rail = &side[s]->rail[pair[i].rail[s]];

            sharers[s][pair[i].rail[s]]++;
            fastest = rail->rate_mbps > fastest ? rail->rate_mbps : fastest;
        }
    for (unsigned i = 0; i < n; i++) {
        uint64_t of[2];

        for (unsigned s = 0; s < 2; s++)
            of[s] = share_of_port(&side[s]->rail[pair[i].rail[s]], sharers[s][pair[i].rail[s]], fastest, by_rate);
        part[i] = of[0] < of[1] ? of[0] : of[1];
        largest = part[i] > largest ? part[i] : largest;
    }
    for (unsigned i = 0; i < n; i++) {
        uint64_t weight = part[i] * MR_WEIGHT_MAX / largest;

        pair[i].weight = weight < MR_WEIGHT_MIN ? MR_WEIGHT_MIN : (uint32_t)weight;
    }
    return largest >> 10 ? (uint32_t)(largest >> 10) : 1;
}

static void give_weights(const struct mr_policy *policy, struct mr_pair *pair, unsigned num,
                         const struct mr_pair_side *side, unsigned ours, bool small)
{
    struct mr_policy_port port[MR_RAILS_MAX];
    unsigned sharers[MR_RAILS_MAX] = {0};
    uint64_t part[MR_SUBS_MAX], most = 1;

    for (unsigned i = 0; i < side->num_rails; i++)
        port[i] = (struct mr_policy_port){.device = side->rail[i].device, .port = side->rail[i].port};
    for (unsigned i = 0; i < num; i++)
        sharers[pair[i].rail[ours]]++;
    for (unsigned i = 0; i < num; i++) {
        uint64_t weight = mr_policy_weight(policy, port, side->num_rails, pair[i].rail[ours]);

        part[i] = ((weight ? weight : 1) << 10) / sharers[pair[i].rail[ours]];
        most = part[i] > most ? part[i] : most;
    }
    for (unsigned i = 0; i < num; i++) {
        uint64_t weight = (part[i] * MR_WEIGHT_MAX + most / 2) / most;

        *(small ? &pair[i].small_weight : &pair[i].weight) = weight ? (uint32_t)weight : 1;
    }
}

uint32_t mr_pair_weigh_for(struct mr_pair *pair, unsigned n, const struct mr_pair_side side[2], unsigned ours,
                           const struct mr_policy policy[])
{
    const struct mr_policy *small = &policy[MR_POLICY_SMALL], *large = &policy[MR_POLICY_LARGE];

    uint32_t mbps = mr_pair_weigh(pair, n, &side[0], &side[1], true);

    for (unsigned i = 0; i < n; i++)
        pair[i].small_weight = pair[i].weight;
    if (large->kind->weights == MR_WEIGHTS_EVEN || large->kind->weights == MR_WEIGHTS_PAPER)
        mr_pair_weigh(pair, n, &side[0], &side[1], false);
    if (small->num_rails && small->kind->where == MR_WHERE_ALL)
        give_weights(small, pair, n, &side[ours], ours, true);
    if (large->num_rails && large->kind->where == MR_WHERE_ALL)
        give_weights(large, pair, n, &side[ours], ours, false);
    return mbps;
}
