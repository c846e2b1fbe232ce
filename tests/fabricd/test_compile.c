/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policy and lock to tables, by arithmetic: lanes, levels, requests beyond the limits, and shares as given by the
 * specification's arbiter, for packets of all sizes.
 */
#include "fabricd/policy/weights.h"
#include "tests/check.h"
#include "tests/fabricd/compile_help.h"

#include <math.h>
#include <stdlib.h>

static void vlarb_is(const struct vlarb *e, unsigned n, const char *want)
{
    struct text t = {0};
    tables_vlarb_text(&t, e, n);
    ck_assert_str_eq(text_str(&t), want);
    text_free(&t);
}

/* ---- the specification's arbiter (7.6.9), for a low-priority table whose lanes always have packets ---- */

struct lane_load {
    unsigned bytes[16]; /* of each packet, by lane */
};

/* Blocks of 64 bytes sent by each lane in a number of rounds of the table. */
static void arbitrate(const struct qos_tables *t, const struct lane_load *load, unsigned rounds, uint64_t sent[16])
{
    memset(sent, 0, 16 * sizeof(sent[0]));
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned e = 0; e < t->num_low; e++)
            for (int left = t->low[e].weight; left > 0;) {
                int blocks = (int)(load->bytes[t->low[e].vl] + 63) / 64;
                sent[t->low[e].vl] += (unsigned)blocks;
                left -= blocks;
            }
}

/* Percent of the bulk, in blocks, for class i with packets of `mine` bytes when the others' have `others`. */
static double share_on_wire(const struct policy *p, const struct qos_tables *t, unsigned i, unsigned mine,
                            unsigned others)
{
    struct lane_load load;
    uint64_t sent[16], all = 0, of_class = 0;
    for (unsigned vl = 0; vl < 16; vl++)
        load.bytes[vl] = others;
    for (unsigned n = 0; n < t->classes[i].num_lanes; n++)
        load.bytes[t->classes[i].vl_bulk[n]] = mine;
    arbitrate(t, &load, 3, sent);
    for (unsigned k = 0; k < p->num_classes; k++)
        for (unsigned n = 0; n < t->classes[k].num_lanes; n++) {
            all += sent[t->classes[k].vl_bulk[n]];
            of_class += k == i ? sent[t->classes[k].vl_bulk[n]] : 0;
        }
    return 100.0 * (double)of_class / (double)all;
}

/* Errors that tables for opensm must never have: a level without a served lane, or a lane not in operation. */
static void sound(const struct policy *p, const struct qos_tables *t, unsigned mtu)
{
    for (unsigned sl = 0; sl < SLS; sl++) {
        bool served = false;
        ck_assert_uint_lt(t->sl2vl[sl], t->vls);
        for (unsigned e = 0; e < t->num_low; e++)
            served |= t->low[e].vl == t->sl2vl[sl] && t->low[e].weight;
        for (unsigned e = 0; e < t->num_high; e++)
            served |= t->high[e].vl == t->sl2vl[sl] && t->high[e].weight;
        ck_assert_msg(served, "SL %u on VL %u is never served", sl, t->sl2vl[sl]);
    }
    ck_assert_uint_eq(t->sl2vl[0], 0); /* traffic without a level: the default class's bulk */
    ck_assert_uint_eq(t->classes[p->default_class].vl_bulk[0], 0);
    for (unsigned i = 0; i < p->num_classes; i++) {
        double full = share_on_wire(p, t, i, mtu + 30, mtu + 30);
        ck_assert(p->classes[i].ratio_small || fabs(t->classes[i].share - full) < 1e-6);
        for (unsigned k = 0; k < p->num_classes; k++)
            for (unsigned l = 0; k != i && l < t->classes[k].num_lanes; l++) {
                ck_assert_uint_ne(t->classes[i].vl_bulk[0], t->classes[k].vl_bulk[l]);
                ck_assert_uint_ne(t->classes[i].sl_small, t->classes[k].sl_bulk[l]);
                for (unsigned m = 0; m < t->classes[i].num_medium; m++) {
                    ck_assert_uint_ne(t->classes[i].vl_medium[m], t->classes[k].vl_bulk[l]);
                    ck_assert_uint_ne(t->classes[i].sl_medium[m], t->classes[k].sl_bulk[l]);
                    ck_assert_uint_ne(t->classes[i].sl_medium[m], t->classes[k].sl_small);
                }
            }
    }
}

START_TEST(three_classes)
{
    struct policy p = base(3, (uint32_t[]){60, 30, 10}, (uint32_t[]){3, 1, 0}, (uint32_t[]){2, 1, 1});
    struct qos_tables t;
    struct text map = {0};
    p.default_class = 1;
    ck_assert(compile(&p, &small_tables, &t, NULL));
    sound(&p, &t, 4096);
    vlarb_is(t.low, t.num_low, "0:192,1:192,2:192,3:128,0:192,1:192,2:192"); /* 30 : 30 + 30 : 10 */
    vlarb_is(t.high, t.num_high, "4:1,4:1,5:1,4:1");                         /* three turns of one packet, and one */
    tables_sl2vl_text(&map, t.sl2vl);
    ck_assert_str_eq(map.s, "0,4,1,2,5,0,3,3,0,0,0,0,0,0,0,0");
    ck_assert_uint_eq(t.classes[1].vl_bulk[0], 0); /* traffic without a level goes here */
    ck_assert_uint_eq(t.classes[2].vl_small, t.classes[2].vl_bulk[0]);
    ck_assert_uint_eq(t.classes[0].num_ahead, 1);
    ck_assert_uint_eq(t.classes[2].num_ahead, 0);
    ck_assert_uint_eq(t.high_limit, 1); /* a packet of bulk after 4096 bytes of small ones */
    ck_assert_uint_eq(t.op_vls_code, 4);
    text_free(&map);
}
END_TEST

static const struct {
    unsigned n;
    uint32_t shares[4], lanes[4];
    unsigned mtu, cap;
    double within; /* percent of the share */
} splits[] = {
    {2, {50, 50}, {1, 1}, 4096, 8, 0.001},
    {2, {67, 33}, {1, 1}, 4096, 8, 1.1},
    {2, {90, 10}, {1, 1}, 4096, 8, 0.001},
    {2, {95, 5}, {1, 1}, 4096, 8, 1},
    {3, {50, 35, 15}, {1, 1, 1}, 4096, 8, 1},
    {3, {55, 30, 15}, {1, 1, 1}, 4096, 8, 1},
    {3, {70, 20, 10}, {2, 1, 1}, 2048, 8, 0.001},
    {4, {40, 30, 20, 10}, {1, 1, 1, 1}, 4096, 8, 0.001},
    {4, {45, 30, 20, 5}, {1, 1, 1, 1}, 2048, 8, 1},
    {3, {90, 8, 2}, {1, 1, 1}, 4096, 64, 0.001}, /* 45 : 4 : 1 */
    {3, {90, 8, 2}, {1, 1, 1}, 2048, 8, 4},
    {3, {1, 49, 50}, {1, 1, 1}, 4096, 64, 1},
    {1, {100}, {4}, 4096, 8, 0.001},
    {3, {30, 20, 10}, {1, 1, 1}, 4096, 8, 0.001},
};

START_TEST(shares)
{
    uint32_t none[4] = {0}, total = 0;
    struct policy p = base(splits[_i].n, splits[_i].shares, none, splits[_i].lanes);
    unsigned mtu = splits[_i].mtu;
    struct fabric_caps caps = {.low_cap = splits[_i].cap, .mtu = mtu};
    struct qos_tables t;
    ck_assert(compile(&p, &caps, &t, NULL));
    sound(&p, &t, mtu);
    ck_assert_uint_le(t.num_low, splits[_i].cap);
    for (unsigned i = 0; i < p.num_classes; i++)
        total += p.classes[i].share;
    for (unsigned i = 0; i < p.num_classes; i++) {
        double want = 100.0 * p.classes[i].share / total, got = share_on_wire(&p, &t, i, mtu + 30, mtu + 30);
        ck_assert_msg(fabs(want - got) <= want * splits[_i].within / 100, "class %u: asked %.2f, got %.2f", i, want,
                      got);
    }
}
END_TEST

/* Headers add one block to the data of full packets, so a table divides these sizes best. */
START_TEST(packets_of_any_size)
{
    static const unsigned sizes[] = {66, 118, 566, 0};
    uint32_t even[4] = {1, 1, 1, 1}, none[4] = {0};
    for (unsigned seed = 0; seed < 300; seed++) {
        srandom(seed);
        unsigned n = 2 + seed % 3, mtu = seed & 1 ? 2048 : 4096;
        uint32_t drawn[4], rest = 100;
        for (unsigned i = 0; i < n; i++) {
            drawn[i] = i == n - 1 ? rest : 5 + (uint32_t)random() % (rest - 5 * (n - i));
            rest -= drawn[i];
        }
        struct policy p = base(n, drawn, none, even);
        struct fabric_caps caps = {.low_cap = 64, .mtu = mtu};
        struct qos_tables t;
        ck_assert(compile(&p, &caps, &t, NULL));
        for (unsigned i = 0; i < n; i++)
            for (unsigned a = 0; a < 4; a++)
                for (unsigned b = 0; b < 4; b++) {
                    double got =
                        share_on_wire(&p, &t, i, sizes[a] ? sizes[a] : mtu + 30, sizes[b] ? sizes[b] : mtu + 30);
                    ck_assert_msg(fabs(got - drawn[i]) <= 1.0, "seed %u: class %u with %u against %u: %.2f of %u", seed,
                                  i, sizes[a], sizes[b], got, drawn[i]);
                }
    }
}
END_TEST

START_TEST(few_entries_are_heavy)
{
    struct policy p = base(2, (uint32_t[]){50, 50}, (uint32_t[]){0, 0}, (uint32_t[]){1, 1});
    struct qos_tables t;
    ck_assert(compile(&p, &small_tables, &t, NULL));
    /* with one packet each, 8 packets of 9 blocks against one of 65 were 52.6 : 47.4 */
    vlarb_is(t.low, t.num_low, "0:255,1:255");
    ck_assert(fabs(share_on_wire(&p, &t, 0, 566, 4126) - 50) <= 1);
    ck_assert_uint_eq(weights_sent(64, 9), 72);
    ck_assert_uint_eq(weights_sent(255, 65), 260); /* four packets: like a weight of 256 */
}
END_TEST

START_TEST(uneven_shares_warn)
{
    struct policy p = base(4, (uint32_t[]){97, 1, 1, 1}, (uint32_t[]){0, 0, 0, 0}, (uint32_t[]){1, 1, 1, 1});
    struct fabric_caps caps = {.low_cap = 8};
    struct qos_tables t;
    unsigned warnings;
    ck_assert(compile(&p, &caps, &t, &warnings));
    ck_assert_uint_gt(warnings, 0); /* 5 entries of 4 packets against 3: 87 percent is the most */
    ck_assert(t.classes[0].share > 86);
    sound(&p, &t, 4096);
}
END_TEST

START_TEST(small_lanes_are_shared_when_few)
{
    struct policy p = base(3, (uint32_t[]){40, 40, 20}, (uint32_t[]){1, 3, 1}, (uint32_t[]){1, 1, 1});
    struct fabric_caps caps = {0};
    struct qos_tables t;
    unsigned warnings;
    p.vls = 4;
    ck_assert(compile(&p, &caps, &t, &warnings));
    sound(&p, &t, 4096);
    ck_assert_uint_eq(warnings, 1);
    vlarb_is(t.high, t.num_high, "3:1,3:1,3:1");
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(t.classes[i].vl_small, 3);
        ck_assert_uint_eq(t.classes[i].num_ahead, 1);
    }
    p.vls = 8;
    ck_assert(compile(&p, &caps, &t, &warnings));
    ck_assert_uint_eq(warnings, 0);
    vlarb_is(t.high, t.num_high, "3:1,4:1,3:1,5:1,3:1");
    ck_assert_uint_eq(t.classes[1].vl_small, t.high[0].vl); /* the most important first */
    caps.high_cap = 3; /* too short for five turns: as many of the smallest packets at once */
    ck_assert(compile(&p, &caps, &t, &warnings));
    vlarb_is(t.high, t.num_high, "3:3,4:1,5:1");
}
END_TEST

START_TEST(small_goes_with_bulk_when_none_is_left)
{
    struct policy p = base(2, (uint32_t[]){50, 50}, (uint32_t[]){1, 1}, (uint32_t[]){1, 1});
    struct fabric_caps caps = {0};
    struct qos_tables t;
    unsigned warnings;
    p.vls = 2;
    ck_assert(compile(&p, &caps, &t, &warnings));
    sound(&p, &t, 4096);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_uint_eq(t.num_high, 0);
    ck_assert_uint_eq(t.classes[1].num_ahead, 0);
    ck_assert_uint_eq(t.classes[1].vl_small, t.classes[1].vl_bulk[0]);
}
END_TEST

/* The messages of a class between small and bulk cost nothing of its share: the lane has a packet a round. */
START_TEST(levels_between)
{
    struct policy p = base(3, (uint32_t[]){60, 20, 20}, (uint32_t[]){3, 1, 0}, (uint32_t[]){1, 1, 1});
    struct qos_tables t;
    struct text plan = {0};
    unsigned warnings;
    p.default_class = 1;
    p.classes[0].num_medium = 2;
    p.classes[0].medium_max[0] = 16384;
    p.classes[0].medium_max[1] = 65536;
    p.classes[1].num_medium = 1;
    p.classes[1].medium_max[0] = 32768;
    ck_assert(compile(&p, &small_tables, &t, &warnings));
    sound(&p, &t, 4096);
    ck_assert_uint_eq(warnings, 0);
    tables_plan_text(&plan, &p, &t);
    ck_assert_uint_eq(t.classes[0].num_ahead, 3);
    ck_assert_uint_eq(t.classes[1].num_ahead, 2);
    for (unsigned i = 0; i < 3; i++)
        ck_assert(fabs(share_on_wire(&p, &t, i, 4126, 4126) - p.classes[i].share) < 1e-6);
    unsigned single = 0, packets = 0;
    for (unsigned e = 0; e < t.num_low; e++) {
        single += t.low[e].vl >= 5;
        ck_assert(t.low[e].vl < 5 || t.low[e].weight == 1);
        packets += t.low[e].vl < 5 ? weights_sent(t.low[e].weight, 65) / 65 : 0;
    }
    ck_assert_uint_eq(single, 3);
    ck_assert_uint_eq(packets, 20); /* 5 entries: 12 + 4 + 4 packets, so the three have 13 percent */
    ck_assert_ptr_nonnull(strstr(plan.s, "medium: [{upto: 16384, sl: 2, vl: 5}, {upto: 65536, sl: 3, vl: 6}]}"));
    struct fabric_caps long_tables = {.vls = 8, .low_cap = 63, .high_cap = 63, .mtu = 4096};
    ck_assert(compile(&p, &long_tables, &t, &warnings));
    packets = 0;
    for (unsigned e = 0; e < t.num_low; e++)
        packets += t.low[e].vl < 5 ? weights_sent(t.low[e].weight, 65) / 65 : 0;
    ck_assert_msg(packets >= 147 - 16 && packets <= 160, "%u packets", packets); /* 2 percent for three, by steps */
    text_free(&plan);
}
END_TEST

/* Shares that ask for many entries. Of a table of 64 entries opensm writes 32. */
START_TEST(entries_that_opensm_writes)
{
    static const unsigned caps[][2] = {{63, 63}, {64, 32}, {33, 33}, {32, 32}};
    struct policy p = base(3, (uint32_t[]){59, 30, 10}, (uint32_t[]){1, 3, 3}, (uint32_t[]){2, 1, 1});
    struct qos_tables t;
    bool more = false;
    for (unsigned i = 0; i < 4; i++) {
        struct fabric_caps c = {.low_cap = caps[i][0], .high_cap = caps[i][0], .mtu = 4096};
        ck_assert(compile(&p, &c, &t, NULL));
        ck_assert_uint_le(t.num_low, caps[i][1]);
        ck_assert_uint_le(t.num_high, caps[i][1]);
        more = more || t.num_low > 32;
    }
    ck_assert(more); /* else the shares are not such */
}
END_TEST

START_TEST(levels_between_when_lanes_are_few)
{
    struct policy p = base(2, (uint32_t[]){50, 50}, (uint32_t[]){1, 3}, (uint32_t[]){1, 1});
    struct qos_tables t;
    unsigned warnings;
    p.classes[0].num_medium = p.classes[1].num_medium = 1;
    p.classes[0].medium_max[0] = p.classes[1].medium_max[0] = 65536;
    p.vls = 8;
    ck_assert(compile(&p, &(struct fabric_caps){.low_cap = 3}, &t, &warnings)); /* one entry is left in the table */
    sound(&p, &t, 4096);
    ck_assert_uint_ge(warnings, 1);
    ck_assert_uint_eq(t.classes[1].num_ahead, 2); /* for the more important class */
    ck_assert_uint_eq(t.classes[0].num_ahead, 1);
    ck_assert_uint_eq(t.classes[0].vl_medium[0], t.classes[0].vl_bulk[0]);
    p.vls = 4;
    ck_assert(compile(&p, &(struct fabric_caps){0}, &t, &warnings)); /* small messages come first */
    sound(&p, &t, 4096);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_uint_eq(t.num_high, 4);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(t.classes[i].vl_medium[0], t.classes[i].vl_bulk[0]);
        ck_assert_uint_ne(t.classes[i].sl_medium[0], t.classes[i].sl_bulk[0]);
    }
    struct policy many =
        base(8, (uint32_t[]){10, 10, 10, 10, 10, 10, 10, 10}, (uint32_t[8]){0}, (uint32_t[]){1, 1, 1, 1, 1, 1, 1, 1});
    many.vls = 15;
    many.classes[3].num_medium = 1;
    many.classes[3].medium_max[0] = 65536;
    ck_assert(!compile(&many, &(struct fabric_caps){0}, &t, NULL)); /* 17 service levels */
    ck_assert(said("need 17 service levels"));
}
END_TEST

START_TEST(ratio_of_small_and_large)
{
    static const uint32_t large[] = {10, 20, 50, 100, 200};
    for (unsigned i = 0; i < 5; i++) {
        struct policy p = base(1, (uint32_t[]){100}, (uint32_t[]){1}, (uint32_t[]){3});
        struct fabric_caps caps = {.low_cap = 64, .mtu = 2048};
        struct lane_load load;
        struct qos_tables t;
        uint64_t sent[16], bulk = 0;
        p.classes[0].ratio_small = 100;
        p.classes[0].ratio_large = large[i];
        ck_assert(compile(&p, &caps, &t, NULL));
        sound(&p, &t, 2048);
        ck_assert_uint_eq(t.num_high, 0);
        ck_assert_uint_eq(t.classes[0].num_ahead, 0);
        ck_assert_uint_ne(t.classes[0].vl_small, t.classes[0].vl_bulk[0]);
        for (unsigned vl = 0; vl < 16; vl++)
            load.bytes[vl] = 2078;
        arbitrate(&t, &load, 1, sent);
        for (unsigned n = 0; n < 3; n++)
            bulk += sent[t.classes[0].vl_bulk[n]];
        double got = 100.0 * (double)bulk / (double)sent[t.classes[0].vl_small];
        ck_assert_msg(fabs(got - large[i]) < 0.02 * large[i], "S100-L%u: %.1f", large[i], got);
    }
    struct policy two = base(2, (uint32_t[]){50, 50}, (uint32_t[]){1, 1}, (uint32_t[]){1, 1});
    struct qos_tables t;
    two.classes[1].ratio_small = two.classes[1].ratio_large = 1;
    ck_assert(!compile(&two, &small_tables, &t, NULL));
    ck_assert(said("a policy of one class"));
}
END_TEST

static bool subnet_ok(const struct policy *p, struct subnet s)
{
    struct diag d = {.file = "p"};
    bool ok = policy_check_subnet(p, &s, &d);
    ck_assert_uint_eq(ok, d.errors == 0);
    text_free(&d.out);
    return ok;
}

START_TEST(what_does_not_fit)
{
    struct policy p = base(2, (uint32_t[]){50, 50}, (uint32_t[]){1, 1}, (uint32_t[]){1, 1}), q;
    struct qos_tables t;
    ck_assert(compile(&p, &small_tables, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.vls = 4}, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.high_cap = 1}, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.low_cap = 1}, &t, NULL));
    ck_assert(compile(&p, &(struct fabric_caps){.low_cap = 255}, &t, NULL));
    q = p;
    q.mtu = 2048;
    ck_assert(!compile(&q, &small_tables, &t, NULL)); /* made for smaller packets than links have */
    ck_assert(compile(&q, &(struct fabric_caps){.mtu = 2048}, &t, NULL));
    ck_assert(!subnet_ok(&p, (struct subnet){.sm_sl = 16}));
    ck_assert(!subnet_ok(&p, (struct subnet){.routing_engine = "lash"}));
    ck_assert(!subnet_ok(&p, (struct subnet){.routing_engine = "ftree, dfsssp"}));
    ck_assert(subnet_ok(&p, (struct subnet){.routing_engine = "ftree,minhop"}));
    q = p;
    q.lmc = 1;
    ck_assert(!subnet_ok(&q, (struct subnet){.routing_engine = "ftree,minhop"}));
    ck_assert(subnet_ok(&q, (struct subnet){.ca_ports = 24575}));
    ck_assert(!subnet_ok(&q, (struct subnet){.ca_ports = 24576})); /* two LIDs each */
    q = p;
    q.vls = 1;
    ck_assert(!compile(&q, &(struct fabric_caps){0}, &t, NULL));
    struct policy many =
        base(8, (uint32_t[]){10, 10, 10, 10, 10, 10, 10, 10}, (uint32_t[8]){0}, (uint32_t[]){2, 1, 1, 1, 1, 1, 1, 1});
    many.vls = 15;
    ck_assert(!compile(&many, &(struct fabric_caps){0}, &t, NULL)); /* 17 service levels */
    many.classes[0].lanes = 1;
    ck_assert(compile(&many, &(struct fabric_caps){0}, &t, NULL));
    sound(&many, &t, 4096);
}
END_TEST

/* Planes have tables of their own with the same service levels; the plane with fewer lanes uses only existing lanes. */
START_TEST(planes_with_fewer_lanes)
{
    struct policy p = base(2, (uint32_t[]){70, 30}, (uint32_t[]){1, 1}, (uint32_t[]){2, 1});
    struct lock_plane seen[] = {{0x11, small_tables}, {0x12, small_tables}};
    struct policy_lock none = {0}, lock;
    struct plane_tables planes;
    struct qos_tables t;
    struct diag d = {.file = "p"};
    seen[1].caps.vls = 4;
    lock_take_planes(&none, &seen[1].caps, seen, 2);
    ck_assert(lock_next(&p, &none, NULL, &lock, &d));
    ck_assert(policy_compile_planes(&p, &lock, &t, &planes, &d));
    ck_assert_uint_eq(d.warnings, 1);
    ck_assert_uint_eq(planes.n, 2);
    ck_assert_ptr_eq(tables_of_plane(&planes, &t, 0x13), &t);
    const struct qos_tables *all = tables_of_plane(&planes, &t, 0x11), *few = tables_of_plane(&planes, &t, 0x12);
    ck_assert(tables_equal(all, &t));
    ck_assert_uint_eq(all->vls, 8);
    ck_assert_uint_eq(few->vls, 4);
    struct policy of_few = p;
    of_few.vls = 4;
    sound(&of_few, few, 4096);
    for (unsigned sl = 0; sl < SLS; sl++)
        ck_assert_uint_lt(few->sl2vl[sl], 4);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(all->classes[i].sl_small, few->classes[i].sl_small);
        ck_assert_uint_eq(all->classes[i].sl_bulk[0], few->classes[i].sl_bulk[0]);
    }
    lock.planes[1].caps.vls = 2; /* three lanes of bulk */
    ck_assert(!policy_compile_planes(&p, &lock, &t, &planes, &d));
    ck_assert_ptr_nonnull(strstr(text_str(&d.out), "the policy does not fit the plane of port 0x0000000000000012:"));
    text_free(&d.out);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("compile");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, three_classes);
    tcase_add_loop_test(t, shares, 0, (int)(sizeof(splits) / sizeof(splits[0])));
    tcase_add_test(t, packets_of_any_size);
    tcase_add_test(t, few_entries_are_heavy);
    tcase_add_test(t, uneven_shares_warn);
    tcase_add_test(t, small_lanes_are_shared_when_few);
    tcase_add_test(t, small_goes_with_bulk_when_none_is_left);
    tcase_add_test(t, levels_between);
    tcase_add_test(t, entries_that_opensm_writes);
    tcase_add_test(t, levels_between_when_lanes_are_few);
    tcase_add_test(t, ratio_of_small_and_large);
    tcase_add_test(t, what_does_not_fit);
    tcase_add_test(t, planes_with_fewer_lanes);
    return check_run(t, NULL);
}
