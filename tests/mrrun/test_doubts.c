/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of the ranks that cannot reach each other go (mrrun/doubts). */
#include <string.h>

#include "mrrun/doubts.h"
#include "tests/check.h"

enum { RANKS = 12 };

static struct doubts d;
static bool lives[RANKS];

static void begin(void)
{
    d = (struct doubts){0};
    memset(lives, true, sizeof(lives));
}

/* Every rank of one set and every rank of the other, as ranks of both say. */
static void cut(int first, int end, int rest_end)
{
    for (int a = first; a < end; a++)
        for (int b = 0; b < rest_end; b++)
            if (b < first || b >= end) {
                ck_assert(doubts_add(&d, a, b));
                ck_assert(doubts_add(&d, b, a));
            }
}

static unsigned ended(void)
{
    unsigned set = 0;
    int by;

    for (int r; (r = doubts_end_one(&d, lives, RANKS, &by)) >= 0;) {
        ck_assert(!lives[r] && lives[by]);
        set |= 1u << r;
    }
    doubts_free(&d);
    return set;
}

START_TEST(of_two_the_higher)
{
    begin();
    ck_assert(doubts_add(&d, 3, 1));
    ck_assert_uint_eq(ended(), 1u << 3);
    begin();
    ck_assert(doubts_add(&d, 1, 3));
    ck_assert_uint_eq(ended(), 1u << 3);
}
END_TEST

START_TEST(host_cut_off)
{
    begin();
    cut(0, 2, RANKS); /* the first of six hosts, which says so first */
    ck_assert_uint_eq(ended(), 3);
    begin();
    cut(4, 6, RANKS);
    ck_assert_uint_eq(ended(), 3u << 4);
}
END_TEST

START_TEST(halves)
{
    begin();
    cut(6, 12, RANKS);
    ck_assert_uint_eq(ended(), 0x3fu << 6);
}
END_TEST

START_TEST(ended_before)
{
    begin();
    cut(4, 6, RANKS);
    lives[4] = lives[5] = false;
    ck_assert_uint_eq(ended(), 0);
    begin();
    ck_assert_uint_eq(ended(), 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("doubts");

    tcase_add_test(tc, of_two_the_higher);
    tcase_add_test(tc, host_cut_off);
    tcase_add_test(tc, halves);
    tcase_add_test(tc, ended_before);
    return check_run(tc, NULL);
}
