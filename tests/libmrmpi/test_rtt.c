/* SPDX-License-Identifier: BSD-3-Clause */
/* The time-out: the arithmetic of RFC 6298, its bounds and its back-off. */
#include <stdlib.h>

#include "libmrmpi/conn/reliable/rtt.h"
#include "tests/check.h"

#define MIN 1000ull
#define MAX 1000000ull

START_TEST(first_samples)
{
    struct mr_rtt r;

    mr_rtt_init(&r, MIN, MAX);
    ck_assert_uint_eq(mr_rtt_timeout(&r), MR_RTT_FIRST * MIN);
    mr_rtt_sample(&r, 8000); /* 2.2 */
    ck_assert_uint_eq(r.srtt_ns, 8000);
    ck_assert_uint_eq(r.var_ns, 4000);
    ck_assert_uint_eq(mr_rtt_timeout(&r), 8000 + 4 * 4000 + MIN / 2);
    mr_rtt_sample(&r, 16000); /* 2.3: the deviation is taken from the old average */
    ck_assert_uint_eq(r.var_ns, 4000 + (8000 - 4000) / 4);
    ck_assert_uint_eq(r.srtt_ns, 8000 + 8000 / 8);
    mr_rtt_sample(&r, 1000);
    ck_assert_uint_eq(r.var_ns, 5000 + (8000 - 5000) / 4);
    ck_assert_uint_eq(r.srtt_ns, 9000 - 8000 / 8);
    ck_assert_uint_eq(mr_rtt_timeout(&r), 8000 + 4 * 5750 + MIN / 2);
}
END_TEST

START_TEST(steady_samples_converge)
{
    struct mr_rtt r;

    mr_rtt_init(&r, MIN, MAX);
    mr_rtt_sample(&r, 900000);
    for (int i = 0; i < 200; i++)
        mr_rtt_sample(&r, 5000);
    ck_assert_uint_ge(r.srtt_ns, 5000);
    ck_assert_uint_le(r.srtt_ns, 5010);
    ck_assert_uint_le(mr_rtt_timeout(&r), 5000 + MIN);
    /* a reply kept back by the receiver as long as allowed is still in time */
    ck_assert_uint_ge(mr_rtt_timeout(&r), 5000 + mr_rtt_ack_delay(MIN));
}
END_TEST

START_TEST(bounds)
{
    struct mr_rtt r;

    mr_rtt_init(&r, MIN, 2 * MIN);
    ck_assert_uint_eq(mr_rtt_timeout(&r), 2 * MIN); /* the first one obeys them, too */
    mr_rtt_init(&r, MIN, MAX);
    for (int i = 0; i < 100; i++)
        mr_rtt_sample(&r, 0);
    ck_assert_uint_eq(mr_rtt_timeout(&r), MIN);
    for (int i = 0; i < 100; i++)
        mr_rtt_sample(&r, UINT64_MAX);
    ck_assert_uint_eq(r.srtt_ns <= MAX, 1);
    ck_assert_uint_eq(mr_rtt_timeout(&r), MAX);
}
END_TEST

START_TEST(back_off)
{
    struct mr_rtt r;

    mr_rtt_init(&r, MIN, MAX);
    for (int i = 0; i < 50; i++)
        mr_rtt_sample(&r, 100);
    ck_assert_uint_eq(mr_rtt_timeout(&r), MIN);
    for (unsigned i = 1; i < 200; i++) {
        mr_rtt_expired(&r);
        ck_assert_uint_eq(mr_rtt_timeout(&r), i < 10 ? MIN << i : MAX);
    }
    mr_rtt_sample(&r, 100); /* 5.7: the variation collapses */
    ck_assert_uint_eq(mr_rtt_timeout(&r), MIN);
    mr_rtt_init(&r, 1, (1ull << 58) - 1);
    for (int i = 0; i < 200; i++) {
        mr_rtt_expired(&r);
        ck_assert_uint_le(mr_rtt_timeout(&r), (1ull << 58) - 1);
        ck_assert_uint_ge(mr_rtt_timeout(&r), 1);
    }
    ck_assert_uint_eq(mr_rtt_timeout(&r), (1ull << 58) - 1);
}
END_TEST

/* Any samples: never beyond the bounds, and never less than the average. */
START_TEST(any_samples)
{
    struct mr_rtt r;

    srand((unsigned)_i);
    mr_rtt_init(&r, MIN, MAX);
    for (int i = 0; i < 10000; i++) {
        mr_rtt_sample(&r, (uint64_t)rand() >> rand() % 31);
        ck_assert_uint_ge(mr_rtt_timeout(&r), MIN);
        ck_assert_uint_le(mr_rtt_timeout(&r), MAX);
        ck_assert(mr_rtt_timeout(&r) >= r.srtt_ns);
        ck_assert_uint_le(r.var_ns, MAX);
        ck_assert_uint_ge(r.srtt_ns, 1);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("rtt");

    tcase_add_test(t, first_samples);
    tcase_add_test(t, steady_samples_converge);
    tcase_add_test(t, bounds);
    tcase_add_test(t, back_off);
    tcase_add_loop_test(t, any_samples, 0, 5);
    return check_run(t, NULL);
}
