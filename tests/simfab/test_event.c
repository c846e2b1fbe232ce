/* SPDX-License-Identifier: BSD-3-Clause */
/* The event queue: order by time and by scheduling, moved and stopped timers, monotonic time. */
#include <stdlib.h>

#include "simfab/engine/base/event.h"
#include "tests/check.h"

static struct event_queue q;
static uint64_t trace[100000], times[100000];
static size_t traced;

static void setup(void)
{
    evq_init(&q);
    traced = 0;
}

static void teardown(void)
{
    evq_fini(&q);
}

static void note(void *obj, uint64_t arg)
{
    times[traced] = q.now_ps;
    trace[traced++] = arg;
}

START_TEST(earlier_first_whatever_the_order_of_scheduling)
{
    evq_push(&q, 30, note, NULL, 3);
    evq_push(&q, 10, note, NULL, 1);
    evq_push(&q, 20, note, NULL, 2);
    while (evq_run_one(&q))
        ;
    ck_assert_uint_eq(traced, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(trace[i], i + 1);
        ck_assert_uint_eq(times[i], 10 * (i + 1));
    }
}
END_TEST

START_TEST(same_time_in_the_order_of_scheduling)
{
    for (unsigned i = 0; i < 1000; i++)
        evq_push(&q, 7, note, NULL, i);
    while (evq_run_one(&q))
        ;
    ck_assert_uint_eq(traced, 1000);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_uint_eq(trace[i], i);
}
END_TEST

START_TEST(many_random_events_come_sorted_and_stable)
{
    enum { N = 100000 };
    uint64_t *when = calloc(N, sizeof *when);
    uint64_t seed = 12345;

    for (unsigned i = 0; i < N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        when[i] = (seed >> 33) % 5000;
        evq_push(&q, when[i], note, NULL, i);
    }
    while (evq_run_one(&q))
        ;
    ck_assert_uint_eq(traced, N);
    for (unsigned i = 1; i < N; i++) {
        ck_assert_uint_le(when[trace[i - 1]], when[trace[i]]);
        if (when[trace[i - 1]] == when[trace[i]])
            ck_assert_uint_lt(trace[i - 1], trace[i]);
    }
    free(when);
}
END_TEST

static void schedule_in_the_past(void *obj, uint64_t arg)
{
    evq_push(&q, 1, note, NULL, arg);
}

/* 0, 1, 2, ... in this order */
static void check_numbered(size_t n)
{
    ck_assert_uint_eq(traced, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(trace[i], i);
}

START_TEST(while_time_stands_still_in_the_order_of_sources)
{
    evq_push(&q, 7, note, NULL, 0);
    evq_stand(&q, 3);
    evq_source(&q, 3);
    evq_push(&q, 7, note, NULL, 6);
    evq_source(&q, 1);
    evq_push(&q, 7, note, NULL, 2);
    evq_source(&q, 2);
    evq_push(&q, 7, note, NULL, 4);
    evq_source(&q, 1);
    evq_push(&q, 7, note, NULL, 3);
    evq_source(&q, 2);
    evq_push(&q, 7, note, NULL, 5);
    evq_source(&q, 0);
    evq_push(&q, 7, note, NULL, 1);
    evq_move(&q);
    evq_push(&q, 7, note, NULL, 7);
    evq_stand(&q, 3);
    evq_push(&q, 7, note, NULL, 8);
    while (evq_run_one(&q))
        ;
    check_numbered(9);
}
END_TEST

START_TEST(while_time_moves_sources_do_not_matter)
{
    evq_stand(&q, 2);
    evq_move(&q);
    evq_source(&q, 2);
    evq_push(&q, 7, note, NULL, 0);
    evq_source(&q, 1);
    evq_push(&q, 7, note, NULL, 1);
    while (evq_run_one(&q))
        ;
    check_numbered(2);
}
END_TEST

/* More than a source has numbers for: the order among sources is lost, the order of a source is not. */
START_TEST(any_number_of_events_while_time_stands_still)
{
    enum { N = (1 << 20) + 1000 };
    bool in_order = true;

    evq_stand(&q, 1);
    evq_push(&q, 5, note, NULL, 0);
    evq_source(&q, 1);
    for (unsigned i = 1; i < N; i++)
        evq_push(&q, 10 + i / 2, note, NULL, i);
    for (unsigned i = 0; i < N; i++) {
        in_order &= evq_run_one(&q) && trace[0] == i;
        traced = 0;
    }
    ck_assert(in_order);
}
END_TEST

START_TEST(the_past_is_now)
{
    evq_push(&q, 50, schedule_in_the_past, NULL, 9);
    while (evq_run_one(&q))
        ;
    ck_assert_uint_eq(traced, 1);
    ck_assert_uint_eq(times[0], 50);
    ck_assert_uint_eq(q.now_ps, 50);
}
END_TEST

START_TEST(a_timer_fires_once_at_its_last_deadline)
{
    struct evtimer t;

    evtimer_init(&t, note, NULL);
    evtimer_set(&q, &t, 100);
    evtimer_set(&q, &t, 300); /* later */
    evtimer_set(&q, &t, 200); /* earlier again */
    evtimer_set_earlier(&q, &t, 250);
    while (evq_run_one(&q))
        ;
    ck_assert_uint_eq(traced, 1);
    ck_assert_uint_eq(times[0], 200);
    ck_assert(!evtimer_is_set(&t));
    ck_assert(!evtimer_queued(&t));
}
END_TEST

START_TEST(a_stopped_timer_moves_no_time)
{
    struct evtimer t;
    uint64_t next;

    evtimer_init(&t, note, NULL);
    evtimer_set(&q, &t, 1000000);
    evtimer_stop(&t);
    ck_assert(!evq_next(&q, &next));
    ck_assert(!evq_run_one(&q));
    ck_assert_uint_eq(q.now_ps, 0);
    ck_assert_uint_eq(traced, 0);
    ck_assert(!evtimer_queued(&t));
}
END_TEST

static struct evtimer again;
static unsigned rounds;

static void rearm(void *obj, uint64_t arg)
{
    note(obj, arg);
    if (++rounds < 5)
        evtimer_set(&q, &again, q.now_ps + 10);
}

START_TEST(a_timer_can_be_set_again_as_it_fires)
{
    rounds = 0;
    evtimer_init(&again, rearm, NULL);
    evtimer_set(&q, &again, 10);
    while (evq_run_one(&q))
        ;
    ck_assert_uint_eq(traced, 5);
    ck_assert_uint_eq(q.now_ps, 50);
}
END_TEST

START_TEST(moving_a_timer_to_and_fro_keeps_one_firing)
{
    struct evtimer t;
    uint64_t seed = 7, last = 0;

    evtimer_init(&t, note, NULL);
    for (unsigned i = 0; i < 1000; i++) {
        seed = seed * 6364136223846793005u + 1;
        last = 1 + (seed >> 40) % 1000;
        evtimer_set(&q, &t, last);
    }
    while (evq_run_one(&q))
        ;
    ck_assert_uint_eq(traced, 1);
    ck_assert_uint_eq(times[0], last);
    ck_assert(!evtimer_queued(&t));
}
END_TEST

START_TEST(what_is_loud_is_counted_exactly)
{
    struct evtimer loud, quiet;

    evtimer_init(&loud, note, NULL);
    evtimer_init(&quiet, note, NULL);
    quiet.quiet = true;
    evq_push(&q, 10, note, NULL, 0);
    evq_push_quiet(&q, 20, note, NULL, 0);
    ck_assert_uint_eq(q.loud, 1);
    evtimer_set(&q, &loud, 100);
    evtimer_set(&q, &loud, 50); /* moved: still one entry */
    evtimer_set(&q, &quiet, 60);
    ck_assert_uint_eq(q.loud, 2);
    evtimer_stop(&loud);
    evtimer_stop(&loud);
    ck_assert_uint_eq(q.loud, 1);
    evtimer_set(&q, &loud, 70);
    while (evq_run_one(&q))
        ;
    ck_assert_uint_eq(q.loud, 0);
    ck_assert_uint_eq(traced, 4);
    ck_assert_uint_eq(q.now_ps, 70);
}
END_TEST

START_TEST(time_skips_only_where_nothing_happens)
{
    evq_push(&q, 50, note, NULL, 1);
    evq_skip_to(&q, 60);
    ck_assert_uint_eq(q.now_ps, 0);
    evq_skip_to(&q, 50);
    ck_assert_uint_eq(q.now_ps, 50);
    ck_assert_uint_eq(traced, 0);
    ck_assert(evq_run_one(&q));
    evq_skip_to(&q, 40);
    ck_assert_uint_eq(q.now_ps, 50);
    evq_skip_to(&q, 1000);
    ck_assert_uint_eq(q.now_ps, 1000);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("queue");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, earlier_first_whatever_the_order_of_scheduling);
    tcase_add_test(c, same_time_in_the_order_of_scheduling);
    tcase_add_test(c, many_random_events_come_sorted_and_stable);
    tcase_add_test(c, while_time_stands_still_in_the_order_of_sources);
    tcase_add_test(c, while_time_moves_sources_do_not_matter);
    tcase_add_test(c, any_number_of_events_while_time_stands_still);
    tcase_add_test(c, the_past_is_now);
    tcase_add_test(c, a_timer_fires_once_at_its_last_deadline);
    tcase_add_test(c, a_stopped_timer_moves_no_time);
    tcase_add_test(c, a_timer_can_be_set_again_as_it_fires);
    tcase_add_test(c, moving_a_timer_to_and_fro_keeps_one_firing);
    tcase_add_test(c, what_is_loud_is_counted_exactly);
    tcase_add_test(c, time_skips_only_where_nothing_happens);
    return check_run(c, NULL);
}
