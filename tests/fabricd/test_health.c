/* SPDX-License-Identifier: BSD-3-Clause */
/* The judgement of rails: counters and times in, states out. */
#include "fabricd/policy/health.h"
#include "tests/check.h"

#include <string.h>

#define S   1000000ull
#define HDR 50000u
#define DDR 5000u

static struct health h;
static struct health_rules rules;
static struct health_look look;
static uint64_t rate; /* packets received per second */

static void setup(void)
{
    rules = (struct health_rules){0};
    rate = 100000000;
    look = (struct health_look){.now_us = 1000 * S, .up = true, .lane_mbps = DDR, .width = 4};
    for (unsigned e = 0; e < HEALTH_ENDS; e++) {
        look.port[e] = (struct health_port){.known = true, .id = e + 1};
        memset(look.port[e].bits, 64, sizeof(look.port[e].bits));
    }
    health_init(&h, look.now_us);
    health_take(&h, &rules, &look);
}

/* A check each second, each time with `each` more counts at an end. */
static void pass(unsigned seconds, enum health_end e, enum health_counter c, uint64_t each)
{
    for (unsigned i = 0; i < seconds; i++) {
        look.now_us += S;
        look.port[e].value[c] += each;
        look.port[e].value[HEALTH_PACKETS] += rate;
        health_take(&h, &rules, &look);
    }
}

static void quiet(unsigned seconds)
{
    pass(seconds, HEALTH_HERE, HEALTH_WAIT, 0);
}

static void check_state(enum fd_rail_state state, uint32_t weight)
{
    ck_assert_str_eq(health_state_name(h.state), health_state_name(state));
    ck_assert_uint_eq(h.weight, weight);
}

START_TEST(quiet_is_healthy)
{
    quiet(3600);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    ck_assert_uint_eq(h.flaps, 0);
    ck_assert_uint_eq(h.since_us, 1000 * S);
}
END_TEST

/* Counters may have any value at the first check. */
START_TEST(history_of_counters_is_no_alarm)
{
    health_init(&h, look.now_us);
    for (unsigned c = 0; c < HEALTH_COUNTERS; c++)
        look.port[HEALTH_HERE].value[c] = look.port[HEALTH_FAR].value[c] = 123456;
    health_take(&h, &rules, &look);
    quiet(5);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
}
END_TEST

START_TEST(many_errors_are_bad_at_once)
{
    for (unsigned e = 0; e < HEALTH_ENDS; e++) {
        setup();
        pass(1, e, HEALTH_SYMBOL, 6000);
        check_state(FD_RAIL_BAD, 0);
        ck_assert_int_eq(h.reason.why, HEALTH_ERRORS);
        ck_assert_int_eq(h.reason.end, e);
        ck_assert_int_eq(h.reason.counter, HEALTH_SYMBOL);
        ck_assert_uint_eq(h.since_us, look.now_us);
        ck_assert_uint_eq(h.flaps, 1);
    }
}
END_TEST

/* The error limit of a cable is per minute, however the errors are spread. */
START_TEST(few_errors_degrade)
{
    pass(9, HEALTH_HERE, HEALTH_RCV, 1);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    pass(1, HEALTH_HERE, HEALTH_RCV, 1);
    check_state(FD_RAIL_DEGRADED, FD_HEALTHY / 2);
    setup();
    for (unsigned i = 0; i < 100; i++) { /* six a minute */
        pass(1, HEALTH_HERE, HEALTH_SYMBOL, 1);
        quiet(9);
    }
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
}
END_TEST

START_TEST(more_errors_weigh_less)
{
    uint32_t before = FD_HEALTHY;

    for (unsigned errors = 10; errors < 6000; errors *= 4) {
        setup();
        pass(1, HEALTH_HERE, HEALTH_SYMBOL, errors);
        ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
        ck_assert_uint_lt(h.weight, before);
        ck_assert_uint_ge(h.weight, HEALTH_PROBATION);
        before = h.weight;
    }
}
END_TEST

/*
 * A rail with little traffic, because libraries have left the rail: one packet in a thousand is too many. Idle cables
 * have errors, too, and are judged by their number alone.
 */
START_TEST(lossy)
{
    rate = 0;
    look.port[HEALTH_FAR].value[HEALTH_PACKETS] += 30000;
    pass(1, HEALTH_FAR, HEALTH_SYMBOL, 29);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
    pass(1, HEALTH_FAR, HEALTH_SYMBOL, 1);
    check_state(FD_RAIL_BAD, 0);
    ck_assert_int_eq(h.reason.why, HEALTH_LOSSY);
    setup();
    rate = 0;
    pass(1, HEALTH_FAR, HEALTH_SYMBOL, 19);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
    setup();
    rate = 0;
    look.port[HEALTH_FAR].bits[HEALTH_PACKETS] = 32; /* how many came is not known */
    look.port[HEALTH_FAR].value[HEALTH_PACKETS] = UINT32_MAX;
    pass(1, HEALTH_FAR, HEALTH_SYMBOL, 100);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
}
END_TEST

/* Errors tolerated on an old cable are too many for a cable that corrects errors before they count. */
START_TEST(generations)
{
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 4);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    setup();
    look.lane_mbps = HDR;
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 4);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 596);
    check_state(FD_RAIL_BAD, 0);
}
END_TEST

START_TEST(limits_of_the_policy)
{
    rules.degraded = 100;
    rules.bad = 200;
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 99);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 1);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 100);
    check_state(FD_RAIL_BAD, 0);
    setup();
    rules.off = true;
    pass(60, HEALTH_HERE, HEALTH_SYMBOL, 10000);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    ck_assert_uint_eq(h.end[HEALTH_HERE].total[HEALTH_SYMBOL], 600000);
}
END_TEST

/* However much is waited for and dropped on the way: that is traffic, not a fault of the cable. */
START_TEST(congestion_is_no_alarm)
{
    for (unsigned i = 0; i < 600; i++) {
        look.now_us += S;
        for (unsigned e = 0; e < HEALTH_ENDS; e++) {
            look.port[e].value[HEALTH_WAIT] += 1000000000;
            look.port[e].value[HEALTH_DISCARDS] += 1000;
            look.port[e].value[HEALTH_VL15] += 50;
            look.port[e].value[HEALTH_REMOTE] += 50;
        }
        ck_assert(!health_take(&h, &rules, &look));
    }
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
}
END_TEST

START_TEST(discards_alone_degrade_at_most)
{
    pass(600, HEALTH_FAR, HEALTH_DISCARDS, 1000);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
    ck_assert_uint_gt(h.weight, 0);
}
END_TEST

/* A cable pulled and put in again once is not flapping. */
START_TEST(flapping)
{
    pass(1, HEALTH_HERE, HEALTH_DOWNED, 1);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    pass(1, HEALTH_HERE, HEALTH_DOWNED, 1);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
    pass(2, HEALTH_HERE, HEALTH_DOWNED, 1);
    check_state(FD_RAIL_BAD, 0);
    ck_assert_uint_eq(h.flaps, 1);
}
END_TEST

/* A port that is down proves nothing: the hold time begins with the port up. */
START_TEST(down_is_not_quiet)
{
    pass(4, HEALTH_HERE, HEALTH_DOWNED, 1);
    look.up = false;
    quiet(3600);
    check_state(FD_RAIL_BAD, 0);
    look.up = true;
    quiet(9);
    check_state(FD_RAIL_BAD, 0);
    quiet(1);
    check_state(FD_RAIL_DEGRADED, HEALTH_PROBATION);
}
END_TEST

START_TEST(returns_by_probation)
{
    pass(1, HEALTH_FAR, HEALTH_SYMBOL, 1000000);
    quiet(9);
    check_state(FD_RAIL_BAD, 0);
    quiet(1);
    check_state(FD_RAIL_DEGRADED, HEALTH_PROBATION);
    ck_assert_int_eq(h.reason.why, HEALTH_RETURNING);
    quiet(9);
    check_state(FD_RAIL_DEGRADED, HEALTH_PROBATION);
    quiet(1);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    quiet(3600);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    ck_assert_uint_eq(h.flaps, 1);
}
END_TEST

/* Below the limit for degradation, but not without errors: the state stays. */
START_TEST(hysteresis)
{
    pass(10, HEALTH_HERE, HEALTH_SYMBOL, 1);
    check_state(FD_RAIL_DEGRADED, FD_HEALTHY / 2);
    for (unsigned i = 0; i < 100; i++) {
        pass(1, HEALTH_HERE, HEALTH_SYMBOL, 1);
        quiet(8);
        check_state(FD_RAIL_DEGRADED, FD_HEALTHY / 2);
    }
    quiet(2);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
}
END_TEST

/* A rail that has errors whenever used is tried less and less often. */
START_TEST(hold_time_doubles)
{
    unsigned away = 0, tries = 0;

    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 100000);
    for (unsigned i = 0; i < 7200; i++) {
        bool used = h.weight > 0;

        tries += used;
        away += !used;
        pass(1, HEALTH_HERE, HEALTH_SYMBOL, used ? 20 : 0);
    }
    ck_assert_uint_le(tries, 18);
    ck_assert_uint_eq(h.relapses, HEALTH_RELAPSES);
    ck_assert_uint_eq(away + tries, 7200);
}
END_TEST

START_TEST(relapses_are_forgotten)
{
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 100000);
    quiet(12);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 100000);
    ck_assert_uint_eq(h.relapses, 1);
    quiet(HEALTH_FORGET_S + 60);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 100000);
    ck_assert_uint_eq(h.relapses, 0);
    ck_assert_uint_eq(h.flaps, 3);
}
END_TEST

/* Somebody clears the counters: what they have now has come since. */
START_TEST(cleared_by_others)
{
    look.port[HEALTH_HERE].value[HEALTH_SYMBOL] = 1000000;
    health_init(&h, look.now_us);
    health_take(&h, &rules, &look);
    look.port[HEALTH_HERE].value[HEALTH_SYMBOL] = 3;
    quiet(1);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    ck_assert_uint_eq(h.end[HEALTH_HERE].cleared, 1);
    ck_assert_uint_eq(h.end[HEALTH_HERE].total[HEALTH_SYMBOL], 3);
    look.port[HEALTH_HERE].value[HEALTH_SYMBOL] = 0;
    quiet(1);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 10);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
}
END_TEST

START_TEST(wrap)
{
    look.port[HEALTH_HERE].value[HEALTH_SYMBOL] = UINT64_MAX - 4;
    health_init(&h, look.now_us);
    health_take(&h, &rules, &look);
    look.port[HEALTH_HERE].value[HEALTH_SYMBOL] = 4;
    quiet(1);
    ck_assert_uint_eq(h.end[HEALTH_HERE].total[HEALTH_SYMBOL], 9);
    ck_assert_uint_eq(h.end[HEALTH_HERE].cleared, 0);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
}
END_TEST

/* A counter at its maximum hides what comes: the rail stays bad until somebody clears it. */
START_TEST(saturation)
{
    look.port[HEALTH_HERE].bits[HEALTH_SYMBOL] = 16;
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 65535);
    check_state(FD_RAIL_BAD, 0);
    ck_assert(h.end[HEALTH_HERE].saturated);
    quiet(3600);
    check_state(FD_RAIL_BAD, 0);
    look.port[HEALTH_HERE].value[HEALTH_SYMBOL] = 0;
    quiet(1);
    ck_assert(!h.end[HEALTH_HERE].saturated);
    quiet(20);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
}
END_TEST

/* One that was there before us: other counters judge, and the rail is not held for what nobody saw. */
START_TEST(saturated_before)
{
    look.port[HEALTH_HERE].bits[HEALTH_SYMBOL] = 16;
    look.port[HEALTH_HERE].value[HEALTH_SYMBOL] = 65535;
    health_init(&h, look.now_us);
    health_take(&h, &rules, &look);
    ck_assert(h.end[HEALTH_HERE].saturated);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    pass(1, HEALTH_HERE, HEALTH_RCV, 100000);
    check_state(FD_RAIL_BAD, 0);
    quiet(21);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
}
END_TEST

/* The cable was moved to another port of the switch, whose counters are others; or the far port cannot be asked. */
START_TEST(another_port)
{
    look.port[HEALTH_FAR].id = 77;
    look.port[HEALTH_FAR].value[HEALTH_SYMBOL] = 1000000;
    quiet(1);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    look.port[HEALTH_FAR].known = false;
    look.port[HEALTH_FAR].value[HEALTH_SYMBOL] = 0;
    quiet(1);
    ck_assert_uint_eq(h.end[HEALTH_FAR].cleared, 0);
    look.port[HEALTH_FAR].known = true;
    look.port[HEALTH_FAR].value[HEALTH_SYMBOL] = 1000005;
    quiet(1);
    ck_assert_uint_eq(h.end[HEALTH_FAR].total[HEALTH_SYMBOL], 5);
}
END_TEST

/* Fewer lanes than before, or than both ends have: the library sees the rate itself. */
START_TEST(narrow)
{
    look.width = 1;
    quiet(1);
    check_state(FD_RAIL_DEGRADED, HEALTH_NARROWED);
    ck_assert_int_eq(h.reason.why, HEALTH_NARROW);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 100);
    ck_assert_int_eq(h.reason.why, HEALTH_ERRORS);
    look.width = 4;
    quiet(11);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    setup();
    look.width = look.width_can = 1;
    health_init(&h, look.now_us);
    quiet(2);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    look.width_can = 4;
    quiet(1);
    ck_assert_int_eq(h.reason.why, HEALTH_NARROW);
}
END_TEST

START_TEST(drained)
{
    ck_assert(health_drain(&h, true, look.now_us));
    check_state(FD_RAIL_DRAINED, 0);
    ck_assert(!health_drain(&h, true, look.now_us));
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 10000);
    check_state(FD_RAIL_DRAINED, 0);
    ck_assert(health_drain(&h, false, look.now_us));
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 10000);
    check_state(FD_RAIL_BAD, 0);
    ck_assert(health_drain(&h, false, look.now_us)); /* also of one that was not drained */
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
}
END_TEST

/* Somebody complains of a rail: without errors that changes nothing, with a single one the rail is degraded, no more.
 */
START_TEST(suspected)
{
    rules.suspected = true;
    quiet(60);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    pass(1, HEALTH_HERE, HEALTH_WAIT, 1000000);
    check_state(FD_RAIL_HEALTHY, FD_HEALTHY);
    pass(1, HEALTH_HERE, HEALTH_SYMBOL, 1);
    check_state(FD_RAIL_DEGRADED, FD_HEALTHY / 2);
    pass(5, HEALTH_HERE, HEALTH_SYMBOL, 1);
    ck_assert_int_eq(h.state, FD_RAIL_DEGRADED);
    ck_assert_uint_gt(h.weight, 0);
}
END_TEST

START_TEST(reasons)
{
    struct text t = {0};

    pass(1, HEALTH_FAR, HEALTH_SYMBOL, 5300);
    health_reason_text(&t, &h.reason);
    ck_assert_str_eq(text_str(&t), "SymbolErrorCounter of the port at the other end: 5300 in a minute, limit 10");
    text_free(&t);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("judgement");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, quiet_is_healthy);
    tcase_add_test(t, history_of_counters_is_no_alarm);
    tcase_add_test(t, many_errors_are_bad_at_once);
    tcase_add_test(t, few_errors_degrade);
    tcase_add_test(t, more_errors_weigh_less);
    tcase_add_test(t, lossy);
    tcase_add_test(t, generations);
    tcase_add_test(t, limits_of_the_policy);
    tcase_add_test(t, congestion_is_no_alarm);
    tcase_add_test(t, discards_alone_degrade_at_most);
    tcase_add_test(t, flapping);
    tcase_add_test(t, down_is_not_quiet);
    tcase_add_test(t, returns_by_probation);
    tcase_add_test(t, hysteresis);
    tcase_add_test(t, hold_time_doubles);
    tcase_add_test(t, relapses_are_forgotten);
    tcase_add_test(t, cleared_by_others);
    tcase_add_test(t, wrap);
    tcase_add_test(t, saturation);
    tcase_add_test(t, saturated_before);
    tcase_add_test(t, another_port);
    tcase_add_test(t, narrow);
    tcase_add_test(t, drained);
    tcase_add_test(t, suspected);
    tcase_add_test(t, reasons);
    return check_run(t, NULL);
}
