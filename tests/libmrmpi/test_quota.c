/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of connected peers where connections are limited. */
#include <stdlib.h>

#include "libmrmpi/conn/route/quota.h"
#include "tests/check.h"

START_TEST(room)
{
    ck_assert_int_eq(mr_quota_ask(0, 0, 1, 0, UINT32_MAX), MR_QUOTA_OPEN);
    ck_assert_int_eq(mr_quota_ask(15, 15, 16, 0, 0), MR_QUOTA_OPEN);
    ck_assert_int_eq(mr_quota_ask(16, 16, 16, 0, 0), MR_QUOTA_NO);
}
END_TEST

/* A closing connection still counts: no other peer closes for the same place. */
START_TEST(one_that_closes)
{
    ck_assert_int_eq(mr_quota_ask(16, 15, 16, 1000, 0), MR_QUOTA_WAIT);
    ck_assert_int_eq(mr_quota_ask(20, 16, 16, 1000, 0), MR_QUOTA_MAKE_ROOM);
    ck_assert_int_eq(mr_quota_ask(15, 15, 16, 1000, 0), MR_QUOTA_OPEN);
}
END_TEST

/* Two peers with equal traffic do not take each other's connection: they would alternate for ever. */
START_TEST(worth)
{
    ck_assert_int_eq(mr_quota_ask(1, 1, 1, 100, UINT32_MAX), MR_QUOTA_NO);
    ck_assert_int_eq(mr_quota_ask(1, 1, 1, 100, 100), MR_QUOTA_NO);
    ck_assert_int_eq(mr_quota_ask(1, 1, 1, 100, 50), MR_QUOTA_NO);
    ck_assert_int_eq(mr_quota_ask(1, 1, 1, 100, 49), MR_QUOTA_MAKE_ROOM);
    ck_assert_int_eq(mr_quota_ask(1, 1, 1, 0, 0), MR_QUOTA_NO);
    ck_assert_int_eq(mr_quota_ask(1, 1, 1, UINT32_MAX, UINT32_MAX - 1), MR_QUOTA_NO);
}
END_TEST

START_TEST(use)
{
    uint32_t u = 0;

    for (int tick = 0; tick < 40; tick++)
        u = mr_quota_use(u, 100);
    ck_assert_uint_ge(u, 198);
    ck_assert_uint_le(u, 200);
    for (int tick = 0; tick < 8; tick++)
        u = mr_quota_use(u, 0);
    ck_assert_uint_eq(u, 0);
    ck_assert_uint_eq(mr_quota_use(UINT32_MAX, UINT32_MAX), UINT32_MAX - 1); /* UINT32_MAX means: none */
}
END_TEST

START_TEST(rate)
{
    uint32_t r = 0;

    for (int tick = 0; tick < 40; tick++)
        r = mr_quota_rate(r, 50, 10000000);
    ck_assert_uint_ge(r, 4998);
    ck_assert_uint_le(r, 5000);
    ck_assert_uint_eq(mr_quota_rate(0, 5, 0), 0);
    ck_assert_uint_eq(mr_quota_rate(UINT32_MAX, UINT32_MAX, 1), UINT32_MAX);
    ck_assert_uint_eq(mr_quota_rate(8, 0, 10000000), 4);
}
END_TEST

START_TEST(pauses)
{
    ck_assert_uint_eq(mr_quota_pause(1), MR_QUOTA_PAUSE_NS);
    ck_assert_uint_eq(mr_quota_pause(2), 2 * MR_QUOTA_PAUSE_NS);
    ck_assert_uint_eq(mr_quota_pause(0), MR_QUOTA_PAUSE_NS);
    for (unsigned n = 1; n < 300; n++) {
        ck_assert_uint_ge(mr_quota_pause(n + 1), mr_quota_pause(n));
        ck_assert_uint_le(mr_quota_pause(n), MR_QUOTA_PAUSE_MAX_NS);
    }
    ck_assert_uint_eq(mr_quota_pause(255), MR_QUOTA_PAUSE_MAX_NS);
}
END_TEST

START_TEST(peers)
{
    ck_assert_uint_eq(mr_quota_peers(128, 1), 128);
    ck_assert_uint_eq(mr_quota_peers(128, 8), 16);
    ck_assert_uint_eq(mr_quota_peers(128, 127), 1);
    ck_assert_uint_eq(mr_quota_peers(128, 128), 1);
    ck_assert_uint_eq(mr_quota_peers(128, 1000), 1);
    ck_assert_uint_eq(mr_quota_peers(16384, 128), 128);
    ck_assert_uint_eq(mr_quota_peers(128, 0), 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("quota");

    tcase_add_test(t, peers);

    tcase_add_test(t, room);
    tcase_add_test(t, one_that_closes);
    tcase_add_test(t, worth);
    tcase_add_test(t, use);
    tcase_add_test(t, rate);
    tcase_add_test(t, pauses);
    return check_run(t, NULL);
}
