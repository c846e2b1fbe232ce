/* SPDX-License-Identifier: BSD-3-Clause */
/* Goals to priorities: the lowest priority that meets a latency, or the best possible; and the high limit. */
#include "fabricd/policy/wait.h"
#include "tests/check.h"
#include "tests/fabricd/compile_help.h"

#include <stdlib.h>

static const struct fabric_caps ddr = {
    .vls = 8, .low_cap = 8, .high_cap = 8, .mtu = 2048, .rate_mbps = 16000, .hops = 2};

START_TEST(goals)
{
    struct policy p = base(2, (uint32_t[]){80, 20}, (uint32_t[]){1, 0}, (uint32_t[]){1, 1});
    struct qos_tables t;
    struct wait_load load = {.high_bytes = 1024};
    p.classes[0].has_priority = false;
    p.classes[0].latency_ns = 1000000;
    ck_assert(compile(&p, &ddr, &t, NULL));
    ck_assert_uint_eq(t.classes[0].priority, PRIORITY_LOW); /* a round of the low table is less than a millisecond */
    p.classes[0].latency_ns = 3000;
    ck_assert(compile(&p, &ddr, &t, NULL));
    ck_assert_uint_eq(t.classes[0].priority, PRIORITY_NORMAL);
    ck_assert_uint_eq(policy_high_bytes(&p, &t), 1024);
    ck_assert_uint_eq(tables_wait_ns(&t, t.classes[0].vl_small, &ddr, &load), 2 * 2078 / 2);
    p.classes[0].latency_ns = 2000; /* the packet in service alone, at each of two links */
    ck_assert(!compile(&p, &ddr, &t, NULL));
    ck_assert(said("allowed: 3 us or more"));
    p.classes[0].has_priority = true;
    ck_assert(compile(&p, &ddr, &t, NULL)); /* no goal then */
}
END_TEST

START_TEST(goals_beside_others)
{
    struct policy p = base(3, (uint32_t[]){40, 40, 20}, (uint32_t[]){1, 1, 1}, (uint32_t[]){1, 1, 1});
    struct qos_tables t;
    unsigned warnings;
    p.classes[0].has_priority = false;
    p.classes[0].latency_ns = 4000; /* behind both others 2 * (2078 + 2 * 1054) / 2 ns: two turns */
    ck_assert(compile(&p, &ddr, &t, NULL));
    ck_assert_uint_eq(t.classes[0].priority, 2);
    p.classes[0].latency_ns = 5000;
    ck_assert(compile(&p, &ddr, &t, NULL));
    ck_assert_uint_eq(t.classes[0].priority, PRIORITY_NORMAL);
    struct fabric_caps unknown = {0};
    ck_assert(compile(&p, &unknown, &t, &warnings));
    ck_assert_uint_eq(t.classes[0].priority, PRIORITY_NORMAL);
    ck_assert_uint_eq(warnings, 1);
    p.high_limit = 255;
    p.vls = 4;
    p.classes[0].latency_ns = 1000000;
    p.classes[1].priority = p.classes[2].priority = 3;
    ck_assert(compile(&p, &ddr, &t, NULL)); /* a class whose lane others starve gets a lane ahead */
    ck_assert_uint_eq(t.classes[0].priority, PRIORITY_NORMAL);
}
END_TEST

START_TEST(limits)
{
    struct policy p = base(1, (uint32_t[]){100}, (uint32_t[]){1}, (uint32_t[]){1});
    struct qos_tables t;
    unsigned warnings;
    static const unsigned limit_for[][2] = {{0, 1}, {20, 1}, {40, 1}, {49, 0}, {50, 0}};
    for (size_t i = 0; i < sizeof(limit_for) / sizeof(limit_for[0]); i++) {
        p.bulk_minimum = limit_for[i][0]; /* 4096 bytes, and a packet, for one of 4096: bulk has 44 percent */
        ck_assert(compile(&p, &small_tables, &t, &warnings));
        ck_assert_msg(t.high_limit == limit_for[i][1], "%u percent: limit %u", p.bulk_minimum, t.high_limit);
        ck_assert_uint_eq(warnings, 0);
    }
    p.high_limit = 4;
    ck_assert(compile(&p, &small_tables, &t, &warnings));
    ck_assert_uint_eq(t.high_limit, 4);
    ck_assert_uint_eq(warnings, 1);
    ck_assert(said("80 percent of a link"));
    p.high_limit = 255;
    ck_assert(compile(&p, &small_tables, &t, &warnings));
    ck_assert_uint_eq(t.high_limit, 255);
    ck_assert_uint_eq(warnings, 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("goals");
    tcase_add_test(t, goals);
    tcase_add_test(t, goals_beside_others);
    tcase_add_test(t, limits);
    return check_run(t, NULL);
}
