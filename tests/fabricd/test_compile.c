/* SPDX-License-Identifier: BSD-3-Clause */
/* Policy to tables, by arithmetic: lanes, levels, weights, limit, and what does not fit. */
#include "fabricd/compile.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct policy base(unsigned n, const uint32_t *shares, const uint32_t *priorities, const uint32_t *lanes)
{
    struct policy p = {.vls = 8, .mtu = 4096, .bulk_minimum = 20, .high_limit = -1, .num_classes = n};
    for (unsigned i = 0; i < n; i++) {
        snprintf(p.classes[i].name, sizeof(p.classes[i].name), "c%u", i);
        p.classes[i].share = shares[i];
        p.classes[i].priority = priorities[i];
        p.classes[i].lanes = lanes[i];
        p.classes[i].small_max = 8192;
    }
    return p;
}

static bool compile(const struct policy *p, const struct fabric_caps *caps, struct qos_tables *t, unsigned *warnings)
{
    struct diag d = {.file = "p"};
    bool ok = policy_compile(p, caps, t, &d);
    if (warnings)
        *warnings = d.warnings;
    ck_assert_uint_eq(ok, d.errors == 0);
    text_free(&d.out);
    return ok;
}

/* The share of a class in what the arbiter of the specification would send, packets of full size waiting everywhere. */
static double share_on_wire(const struct policy *p, const struct qos_tables *t, unsigned i)
{
    unsigned mine = 0, all = 0, quantum = p->mtu / 64;
    for (unsigned e = 0; e < t->num_low; e++) {
        unsigned packets = (t->low[e].weight + quantum - 1) / quantum;
        all += packets;
        for (unsigned l = 0; l < t->classes[i].num_low; l++)
            if (t->low[e].vl == t->classes[i].vl_low[l])
                mine += packets;
    }
    return 100.0 * mine / all;
}

/* What opensm-made tables must never have: a level without a lane that is served, or a lane that is not in operation.
 */
static void sound(const struct policy *p, const struct qos_tables *t)
{
    unsigned quantum = p->mtu / 64;
    for (unsigned sl = 0; sl < SLS; sl++) {
        bool served = false;
        ck_assert_uint_lt(t->sl2vl[sl], t->vls);
        for (unsigned e = 0; e < t->num_low; e++)
            served |= t->low[e].vl == t->sl2vl[sl] && t->low[e].weight;
        for (unsigned e = 0; e < t->num_high; e++)
            served |= t->high[e].vl == t->sl2vl[sl] && t->high[e].weight;
        ck_assert_msg(served, "SL %u on VL %u is never served", sl, t->sl2vl[sl]);
    }
    for (unsigned e = 0; e < t->num_low; e++) {
        ck_assert_uint_ge(t->low[e].weight, quantum);
        ck_assert_uint_eq(t->low[e].weight % quantum, 0);
    }
    for (unsigned i = 0; i < p->num_classes; i++) {
        ck_assert(fabs(t->classes[i].share - share_on_wire(p, t, i)) < 1e-6);
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
    struct fabric_caps caps = {.vls = 8, .low_cap = 8, .high_cap = 8, .mtu = 4096};
    struct qos_tables t;
    struct text low = {0}, high = {0}, map = {0};
    p.default_class = 1;
    ck_assert(compile(&p, &caps, &t, NULL));
    sound(&p, &t);
    tables_vlarb_text(&low, t.low, t.num_low);
    tables_vlarb_text(&high, t.high, t.num_high);
    tables_sl2vl_text(&map, t.sl2vl);
    ck_assert_str_eq(low.s, "0:192,1:192,2:192,3:64"); /* 30 : 30 + 30 : 10 */
    ck_assert_str_eq(high.s, "4:192,5:64");
    ck_assert_str_eq(map.s, "0,1,2,3,4,5,3,0,0,0,0,0,0,0,0,0");
    ck_assert_uint_eq(t.classes[1].sl_bulk[0], 0); /* the default class is what knows nothing of levels */
    ck_assert_uint_eq(t.classes[2].vl_small, t.classes[2].vl_bulk[0]);
    ck_assert_uint_eq(t.high_limit, 4); /* 4096 of 5 * 4096 bytes is 20 percent */
    ck_assert_uint_eq(t.op_vls_code, 4);
    text_free(&low);
    text_free(&high);
    text_free(&map);
}
END_TEST

static const struct {
    unsigned n;
    uint32_t shares[4], lanes[4];
    uint32_t mtu;
    double within;
} splits[] = {
    {2, {50, 50}, {1, 1}, 4096, 0.001},
    {2, {67, 33}, {1, 1}, 4096, 0.5},
    {2, {90, 10}, {1, 1}, 4096, 0.001},
    {2, {95, 5}, {1, 1}, 4096, 0.5},
    {3, {50, 35, 15}, {1, 1, 1}, 4096, 0.001},
    {3, {55, 30, 15}, {1, 1, 1}, 4096, 1},
    {3, {70, 20, 10}, {2, 1, 1}, 2048, 0.001},
    {4, {40, 30, 20, 10}, {1, 1, 1, 1}, 4096, 0.001},
    {4, {45, 30, 20, 5}, {1, 1, 1, 1}, 2048, 1},
    {3, {1, 49, 50}, {1, 1, 1}, 2048, 1.5},
    {1, {100}, {4}, 4096, 0.001},
    {3, {30, 20, 10}, {1, 1, 1}, 4096, 0.001},
};

START_TEST(shares)
{
    uint32_t none[4] = {1, 1, 0, 0}, total = 0;
    struct policy p = base(splits[_i].n, splits[_i].shares, none, splits[_i].lanes);
    struct fabric_caps caps = {.low_cap = 8};
    struct qos_tables t;
    p.mtu = splits[_i].mtu;
    ck_assert(compile(&p, &caps, &t, NULL));
    sound(&p, &t);
    ck_assert_uint_le(t.num_low, 8);
    for (unsigned i = 0; i < p.num_classes; i++)
        total += p.classes[i].share;
    for (unsigned i = 0; i < p.num_classes; i++) {
        double want = 100.0 * p.classes[i].share / total, got = share_on_wire(&p, &t, i);
        ck_assert_msg(fabs(want - got) <= splits[_i].within, "class %u: asked %.2f, got %.2f", i, want, got);
    }
}
END_TEST

START_TEST(uneven_shares_warn)
{
    struct policy p = base(4, (uint32_t[]){97, 1, 1, 1}, (uint32_t[]){0, 0, 0, 0}, (uint32_t[]){1, 1, 1, 1});
    struct fabric_caps caps = {.low_cap = 8};
    struct qos_tables t;
    unsigned warnings;
    ck_assert(compile(&p, &caps, &t, &warnings));
    ck_assert_uint_gt(warnings, 0); /* 5 entries of 3 packets against 3: 83 percent is the most */
    sound(&p, &t);
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
    sound(&p, &t);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_uint_eq(t.num_high, 1);
    ck_assert_uint_eq(t.high[0].vl, 3);
    ck_assert_uint_eq(t.high[0].weight, 192);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(t.classes[i].vl_small, 3);
    p.vls = 8;
    ck_assert(compile(&p, &caps, &t, &warnings));
    ck_assert_uint_eq(warnings, 0);
    ck_assert_uint_eq(t.num_high, 3);
    ck_assert_uint_eq(t.classes[1].vl_small, t.high[0].vl); /* the most important first */
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
    sound(&p, &t);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_uint_eq(t.num_high, 0);
    ck_assert_uint_eq(t.classes[1].vl_small, t.classes[1].vl_bulk[0]);
}
END_TEST

START_TEST(levels_between)
{
    struct policy p = base(3, (uint32_t[]){60, 20, 20}, (uint32_t[]){3, 1, 0}, (uint32_t[]){1, 1, 1});
    struct fabric_caps caps = {.vls = 8, .low_cap = 8, .high_cap = 8, .mtu = 4096};
    struct qos_tables t;
    struct text low = {0}, high = {0}, map = {0}, plan = {0};
    unsigned warnings;
    p.default_class = 1;
    p.classes[0].num_medium = 2;
    p.classes[0].medium_max[0] = 16384;
    p.classes[0].medium_max[1] = 65536;
    p.classes[1].num_medium = 1;
    p.classes[1].medium_max[0] = 32768;
    ck_assert(compile(&p, &caps, &t, &warnings));
    sound(&p, &t);
    ck_assert_uint_eq(warnings, 0);
    tables_vlarb_text(&low, t.low, t.num_low);
    tables_vlarb_text(&high, t.high, t.num_high);
    tables_sl2vl_text(&map, t.sl2vl);
    tables_plan_text(&plan, &p, &t);
    /* bulk 1, 0 and 2; small 3 and 4, between them 5, 6 (of the first class) and 7: 60 : 20 : 20 over three, two and
     * one */
    ck_assert_str_eq(high.s, "3:192,4:64");
    ck_assert_str_eq(map.s, "0,1,2,3,4,2,5,6,7,0,0,0,0,0,0,0");
    ck_assert_str_eq(low.s, "0:64,1:128,2:128,5:128,6:128,7:64");
    ck_assert_ptr_nonnull(strstr(plan.s, "medium: [{upto: 16384, sl: 6, vl: 5}, {upto: 65536, sl: 7, vl: 6}]}"));
    text_free(&low);
    text_free(&high);
    text_free(&map);
    text_free(&plan);
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
    sound(&p, &t);
    ck_assert_uint_ge(warnings, 1);
    ck_assert_uint_eq(t.classes[1].num_low, 2); /* the more important class has it */
    ck_assert_uint_eq(t.classes[0].vl_medium[0], t.classes[0].vl_bulk[0]);
    p.vls = 4;
    ck_assert(compile(&p, &(struct fabric_caps){0}, &t, &warnings)); /* small messages come first */
    sound(&p, &t);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_uint_eq(t.num_high, 2);
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
}
END_TEST

START_TEST(limits)
{
    static const struct {
        uint32_t mtu, minimum;
        unsigned limit;
    } cases[] = {{4096, 50, 1}, {4096, 20, 4}, {4096, 10, 9}, {2048, 20, 2},
                 {2048, 50, 0}, {4096, 1, 99}, {256, 50, 0}};
    struct fabric_caps caps = {0};
    struct qos_tables t;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct policy p = base(1, (uint32_t[]){100}, (uint32_t[]){1}, (uint32_t[]){1});
        p.mtu = cases[i].mtu;
        p.bulk_minimum = cases[i].minimum;
        ck_assert(compile(&p, &caps, &t, NULL));
        ck_assert_uint_eq(t.high_limit, cases[i].limit);
        /* one packet of bulk after limit * 4096 bytes is no less than was asked for */
        ck_assert(100.0 * p.mtu / (p.mtu + 4096.0 * t.high_limit) >= p.bulk_minimum);
    }
    struct policy p = base(1, (uint32_t[]){100}, (uint32_t[]){1}, (uint32_t[]){1});
    p.high_limit = 255;
    ck_assert(compile(&p, &caps, &t, NULL));
    ck_assert_uint_eq(t.high_limit, 255);
}
END_TEST

START_TEST(what_does_not_fit)
{
    struct policy p = base(2, (uint32_t[]){50, 50}, (uint32_t[]){1, 1}, (uint32_t[]){1, 1}), q;
    struct qos_tables t;
    ck_assert(compile(&p, &(struct fabric_caps){.vls = 8, .low_cap = 8, .high_cap = 8}, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.vls = 4}, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.high_cap = 1}, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.low_cap = 1}, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.sm_sl = 16}, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.routing_engine = "lash"}, &t, NULL));
    ck_assert(!compile(&p, &(struct fabric_caps){.routing_engine = "ftree, dfsssp"}, &t, NULL));
    ck_assert(compile(&p, &(struct fabric_caps){.routing_engine = "ftree,minhop"}, &t, NULL));
    q = p;
    q.lmc = 1;
    ck_assert(!compile(&q, &(struct fabric_caps){.routing_engine = "ftree,minhop"}, &t, NULL));
    ck_assert(compile(&q, &(struct fabric_caps){.ca_ports = 24575}, &t, NULL));
    ck_assert(!compile(&q, &(struct fabric_caps){.ca_ports = 24576}, &t, NULL)); /* two LIDs each */
    q = p;
    q.vls = 1;
    ck_assert(!compile(&q, &(struct fabric_caps){0}, &t, NULL));
    struct policy many =
        base(8, (uint32_t[]){10, 10, 10, 10, 10, 10, 10, 10}, (uint32_t[8]){0}, (uint32_t[]){2, 1, 1, 1, 1, 1, 1, 1});
    many.vls = 15;
    ck_assert(!compile(&many, &(struct fabric_caps){0}, &t, NULL)); /* 17 service levels */
    many.classes[0].lanes = 1;
    ck_assert(compile(&many, &(struct fabric_caps){0}, &t, NULL));
    sound(&many, &t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compile");
    TCase *t = tcase_create("compile");
    tcase_add_test(t, three_classes);
    tcase_add_loop_test(t, shares, 0, (int)(sizeof(splits) / sizeof(splits[0])));
    tcase_add_test(t, uneven_shares_warn);
    tcase_add_test(t, small_lanes_are_shared_when_few);
    tcase_add_test(t, small_goes_with_bulk_when_none_is_left);
    tcase_add_test(t, levels_between);
    tcase_add_test(t, levels_between_when_lanes_are_few);
    tcase_add_test(t, limits);
    tcase_add_test(t, what_does_not_fit);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
