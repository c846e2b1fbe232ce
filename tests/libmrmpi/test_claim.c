/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims: each chunk is taken once, from both ends, by two threads; a late thread takes nothing. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "libmrmpi/channel/shm_claim.h"
#include "tests/check.h"

static struct mr_claim claim;

START_TEST(ends_meet)
{
    mr_claim_open(&claim, 7, 3);
    ck_assert(!mr_claim_over(&claim));
    ck_assert_int_eq(mr_claim_take(&claim, 7, 3, true), 0);
    ck_assert_int_eq(mr_claim_take(&claim, 7, 3, false), 2);
    ck_assert_int_eq(mr_claim_take(&claim, 7, 3, true), 1);
    ck_assert_int_eq(mr_claim_take(&claim, 7, 3, true), -1);
    ck_assert_int_eq(mr_claim_take(&claim, 7, 3, false), -1);
    ck_assert(!mr_claim_over(&claim)); /* taken, not written */
    mr_claim_wrote(&claim);
    ck_assert(!mr_claim_over(&claim));
    mr_claim_wrote(&claim);
    ck_assert(mr_claim_over(&claim));
}
END_TEST

START_TEST(a_late_sender_takes_nothing)
{
    mr_claim_open(&claim, 7, 2);
    ck_assert_int_eq(mr_claim_take(&claim, 7, 2, false), 1);
    ck_assert_int_eq(mr_claim_take(&claim, 7, 2, false), 0);
    ck_assert(mr_claim_over(&claim));
    ck_assert_int_eq(mr_claim_take(&claim, 7, 2, true), -1);
    mr_claim_open(&claim, 8, 2);
    ck_assert_int_eq(mr_claim_take(&claim, 7, 2, true), -1);
    ck_assert_int_eq(mr_claim_take(&claim, 8, 2, true), 0);
}
END_TEST

START_TEST(what_cannot_be_moved_is_left_to_the_other)
{
    mr_claim_open(&claim, 1, 4);
    ck_assert_int_eq(mr_claim_take(&claim, 1, 4, true), 0);
    mr_claim_return(&claim);
    for (int i = 3; i >= 0; i--)
        ck_assert_int_eq(mr_claim_take(&claim, 1, 4, false), i);
    ck_assert(mr_claim_over(&claim));
}
END_TEST

START_TEST(closed_when_nothing_is_on_its_way)
{
    mr_claim_open(&claim, 1, 4);
    ck_assert_int_eq(mr_claim_take(&claim, 1, 4, true), 0);
    ck_assert_int_eq(mr_claim_take(&claim, 1, 4, true), 1);
    mr_claim_wrote(&claim);
    mr_claim_close(&claim);
    ck_assert(!mr_claim_is_quiet(&claim));
    ck_assert_int_eq(mr_claim_take(&claim, 1, 4, true), -1);
    mr_claim_return(&claim);
    ck_assert(mr_claim_is_quiet(&claim));
}
END_TEST

/* The other process has written arbitrary values. */
START_TEST(nonsense_is_no_chunk)
{
    static const uint64_t words[] = {0, UINT64_MAX, UINT64_C(5) << 48 | 0xffffff, UINT64_C(5) << 48 | 5,
                                     UINT64_C(5) << 48 | UINT64_C(9) << 24 | 4};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        claim.ends = words[i];
        ck_assert_int_eq(mr_claim_take(&claim, 5, 4, true), -1);
        ck_assert_int_eq(mr_claim_take(&claim, 5, 4, false), -1);
    }
}
END_TEST

#define ROUNDS 3000
#define MOST   40
static uint8_t moved[MOST]; /* by whom */
static uint32_t now_open, takes_of_sender;

static void *sender(void *arg)
{
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        int64_t i;

        while (__atomic_load_n(&now_open, __ATOMIC_ACQUIRE) < round)
            sched_yield();
        while ((i = mr_claim_take(&claim, (uint16_t)round, round % MOST + 1, true)) >= 0) {
            moved[i] += 1; /* the thread sanitizer, and the sum, tell whether somebody else has it */
            __atomic_fetch_add(&takes_of_sender, 1, __ATOMIC_RELAXED);
            mr_claim_wrote(&claim);
        }
    }
    return NULL;
}

START_TEST(two_threads)
{
    pthread_t t;
    unsigned by_sender = 0;

    ck_assert_int_eq(pthread_create(&t, NULL, sender, NULL), 0);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint32_t chunks = round % MOST + 1;
        int64_t i;

        for (uint32_t k = 0; k < chunks; k++)
            moved[k] = 0;
        mr_claim_open(&claim, (uint16_t)round, chunks);
        __atomic_store_n(&now_open, round, __ATOMIC_RELEASE);
        if (round % 3 == 0)
            sched_yield();
        while (round == 1 && !__atomic_load_n(&takes_of_sender, __ATOMIC_RELAXED))
            sched_yield(); /* with one processor the sender may come too late in every other round */
        while ((i = mr_claim_take(&claim, (uint16_t)round, chunks, false)) >= 0)
            moved[i] += 2;
        while (!mr_claim_over(&claim))
            sched_yield();
        for (uint32_t k = 0; k < chunks; k++) {
            ck_assert_msg(moved[k] == 1 || moved[k] == 2, "round %u chunk %u: %u", round, k, moved[k]);
            by_sender += moved[k] == 1;
        }
    }
    pthread_join(t, NULL);
    ck_assert_uint_gt(by_sender, 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("claim");

    tcase_set_timeout(c, 60);
    tcase_add_test(c, ends_meet);
    tcase_add_test(c, a_late_sender_takes_nothing);
    tcase_add_test(c, what_cannot_be_moved_is_left_to_the_other);
    tcase_add_test(c, closed_when_nothing_is_on_its_way);
    tcase_add_test(c, nonsense_is_no_chunk);
    tcase_add_test(c, two_threads);
    return check_run(c, NULL);
}
