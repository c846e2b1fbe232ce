/* SPDX-License-Identifier: BSD-3-Clause */
/* Token buckets: the amount over a time, in any number of polls, and the ends of all ranges. */
#include <stdlib.h>

#include "libmrmpi/conn/route/bucket.h"
#include "tests/check.h"

#define SECOND MR_BUCKET_SECOND_NS
#define BEGIN  (77 * SECOND)
#define DEPTH  1000000

static struct mr_bucket b;

/* An empty bucket of this rate. */
static void begin(uint64_t rate)
{
    b = mr_bucket_full(rate, DEPTH, BEGIN);
    mr_bucket_take(&b, DEPTH);
}

START_TEST(full_at_first)
{
    b = mr_bucket_full(1000, DEPTH, BEGIN);
    ck_assert_int_eq(b.left, DEPTH);
    mr_bucket_fill(&b, BEGIN + SECOND / 2, _i);
    ck_assert_int_eq(b.left, DEPTH); /* exactly full: nothing more comes in, and no time is saved up */
    ck_assert_uint_eq(b.filled_ns, BEGIN + SECOND / 2);
    mr_bucket_take(&b, 600);
    mr_bucket_fill(&b, BEGIN + SECOND, _i);
    ck_assert_int_eq(b.left, DEPTH - 600 + 500);
}
END_TEST

/* Exactly full; with one unit less, not full. */
START_TEST(exactly_full)
{
    begin(2 * DEPTH);
    mr_bucket_fill(&b, BEGIN + SECOND / 2 - 1, _i);
    ck_assert_int_eq(b.left, DEPTH - 1);
    mr_bucket_fill(&b, BEGIN + SECOND / 2, _i);
    ck_assert_int_eq(b.left, DEPTH);
    ck_assert_uint_eq(b.filled_ns, BEGIN + SECOND / 2);
}
END_TEST

/* Overdrawn: the debt is paid first. */
START_TEST(overdrawn)
{
    begin(1000);
    mr_bucket_take(&b, 300);
    ck_assert_int_eq(b.left, -300);
    mr_bucket_fill(&b, BEGIN + SECOND * 3 / 10, _i);
    ck_assert_int_eq(b.left, 0);
    mr_bucket_fill(&b, BEGIN + SECOND * 4 / 10, _i);
    ck_assert_int_eq(b.left, 100);
}
END_TEST

/* No rate is no limit: it is full again whenever somebody looks. */
START_TEST(no_rate)
{
    begin(0);
    mr_bucket_fill(&b, BEGIN, _i);
    ck_assert_int_eq(b.left, DEPTH);
    mr_bucket_take(&b, UINT32_MAX);
    mr_bucket_fill(&b, BEGIN + 1, _i);
    ck_assert_int_eq(b.left, DEPTH);
}
END_TEST

/* Long idle times, whose product with the rate overflows 64 bits, or would be small after wrapping. */
START_TEST(long_idle_times)
{
    static const struct {
        uint64_t rate, passed;
    } of[] = {{1, SECOND},                                  /* full after a second, for any rate */
              {SECOND, UINT64_MAX - BEGIN},                 /* centuries */
              {UINT64_C(1) << 40, UINT64_C(1) << 24},       /* 2^64: 0 in 64 bits */
              {UINT64_C(1) << 41, (UINT64_C(1) << 23) + 1}, /* more: 2^41 there, 2199 units */
              {UINT64_MAX, 2},
              {UINT64_MAX, SECOND - 1}};

    for (unsigned i = 0; i < sizeof of / sizeof *of; i++) {
        begin(of[i].rate);
        mr_bucket_fill(&b, BEGIN + of[i].passed, _i);
        ck_assert_int_eq(b.left, DEPTH);
        ck_assert_uint_eq(b.filled_ns, BEGIN + of[i].passed);
    }
}
END_TEST

/* The last nanosecond before a second still counts by the rate. */
START_TEST(nearly_a_second)
{
    begin(1000);
    mr_bucket_fill(&b, BEGIN + SECOND - 1, _i);
    ck_assert_int_eq(b.left, 999);
}
END_TEST

/* A caller's time may be older than the last. */
START_TEST(an_old_time)
{
    begin(1000);
    mr_bucket_fill(&b, BEGIN - 1, _i);
    ck_assert_int_eq(b.left, 0);
    ck_assert_uint_eq(b.filled_ns, BEGIN);
    mr_bucket_fill(&b, 0, _i);
    ck_assert_int_eq(b.left, 0);
}
END_TEST

/* A slow rate: many looks see less than a unit, and lose nothing. */
START_TEST(many_looks)
{
    begin(1000);
    for (uint64_t t = BEGIN; t <= BEGIN + SECOND; t += 10007)
        mr_bucket_fill(&b, t, _i);
    ck_assert_int_eq(b.left, 999);
    begin(3); /* a unit every 333333333.3 ns */
    for (unsigned i = 1; i <= 300; i++)
        mr_bucket_fill(&b, BEGIN + i * SECOND / 100, _i);
    ck_assert_int_ge(b.left, 8);
    ck_assert_int_le(b.left, 9);
}
END_TEST

/* More than a unit each nanosecond, at the same time again and again: strict, it comes once. */
START_TEST(strict)
{
    begin(1500000000);
    mr_bucket_fill(&b, BEGIN + 1, true);
    ck_assert_int_eq(b.left, 1);
    for (unsigned i = 0; i < 100; i++)
        mr_bucket_fill(&b, BEGIN + 1, true);
    ck_assert_int_eq(b.left, 1);
    for (uint64_t t = BEGIN; t < BEGIN + 1000; t++)
        mr_bucket_fill(&b, t, true);
    ck_assert_int_le(b.left, 1500);
}
END_TEST

/* Else the nanosecond counts again, so a look of a budget never costs a part of the rate. */
START_TEST(not_strict)
{
    begin(700000000); /* 1.43 ns for a unit */
    for (uint64_t t = BEGIN; t <= BEGIN + 1000; t += 2)
        mr_bucket_fill(&b, t, false);
    ck_assert_int_ge(b.left, 700);
    begin(700000000);
    for (uint64_t t = BEGIN; t <= BEGIN + 1000; t += 2)
        mr_bucket_fill(&b, t, true);
    ck_assert_int_lt(b.left, 700);
}
END_TEST

/* Another rate: the contents stay, except beyond the new capacity. */
START_TEST(another_rate)
{
    b = mr_bucket_full(1000, DEPTH, BEGIN);
    mr_bucket_take(&b, 10);
    mr_bucket_set(&b, 500, 2 * DEPTH);
    ck_assert_int_eq(b.left, DEPTH - 10);
    mr_bucket_fill(&b, BEGIN + SECOND / 2, true);
    ck_assert_int_eq(b.left, DEPTH - 10 + 250);
    mr_bucket_set(&b, 500, 100);
    ck_assert_int_eq(b.left, 100);
    mr_bucket_set(&b, 0, 50);
    ck_assert_uint_eq(b.rate, 0);
    ck_assert_int_eq(b.left, 50);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("bucket");

    tcase_add_loop_test(t, full_at_first, 0, 2);
    tcase_add_loop_test(t, exactly_full, 0, 2);
    tcase_add_loop_test(t, overdrawn, 0, 2);
    tcase_add_loop_test(t, no_rate, 0, 2);
    tcase_add_loop_test(t, long_idle_times, 0, 2);
    tcase_add_loop_test(t, nearly_a_second, 0, 2);
    tcase_add_loop_test(t, an_old_time, 0, 2);
    tcase_add_loop_test(t, many_looks, 0, 2);
    tcase_add_test(t, strict);
    tcase_add_test(t, not_strict);
    tcase_add_test(t, another_rate);
    return check_run(t, NULL);
}
