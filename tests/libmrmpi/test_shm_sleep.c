/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping until a peer of the node rings: no rank sleeps past a ring, and no ring is sent to a rank that is awake. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/channel/shm_segment.h"
#include "libmrmpi/channel/shm_sleep.h"
#include "tests/check.h"

enum { ME, PEER, RANKS };
#define FOR_EVER_US 60000000 /* longer than a test may take */
#define SHORT_US    1000

static struct mr_segment segment;
static struct mr_segment_header header;
static const int local_of[RANKS] = {ME, PEER};
static bool has_work;

static bool is_busy(void)
{
    return has_work;
}

static void begin(bool crowded)
{
    header = (struct mr_segment_header){.bell = crowded ? MR_BELL_ALWAYS : 0};
    segment.header = &header;
    segment.boxes = aligned_alloc(64, RANKS * sizeof(*segment.boxes));
    ck_assert_ptr_nonnull(segment.boxes);
    for (int r = 0; r < RANKS; r++)
        segment.boxes[r] = (struct mr_box){.asleep = 0};
    has_work = false;
    mr_shm_sleep_begin(&segment, local_of, ME, is_busy);
}

static void end(void)
{
    mr_shm_sleep_end();
    free(segment.boxes);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* A sender's steps once its packet is in the ring. */
static void *ring_me(void *after_ms)
{
    pause_ms((long)after_ms);
    if (mr_shm_bell_rings())
        mr_shm_ring_local(ME);
    return NULL;
}

static void sleep_until_rung(void)
{
    pthread_t t;

    ck_assert_int_eq(pthread_create(&t, NULL, ring_me, (void *)(long)100), 0);
    while (!mr_shm_sleep(FOR_EVER_US, NULL, NULL))
        pause_ms(1);
    pthread_join(t, NULL);
}

START_TEST(a_ring_ends_a_sleep)
{
    begin(_i);
    mr_shm_doze();
    sleep_until_rung();
    sleep_until_rung();
    mr_shm_rise();
    end();
}
END_TEST

START_TEST(the_time_ends_a_sleep)
{
    begin(_i);
    mr_shm_doze();
    while (!mr_shm_sleep(SHORT_US, NULL, NULL))
        pause_ms(1);
    mr_shm_rise();
    end();
}
END_TEST

/* One sender has seen that this rank will sleep, and another may just have written without seeing. */
START_TEST(a_ring_before_the_sleep_puts_it_off)
{
    begin(false);
    mr_shm_doze();
    pause_ms(1);
    ring_me(NULL);
    ck_assert(!mr_shm_sleep(FOR_EVER_US, NULL, NULL));
    pause_ms(1);
    ck_assert(mr_shm_sleep(SHORT_US, NULL, NULL));
    mr_shm_rise();
    end();
}
END_TEST

START_TEST(nobody_sleeps_at_once_with_a_core_for_each)
{
    begin(false);
    for (int i = 0; i < 1000; i++) { /* once in so many the machine takes the core in between */
        bool slept;

        mr_shm_doze();
        slept = mr_shm_sleep(1, NULL, NULL);
        mr_shm_rise();
        if (!slept)
            break;
        ck_assert_int_lt(i, 999);
    }
    end();
}
END_TEST

static bool yes(void *arg)
{
    return true;
}

START_TEST(nobody_sleeps_who_has_something_to_do)
{
    begin(_i);
    mr_shm_doze();
    pause_ms(1);
    has_work = true;
    ck_assert(!mr_shm_sleep(FOR_EVER_US, NULL, NULL));
    has_work = false;
    ck_assert(!mr_shm_sleep(FOR_EVER_US, yes, NULL));
    mr_shm_rise();
    end();
}
END_TEST

START_TEST(the_bell_rings_only_for_sleepers)
{
    begin(false);
    ck_assert(!mr_shm_bell_rings());
    mr_shm_doze();
    mr_shm_doze(); /* another thread */
    ck_assert(mr_shm_bell_rings());
    mr_shm_rise();
    ck_assert(mr_shm_bell_rings());
    mr_shm_rise();
    ck_assert(!mr_shm_bell_rings());
    ck_assert_uint_eq(segment.boxes[ME].asleep, 0);
    mr_shm_doze();
    mr_shm_sleep_end(); /* takes back this rank's announcement */
    ck_assert_uint_eq(header.bell, 0);
    free(segment.boxes);
}
END_TEST

START_TEST(with_more_ranks_than_cores_it_always_does)
{
    begin(true);
    ck_assert(mr_shm_bell_rings());
    mr_shm_doze();
    mr_shm_rise();
    ck_assert_uint_eq(header.bell, MR_BELL_ALWAYS);
    end();
    ck_assert(!mr_shm_bell_rings());
    ck_assert(!mr_shm_can_sleep());
    ck_assert(!mr_shm_sleep(FOR_EVER_US, NULL, NULL));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sleep");

    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, a_ring_ends_a_sleep, 0, 2);
    tcase_add_loop_test(t, the_time_ends_a_sleep, 0, 2);
    tcase_add_test(t, a_ring_before_the_sleep_puts_it_off);
    tcase_add_test(t, nobody_sleeps_at_once_with_a_core_for_each);
    tcase_add_loop_test(t, nobody_sleeps_who_has_something_to_do, 0, 2);
    tcase_add_test(t, the_bell_rings_only_for_sleepers);
    tcase_add_test(t, with_more_ranks_than_cores_it_always_does);
    return check_run(t, NULL);
}
