/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that stop time are named by their own time: on a busy machine no thread is named, an endless thread is. */
#include "simfab/engine/clock/stuck.h"
#include "tests/check.h"

#define S 1000000000ull

static struct stuck t;
static struct stuck_sample now;
static uint64_t since;
static bool calls;

static void setup(void)
{
    t = (struct stuck){0};
    now = (struct stuck_sample){.at_ns = 5000 * S, .ran_ns = 70 * S, .queued_ns = 90 * S, .run = 3, .calls = 4711};
    since = now.at_ns;
    ck_assert(!stuck_add(&t, since, &now, &calls));
}

/* Seconds of real time; of each the thread runs, and waits for a processor, so many thousandths. */
static unsigned words_in(unsigned seconds, unsigned runs, unsigned queues)
{
    unsigned words = 0;

    for (unsigned i = 0; i < seconds; i++) {
        now.at_ns += S;
        now.ran_ns += S * runs / 1000;
        now.queued_ns += S * queues / 1000;
        words += stuck_add(&t, since, &now, &calls);
    }
    return words;
}

START_TEST(after_30_s_then_60_then_120)
{
    ck_assert_uint_eq(words_in(29, 1000, 0), 0);
    ck_assert_uint_eq(words_in(1, 1000, 0), 1);
    ck_assert_uint_eq(words_in(29, 1000, 0), 0);
    ck_assert_uint_eq(words_in(1, 1000, 0), 1);
    ck_assert_uint_eq(words_in(59, 1000, 0), 0);
    ck_assert_uint_eq(words_in(1, 1000, 0), 1);
    ck_assert_uint_eq(t.own_ns / S, 120);
}
END_TEST

START_TEST(a_busy_machine_is_no_standstill)
{
    ck_assert_uint_eq(words_in(290, 100, 900), 0);
    ck_assert_uint_eq(words_in(10, 100, 900), 1);
}
END_TEST

/* It asks the engine again and again: asleep most of the time, though both could run. */
START_TEST(answers_of_the_engine_count)
{
    ck_assert_uint_eq(words_in(29, 200, 0), 0);
    ck_assert_uint_eq(words_in(1, 200, 0), 1);
}
END_TEST

START_TEST(a_disk_counts)
{
    ck_assert_uint_eq(words_in(30, 0, 0), 1);
}
END_TEST

/*
 * Others of the host run in between: the thread's own run time counts, though each check finds the thread in its turn.
 */
START_TEST(turns_of_others_do_not_count)
{
    unsigned words = 0;

    for (unsigned i = 0; i < 299; i++) {
        now.run++;
        words += words_in(1, 100, 0);
    }
    ck_assert_uint_eq(words, 0);
    now.run++;
    ck_assert_uint_eq(words_in(1, 100, 0), 1);
}
END_TEST

START_TEST(time_has_moved)
{
    ck_assert_uint_eq(words_in(29, 1000, 0), 0);
    since = now.at_ns;
    ck_assert_uint_eq(words_in(30, 1000, 0), 0); /* the first of them begins the count */
    ck_assert_uint_eq(words_in(1, 1000, 0), 1);
}
END_TEST

/* Calls long ago, in another standstill or before this one, say nothing. */
START_TEST(calls_are_those_of_the_last_second)
{
    ck_assert(!calls);
    words_in(1, 1000, 0);
    ck_assert(!calls);
    now.calls++;
    words_in(1, 1000, 0);
    ck_assert(calls);
    words_in(28, 1000, 0);
    ck_assert(!calls);
    now.calls++;
    since = now.at_ns;
    words_in(1, 1000, 0);
    ck_assert(!calls);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("stuck");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, after_30_s_then_60_then_120);
    tcase_add_test(c, a_busy_machine_is_no_standstill);
    tcase_add_test(c, answers_of_the_engine_count);
    tcase_add_test(c, a_disk_counts);
    tcase_add_test(c, turns_of_others_do_not_count);
    tcase_add_test(c, time_has_moved);
    tcase_add_test(c, calls_are_those_of_the_last_second);
    return check_run(c, NULL);
}
