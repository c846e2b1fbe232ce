/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers from the program's memory: zero-copy sends that are waited for, and the next answers. */
#include "libmrmpi/net/answers.h"
#include "tests/check.h"

/* The next message comes after the send has ended. */
START_TEST(round_trips_lend)
{
    struct mr_answers a = {0};

    for (uint32_t arrived = UINT32_MAX - 50; arrived != 50; arrived++) {
        ck_assert(mr_answers_zsend(&a, arrived));
        mr_answers_ended(&a, arrived);
    }
}
END_TEST

static unsigned copied(struct mr_answers *a, uint32_t *arrived)
{
    unsigned n = 0;

    while (!mr_answers_zsend(a, ++*arrived))
        n++;
    return n;
}

START_TEST(loans_that_are_waited_for_become_rare)
{
    struct mr_answers a = {0};
    uint32_t arrived = 1;
    unsigned rest = MR_BACKOFF_FIRST;

    ck_assert(mr_answers_zsend(&a, arrived));
    for (unsigned i = 0; i < 20; i++) {
        mr_answers_ended(&a, ++arrived); /* completed meanwhile */
        ck_assert(!mr_answers_zsend(&a, arrived));
        ck_assert_uint_eq(copied(&a, &arrived), rest);
        rest = rest < MR_BACKOFF_MOST ? 2 * rest : rest;
    }
    ck_assert_uint_eq(rest, MR_BACKOFF_MOST);
    mr_answers_ended(&a, arrived);
    ck_assert(mr_answers_zsend(&a, ++arrived)); /* nobody waits any more */
    mr_answers_ended(&a, ++arrived);
    ck_assert(!mr_answers_zsend(&a, arrived));
    ck_assert_uint_eq(copied(&a, &arrived), MR_BACKOFF_FIRST);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("answers");

    tcase_add_test(c, round_trips_lend);
    tcase_add_test(c, loans_that_are_waited_for_become_rare);
    return check_run(c, NULL);
}
