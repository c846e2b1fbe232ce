/* SPDX-License-Identifier: BSD-3-Clause */
/* Ahead budgets: whoever uses how much of his, shares hold. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/policy/ahead.h"
#include "fabricd/proto/ratio.h"
#include "tests/check.h"

static struct qos_tables t;
static double budget[POLICY_CLASSES_MAX];

/* Lane i is the bulk lane of class i; classes of the set have a second lane for small messages. */
static void classes(unsigned n, const double *share, unsigned ahead)
{
    memset(&t, 0, sizeof(t));
    t.num_classes = n;
    for (unsigned i = 0; i < n; i++) {
        t.classes[i].share = share[i];
        t.classes[i].vl_bulk[0] = (uint8_t)i;
        t.classes[i].num_lanes = 1;
        t.classes[i].vl_small = (uint8_t)(ahead >> i & 1 ? 14 : i);
        t.classes[i].num_ahead = ahead >> i & 1;
    }
    ahead_budgets(&t, budget);
}

/* How far class i is from its share if the classes of the set use all of their budgets, and bulk takes the rest. */
static double off(unsigned i, unsigned users)
{
    double all = 0;
    for (unsigned k = 0; k < t.num_classes; k++)
        all += users >> k & 1 ? budget[k] : 0;
    double has = (users >> i & 1 ? budget[i] : 0) + t.classes[i].share * (1 - all / 100);
    return has < t.classes[i].share ? t.classes[i].share - has : has - t.classes[i].share;
}

START_TEST(shares_hold_whoever_goes_ahead)
{
    srand(1);
    for (unsigned round = 0; round < 200; round++) {
        unsigned n = 2 + (unsigned)rand() % (POLICY_CLASSES_MAX - 1), able = (unsigned)rand() % (1u << n);
        double share[POLICY_CLASSES_MAX], sum = 0;
        for (unsigned i = 0; i < n; i++)
            sum += share[i] = 1 + rand() % 60;
        for (unsigned i = 0; i < n; i++)
            share[i] *= 100 / sum;
        classes(n, share, able);
        for (unsigned users = 0; users < 1u << n; users++)
            for (unsigned i = 0; i < n; i++)
                ck_assert_msg(off(i, users) <= AHEAD_POINTS + 1e-9, "class %u of %u is %.2f off", i, n, off(i, users));
    }
}
END_TEST

/* Budgets are not smaller than necessary: a class is at the bound, or has the maximum. */
START_TEST(budgets_are_as_large_as_may_be)
{
    static const double shares[][3] = {{90, 10, 0}, {60, 30, 10}, {50, 50, 0}, {34, 33, 33}, {99, 1, 0}};
    for (unsigned k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
        unsigned n = shares[k][2] > 0 ? 3 : 2;
        double worst = 0;
        classes(n, shares[k], 7);
        for (unsigned users = 0; users < 1u << n; users++)
            for (unsigned i = 0; i < n; i++)
                worst = off(i, users) > worst ? off(i, users) : worst;
        ck_assert_double_ge(worst, AHEAD_POINTS * 0.99);
    }
    classes(2, (double[]){99, 1}, 1);
    ck_assert_double_eq(budget[0], AHEAD_MOST);
    classes(1, (double[]){100}, 1); /* no other class has a share to lose */
    ck_assert_double_eq(budget[0], 0);
}
END_TEST

START_TEST(who_does_not_go_ahead_has_none)
{
    classes(3, (double[]){60, 30, 10}, 4);
    ck_assert_double_eq(budget[0], 0);
    ck_assert_double_eq(budget[1], 0);
    ck_assert_double_gt(budget[2], 1);
}
END_TEST

START_TEST(hosts_behind_a_cable_divide_them)
{
    double whole[POLICY_CLASSES_MAX];
    classes(3, (double[]){60, 30, 10}, 7);
    memcpy(whole, budget, sizeof(whole));
    t.oversubscription = 1;
    ahead_budgets(&t, budget);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_double_eq(budget[i], whole[i]);
    t.oversubscription = 4;
    ahead_budgets(&t, budget);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_double_eq_tol(budget[i], whole[i] / 4, 1e-12);
}
END_TEST

START_TEST(the_part_of_a_process)
{
    ck_assert_uint_eq(ahead_part(10, 1, 1), 6553);
    ck_assert_uint_eq(ahead_part(10, 2, 4), 819);
    ck_assert_uint_eq(ahead_part(10, 2, 0), 3276);
    ck_assert_uint_eq(ahead_part(0.1, 3, 4096), 1); /* some, always */
    ck_assert_uint_eq(ahead_part(100, 1, 1), UINT16_MAX);
    ck_assert_uint_eq(ahead_part(10, 0, 1), 0);
    ck_assert_uint_eq(ahead_part(0, 1, 1), 0); /* no limit */
}
END_TEST

/* Jobs' own ratios, as texts and in percent of a rail. */
START_TEST(ratios)
{
    static const char *const wrong[] = {"",     "1",    "1:",     ":1",     "1:0",   "0:0",   "-1:1",         "+1:1",
                                        "1:1 ", " 1:1", "1001:1", "1:1001", "1:2:3", "1.5:1", "4294967297:1", "none"};
    char text[FD_RATIO_MAX];
    struct ratio r;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_msg(!ratio_parse(wrong[i], &r), "%s", wrong[i]);
        ck_assert(!r.small && !r.large);
    }
    ratio_text(&r, text);
    ck_assert_str_eq(text, "");
    ck_assert(ratio_parse("01:099", &r));
    ratio_text(&r, text);
    ck_assert_str_eq(text, "1:99");
    ck_assert_uint_eq(ahead_part(ratio_percent(&r), 1, 1), 655);
    ck_assert(ratio_parse("1000:1000", &r) && ratio_good(&r));
    ratio_text(&r, text);
    ck_assert_str_eq(text, "1000:1000");
    ck_assert_uint_eq(ahead_part(ratio_percent(&r), 1, 2), FD_AHEAD_ALL / 4);
    ck_assert(ratio_parse("0:1", &r) && ratio_percent(&r) == 0);
    ck_assert(ratio_good(&(struct ratio){0, 0}) && !ratio_good(&(struct ratio){1, 0}));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("ahead");
    tcase_add_test(c, shares_hold_whoever_goes_ahead);
    tcase_add_test(c, budgets_are_as_large_as_may_be);
    tcase_add_test(c, who_does_not_go_ahead_has_none);
    tcase_add_test(c, hosts_behind_a_cable_divide_them);
    tcase_add_test(c, the_part_of_a_process);
    tcase_add_test(c, ratios);
    return check_run(c, NULL);
}
