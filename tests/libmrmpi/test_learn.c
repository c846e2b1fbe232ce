/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The learner as promised: the better way is taken soon, whatever disturbs single operations; the choice follows a
 * change; and trials take a small share of the operations.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/learn.h"
#include "tests/check.h"

enum { TRIAL = 3, ALL = 7, LATE = 1000000 };

static struct mr_learn l;
static unsigned gone[MR_LEARN_WAYS];

static void setup(void)
{
    l = (struct mr_learn){0};
    srand(1);
    memset(gone, 0, sizeof(gone));
}

/* Operations that take ns[way], a tenth more or less by chance; one of 20 is interrupted. Counts them in gone. */
static void run(unsigned num, const unsigned ns[MR_LEARN_WAYS], unsigned ways)
{
    unsigned impossible = 0;

    memset(gone, 0, sizeof(gone));
    for (unsigned i = 0; i < num; i++) {
        unsigned way = mr_learn_next(&l, ways, TRIAL), took = ns[way];

        impossible += !(ways & 1u << way);
        gone[way]++;
        took += took * ((unsigned)rand() % 11) / 100;
        mr_learn_took(&l, way, took + (rand() % 20 ? 0 : LATE));
    }
    ck_assert_uint_eq(impossible, 0);
}

/* All orders of ways whose times differ by a tenth, and of ways that differ by more; the first is kept at first. */
static const unsigned orders[][MR_LEARN_WAYS] = {{1000, 1100, 1210}, {1210, 1000, 1100}, {1100, 1210, 1000},
                                                 {1000, 4000, 2000}, {4000, 1000, 2000}, {9000, 2000, 1000},
                                                 {1210, 1100, 1000}, {30, 2, 1}};

static unsigned best(const unsigned ns[MR_LEARN_WAYS])
{
    return ns[0] < ns[1] && ns[0] < ns[2] ? 0 : ns[1] < ns[2] ? 1 : 2;
}

/* In nearly all of many runs of chance. */
START_TEST(the_better_way_is_taken)
{
    unsigned soon = 0, late = 0;

    for (unsigned seed = 0; seed < 200; seed++) {
        setup();
        srand(seed);
        run(1000, orders[_i], ALL);
        soon += l.kept == best(orders[_i]);
        run(3000, orders[_i], ALL);
        late += l.kept == best(orders[_i]);
    }
    ck_assert_uint_ge(soon, 180);
    ck_assert_uint_ge(late, 198);
}
END_TEST

START_TEST(trials_cost_little)
{
    for (unsigned seed = 0; seed < 20; seed++) {
        setup();
        srand(seed);
        run(5000, orders[_i], ALL);
        ck_assert_uint_ge(gone[best(orders[_i])], 5000 * 85 / 100);
        run(50000, orders[_i], ALL);
        ck_assert_uint_ge(gone[best(orders[_i])], 50000 * 98 / 100);
    }
}
END_TEST

/* Also if the times are nothing but chance. */
START_TEST(noise_changes_seldom)
{
    unsigned changes = 0, way = 0;

    for (unsigned i = 0; i < 100000; i++) {
        unsigned now = mr_learn_next(&l, ALL, TRIAL);

        changes += now != way;
        way = now;
        mr_learn_took(&l, now, 1000 + (unsigned)rand() % 100);
    }
    ck_assert_uint_le(changes, 100000 / 500);
}
END_TEST

/* The kept way becomes slower: at once. Another becomes faster: with one of the next trials. */
START_TEST(changes_are_followed)
{
    static const unsigned before[] = {1000, 1500, 1500}, slower[] = {2000, 1500, 1800}, faster[] = {2000, 1500, 1200};

    run(20000, before, ALL);
    ck_assert_uint_eq(l.kept, 0);
    run(60, slower, ALL);
    ck_assert_uint_eq(l.kept, 1);
    run(20000, slower, ALL);
    ck_assert_uint_eq(l.kept, 1);
    run(4 * MR_BACKOFF_MOST, faster, ALL);
    ck_assert_uint_eq(l.kept, 2);
}
END_TEST

/* All ways slow down alike, as by another program: the kept way stays. */
START_TEST(load_of_the_machine_is_no_reason)
{
    unsigned others = 0;

    run(2000, orders[3], ALL);
    for (unsigned i = 0; i < 100; i++) {
        const unsigned busy[] = {3000, 12000, 6000};

        run(500, i % 2 ? orders[3] : busy, ALL);
        others += gone[1] + gone[2];
    }
    ck_assert_uint_eq(l.kept, 0);
    ck_assert_uint_le(others, 50000 * 3 / 100);
}
END_TEST

/* Ways are tried as soon as the first one is known. */
START_TEST(knows_nothing)
{
    for (unsigned i = 0; i < MR_LEARN_WAYS; i++) {
        run(TRIAL, orders[7], ALL);
        ck_assert_uint_eq(gone[i], TRIAL);
    }
    run(60, orders[7], ALL);
    ck_assert_uint_eq(gone[2], 60);
}
END_TEST

/* Similar work begins with the same way, soon tries what was nearly as fast, and nothing else. */
START_TEST(begins_with_what_is_known)
{
    static const unsigned known[] = {1000, 1300, 4000}, similar[] = {1300, 1000, 4000};

    run(1000, known, ALL);
    l = mr_learn_like(&l, 1);
    run(TRIAL, similar, ALL);
    ck_assert_uint_eq(gone[0], TRIAL);
    run(30, similar, ALL);
    ck_assert_uint_eq(gone[1], 30);
}
END_TEST

START_TEST(impossible_ways_are_not_taken)
{
    run(1000, orders[0], 4);
    ck_assert_uint_eq(gone[2], 1000);
    run(1000, orders[0], ALL);
    ck_assert_uint_eq(l.kept, 0);
    run(1000, orders[0], 6); /* in the middle of anything: the next best */
    ck_assert_uint_eq(l.kept, 1);
    for (unsigned i = 0; i < 1000; i++)
        run(1, orders[0], 1u << (unsigned)rand() % 3);
}
END_TEST

/* A trial without samples proves nothing; operations that do not count are repeated. */
START_TEST(trials_may_fail)
{
    for (unsigned i = 0; i < 10000; i++) {
        unsigned way = mr_learn_next(&l, 3, TRIAL);

        gone[way]++;
        if (!way)
            mr_learn_took(&l, 0, 1000);
    }
    ck_assert_uint_eq(l.kept, 0);
    ck_assert_uint_le(gone[1], 100);
    setup();
    for (unsigned i = 0; i < 500; i++) {
        unsigned way = mr_learn_next(&l, 3, TRIAL);

        if (way && gone[1]++ < 100)
            mr_learn_again(&l);
        else
            mr_learn_took(&l, way, way ? 500 : 1000);
    }
    ck_assert_uint_eq(l.kept, 1);
}
END_TEST

/* The same times, the same ways. */
START_TEST(repeats)
{
    struct mr_learn first;

    run(10000, orders[6], ALL);
    first = l;
    setup();
    run(10000, orders[6], ALL);
    ck_assert_int_eq(memcmp(&first, &l, sizeof(l)), 0);
}
END_TEST

START_TEST(medians)
{
    struct mr_median m = {0};
    static const uint64_t in[] = {UINT64_MAX, 0, 5, 7, 6, 9, 1, 9};
    static const uint32_t out[] = {UINT32_MAX, 1, 5, 5, 6, 7, 6, 9};

    ck_assert_uint_eq(mr_median_of(&m), 0);
    for (unsigned i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
        mr_median_add(&m, in[i]);
        ck_assert_uint_eq(mr_median_of(&m), out[i]);
    }
}
END_TEST

/* A trial that proves nothing is over at once, and the next one comes no later than after a first rest. */
START_TEST(a_trial_proves_nothing)
{
    unsigned ops = 0;

    run(TRIAL, orders[3], 3);
    ck_assert_uint_eq(mr_learn_next(&l, 3, TRIAL), 1);
    mr_learn_took(&l, 1, 1);
    for (unsigned i = 0; i < 3; i++) {
        mr_learn_void(&l);
        ck_assert_uint_eq(l.time[1].num, 0);
        for (ops = 0; mr_learn_next(&l, 3, TRIAL) == 0; ops++)
            mr_learn_took(&l, 0, 1000);
        ck_assert_uint_ge(ops, MR_LEARN_REST);
        ck_assert_uint_le(ops, MR_LEARN_REST * TRIAL);
    }
    ck_assert_uint_eq(l.kept, 0);
}
END_TEST

/* Longer operations shorten the rest as if they were more; news ends the rest; without a choice no rest passes. */
START_TEST(rests)
{
    unsigned ops = 0, rest;

    run(20, orders[3], 3);
    rest = l.rest.left;
    ck_assert_uint_gt(rest, 16);
    for (; mr_learn_next(&l, 3, TRIAL) == 0; ops++) {
        mr_learn_took(&l, 0, 1000);
        mr_learn_long(&l, 8);
    }
    ck_assert_uint_le(ops, rest / 8 + 1);
    run(TRIAL - 1, orders[3], 3);
    rest = l.rest.left;
    run(50, orders[3], 1);
    ck_assert_uint_eq(l.rest.left, rest);
    mr_learn_anew(&l);
    ck_assert_uint_eq(mr_learn_next(&l, 3, TRIAL), 1);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("learn");
    int num = sizeof(orders) / sizeof(orders[0]);

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_loop_test(c, the_better_way_is_taken, 0, num);
    tcase_add_loop_test(c, trials_cost_little, 0, num);
    tcase_add_test(c, noise_changes_seldom);
    tcase_add_test(c, changes_are_followed);
    tcase_add_test(c, load_of_the_machine_is_no_reason);
    tcase_add_test(c, knows_nothing);
    tcase_add_test(c, begins_with_what_is_known);
    tcase_add_test(c, impossible_ways_are_not_taken);
    tcase_add_test(c, trials_may_fail);
    tcase_add_test(c, repeats);
    tcase_add_test(c, medians);
    tcase_add_test(c, a_trial_proves_nothing);
    tcase_add_test(c, rests);
    return check_run(c, NULL);
}
