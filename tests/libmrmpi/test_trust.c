/* SPDX-License-Identifier: BSD-3-Clause */
/* The health of a way: loss from evidence, its fading, and the absence of a way that fails again. */
#include <stdlib.h>

#include "libmrmpi/conn/route/trust.h"
#include "tests/check.h"

#define MS    1000000ull
#define BEGIN (1000 * 1000 * MS)

static struct mr_trust t;
/* 10,000 packets pass in the time that a connection stands still; the other way is as good */
static const struct mr_trust_way way = {.rate_mbps = 54613, .others_mbps = 54613, .mtu = 4096};
static uint32_t least;

static void setup(void)
{
    t = (struct mr_trust){0};
    least = mr_trust_least(&way);
}

static uint32_t value(const struct mr_trust *of, uint64_t now)
{
    return mr_trust_value(of, &way, now);
}

/* Without evidence, and with arrivals. */
START_TEST(well)
{
    ck_assert_uint_eq(value(&t, BEGIN), MR_TRUST_FULL);
    mr_trust_tried(&t, 1000, 0, BEGIN);
    ck_assert_uint_eq(mr_trust_loss(&t, BEGIN), 0);
    ck_assert_uint_eq(value(&t, BEGIN), MR_TRUST_FULL);
}
END_TEST

/* Packets are lost at random: the estimate finds the rate. Loss in 10,000ths. */
START_TEST(finds_the_loss)
{
    static const unsigned loss[] = {100, 500, 1000, 5000};
    uint64_t sum = 0, now = BEGIN;
    unsigned n = 0;

    srandom(7);
    for (unsigned i = 0; i < 40000; i++) {
        now += MS / 10;
        mr_trust_tried(&t, 1, (unsigned)random() % 10000 < loss[_i], now);
        if (i < 10000)
            continue;
        sum += mr_trust_loss(&t, now);
        n++;
    }
    ck_assert_uint_gt(sum / n, loss[_i] * 90);
    ck_assert_uint_lt(sum / n, loss[_i] * 105);
}
END_TEST

/*
 * Losses begin after many arrivals: from the second loss on the estimate is as if 16 packets had arrived before. A
 * single loss changes little, nor do losses after further arrivals.
 */
START_TEST(losses_begin)
{
    static const unsigned arrived[] = {0, 16, 200, 5000};
    unsigned before = arrived[_i] < 16 ? arrived[_i] : 16, all = arrived[_i] < 1000 ? arrived[_i] : 1000;
    struct mr_trust once;

    for (unsigned i = 0; i < arrived[_i]; i++)
        mr_trust_tried(&t, 1, 0, BEGIN);
    mr_trust_tried(&t, 4, 1, BEGIN);
    ck_assert_uint_le(mr_trust_loss(&t, BEGIN), 1000000 / (all / 2 + 20));
    once = t;
    mr_trust_tried(&t, 4, 1, BEGIN);
    ck_assert_uint_eq(mr_trust_loss(&t, BEGIN), 2000000 / (before + 8 + 16));
    for (unsigned i = 0; i < 976; i++)
        mr_trust_tried(&t, 1, 0, BEGIN);
    mr_trust_tried(&t, 2, 2, BEGIN); /* an account that goes on, with its arrivals */
    ck_assert_uint_eq(mr_trust_loss(&t, BEGIN), 4000000 / (before + 986 + 16));
    mr_trust_failed(&once, BEGIN + 1000 * MS); /* a packet and its repetition, long after */
    ck_assert_uint_gt(mr_trust_loss(&once, BEGIN + 1000 * MS), 2000000 / (17 + 2 + 16));
}
END_TEST

/* The model's value: a loss of 1 % costs half of the rate, a tenth of that 1/100. */
START_TEST(what_a_loss_costs)
{
    mr_trust_tried(&t, 984, 10, BEGIN);
    ck_assert_uint_eq(mr_trust_loss(&t, BEGIN), 10000);
    ck_assert_uint_eq(value(&t, BEGIN), least);
    setup();
    mr_trust_tried(&t, 984, 1, BEGIN);
    ck_assert_uint_eq(value(&t, BEGIN), MR_TRUST_FULL * 100 / 101);
    setup();
    mr_trust_tried(&t, 84, 10, BEGIN);
    ck_assert_uint_eq(value(&t, BEGIN), MR_TRUST_FULL / 101);
}
END_TEST

/* How many ms until it is well, if nothing more is heard. */
static unsigned until_well(uint64_t now)
{
    unsigned ms = 0;

    while (value(&t, now + ms * MS) <= least)
        ms++;
    return ms;
}

/* A way that fails again as soon as well stays away twice as long, up to about half a minute. */
START_TEST(fails_again)
{
    uint64_t now = BEGIN;
    unsigned before = 0;

    for (unsigned i = 0; i < 12; i++) {
        unsigned ms;

        mr_trust_steady(&t, 10 * MS);
        mr_trust_failed(&t, now);
        ms = until_well(now);
        if (!i)
            ck_assert(ms > 500 && ms < 700);
        else if (i < 7)
            ck_assert(ms > before * 3 / 2 && ms < before * 5 / 2);
        ck_assert_uint_lt(ms, 60000);
        before = ms;
        now += ms * MS;
    }
    ck_assert_uint_gt(before, 20000);
    mr_trust_steady(&t, 60000 * MS); /* but not if it was in use for long before */
    now += 60000 * MS;
    mr_trust_failed(&t, now);
    ck_assert_uint_lt(until_well(now), 700);
}
END_TEST

/* Answered questions bring the way back sooner; lost questions keep it away. */
START_TEST(evidence_counts)
{
    struct mr_trust silent, answers, loses;

    mr_trust_failed(&t, BEGIN);
    silent = answers = loses = t;
    for (unsigned i = 1; i <= 300; i++) {
        mr_trust_tried(&answers, 1, 0, BEGIN + i * MS);
        mr_trust_tried(&loses, 1, i % 10 == 0, BEGIN + i * MS);
    }
    ck_assert_uint_gt(value(&answers, BEGIN + 300 * MS), least);
    ck_assert_uint_lt(value(&silent, BEGIN + 300 * MS), least);
    ck_assert_uint_lt(value(&loses, BEGIN + 300 * MS), least / 4);
}
END_TEST

/* A loss costs a fast way more: as many packets are lost in less time. */
START_TEST(what_a_loss_costs_fast_ways)
{
    static const struct mr_trust_way slow = {.rate_mbps = 5461, .mtu = 4096}, small = {.rate_mbps = 5461, .mtu = 512};

    mr_trust_tried(&t, 984, 10, BEGIN);
    ck_assert_uint_eq(mr_trust_value(&t, &slow, BEGIN), MR_TRUST_FULL * 10 / 11);
    ck_assert_uint_lt(mr_trust_value(&t, &small, BEGIN), MR_TRUST_FULL * 10 / 17);
}
END_TEST

/* With a way of a quarter of the rate all ways carry 5/4, so the way must not cost a fifth of that. */
START_TEST(what_ways_are_worth)
{
    ck_assert_uint_eq(mr_trust_least(&(struct mr_trust_way){.rate_mbps = 100, .others_mbps = 100}), MR_TRUST_FULL / 2);
    ck_assert_uint_eq(mr_trust_least(&(struct mr_trust_way){.rate_mbps = 25, .others_mbps = 100}),
                      MR_TRUST_FULL * 4 / 5);
    ck_assert_uint_eq(mr_trust_least(&(struct mr_trust_way){.rate_mbps = 100, .others_mbps = 25}), MR_TRUST_FULL / 5);
    ck_assert_uint_eq(mr_trust_least(&(struct mr_trust_way){.rate_mbps = 100}), 0);
    ck_assert_uint_eq(mr_trust_least(&(struct mr_trust_way){0}), 0);
    ck_assert_uint_eq(mr_trust_least(&(struct mr_trust_way){UINT32_MAX, UINT32_MAX, 256}), MR_TRUST_FULL / 2);
}
END_TEST

/* Stalls of 2 ms: (0) 1 ms between two, (1) 1 ms but two of them only, (2) 3 ms, (3) 30 ms. */
START_TEST(stands_still)
{
    static const unsigned between[] = {1, 1, 3, 30};
    uint64_t now = BEGIN;
    bool most = false;

    for (unsigned i = 0; i < (_i == 1 ? 2 : 20); i++) {
        for (unsigned n = 0; n < between[_i]; n++)
            mr_trust_moved(&t, MS, now += MS);
        now += 2 * MS;
        mr_trust_stood(&t, 2 * MS, now);
        ck_assert_uint_lt(value(&t, now), MR_TRUST_FULL);
        most |= value(&t, now) <= least;
    }
    ck_assert_int_eq(most, _i == 0);
    now += 1000 * MS; /* old evidence does not count */
    mr_trust_stood(&t, 2 * MS, now);
    ck_assert_uint_gt(value(&t, now), least);
}
END_TEST

/* A way that never stood still keeps no account. */
START_TEST(moves)
{
    mr_trust_moved(&t, MS, BEGIN);
    ck_assert_uint_eq(t.moved_us, 0);
    mr_trust_stood(&t, 1000000 * MS, BEGIN);
    ck_assert_uint_lt(value(&t, BEGIN), MR_TRUST_FULL / 100);
    for (unsigned i = 0; i < 3; i++)
        mr_trust_moved(&t, 1000000 * MS, BEGIN);
    ck_assert_uint_gt(value(&t, BEGIN), MR_TRUST_FULL * 3 / 4);
}
END_TEST

/* The ends of all ranges: much at a time, a clock that goes back, and times long after. */
START_TEST(ends_of_ranges)
{
    mr_trust_tried(&t, UINT32_MAX, UINT32_MAX, BEGIN);
    ck_assert_uint_gt(mr_trust_loss(&t, BEGIN), 950000);
    ck_assert_uint_le(mr_trust_loss(&t, BEGIN), 1000000);
    mr_trust_tried(&t, 1, 0, BEGIN - MS);
    mr_trust_stood(&t, UINT64_MAX, BEGIN);
    mr_trust_moved(&t, UINT64_MAX, BEGIN);
    ck_assert_uint_le(mr_trust_loss(&t, 0), 1000000);
    ck_assert_uint_eq(value(&t, UINT64_MAX), MR_TRUST_FULL);
    for (unsigned i = 0; i < 1000; i++)
        mr_trust_failed(&t, BEGIN);
    ck_assert_uint_le(value(&t, BEGIN), 1);
    ck_assert_uint_eq(value(&t, UINT64_MAX), MR_TRUST_FULL);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("trust");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, well);
    tcase_add_loop_test(c, finds_the_loss, 0, 4);
    tcase_add_loop_test(c, losses_begin, 0, 4);
    tcase_add_test(c, what_a_loss_costs);
    tcase_add_test(c, fails_again);
    tcase_add_test(c, evidence_counts);
    tcase_add_test(c, what_a_loss_costs_fast_ways);
    tcase_add_test(c, what_ways_are_worth);
    tcase_add_loop_test(c, stands_still, 0, 4);
    tcase_add_test(c, moves);
    tcase_add_test(c, ends_of_ranges);
    return check_run(c, NULL);
}
