/* SPDX-License-Identifier: BSD-3-Clause */
/* Buses and DMA engines against arithmetic: turns, paces, shared buses, a host's memory. And the cache of contexts. */
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/hca/bus.h"
#include "simfab/engine/hca/qp_cache.h"
#include "tests/check.h"

#define MB_PER_S 8000000ull /* in bits per second */
#define US       1000000ull

static struct event_queue q;
static struct memory memory;
static struct bus bus[2];
static struct dma engine[4];

/* Transfers begun, in order. */
static struct {
    uint64_t who, start_ps, done_ps;
} log_entry[4096];
static unsigned logged;

static void note(void *obj, uint64_t arg, uint64_t start_ps, uint64_t done_ps)
{
    ck_assert_uint_lt(logged, 4096);
    ck_assert_uint_eq(start_ps, q.now_ps);
    log_entry[logged].who = arg;
    log_entry[logged].start_ps = start_ps;
    log_entry[logged++].done_ps = done_ps;
}

static void set_up(uint64_t bus_mb, uint32_t overhead)
{
    evq_init(&q);
    memset(&memory, 0, sizeof memory);
    logged = 0;
    for (int i = 0; i < 2; i++)
        bus_init(&bus[i], &q, bus_mb * MB_PER_S, overhead, &memory);
}

static void run_until(uint64_t t)
{
    uint64_t next;

    while (evq_next(&q, &next) && next <= t)
        evq_run_one(&q);
}

static void tear_down(unsigned engines)
{
    run_until(UINT64_MAX);
    for (unsigned i = 0; i < engines; i++)
        dma_fini(&engine[i]);
    evq_fini(&q);
}

START_TEST(without_limits_nothing_takes_time)
{
    set_up(0, 16);
    dma_init(&engine[0], &bus[0], 0);
    for (int i = 0; i < 10; i++)
        dma_request(&engine[0], 4096, note, NULL, 0);
    ck_assert_uint_eq(logged, 10);
    ck_assert_uint_eq(log_entry[9].done_ps, 0);
    tear_down(1);
}
END_TEST

START_TEST(a_transfer_takes_its_bytes_and_the_overhead)
{
    set_up(1000, 16);
    dma_init(&engine[0], &bus[0], 0);
    dma_request(&engine[0], 2048, note, NULL, 1);
    dma_request(&engine[0], 1, note, NULL, 2);
    run_until(UINT64_MAX);
    ck_assert_uint_eq(log_entry[0].start_ps, 0);
    ck_assert_uint_eq(log_entry[0].done_ps, 2064000);
    ck_assert_uint_eq(log_entry[1].start_ps, 2064000);
    ck_assert_uint_eq(log_entry[1].done_ps, 2064000 + 17000);
    tear_down(1);
}
END_TEST

START_TEST(an_engine_keeps_its_own_pace_and_leaves_the_rest_to_others)
{
    set_up(1000, 0);
    dma_init(&engine[0], &bus[0], 400 * MB_PER_S);
    dma_init(&engine[1], &bus[0], 0);
    for (int i = 0; i < 400; i++)
        dma_request(&engine[0], 1000, note, NULL, 0);
    for (int i = 0; i < 600; i++)
        dma_request(&engine[1], 1000, note, NULL, 1);
    run_until(UINT64_MAX);
    /* 400 MB/s, never more than a transfer ahead, nor more than a transfer and a turn behind */
    for (unsigned i = 0, n = 0; i < logged; i++)
        if (log_entry[i].who == 0) {
            ck_assert_uint_ge(log_entry[i].start_ps + 2500000, n * 2500000ull);
            ck_assert_uint_le(log_entry[i].start_ps, n * 2500000ull + US);
            n++;
        }
    ck_assert_uint_eq(log_entry[999].done_ps, 1000 * US); /* and the bus was never idle */
    tear_down(2);
}
END_TEST

/* Two engines waiting for each other's turn must not settle in a rhythm that leaves the bus idle. */
START_TEST(a_late_turn_is_caught_up_with)
{
    set_up(1000, 0);
    dma_init(&engine[0], &bus[0], 600 * MB_PER_S);
    for (unsigned i = 0; i < 100; i++) {
        while (q.now_ps < i * 1800000ull + (i & 1 ? 300000 : 0)) { /* asks early and late in turns */
            uint64_t next;

            if (evq_next(&q, &next) && next <= i * 1800000ull + (i & 1 ? 300000 : 0))
                evq_run_one(&q);
            else
                q.now_ps = i * 1800000ull + (i & 1 ? 300000 : 0);
        }
        dma_request(&engine[0], 1000, note, NULL, 0);
        ck_assert_uint_eq(log_entry[i].start_ps, i * 1800000ull + (i & 1 ? 300000 : 0)); /* never made to wait */
    }
    tear_down(1);
}
END_TEST

START_TEST(without_a_bus_limit_the_pace_is_the_time)
{
    set_up(0, 16);
    dma_init(&engine[0], &bus[0], 1000 * MB_PER_S);
    dma_request(&engine[0], 1000, note, NULL, 0);
    dma_request(&engine[0], 1000, note, NULL, 0);
    run_until(UINT64_MAX);
    ck_assert_uint_eq(log_entry[0].done_ps, US);
    ck_assert_uint_eq(log_entry[1].start_ps, US);
    ck_assert_uint_eq(log_entry[1].done_ps, 2 * US);
    tear_down(1);
}
END_TEST

/* An engine with much to do waits its turn like one with little. */
START_TEST(engines_take_turns)
{
    unsigned count[3] = {0};

    set_up(1000, 0);
    for (int i = 0; i < 3; i++)
        dma_init(&engine[i], &bus[0], 0);
    for (int i = 0; i < 300; i++)
        dma_request(&engine[0], 1000, note, NULL, 0);
    for (int i = 0; i < 100; i++) {
        dma_request(&engine[1], 1000, note, NULL, 1);
        dma_request(&engine[2], 1000, note, NULL, 2);
    }
    run_until(UINT64_MAX);
    ck_assert_uint_eq(logged, 500);
    for (unsigned i = 0; i < 300; i++)
        count[log_entry[i].who]++;
    ck_assert_uint_eq(count[0], 100);
    ck_assert_uint_eq(count[1], 100);
    ck_assert_uint_eq(count[2], 100);
    ck_assert_uint_eq(log_entry[499].done_ps, 500 * US); /* and the bus was never idle */
    tear_down(3);
}
END_TEST

START_TEST(a_request_for_nothing_waits_for_those_before_it)
{
    set_up(1000, 16);
    dma_init(&engine[0], &bus[0], 0);
    dma_request(&engine[0], 0, note, NULL, 0);
    ck_assert_uint_eq(logged, 1);
    dma_request(&engine[0], 984, note, NULL, 1);
    dma_request(&engine[0], 984, note, NULL, 2);
    dma_request(&engine[0], 0, note, NULL, 3);
    ck_assert_uint_eq(logged, 2);
    run_until(US);
    ck_assert_uint_eq(logged, 4);
    ck_assert_uint_eq(log_entry[3].who, 3);
    ck_assert_uint_eq(log_entry[3].start_ps, US);
    ck_assert_uint_eq(log_entry[3].done_ps, US);
    tear_down(1);
}
END_TEST

/* When the bus becomes free, a waiting engine goes before an engine that comes at that moment. */
static void ask_again(void *obj, uint64_t arg)
{
    dma_request(&engine[0], 1000, note, NULL, 7);
}

START_TEST(who_has_waited_goes_first)
{
    set_up(1000, 0);
    dma_init(&engine[0], &bus[0], 0);
    dma_init(&engine[1], &bus[0], 0);
    evq_push(&q, US, ask_again, NULL, 0); /* runs before the bus's own event of that time */
    dma_request(&engine[0], 1000, note, NULL, 0);
    dma_request(&engine[1], 1000, note, NULL, 1);
    run_until(UINT64_MAX);
    ck_assert_uint_eq(log_entry[1].who, 1);
    ck_assert_uint_eq(log_entry[2].who, 7);
    ck_assert_uint_eq(log_entry[2].done_ps, 3 * US);
    tear_down(2);
}
END_TEST

START_TEST(two_buses_share_the_memory)
{
    set_up(1000, 0);
    memory.bps = 1600 * MB_PER_S;
    dma_init(&engine[0], &bus[0], 0);
    dma_init(&engine[1], &bus[1], 0);
    for (int i = 0; i < 1000; i++) {
        dma_request(&engine[0], 1000, note, NULL, 0);
        dma_request(&engine[1], 1000, note, NULL, 1);
    }
    run_until(UINT64_MAX);
    ck_assert_uint_eq(logged, 2000);
    /* two million bytes at 1600 MB/s, and neither bus ahead of the other by more than a transfer */
    ck_assert_uint_eq(log_entry[1999].done_ps, 2000 * 625000ull);
    for (unsigned i = 0; i < 2000; i += 2)
        ck_assert_uint_ne(log_entry[i].who, log_entry[i + 1].who);
    tear_down(2);
}
END_TEST

/* A callback may ask for more, on the same engine or another. */
static void chain(void *obj, uint64_t arg, uint64_t start_ps, uint64_t done_ps)
{
    note(obj, arg, start_ps, done_ps);
    if (arg < 100)
        dma_request(&engine[arg & 1], 1000, chain, NULL, arg + 1);
}

START_TEST(callbacks_may_ask_for_more)
{
    set_up(1000, 0);
    dma_init(&engine[0], &bus[0], 0);
    dma_init(&engine[1], &bus[0], 0);
    dma_request(&engine[0], 1000, chain, NULL, 0);
    run_until(UINT64_MAX);
    ck_assert_uint_eq(logged, 101);
    ck_assert_uint_eq(log_entry[100].done_ps, 101 * US);
    tear_down(2);
}
END_TEST

/* ---- the cache of contexts */

START_TEST(the_least_recently_used_context_makes_room)
{
    struct qp_cache c;
    struct qp_cache_entry e[4] = {0};

    qp_cache_init(&c, 3);
    for (int i = 0; i < 3; i++)
        ck_assert(!qp_cache_touch(&c, &e[i]));
    ck_assert(qp_cache_touch(&c, &e[0])); /* now 1 is the oldest */
    ck_assert(!qp_cache_touch(&c, &e[3]));
    ck_assert(qp_cache_touch(&c, &e[0]));
    ck_assert(qp_cache_touch(&c, &e[2]));
    ck_assert(!qp_cache_touch(&c, &e[1]));
    ck_assert_uint_eq(c.used, 3);
    ck_assert_uint_eq(c.hits, 3);
    ck_assert_uint_eq(c.misses, 5);
}
END_TEST

START_TEST(a_context_that_goes_leaves_its_place)
{
    struct qp_cache c;
    struct qp_cache_entry e[3] = {0};

    qp_cache_init(&c, 2);
    qp_cache_touch(&c, &e[0]);
    qp_cache_touch(&c, &e[1]);
    qp_cache_forget(&c, &e[0]);
    qp_cache_forget(&c, &e[0]);
    qp_cache_forget(&c, &e[2]);
    ck_assert_uint_eq(c.used, 1);
    ck_assert(!qp_cache_touch(&c, &e[2]));
    ck_assert(qp_cache_touch(&c, &e[1]));
    ck_assert(!qp_cache_touch(&c, &e[0]));
    qp_cache_forget(&c, &e[0]);
    qp_cache_forget(&c, &e[1]);
    ck_assert_uint_eq(c.used, 0);
}
END_TEST

START_TEST(going_round_one_more_than_fit_misses_every_time)
{
    struct qp_cache c;
    struct qp_cache_entry e[65] = {0};

    qp_cache_init(&c, 64);
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 65; i++)
            qp_cache_touch(&c, &e[i]);
    ck_assert_uint_eq(c.hits, 0);
    ck_assert_uint_eq(c.misses, 650);
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 64; i++)
            qp_cache_touch(&c, &e[i]);
    ck_assert_uint_eq(c.hits, 9 * 64 + 0); /* the first round finds none: its own oldest were just put out */
}
END_TEST

START_TEST(without_a_limit_all_are_held)
{
    struct qp_cache c;
    struct qp_cache_entry e = {0};

    qp_cache_init(&c, 0);
    ck_assert(qp_cache_touch(&c, &e));
    qp_cache_forget(&c, &e);
    ck_assert_uint_eq(c.misses + c.hits, 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("host_bus");

    tcase_add_test(tc, without_limits_nothing_takes_time);
    tcase_add_test(tc, a_transfer_takes_its_bytes_and_the_overhead);
    tcase_add_test(tc, an_engine_keeps_its_own_pace_and_leaves_the_rest_to_others);
    tcase_add_test(tc, a_late_turn_is_caught_up_with);
    tcase_add_test(tc, without_a_bus_limit_the_pace_is_the_time);
    tcase_add_test(tc, engines_take_turns);
    tcase_add_test(tc, a_request_for_nothing_waits_for_those_before_it);
    tcase_add_test(tc, who_has_waited_goes_first);
    tcase_add_test(tc, two_buses_share_the_memory);
    tcase_add_test(tc, callbacks_may_ask_for_more);
    tcase_add_test(tc, the_least_recently_used_context_makes_room);
    tcase_add_test(tc, a_context_that_goes_leaves_its_place);
    tcase_add_test(tc, going_round_one_more_than_fit_misses_every_time);
    tcase_add_test(tc, without_a_limit_all_are_held);
    return check_run(tc, NULL);
}
