/* SPDX-License-Identifier: BSD-3-Clause */
/* Ahead budgets: the amount that goes ahead over a time, for any messages, and messages that come alone. */
#include <stdlib.h>

#include "libmrmpi/conn/route/ahead.h"
#include "tests/check.h"

#define MS 1000000ull

static struct mr_ahead a;
static uint64_t now_ns;

/* Bytes on the wire sent ahead for a message of len bytes: all of it, or nothing. */
static uint64_t send(size_t len)
{
    if (a.empty && (mr_ahead_waits(&a, len) || !mr_ahead_fill(&a, now_ns)))
        return 0;
    mr_ahead_take(&a, len);
    return len + MR_AHEAD_WIRE;
}

static void begin(uint64_t rate)
{
    a = (struct mr_ahead){0};
    now_ns = 5 * MS;
    mr_ahead_set(&a, rate, now_ns);
}

/* Messages in sequence, every_ns apart. */
static uint64_t stream(size_t len, uint64_t every_ns, uint64_t for_ns)
{
    uint64_t went = 0;

    for (uint64_t end = now_ns + for_ns; now_ns < end; now_ns += every_ns)
        went += send(len);
    return went;
}

START_TEST(no_rate_is_no_limit)
{
    begin(0);
    ck_assert_uint_eq(stream(1000, 1, 100000), 100000 * (1000 + MR_AHEAD_WIRE));
}
END_TEST

/*
 * Offered more than the budget, the budget goes ahead, plus a full bucket at the beginning. From rates of a slow class
 * on an old rail, less than a byte between two polls, to those of a fast class.
 */
START_TEST(a_flood_gets_the_rate)
{
    static const uint64_t rates[] = {1000000, 8000000, 200000000, 3000000000};
    static const size_t sizes[] = {0, 8, 512, 8192, 65536};

    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            uint64_t every = (sizes[i] + MR_AHEAD_WIRE) * 100000000ull / rates[r] + 1; /* ten times the rate */
            uint64_t most, least, went, budget, time = 2000000 * every;

            begin(rates[r]);
            went = stream(sizes[i], every, time);
            budget = (uint64_t)((double)rates[r] * (double)time / 1e9);
            most = budget + (uint64_t)a.bucket.depth + sizes[i] + MR_AHEAD_WIRE;
            least = budget / 100 * 95;
            ck_assert_msg(went <= most && went >= least, "rate %lu, size %zu: %lu, not %lu to %lu", rates[r], sizes[i],
                          went, least, most);
        }
}
END_TEST

/* Half of the rate is offered: all of it goes ahead. */
START_TEST(what_is_within_the_budget_goes_ahead)
{
    begin(100000000);
    ck_assert_uint_eq(stream(436, 10000, 1000 * MS), 100000 * 500);
}
END_TEST

/* When empty, nothing goes ahead before half of the bucket is there, and then several messages in a row. */
START_TEST(turns_are_long)
{
    unsigned changes = 0, total = 200000;
    bool before = true;

    begin(100000000);
    for (unsigned i = 0; i < total; i++) {
        bool ahead = send(436) != 0;

        changes += ahead != before;
        before = ahead;
        now_ns += 500;
    }
    /* 100 ms at this rate are 10^7 bytes, and half a bucket is 10^4 */
    ck_assert_uint_ge(changes, 100);
    ck_assert_uint_le(changes, 2100);
}
END_TEST

/* After a pause the bucket is full, but no more than that. */
START_TEST(a_pause_fills_it)
{
    begin(100000000);
    stream(436, 500, 10 * MS);
    now_ns += 10000 * MS;
    ck_assert_uint_le(stream(436, 1, 1000), (uint64_t)a.bucket.depth * 2 + 500);
    now_ns += 10000 * MS;
    ck_assert_uint_ge(stream(436, 1, 1000), (uint64_t)a.bucket.depth);
}
END_TEST

/* One longer than the bucket may go, and is paid for afterwards. */
START_TEST(a_long_message_is_paid_for)
{
    begin(1000000);
    ck_assert_uint_ne(send(100000), 0);
    ck_assert_uint_eq(stream(8, 10000, 90 * MS), 0);
    ck_assert_uint_ne(stream(8, 10000, 20 * MS), 0);
}
END_TEST

/* Others come and go: the used part stays used, and the new rate holds from then on. */
START_TEST(the_rate_changes)
{
    begin(100000000);
    stream(436, 500, 10 * MS);
    mr_ahead_set(&a, 50000000, now_ns);
    ck_assert_uint_le(stream(436, 500, 1000 * MS), 50000000 + 20000);
    mr_ahead_set(&a, 0, now_ns);
    ck_assert_uint_eq(stream(436, 500, MS), 2000 * 500);
    mr_ahead_set(&a, 50000000, now_ns);
    ck_assert_uint_ne(send(436), 0);
    mr_ahead_set(&a, 1, now_ns);
    stream(436, 1, 100);
    ck_assert_uint_le(stream(436, 500, 10 * MS), MR_AHEAD_LEAST);
}
END_TEST

/* It is said again and again: the time until then counts. */
START_TEST(the_same_rate_again)
{
    begin(100000000);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_uint_eq(stream(436, 10000, MS), 100 * 500); /* half of the rate */
        mr_ahead_set(&a, 100000000, now_ns);
    }
    ck_assert_int_gt(a.bucket.left, 0);
    begin(100000000);
    for (unsigned i = 0; i < 1000; i++) {
        now_ns += 10 * MS;
        mr_ahead_set(&a, 100000000, now_ns);
    }
    ck_assert_int_eq(a.bucket.left, a.bucket.depth); /* and no more than a bucket is saved up */
}
END_TEST

/* Mbit/s as the port signals: SDR, DDR and QDR send ten bits for eight. */
START_TEST(rate_of_a_port)
{
    ck_assert_uint_eq(mr_ahead_rate(10000, 65536, 65536), 1000000000);
    ck_assert_uint_eq(mr_ahead_rate(20000, 8, 1000), 16000000);
    ck_assert_uint_eq(mr_ahead_rate(212500, 65535, 65536), 26562094688);
    ck_assert_uint_eq(mr_ahead_rate(425000, 65535, 65536), 53124189376);
    ck_assert_uint_eq(mr_ahead_rate(10000, 0, 65536), 0);
    for (uint32_t data = 2000; data <= 32000; data *= 2) /* and back: as known to fabricd */
        ck_assert_uint_eq(mr_ahead_rate(mr_ahead_signal_mbps(data), 1, 1), data * 125000ull);
    ck_assert_uint_eq(mr_ahead_rate(mr_ahead_signal_mbps(54540), 1, 1), 54540 * 125000ull);
}
END_TEST

/* Clocks of hosts do not go back, but a caller's time may be older than the last. */
START_TEST(an_old_time_does_no_harm)
{
    begin(1000000);
    while (!a.empty)
        send(1000);
    ck_assert(!mr_ahead_fill(&a, now_ns - MS));
    ck_assert(mr_ahead_fill(&a, now_ns + 10 * MS));
}
END_TEST

/* Returns whether a small message goes ahead. The adapter handles the message in any case. */
static bool handle(unsigned message_ns)
{
    bool ahead = !a.empty || (!mr_ahead_waits(&a, 8) && mr_ahead_fill(&a, now_ns));

    mr_ahead_handle(&a, message_ns);
    return ahead;
}

/* Number of a process's messages that go ahead, in sequence, every_ns apart. */
static unsigned handled(unsigned message_ns, uint64_t every_ns, unsigned num)
{
    unsigned ahead = 0;

    for (unsigned i = 0; i < num; i++, now_ns += every_ns)
        ahead += handle(message_ns);
    return ahead;
}

static const struct {
    unsigned share, message_ns; /* percent */
} adapters[] = {{10, 2000}, {30, 2000}, {70, 2000}, {97, 2000}, {10, 222}, {50, 222}, {10, 5}, {70, 5}};

/* More messages than the share lets the adapter handle: when the bucket is empty none goes ahead. */
START_TEST(messages_beyond_the_share_go_behind)
{
    unsigned share = adapters[_i].share, ns = adapters[_i].message_ns;

    begin(mr_ahead_time(share, 100));
    handled(ns, ns * 96ull / share, 100 * (unsigned)a.bucket.depth / ns);
    ck_assert_uint_eq(handled(ns, ns * 96ull / share, 1000000), 0);
}
END_TEST

/* Fewer, by as little: all go ahead, whatever their bytes are. */
START_TEST(messages_within_the_share_go_ahead)
{
    unsigned share = adapters[_i].share, ns = adapters[_i].message_ns;

    begin(mr_ahead_time(share, 100));
    ck_assert_uint_eq(handled(ns, ns * 104ull / share + 1, 1000000), 1000000);
}
END_TEST

/* After a flood of any length messages go ahead again once the share has paid for a bucket and a half,
 * not before one. */
START_TEST(a_flood_of_messages_is_forgotten)
{
    unsigned share = adapters[_i].share, ns = adapters[_i].message_ns;
    uint64_t depth;

    begin(mr_ahead_time(share, 100));
    depth = (uint64_t)a.bucket.depth;
    handled(ns, 1, 10000000);
    now_ns += depth * 100 / share;
    ck_assert_uint_eq(handled(ns, 0, MR_AHEAD_POLL), 0);
    handled(ns, 1, 10000000);
    now_ns += (depth * 3 / 2 + 2 * ns) * 100 / share + 1;
    ck_assert_uint_gt(handled(ns, 0, MR_AHEAD_POLL), 0);
}
END_TEST

START_TEST(without_a_share_messages_are_not_counted)
{
    begin(mr_ahead_time(0, 65536));
    ck_assert_uint_eq(handled(2000, 1, 100000), 100000);
}
END_TEST

/* Faster ports have faster adapters. A port of fewer lanes has an adapter of its generation, or an older one. */
START_TEST(the_time_of_a_message)
{
    static const uint32_t rates[] = {2500, 10000, 20000, 40000, 56248, 103124, 212500, 425000, UINT32_MAX};

    ck_assert_uint_eq(mr_ahead_message_ns(0), 2000);
    ck_assert_uint_eq(mr_ahead_message_ns(10000), 2000);
    ck_assert_uint_eq(mr_ahead_message_ns(20000), 222);
    ck_assert_uint_eq(mr_ahead_message_ns(212500), 5);
    for (size_t i = 1; i < sizeof rates / sizeof *rates; i++) {
        ck_assert_uint_le(mr_ahead_message_ns(rates[i]), mr_ahead_message_ns(rates[i - 1]));
        ck_assert_uint_gt(mr_ahead_message_ns(rates[i]), 0);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ahead");

    tcase_add_test(t, no_rate_is_no_limit);
    tcase_add_test(t, a_flood_gets_the_rate);
    tcase_add_test(t, what_is_within_the_budget_goes_ahead);
    tcase_add_test(t, turns_are_long);
    tcase_add_test(t, a_pause_fills_it);
    tcase_add_test(t, a_long_message_is_paid_for);
    tcase_add_test(t, the_rate_changes);
    tcase_add_test(t, the_same_rate_again);
    tcase_add_test(t, rate_of_a_port);
    tcase_add_test(t, an_old_time_does_no_harm);
    tcase_add_loop_test(t, messages_beyond_the_share_go_behind, 0, sizeof adapters / sizeof *adapters);
    tcase_add_loop_test(t, messages_within_the_share_go_ahead, 0, sizeof adapters / sizeof *adapters);
    tcase_add_loop_test(t, a_flood_of_messages_is_forgotten, 0, sizeof adapters / sizeof *adapters);
    tcase_add_test(t, without_a_share_messages_are_not_counted);
    tcase_add_test(t, the_time_of_a_message);
    return check_run(t, NULL);
}
