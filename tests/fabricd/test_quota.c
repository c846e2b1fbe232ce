/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines that users cause: the burst, one line a second, counts of lines left out, and more users than entries. */
#include "fabricd/base/quota.h"
#include "tests/check.h"

static unsigned taken(struct quota *q, uint32_t uid, uint64_t now_us, unsigned tries)
{
    unsigned n = 0;
    while (tries--)
        n += quota_take(q, uid, now_us);
    return n;
}

START_TEST(burst_then_one_a_second)
{
    struct quota q = {0};
    uint64_t now = 5000000;
    uint32_t uid = 0;
    ck_assert_uint_eq(taken(&q, 7, now, 1000), QUOTA_BURST);
    ck_assert_uint_eq(taken(&q, 8, now, 3), 3); /* nobody pays for another user */
    ck_assert_uint_eq(quota_left_out(&q, now, &uid), 0);
    ck_assert_uint_eq(quota_left_out(&q, now + QUOTA_EVERY_US - 1, &uid), 0);
    now += QUOTA_EVERY_US;
    ck_assert_uint_eq(quota_left_out(&q, now, &uid), 1000 - QUOTA_BURST);
    ck_assert_uint_eq(uid, 7);
    ck_assert_uint_eq(quota_left_out(&q, now, &uid), 0);
    ck_assert_uint_eq(taken(&q, 7, now, 5), 0); /* the report took the second's line */
    ck_assert_uint_eq(quota_left_out(&q, now + 10 * QUOTA_EVERY_US, &uid), 5);
    ck_assert_uint_eq(taken(&q, 7, now + 1000 * (uint64_t)QUOTA_EVERY_US, 1000), QUOTA_BURST);
}
END_TEST

/* 1,000 seconds of 5,000 requests each: lines and reports together are the burst and one a second; no line is lost. */
START_TEST(flood)
{
    struct quota q = {0};
    uint64_t logged = 0, reports = 0, left_out = 0;
    for (uint64_t now = 0; now < 1000; now++) {
        uint32_t uid;
        uint64_t n;
        while ((n = quota_left_out(&q, now * QUOTA_EVERY_US, &uid))) {
            reports++;
            left_out += n;
        }
        logged += taken(&q, 7, now * QUOTA_EVERY_US, 5000);
    }
    ck_assert_uint_le(logged + reports, QUOTA_BURST + 1000);
    ck_assert_uint_ge(reports, 900);
    ck_assert_uint_eq(logged + left_out + q.user[0].left_out, 5000 * 1000);
}
END_TEST

/* Idle entries serve new users; where all are busy, new users share one. */
START_TEST(many_users)
{
    struct quota q = {0};
    uint32_t uid = 0;
    for (uint32_t u = 1; u <= QUOTA_USERS; u++)
        ck_assert_uint_eq(taken(&q, u, 1, QUOTA_BURST + 1), QUOTA_BURST);
    for (uint32_t u = 1000; u < 2000; u++)
        taken(&q, u, 1, 2);
    ck_assert_uint_eq(q.num_users, QUOTA_USERS + 1);
    unsigned others = 0;
    for (uint64_t n; (n = quota_left_out(&q, QUOTA_EVERY_US + 1, &uid));) {
        ck_assert_uint_eq(n, uid == QUOTA_OTHERS ? 2000 - QUOTA_BURST : 1);
        others += uid == QUOTA_OTHERS;
    }
    ck_assert_uint_eq(others, 1);
    ck_assert_uint_eq(taken(&q, 5000, 1000 * (uint64_t)QUOTA_EVERY_US, 100), QUOTA_BURST);
    ck_assert_uint_eq(q.num_users, QUOTA_USERS + 1);
    ck_assert_uint_eq(taken(&q, 5001, 1000 * (uint64_t)QUOTA_EVERY_US, 100), QUOTA_BURST);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("quota");
    tcase_add_test(c, burst_then_one_a_second);
    tcase_add_test(c, flood);
    tcase_add_test(c, many_users);
    return check_run(c, NULL);
}
