/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of answers: the copy mode with the shorter round trips wins, whatever interrupts some of them. */
#include "libmrmpi/channel/shm_answer.h"
#include "tests/check.h"

static struct mr_answer_copies a;
static uint64_t clock_ns;
static unsigned reads;

static uint64_t now_ns(void)
{
    reads++;
    return clock_ns;
}

static void setup(void)
{
    a = (struct mr_answer_copies){0};
    clock_ns = 1000;
    reads = 0;
}

/* Round trips with these times for plain and streamed copies; returns the number of streamed copies. */
static unsigned answer(unsigned times, unsigned plain_ns, unsigned streamed_ns)
{
    unsigned streamed = 0;

    for (unsigned i = 0; i < times; i++) {
        bool s = mr_answer_copies_stream(&a, now_ns);

        streamed += s;
        clock_ns += s ? streamed_ns : plain_ns;
    }
    return streamed;
}

/* Until both have been tried; blocks of which a few may be a trial. */
enum { LEARN = 3 * MR_LEARN_SAMPLES * MR_ANSWER_BLOCK, MANY = 32 * MR_ANSWER_BLOCK };

START_TEST(the_faster_way_is_kept)
{
    answer(LEARN, 700, 1300);
    ck_assert_uint_eq(a.learn.kept, MR_ANSWER_CACHED);
    ck_assert_uint_le(answer(10 * MANY, 700, 1300), 10 * MR_ANSWER_BLOCK);
    ck_assert_uint_le(answer(10 * MANY, 700, 1300), 10 * MANY * 2 / 100);
    setup();
    answer(LEARN, 1700, 1500);
    ck_assert_uint_eq(a.learn.kept, MR_ANSWER_STREAMED);
    ck_assert_uint_ge(answer(10 * MANY, 1700, 1500), 10 * MANY - 10 * MR_ANSWER_BLOCK);
    ck_assert_uint_ge(answer(10 * MANY, 1700, 1500), 10 * MANY * 98 / 100);
}
END_TEST

START_TEST(the_clock_is_read_once_in_a_block)
{
    answer(100 * MR_ANSWER_BLOCK, 700, 1300);
    ck_assert_uint_eq(reads, 100);
}
END_TEST

/* Cores that move: the other way is found within a few of its turns, and back. */
START_TEST(what_changes)
{
    answer(LEARN + MANY, 700, 1300);
    answer(16 * MANY, 1700, 1500);
    ck_assert_uint_ge(answer(MANY, 1700, 1500), MANY - MR_ANSWER_BLOCK);
    answer(16 * MANY, 700, 1300);
    ck_assert_uint_le(answer(MANY, 700, 1300), MR_ANSWER_BLOCK);
}
END_TEST

/* A block that takes a thousand times as long is no reason to leave a way for good. */
START_TEST(interruptions)
{
    unsigned streamed = 0;

    answer(LEARN, 700, 1300);
    for (int i = 0; i < 200; i++) {
        streamed += answer(4 * MR_ANSWER_BLOCK, 700, 1300);
        clock_ns += 20000000;
    }
    ck_assert_uint_le(streamed, 200 * 4 * MR_ANSWER_BLOCK / 10);
}
END_TEST

/*
 * A message that is no answer ends a block, and the time between counts for neither mode: otherwise streaming would
 * seem equally slow, or faster.
 */
START_TEST(other_messages)
{
    unsigned streamed = 0;

    answer(LEARN, 700, 1300);
    mr_answer_copies_break(&a);
    for (int i = 0; i < 1000; i++) {
        streamed += answer(MR_ANSWER_BLOCK - 1, 700, 1300);
        mr_answer_copies_break(&a);
        clock_ns += i % 2 ? 100000 : 10;
    }
    ck_assert_uint_eq(a.learn.kept, MR_ANSWER_CACHED);
    ck_assert_uint_le(streamed, 1000 * MR_ANSWER_BLOCK * 2 / 100);
    ck_assert_uint_le(answer(10 * MANY, 700, 1300), 10 * MR_ANSWER_BLOCK);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("answer");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, the_faster_way_is_kept);
    tcase_add_test(c, the_clock_is_read_once_in_a_block);
    tcase_add_test(c, what_changes);
    tcase_add_test(c, interruptions);
    tcase_add_test(c, other_messages);
    return check_run(c, NULL);
}
