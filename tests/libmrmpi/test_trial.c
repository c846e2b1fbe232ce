/* SPDX-License-Identifier: BSD-3-Clause */
/* Two protocols on trial, class by class: the better one is found, kept, and seldom left. */
#include <stdlib.h>

#include "libmrmpi/p2p/choice/trial.h"
#include "tests/check.h"

#define KIB     1024u
#define COPY_PS 80000u /* of 1024 bytes */

static struct mr_trials t;
static uint64_t now_ns;
static unsigned can; /* eighths of the messages */
static bool must_not;

static void setup(void)
{
    t = (struct mr_trials){.shallow = 48u << 10};
    now_ns = 1000000;
    can = 8;
    must_not = false;
}

/* num windows, with these times per 1024 bytes. Returns the messages that used the second protocol. */
static unsigned windows(unsigned num, unsigned depth, size_t len, uint64_t first_ps, uint64_t second_ps)
{
    unsigned second = 0;

    for (unsigned i = 0; i < num * depth; i++) {
        if (mr_trial_sent(&t, len, depth * len, !(i % depth)))
            mr_trial_check(&t, now_ns, can, must_not, COPY_PS);
        second += t.second;
        now_ns += len * (t.second ? second_ps : first_ps) / (1024 * 1000);
    }
    return second;
}

START_TEST(the_better_one_is_kept)
{
    for (unsigned depth = 8; depth <= 64; depth *= 2) {
        setup();
        windows(4096 / depth * 16, depth, 8 * KIB, 100000, 50000);
        ck_assert_uint_ge(windows(16384 / depth * 16, depth, 8 * KIB, 100000, 50000), 16384 * 16 / 100 * 98);
        setup();
        ck_assert_uint_le(windows(16384 / depth * 16, depth, 8 * KIB, 100000, 96000), 16384 * 16 / 100 * 2);
    }
}
END_TEST

/* A class's result does not hold for a class with less under way, and is still there when the first class returns. */
START_TEST(classes_have_answers_of_their_own)
{
    windows(1000, 64, 16 * KIB, 100000, 50000);
    ck_assert_uint_le(windows(4000, 2, 16 * KIB, 100000, 200000), 8000 / 50);
    ck_assert(mr_trial_sent(&t, 16 * KIB, 64 * 16 * KIB, true) || t.second);
    ck_assert_uint_ge(windows(100, 64, 16 * KIB, 100000, 50000), 6400 * 9 / 10);
}
END_TEST

/* More under way, and longer messages: most likely the same, but that is looked at. */
START_TEST(greater_classes_begin_with_the_same)
{
    windows(1000, 16, 8 * KIB, 100000, 50000);
    ck_assert_uint_ge(windows(1, 64, 16 * KIB, 100000, 50000), 32);
    ck_assert_uint_le(windows(1000, 64, 16 * KIB, 100000, 150000), 64000 / 20);
}
END_TEST

START_TEST(one_that_is_late_decides_nothing)
{
    windows(1000, 16, 8 * KIB, 100000, 50000);
    for (unsigned i = 0; i < 100; i++) {
        now_ns += 100000;
        ck_assert_uint_ge(windows(32, 16, 8 * KIB, 100000, 50000), 32 * 16 / 2);
    }
    ck_assert_uint_ge(windows(1000, 16, 8 * KIB, 100000, 50000), 16000 / 100 * 95);
}
END_TEST

/* An eighth of the messages shows an eighth of the gain, or of the loss. */
START_TEST(few_can_take_the_second_way)
{
    can = 1;
    ck_assert_uint_ge(windows(2000, 16, 8 * KIB, 100000, 95000), 32000 * 9 / 10);
    ck_assert(mr_trial_is_second(&t));
    setup();
    can = 1;
    ck_assert_uint_le(windows(2000, 16, 8 * KIB, 100000, 100500), 32000 / 20);
    setup();
    can = 2;
    ck_assert_uint_le(windows(2000, 16, 8 * KIB, 100000, 99500), 32000 / 20);
}
END_TEST

/* When twice as many can use it, it is tried at once. */
START_TEST(more_can_take_the_second_way)
{
    can = 1;
    ck_assert_uint_le(windows(2000, 16, 8 * KIB, 100000, 100500), 32000 / 20);
    ck_assert(!mr_trial_is_second(&t));
    can = 2;
    ck_assert_uint_ge(windows(32, 16, 8 * KIB, 100000, 88000), 32 * 16 * 3 / 4);
    ck_assert(mr_trial_is_second(&t));
}
END_TEST

/* A result from messages that could all use it says nothing about other memory, usable bit by bit. */
START_TEST(other_messages_can_take_it)
{
    windows(4000, 16, 8 * KIB, 100000, 110000);
    ck_assert(!mr_trial_is_second(&t));
    can = 0;
    windows(64, 16, 8 * KIB, 100000, 100000);
    can = 2;
    ck_assert_uint_ge(windows(32, 16, 8 * KIB, 100000, 88000), 32 * 16 * 3 / 4);
    ck_assert(mr_trial_is_second(&t));
}
END_TEST

START_TEST(trials_that_are_refused_say_nothing)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (t.second)
            mr_trial_spoil(&t);
        windows(1, 16, 8 * KIB, 100000, 300000);
    }
    ck_assert_uint_eq(t.now->learn.time[true].num, 0);
    windows(1000, 16, 8 * KIB, 100000, 50000);
    ck_assert_uint_ge(windows(1000, 16, 8 * KIB, 100000, 50000), 16000 / 100 * 95);
}
END_TEST

/* No trial where it is impossible, nor where copies are not the bottleneck; left at once where forbidden. */
START_TEST(not_tried_in_vain)
{
    ck_assert_uint_eq(windows(1000, 16, 8 * KIB, 170000, 50000), 0);
    setup();
    can = 0;
    ck_assert_uint_eq(windows(1000, 16, 8 * KIB, 100000, 50000), 0);
    can = 8;
    windows(1000, 16, 8 * KIB, 100000, 50000);
    must_not = true;
    ck_assert_uint_le(windows(1000, 16, 8 * KIB, 100000, 50000), 64);
    must_not = false;
    windows(100, 16, 8 * KIB, 100000, 50000);
    ck_assert_uint_ge(windows(1000, 16, 8 * KIB, 100000, 50000), 16000 / 100 * 90);
}
END_TEST

/* Little is under way: the second way is tried, but late and seldom. */
START_TEST(shallow_ones_are_tried_late)
{
    ck_assert_uint_eq(windows(1000, 2, 8 * KIB, 100000, 50000), 0);
    windows(10000, 2, 8 * KIB, 100000, 50000);
    ck_assert_uint_ge(windows(1000, 2, 8 * KIB, 100000, 50000), 1900);
}
END_TEST

/* Alternating lengths: by their mean one class. */
START_TEST(mixed_lengths)
{
    unsigned second = 0;

    for (unsigned i = 0; i < 32000; i++) {
        size_t len = i % 10 ? 8 * KIB : 16 * KIB;

        if (mr_trial_sent(&t, len, 256 * KIB, !(i % 16)))
            mr_trial_check(&t, now_ns, can, must_not, COPY_PS);
        second += i >= 16000 && t.second;
        now_ns += len / KIB * (t.second ? 50 : 100);
    }
    ck_assert_uint_ge(second, 16000 / 100 * 95);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("trial");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, the_better_one_is_kept);
    tcase_add_test(c, classes_have_answers_of_their_own);
    tcase_add_test(c, greater_classes_begin_with_the_same);
    tcase_add_test(c, one_that_is_late_decides_nothing);
    tcase_add_test(c, few_can_take_the_second_way);
    tcase_add_test(c, more_can_take_the_second_way);
    tcase_add_test(c, other_messages_can_take_it);
    tcase_add_test(c, trials_that_are_refused_say_nothing);
    tcase_add_test(c, not_tried_in_vain);
    tcase_add_test(c, shallow_ones_are_tried_late);
    tcase_add_test(c, mixed_lengths);
    return check_run(c, NULL);
}
