/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adaptive weights, against rails with rates set by the test: the distribution of a message's stripes, and the time to
 * reach it.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/net/stripe/adapt.h"
#include "tests/check.h"

static struct mr_policy adaptive;

#define KIB        1024u
#define MIB        (1024u * KIB)
#define STRIPE_MIN (16 * KIB)
#define SUBS       4

/* A peer behind rails of so many bytes in a us; every stripe costs some time beside. */
static struct bench {
    unsigned n;
    double rate[SUBS], noise; /* relative noise of times */
    bool late;                /* completions are found late now and then */
    uint64_t overhead_ns, now_ns;
    struct mr_load load[SUBS];
    struct mr_sched turn;
    uint64_t due[SUBS];
    struct mr_adapt adapt;
    unsigned changes;
} b;

static void begin(unsigned n, double r0, double r1, double r2)
{
    memset(&b, 0, sizeof b);
    b.n = n;
    b.turn.due = b.due;
    b.rate[0] = r0;
    b.rate[1] = r1;
    b.rate[2] = r2;
    b.now_ns = 12345;
    srand(1);
    for (unsigned i = 0; i < n; i++)
        b.load[i] = (struct mr_load){.up = true, .weight = MR_WEIGHT_MAX};
}

static uint64_t duration(unsigned sub, uint64_t len)
{
    double ns = (double)b.overhead_ns + 1e3 * (double)len / b.rate[sub];

    return (uint64_t)(ns * (1 + b.noise * (2.0 * rand() / RAND_MAX - 1)));
}

/* One completion in ten is found late: the process did not look. */
static uint64_t lateness(uint64_t took)
{
    return b.late && rand() % 10 == 0 ? 4 * took : 0;
}

static int by_time(const void *a, const void *c)
{
    const uint64_t *x = a, *y = c;

    return (x[0] > y[0]) - (x[0] < y[0]);
}

/* count messages of len bytes, all begun at once, then all waited for. Their time in ns. */
static uint64_t send_some(uint64_t len, unsigned count)
{
    static uint64_t done[64 * SUBS][3]; /* when, sub, length */
    uint64_t free_at[SUBS], begun = b.now_ns;
    unsigned num = 0;

    for (unsigned i = 0; i < b.n; i++)
        free_at[i] = b.now_ns;
    for (unsigned k = 0; k < count; k++) {
        struct mr_stripe plan[MR_SUBS_MAX];
        unsigned stripes = mr_sched_plan(&adaptive, &b.turn, b.load, b.n, len, STRIPE_MIN, 4096, plan);

        for (unsigned i = 0; i < stripes; i++) {
            uint64_t took = duration(plan[i].sub, plan[i].len);

            free_at[plan[i].sub] += took;
            done[num][0] = free_at[plan[i].sub] + lateness(took);
            done[num][1] = plan[i].sub;
            done[num++][2] = plan[i].len;
            mr_adapt_started(&b.adapt, plan[i].sub, stripes > 1, b.now_ns);
        }
    }
    qsort(done, num, sizeof done[0], by_time);
    for (unsigned k = 0; k < num; k++) {
        mr_adapt_finished(&b.adapt, (unsigned)done[k][1], done[k][2], b.now_ns = done[k][0]);
        b.changes += mr_adapt_weigh(&b.adapt, b.load, b.n);
    }
    return b.now_ns - begun;
}

static void repeat(unsigned times, uint64_t len, unsigned count)
{
    for (unsigned i = 0; i < times; i++)
        send_some(len, count);
}

/* The part of subchannel i in hundredths. */
static double share(unsigned i)
{
    double sum = 0;

    for (unsigned k = 0; k < b.n; k++)
        sum += b.load[k].weight;
    return 100 * b.load[i].weight / sum;
}

START_TEST(equal_rails_stay_equal)
{
    begin(2, 800, 800, 0);
    b.noise = 0.1;
    b.overhead_ns = 3000;
    repeat(500, 1 * MIB, 1);
    repeat(200, 64 * KIB, 16);
    ck_assert_uint_eq(b.changes, 0);
    ck_assert_uint_eq(b.load[0].weight, MR_WEIGHT_MAX);
    ck_assert_uint_eq(b.load[1].weight, MR_WEIGHT_MAX);
}
END_TEST

/* Late looks are noise that a median takes away, but not always. */
START_TEST(or_nearly_so)
{
    begin(2, 800, 800, 0);
    b.late = true;
    for (unsigned i = 0; i < 500; i++) {
        send_some(i % 2 ? 64 * KIB : 1 * MIB, i % 2 ? 16 : 1);
        ck_assert_double_gt(share(0), 30);
        ck_assert_double_lt(share(0), 70);
    }
    b.late = false;
    repeat(30, 64 * KIB, 16);
    ck_assert_uint_eq(b.load[0].weight, b.load[1].weight);
}
END_TEST

START_TEST(weights_follow_rates)
{
    uint64_t even, adapted;

    begin(2, 8, 2, 0);
    even = send_some(1 * MIB, 1);
    b.late = true;
    repeat(30, 1 * MIB, 1);
    b.late = false;
    adapted = send_some(1 * MIB, 1);
    ck_assert_double_ge(share(0), 76);
    ck_assert_double_le(share(0), 84);
    ck_assert_uint_eq(b.load[0].weight, MR_WEIGHT_MAX);
    ck_assert_uint_lt(adapted * 2, even);
    ck_assert_uint_lt(adapted, 1ull * MIB * 1000 / 9); /* more than 9 of the 10 bytes in a us that there are */
}
END_TEST

START_TEST(with_many_under_way_too)
{
    begin(2, 8, 2, 0);
    repeat(5, 1 * MIB, 16);
    ck_assert_double_ge(share(0), 76);
    ck_assert_double_le(share(0), 84);
}
END_TEST

/* A short series must gain, too. */
START_TEST(soon)
{
    begin(2, 8, 2, 0);
    repeat(2 * MR_ADAPT_ROUND - 1, 1 * MIB, 1);
    ck_assert_uint_eq(b.changes, 0);
    send_some(1 * MIB, 1);
    ck_assert_double_ge(share(0), 76);
    ck_assert_double_le(share(0), 84);
}
END_TEST

/* But not at the first sample: a disturbance was on one of the equal rails. */
START_TEST(not_at_the_first_glance)
{
    begin(2, 8, 2, 0);
    repeat(MR_ADAPT_ROUND, 1 * MIB, 1);
    b.rate[1] = 8;
    repeat(8 * MR_ADAPT_ROUND, 1 * MIB, 1);
    ck_assert_uint_eq(b.changes, 0);
    ck_assert_double_eq(share(0), 50);
}
END_TEST

/* But not all at once when it knows better: samples from before count as well. */
START_TEST(later_with_caution)
{
    begin(2, 8, 2, 0);
    repeat(MR_ADAPT_SAMPLES, 1 * MIB, 1);
    b.rate[1] = 8;
    repeat(MR_ADAPT_ROUND, 1 * MIB, 1);
    ck_assert_double_ge(share(0), 76);
    repeat(MR_ADAPT_ROUND, 1 * MIB, 1);
    ck_assert_double_gt(share(0), 60);
    ck_assert_double_lt(share(0), 72);
    repeat(4 * MR_ADAPT_ROUND, 1 * MIB, 1);
    ck_assert_uint_eq(b.load[0].weight, b.load[1].weight);
}
END_TEST

/*
 * A device whose driver moves the bytes during the post: one stripe begins when the other is done. The caller then sees
 * either of them, or both when all are done, because all of a message is posted before the poll.
 */
START_TEST(one_after_the_other)
{
    begin(2, 1, 1, 0);
    for (unsigned k = 0; k < 200; k++) {
        struct mr_stripe plan[MR_SUBS_MAX];
        unsigned n = mr_sched_plan(&adaptive, &b.turn, b.load, 2, 64 * KIB, STRIPE_MIN, 4096, plan);

        ck_assert_uint_eq(n, 2);
        for (unsigned i = 0; i < n; i++)
            mr_adapt_started(&b.adapt, plan[i].sub, true, b.now_ns);
        for (unsigned i = 0; i < n; i++) {
            b.now_ns += k % 3 || !i ? 300000 : 1000; /* found between the two, or after both */
            mr_adapt_finished(&b.adapt, plan[i].sub, plan[i].len, b.now_ns);
            ck_assert(!mr_adapt_weigh(&b.adapt, b.load, 2));
        }
    }
}
END_TEST

/*
 * Memory is registered between two polls: stripes of one rail complete before, those of the other after. Then all
 * completions of the meantime come at once.
 */
START_TEST(registering_says_nothing_of_rails)
{
    begin(2, 1, 1, 0);
    for (unsigned k = 0; k < 200; k++) {
        for (unsigned i = 0; i < 2; i++)
            mr_adapt_started(&b.adapt, i, true, b.now_ns);
        mr_adapt_finished(&b.adapt, 0, 256 * KIB, b.now_ns += 10000);
        b.adapt.away++;
        b.adapt.behind = true;
        mr_adapt_finished(&b.adapt, 1, 256 * KIB, b.now_ns += 30000);
        for (unsigned i = 0; i < 2; i++)
            mr_adapt_started(&b.adapt, i, true, b.now_ns);
        mr_adapt_finished(&b.adapt, 0, 256 * KIB, b.now_ns += 1000);
        mr_adapt_finished(&b.adapt, 1, 256 * KIB, b.now_ns += 10000);
        b.adapt.behind = false;
        ck_assert(!mr_adapt_weigh(&b.adapt, b.load, 2));
    }
    ck_assert_uint_eq(b.load[0].weight, b.load[1].weight);
    repeat(30, 1 * MIB, 2); /* for weights of 1:1 */
    ck_assert_uint_eq(b.load[0].weight, b.load[1].weight);
}
END_TEST

START_TEST(three_rails)
{
    begin(3, 8, 4, 4);
    repeat(30, 1 * MIB, 2);
    ck_assert_double_ge(share(0), 46);
    ck_assert_double_le(share(0), 54);
    ck_assert_double_ge(share(2), 22);
    ck_assert_double_le(share(2), 28);
}
END_TEST

/* Fixed time per stripe makes short stripes look slow; this must not take a rail out. */
START_TEST(overhead_is_not_slowness)
{
    begin(2, 800, 800, 0);
    b.overhead_ns = 30000;
    b.load[1].weight = MR_WEIGHT_MAX / 2;
    repeat(200, 256 * KIB, 1);
    ck_assert_uint_eq(b.load[0].weight, MR_WEIGHT_MAX);
    ck_assert_uint_eq(b.load[1].weight, MR_WEIGHT_MAX);
}
END_TEST

START_TEST(a_rail_that_recovers_is_noticed)
{
    begin(2, 100, 0.1, 0);
    repeat(60, 1 * MIB, 1);
    ck_assert_uint_eq(b.load[1].weight, MR_WEIGHT_MIN);
    b.rate[1] = 100;
    repeat(60, 1 * MIB, 1);
    ck_assert_uint_eq(b.load[1].weight, MR_WEIGHT_MAX);
}
END_TEST

/* With messages so small that its part is too short to pay, the rail still gets a part now and then. */
START_TEST(with_small_messages_too)
{
    begin(2, 100, 1, 0);
    repeat(60, 1 * MIB, 1);
    repeat(600, 64 * KIB, 1);
    ck_assert_uint_lt(b.load[1].weight, MR_WEIGHT_MAX / 16);
    b.rate[1] = 100;
    repeat(64 * 60, 64 * KIB, 1);
    ck_assert_uint_ge(b.load[1].weight, MR_WEIGHT_MAX / 2);
}
END_TEST

/* As a part of all: gains and losses of the others stay among them. */
START_TEST(who_is_down_keeps_its_weight)
{
    begin(3, 8, 2, 5);
    b.load[2] = (struct mr_load){.weight = MR_WEIGHT_MAX / 2};
    repeat(30, 1 * MIB, 1);
    ck_assert_double_ge(share(2), 19);
    ck_assert_double_le(share(2), 21);
    ck_assert_uint_lt(b.load[1].weight, 300);
}
END_TEST

/* Completions found in one poll do not tell their order. */
START_TEST(a_late_look_changes_nothing)
{
    begin(2, 1, 1, 0);
    b.load[1].weight = MR_WEIGHT_MAX / 4;
    for (unsigned k = 0; k < 100; k++) {
        struct mr_stripe plan[MR_SUBS_MAX];
        unsigned n = mr_sched_plan(&adaptive, &b.turn, b.load, 2, 1 * MIB, STRIPE_MIN, 4096, plan);

        for (unsigned i = 0; i < n; i++)
            mr_adapt_started(&b.adapt, plan[i].sub, true, b.now_ns);
        b.now_ns += 5000000;
        for (unsigned i = 0; i < n; i++) {
            mr_adapt_finished(&b.adapt, plan[i].sub, plan[i].len, b.now_ns);
            ck_assert(!mr_adapt_weigh(&b.adapt, b.load, 2));
        }
    }
}
END_TEST

/* Whole messages of any length, and with them short ones on one subchannel and long ones on the other. */
START_TEST(whole_messages_say_nothing)
{
    begin(2, 800, 800, 0);
    b.overhead_ns = 30000;
    for (unsigned k = 0; k < 100; k++)
        send_some(k % 2 ? 1 * KIB : 15 * KIB, 1);
    ck_assert_uint_eq(b.changes, 0);
    send_some(1 * MIB, 1);
    repeat(20, 1 * MIB, 2);
    ck_assert_uint_eq(b.changes, 0);
}
END_TEST

/* Ten thousand, a second or so: measured rates hold. */
START_TEST(idle_rails_keep_their_weights)
{
    uint32_t before[2];
    uint64_t begun;

    begin(2, 800, 200, 0);
    b.overhead_ns = 3000;
    repeat(30, 1 * MIB, 1);
    for (unsigned i = 0; i < 2; i++)
        before[i] = b.load[i].weight;
    ck_assert_uint_lt(before[1], MR_WEIGHT_MAX / 3);
    b.changes = 0;
    b.late = true;
    for (begun = b.now_ns; b.now_ns - begun < 1000000000; b.now_ns += 90000)
        send_some(8 * KIB, 1);
    b.late = false;
    ck_assert_uint_eq(b.changes, 0);
    send_some(1 * MIB, 1);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(b.load[i].weight, before[i]);
}
END_TEST

/* An error of 1/50 still makes a message wait for one of its stripes. */
START_TEST(weights_come_close)
{
    begin(2, 24000, 6000, 0);
    b.load[1].weight = MR_WEIGHT_MAX / 4 + MR_WEIGHT_MAX / 200;
    repeat(30, 4 * MIB, 1);
    ck_assert_uint_ge(b.load[1].weight, MR_WEIGHT_MAX / 4 - 2);
    ck_assert_uint_le(b.load[1].weight, MR_WEIGHT_MAX / 4 + 2);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("adapt");
    char what[MR_POLICY_TEXT];

    if (!mr_policy_parse("adaptive", MR_POLICY_LARGE, &adaptive, what, sizeof what))
        return 1;
    tcase_add_test(t, equal_rails_stay_equal);
    tcase_add_test(t, or_nearly_so);
    tcase_add_test(t, weights_follow_rates);
    tcase_add_test(t, with_many_under_way_too);
    tcase_add_test(t, whole_messages_say_nothing);
    tcase_add_test(t, soon);
    tcase_add_test(t, not_at_the_first_glance);
    tcase_add_test(t, later_with_caution);
    tcase_add_test(t, one_after_the_other);
    tcase_add_test(t, three_rails);
    tcase_add_test(t, overhead_is_not_slowness);
    tcase_add_test(t, a_rail_that_recovers_is_noticed);
    tcase_add_test(t, with_small_messages_too);
    tcase_add_test(t, who_is_down_keeps_its_weight);
    tcase_add_test(t, registering_says_nothing_of_rails);
    tcase_add_test(t, a_late_look_changes_nothing);
    tcase_add_test(t, idle_rails_keep_their_weights);
    tcase_add_test(t, weights_come_close);
    return check_run(t, NULL);
}
