/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts are alike if their rails and fabricd's answers are: pairs of the same two kinds of hosts are one paragraph. The
 * library's own functions pair and weigh rails, and cut messages.
 */
#include "mrrun/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/route/ahead.h"
#include "libmrmpi/conn/route/pair.h"
#include "mrrun/costs.h"
#include "mrrun/values.h"

#define NAMES_MAX  6     /* most hosts named */
#define SLOW_MBPS  10000 /* as in net/net.c: 4X SDR */
#define MANY_COUNT 1000000000u

/* ---- groups of equal hosts --------------------------------------------------------------------------------------- */

static bool same_rail(const struct mr_rail_addr *a, const struct mr_rail_addr *b)
{
    return !strcmp(a->device, b->device) && a->port == b->port && a->rate_mbps == b->rate_mbps && a->lmc == b->lmc &&
           a->mtu == b->mtu && a->reads == b->reads && mr_pair_reaches(a, b);
}

static bool same_levels(const struct mr_fabric_qos *a, const struct mr_fabric_qos *b)
{
    for (unsigned l = 0; l < MR_LEVELS; l++)
        if (a->level[l].max != b->level[l].max || a->level[l].num_lanes != b->level[l].num_lanes ||
            memcmp(a->level[l].sl, b->level[l].sl, a->level[l].num_lanes))
            return false;
    return !strcmp(a->class_name, b->class_name);
}

static bool same_host_rails(const struct host_rails *a, const struct host_rails *b)
{
    if (a->num != b->num || a->known != b->known || a->fabricd_error != b->fabricd_error ||
        !same_levels(&a->qos, &b->qos))
        return false;
    for (unsigned i = 0; i < a->num; i++)
        if (!same_rail(&a->rail[i], &b->rail[i]) || memcmp(a->key[i], b->key[i], sizeof a->key[i]))
            return false;
    return rails_nearest(a) == rails_nearest(b);
}

/* like[i]: the first host that is like host i. */
static void sort_out(const struct pairs *p, int like[])
{
    for (int i = 0; i < p->num; i++)
        for (like[i] = 0; like[i] < i && !(like[like[i]] == like[i] && same_host_rails(&p->of[i], &p->of[like[i]]));
             like[i]++)
            ;
}

static int count_like(const struct pairs *p, const int like[], int kind)
{
    int n = 0;

    for (int i = 0; i < p->num; i++)
        n += like[i] == kind;
    return n;
}

static void print_names(const struct pairs *p, const int like[], int kind)
{
    int n = 0;

    for (int i = 0; i < p->num; i++) {
        if (like[i] != kind)
            continue;
        if (n++ < NAMES_MAX)
            printf("%s%s", n > 1 ? ", " : "", p->hosts->name[i]);
    }
    if (n > NAMES_MAX)
        printf(" and %d more", n - NAMES_MAX);
}

static void print_who(const struct pairs *p, const int like[], int a, int b)
{
    int na = count_like(p, like, a), nb = count_like(p, like, b);

    printf("\n  ");
    if (a == b) {
        printf(na > 2 ? "each two of " : "");
        print_names(p, like, a);
        printf(na > 2 ? " (%lld pairs of hosts)\n" : "\n", (long long)na * (na - 1) / 2);
        return;
    }
    printf(na > 1 ? "each of " : "");
    print_names(p, like, a);
    printf(nb > 1 ? " with each of " : " with ");
    print_names(p, like, b);
    printf(na * nb > 1 ? " (%lld pairs of hosts)\n" : "\n", (long long)na * nb);
}

/* ---- rails ------------------------------------------------------------------------------------------------------- */

static void print_subnet(const struct mr_rail_addr *a)
{
    if (a->global) {
        printf("RoCE");
        return;
    }
    printf("subnet ");
    for (unsigned i = 0; i < 8; i++)
        printf("%02x", a->gid[i]);
}

/* The pair's partition. */
static void print_pkey(const struct host_rails *a, const struct host_rails *b, const struct mr_pair *pair)
{
    const uint16_t *ours = a->key[pair->rail[0]], *theirs = b->key[pair->rail[1]];
    unsigned num_ours = rails_num_keys(a, pair->rail[0]), num_theirs = rails_num_keys(b, pair->rail[1]);
    uint16_t key = mr_pkey_choose(ours, num_ours, theirs, num_theirs, 0);
    char text[2][128];

    if (key)
        printf(", P_Key 0x%04x", key);
    else
        printf(", not used: no common P_Key (%s; %s)", mr_pkeys_text(ours, num_ours, text[0], sizeof text[0]),
               mr_pkeys_text(theirs, num_theirs, text[1], sizeof text[1]));
}

static void print_path(const struct host_rails *a, const struct host_rails *b, const struct mr_pair *pair,
                       uint64_t total)
{
    const struct mr_rail_addr *x = &a->rail[pair->rail[0]], *y = &b->rail[pair->rail[1]];
    char ends[96];

    snprintf(ends, sizeof ends, "%s:%u - %s:%u", x->device, x->port, y->device, y->port);
    printf("    %-27s ", ends);
    print_subnet(x);
    printf(", %g", x->rate_mbps / 1e3);
    if (x->rate_mbps != y->rate_mbps)
        printf(" and %g", y->rate_mbps / 1e3);
    printf(" Gb/s");
    print_pkey(a, b, pair);
    printf(", path %u, weight %u (%.1f %%)\n", pair->path, pair->weight, 100.0 * pair->weight / (double)total);
}

static void print_unpaired(const struct pairs *p, int host, int other, const struct mr_pair *pair, unsigned n,
                           unsigned side)
{
    const struct host_rails *h = &p->of[host];
    uint32_t used = 0;

    for (unsigned i = 0; i < n; i++)
        used |= 1u << pair[i].rail[side];
    for (unsigned i = 0; i < h->num; i++)
        if (!(used >> i & 1))
            printf("    %s:%u of %s is not used: %s has no rail in its subnet\n", h->rail[i].device, h->rail[i].port,
                   p->hosts->name[host], p->hosts->name[other]);
}

/* The first stripes of a message of this length. */
static void print_cut(const struct mr_policy *policy, const struct mr_pair *pair, unsigned n, uint64_t len)
{
    struct mr_load load[MR_SUBS_MAX];
    struct mr_stripe stripe[MR_SUBS_MAX];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned parts;

    for (unsigned i = 0; i < n; i++)
        load[i] = (struct mr_load){.up = true, .weight = pair[i].weight, .small_weight = pair[i].small_weight};
    parts = mr_sched_plan(policy, &s, load, n, len, mr_config.stripe_min, 4096, stripe);
    printf("      one of %s: ", value_bytes(len));
    for (unsigned i = 0; i < parts; i++)
        printf("%s%s", i ? " + " : "", value_bytes(stripe[i].len));
    puts(parts == 1 ? " over one of them" : "");
}

/* ---- kinds of links by message size ------------------------------------------------------------------------------ */

static bool holds(const struct mr_rule *r, enum mr_rule_use use, uint64_t size, const struct mr_rules_peer *peer)
{
    return r->uses >> use & 1 && size >= r->size_min && size <= r->size_max && peer->count >= r->count_min &&
           peer->rate >= r->rate_min && (!*r->class_name || !strcmp(r->class_name, peer->class_name));
}

/* One kind of link carries all large messages that go by RDMA; rules may exclude RDMA. */
static unsigned kinds_for(const struct pairs *p, enum mr_rule_use use)
{
    unsigned set = mr_kinds_set(p->kinds), bulk = mr_kinds_bulk(set);

    return use == MR_RULE_RDMA ? set & (1u << bulk | ~mr_kinds_that_are(set, MR_IS_RDMA)) : set;
}

/* With all kinds of links open that are allowed. The number of the rule, from 1; 0: none says anything. */
static unsigned find_rule(const struct pairs *p, enum mr_rule_use use, uint64_t size, const struct mr_rules_peer *peer,
                          unsigned *kind)
{
    unsigned open = kinds_for(p, use);

    for (unsigned i = 0; i < p->rules->num; i++) {
        const struct mr_rule *r = &p->rules->rule[i];

        for (unsigned k = 0; holds(r, use, size, peer) && k < r->num_kinds; k++)
            if (open >> r->kind[k] & 1) {
                *kind = r->kind[k];
                return i + 1;
            }
    }
    *kind = use == MR_RULE_RDMA ? mr_kinds_bulk(open) : p->kinds->kind[0];
    return 0;
}

struct carrier {
    unsigned kind, rule;
};

static void print_carrier(const struct carrier *c, bool rdma)
{
    printf("%s", mr_kind_name(c->kind));
    if (c->rule)
        printf(" (rule %u)", c->rule);
    else
        printf(" (no rule says otherwise)");
    if (rdma && !mr_kind_is(c->kind, MR_IS_RDMA))
        printf(": in packets");
}

/* Sizes up to most, in ranges that rules treat alike. */
static void print_use(const struct pairs *p, enum mr_rule_use use, uint64_t least, uint64_t most,
                      const struct mr_rules_peer *peer)
{
    uint64_t from = least;
    unsigned printed = 0;

    for (unsigned c = 0; c <= p->rules->num_sizes; c++) {
        uint64_t to = c < p->rules->num_sizes && p->rules->size[c] < most ? p->rules->size[c] : most, at, next;
        struct carrier now, then;

        if (to < from)
            continue;
        at = from;
        now.rule = find_rule(p, use, at, peer, &now.kind);
        next = c < p->rules->num_sizes ? p->rules->size[c] + 1 : most + 1;
        if (next <= most && next > at) { /* the same beyond? */
            then.rule = find_rule(p, use, next, peer, &then.kind);
            if (then.rule == now.rule && then.kind == now.kind)
                continue;
        }
        printf("%s", printed++ ? "; " : "");
        if (to < most)
            printf("up to %s ", value_bytes(to));
        else if (from > least)
            printf("longer ");
        print_carrier(&now, use == MR_RULE_RDMA);
        from = to + 1;
        if (to == most)
            break;
    }
}

static const struct {
    const char *name;
    enum mr_rule_use use;
} uses[] = {{"control", MR_RULE_CONTROL},
            {"short messages", MR_RULE_EAGER},
            {"pieces of long ones", MR_RULE_PIECE},
            {"by RDMA", MR_RULE_RDMA}};

static bool differs_when_busy(const struct pairs *p)
{
    for (unsigned i = 0; i < p->rules->num; i++)
        if (p->rules->rule[i].count_min || p->rules->rule[i].rate_min)
            return true;
    return false;
}

static void print_carriers(const struct pairs *p, const struct host_rails *h, bool busy)
{
    struct mr_rules_peer peer = {.class_name = h->qos.class_name};

    if (busy)
        peer.count = peer.rate = MANY_COUNT;
    for (unsigned u = 0; u < sizeof uses / sizeof *uses; u++) {
        bool rdma = uses[u].use == MR_RULE_RDMA;

        printf("      %-20s ", uses[u].name);
        if (rdma && mr_kinds_by_rdma(mr_kinds_set(p->kinds), p->by_ring) == MR_LINK_KINDS) {
            puts("none");
            continue;
        }
        print_use(p, uses[u].use, rdma ? value_unasked() + 1 : 0, rdma ? UINT64_MAX - 1 : mr_config.eager_max, &peer);
        puts("");
    }
}

/* The policy that chooses among open paths. */
static void print_choice(const struct pairs *p, const struct mr_policy policy[], int a, int b)
{
    const struct mr_policy_kind *small = policy[MR_POLICY_SMALL].kind, *large = policy[MR_POLICY_LARGE].kind;

    printf("    packets, policy %s: %s\n", small->name, small->help);
    if (small->prefers_near || mr_policy_needs_distance(&policy[0]) || mr_policy_needs_distance(&policy[1])) {
        bool both = same_host_rails(&p->of[a], &p->of[b]);

        rails_print_distances(&p->of[a], both ? NULL : p->hosts->name[a]);
        if (!both)
            rails_print_distances(&p->of[b], p->hosts->name[b]);
    }
    printf("    large messages, policy %s: %s", large->name, large->help);
    if (large->stripes)
        printf("; cut from %s on (MRMPI_STRIPE_MIN)", value_bytes(mr_config.stripe_min));
    puts("");
}

/* The policies that a rank on such a host receives or sets. Invalid texts are reported elsewhere. */
static void read_policies(const struct host_rails *h, struct mr_policy policy[MR_POLICY_CLASSES])
{
    const char *set[MR_POLICY_CLASSES] = {mr_config.policy_small, mr_config.policy_large};
    char what[MR_POLICY_TEXT];

    for (unsigned c = 0; c < MR_POLICY_CLASSES; c++) {
        const char *text = strcasecmp(set[c], "auto") ? set[c] : h->qos.spread[c];

        if (!*text || !mr_policy_parse(text, c, &policy[c], what, sizeof what))
            mr_policy_parse(mr_policy_standard(c), c, &policy[c], what, sizeof what);
    }
}

/* ---- protocol ---------------------------------------------------------------------------------------------------- */

static bool is_slow(const struct host_rails *h)
{
    for (unsigned i = 0; i < h->num; i++)
        if (h->rail[i].rate_mbps <= SLOW_MBPS && !h->rail[i].global)
            return true;
    return false;
}

/* The reason that large messages from one host to the other are written; NULL: they are read. */
static const char *why_written(const struct pairs *p, const struct host_rails *from, const struct host_rails *to)
{
    static char only_writes[MR_KINDS_TEXT];
    unsigned bulk = mr_kinds_by_rdma(mr_kinds_set(p->kinds), p->by_ring);

    snprintf(only_writes, sizeof only_writes, "%s can only write", mr_kind_help(bulk));
    if (!mr_kind_is(bulk, MR_IS_READING))
        return only_writes;
    if (!strcmp(mr_config.rndv, "write"))
        return "MRMPI_RNDV=write";
    if (!rails_answer_reads(from) || !rails_answer_reads(to))
        return "a rail of one of them does not do RDMA reads";
    if (strcmp(mr_config.rndv, "read") && is_slow(from))
        return "MRMPI_RNDV=auto, and a rail of the sender is InfiniBand of 10 Gb/s or less";
    return NULL;
}

static void print_way(const char *why, const char *from, const char *to)
{
    printf("    over %s%s%s%s%s: ", value_bytes(value_unasked()), from ? ", from " : "", from ? from : "",
           to ? " to " : "", to ? to : "");
    if (why)
        printf("the sender writes (%s)\n", why);
    else
        printf("the receiver reads (MRMPI_RNDV=%s, and all rails can%s)\n", mr_config.rndv,
               !strcmp(mr_config.rndv, "read") ? "" : " and are fast");
}

/* The rule that sends large messages in packets, whatever their size; 0: none. */
static unsigned rule_against_rdma(const struct pairs *p, const struct host_rails *h)
{
    struct mr_rules_peer peer = {.class_name = h->qos.class_name};
    uint64_t size = value_unasked() + 1;
    unsigned kind, rule = 0;

    for (unsigned c = mr_rules_size_class(p->rules, size); *mr_config.rules && c <= p->rules->num_sizes; c++) {
        rule = find_rule(p, MR_RULE_RDMA, size, &peer, &kind);
        if (!rule || mr_kind_is(kind, MR_IS_RDMA))
            return 0;
        size = c < p->rules->num_sizes ? p->rules->size[c] + 1 : size;
    }
    return rule;
}

static void print_protocol(const struct pairs *p, int a, int b)
{
    unsigned rule = rule_against_rdma(p, &p->of[a]);
    const char *there = why_written(p, &p->of[a], &p->of[b]), *back = why_written(p, &p->of[b], &p->of[a]);

    printf("    up to %s (MRMPI_EAGER_MAX): one packet, unasked\n", value_bytes(mr_config.eager_max));
    if (mr_config.eager_packets > 1)
        printf("    up to %s: up to %d packets, unasked (MRMPI_EAGER_PACKETS)\n", value_bytes(value_unasked()),
               mr_config.eager_packets);
    if (rule) {
        printf("    over %s: in packets (rule %u)\n", value_bytes(value_unasked()), rule);
        return;
    }
    if (mr_kinds_by_rdma(mr_kinds_set(p->kinds), p->by_ring) == MR_LINK_KINDS) {
        printf("    over %s: %s\n", value_bytes(value_unasked()), value_without_rdma(p->kinds, p->by_ring));
        return;
    }
    if (there == back) {
        print_way(there, NULL, NULL);
        return;
    }
    print_way(there, p->hosts->name[a], p->hosts->name[b]);
    print_way(back, p->hosts->name[b], p->hosts->name[a]);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

static const char *mover(const struct pairs *p, int a, int b)
{
    if (rule_against_rdma(p, &p->of[a]))
        return NULL;
    if (mr_kinds_by_rdma(mr_kinds_set(p->kinds), p->by_ring) == MR_LINK_KINDS)
        return value_goes_as_datagrams(p->kinds, p->by_ring) ? "as datagrams" : NULL;
    return why_written(p, &p->of[a], &p->of[b]) ? "written by the sender" : "read by the receiver";
}

static unsigned count_devices(const struct host_rails *h, uint32_t rails)
{
    unsigned num = 0;

    for (unsigned i = 0; i < h->num; i++) {
        bool again = false;

        for (unsigned k = 0; k < i; k++)
            again |= rails >> k & 1 && !strcmp(h->rail[k].device, h->rail[i].device);
        num += (rails >> i & 1) && !again;
    }
    return num;
}

/* Mbit/s, as ports signal. */
static uint32_t pair_rate(const struct pairs *p, int a, int b, const struct mr_pair *pair)
{
    uint32_t ours = p->of[a].rail[pair->rail[0]].rate_mbps, theirs = p->of[b].rail[pair->rail[1]].rate_mbps;

    return ours < theirs ? ours : theirs;
}

static void print_costs(const struct pairs *p, int a, int b, const struct mr_pair *pair, unsigned n, bool cuts)
{
    struct mr_cost_way w = {.packet = (uint32_t)mr_config.eager_max,
                            .cut_at = cuts ? (uint32_t)mr_config.stripe_min : UINT32_MAX};
    uint32_t rails = 0;

    for (unsigned i = 0; i < n; i++) {
        uint32_t rate = pair_rate(p, a, b, &pair[i]), bytes = (uint32_t)(mr_ahead_rate(rate, 1, 1) / 1000000);

        if (rails >> pair[i].rail[0] & 1)
            continue;
        rails |= 1u << pair[i].rail[0];
        w.outruns |= rate >= mr_model.outrun_mbps;
        w.all_mbps += bytes;
        w.packet_mbps = bytes > w.packet_mbps ? bytes : w.packet_mbps;
    }
    if (!w.packet_mbps)
        return; /* unknown */
    w.devices = count_devices(&p->of[a], rails);
    w.datagrams = value_goes_as_datagrams(p->kinds, p->by_ring);
    costs_print_to(&w, mover(p, a, b));
}

/* ---- service levels ---------------------------------------------------------------------------------------------- */

static void print_levels(const struct host_rails *h, const char *who)
{
    uint32_t from = 0;

    printf("    service levels%s%s: ", who ? " if a connection begins at " : "", who ? who : "");
    for (unsigned l = 0; l < MR_LEVELS; l++) {
        const struct mr_fabric_level *level = &h->qos.level[l];

        if (l && l < MR_LEVEL_BULK && level->max <= from)
            continue; /* left out */
        printf("%s%s ", l ? ", " : "", l == MR_LEVEL_SMALL ? "small" : l == MR_LEVEL_BULK ? "large" : "medium");
        if (l < MR_LEVEL_BULK && level->max != UINT32_MAX)
            printf("(up to %s) ", value_bytes(level->max));
        for (unsigned i = 0; i < level->num_lanes; i++)
            printf("%s%u", i ? "+" : "", level->sl[i]);
        from = l < MR_LEVEL_BULK ? level->max : from;
    }
    if (h->fabricd_error)
        printf(" (default: no fabricd answers there, %s)\n", strerror(h->fabricd_error));
    else
        printf(" (fabricd: class %s)\n", *h->qos.class_name ? h->qos.class_name : "none, there is no policy");
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* Further LID paths for large messages from one host to another, for each pair of ports with several paths. */
static void print_paths_to(const struct pairs *p, int a, int b, const struct mr_pair *pair, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct mr_rail_addr *x = &p->of[a].rail[pair[i].rail[0]], *y = &p->of[b].rail[pair[i].rail[1]];
        uint32_t set = 1;
        int err;

        if (x->global || !x->lmc || !y->lmc)
            continue;
        fflush(stdout);
        err = rails_ask_paths(p->hosts, a, p->env, x, y, &set);
        printf("    %s to %s, %s:%u - %s:%u: ", p->hosts->name[a], p->hosts->name[b], x->device, x->port, y->device,
               y->port);
        if (err) {
            printf("path 0, since fabricd does not tell of others (%s)\n", strerror(err));
        } else if (set == 1) {
            puts("path 0; no other is allowed and shares no cable with it");
        } else {
            printf("paths 0");
            for (unsigned k = 1; k < MR_FABRIC_PATHS_MAX; k++)
                if (set >> k & 1)
                    printf(", %u", k);
            printf(" share no cable: large messages use all after %s\n", value_bytes(MR_PATHS_AFTER));
        }
    }
}

/* From the first host of a group to those of another group, whose first is b. */
static void print_paths(const struct pairs *p, const int like[], int a, int b, const struct mr_pair *pair, unsigned n)
{
    unsigned printed = 0;

    for (int to = b; to < p->num && !mr_config.paths && printed < NAMES_MAX; to++)
        if (to == b || like[to] == like[b]) {
            print_paths_to(p, a, to, pair, n);
            printed++;
        }
}

/* ---- a pair ------------------------------------------------------------------------------------------------------ */

static void print_pair(const struct pairs *p, const int like[], int a, int b)
{
    bool all = !strcmp(mr_config.pairs, "all");
    unsigned paths = mr_config.paths ? (unsigned)mr_config.paths : 1;
    struct mr_pair_side side[2] = {{.rail = p->of[a].rail, .num_rails = p->of[a].num, .paths = paths, .all = all},
                                   {.rail = p->of[b].rail, .num_rails = p->of[b].num, .paths = paths, .all = all}};
    struct mr_policy policy[MR_POLICY_CLASSES];
    struct mr_pair pair[MR_SUBS_MAX];
    unsigned left_out, n = mr_pair_match(&side[0], &side[1], pair, MR_SUBS_MAX / p->kinds->num, &left_out);
    uint64_t total = 0;

    read_policies(&p->of[a], policy);
    mr_pair_weigh_for(pair, n, side, 0, policy);
    for (unsigned i = 0; i < n; i++)
        total += pair[i].weight;
    for (unsigned i = 0; i < n; i++)
        print_path(&p->of[a], &p->of[b], &pair[i], total);
    print_paths(p, like, a, b, pair, n);
    print_unpaired(p, a, b, pair, n, 0);
    print_unpaired(p, b, a, pair, n, 1);
    if (left_out)
        printf("    %u more paths are left out\n", left_out);
    if (!n) {
        puts("    NOTHING leads from one to the other: messages will fail");
        return;
    }
    print_protocol(p, a, b);
    printf("    kinds of links%s\n", differs_when_busy(p) ? ", to a rank to which nothing has gone yet" : "");
    print_carriers(p, &p->of[a], false);
    if (differs_when_busy(p)) {
        puts("    and to one to which much goes");
        print_carriers(p, &p->of[a], true);
    }
    print_choice(p, policy, a, b);
    print_cut(&policy[MR_POLICY_LARGE], pair, n, 64 << 10);
    print_cut(&policy[MR_POLICY_LARGE], pair, n, 1 << 20);
    print_costs(p, a, b, pair, n, policy[MR_POLICY_LARGE].kind->stripes);
    print_levels(&p->of[a], same_levels(&p->of[a].qos, &p->of[b].qos) ? NULL : p->hosts->name[a]);
    if (!same_levels(&p->of[a].qos, &p->of[b].qos))
        print_levels(&p->of[b], p->hosts->name[b]);
}

static int second_like(const struct pairs *p, const int like[], int kind)
{
    int i = kind + 1;

    while (i < p->num && like[i] != kind)
        i++;
    return i;
}

static void print_unknown(const struct pairs *p, const int like[], int kind)
{
    printf("\n  ");
    print_names(p, like, kind);
    puts(p->of[kind].known ? ": no rail that can be used; a job with ranks on other hosts, too, will not start"
                           : ": could not be asked");
}

void pairs_print(const struct pairs *p)
{
    int *like = calloc((size_t)p->num + 1, sizeof *like);

    if (!like)
        return;
    printf("\nPairs of hosts%s\n", p->simulated ? " (simulated)" : "");
    if (p->num < 2)
        puts("  none: all ranks are on one host");
    sort_out(p, like);
    for (int a = 0; p->num > 1 && a < p->num; a++) {
        if (like[a] != a)
            continue;
        if (!p->of[a].known || !p->of[a].num) {
            print_unknown(p, like, a);
            continue;
        }
        for (int b = a; b < p->num; b++) {
            int second = b == a ? second_like(p, like, a) : b;

            if (like[b] != b || second == p->num || !p->of[b].num)
                continue;
            print_who(p, like, a, b);
            print_pair(p, like, a, second);
        }
    }
    free(like);
}
