/* SPDX-License-Identifier: BSD-3-Clause */
/* Reactions of ports to links with excessive errors: thresholds, recoveries, the watchdog for flow control. */
#include <stdlib.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/link_error.h"
#include "tests/check.h"
#include "tests/simfab/link_lab.h"

#define MODEL     LAB_MODEL "vl_buffer_bytes: 16384}\n"
#define SYMBOL_PS 4000ull /* 8 bits on one lane of SDR, sent as 10 */
#define PERIOD_PS (65536 * SYMBOL_PS)
#define WATCH_PS  (400000 * SYMBOL_PS)

static const struct port_count *count_of(const char *host)
{
    return &lab_host(host)->count;
}

/* A packet finds no room in each of so many periods of flow control on end. */
static void overrun_periods(unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        lab_run_to(i * PERIOD_PS + 1000000);
        lab_send("h1", "h2", 0, 2078, 2);
    }
    lab_run_to((first + n) * PERIOD_PS);
}

START_TEST(overruns_on_end_are_excessive)
{
    lab_up("h1-h2", MODEL);
    lab_host("h1")->out->overrun = 1;
    lab_host("h2")->overrun_errors = 3;
    overrun_periods(0, 2);
    ck_assert_uint_eq(count_of("h2")->rcv_overrun, 4);
    ck_assert_uint_eq(count_of("h2")->rcv_errors, 4);
    ck_assert_uint_eq(count_of("h2")->rcv_pkts, 0);
    overrun_periods(3, 2); /* a period without */
    ck_assert_uint_eq(count_of("h2")->excess_overrun, 0);
    overrun_periods(5, 1);
    ck_assert_uint_eq(count_of("h2")->excess_overrun, 1);
    ck_assert_uint_eq(count_of("h2")->link_recovers, 1);
    ck_assert_uint_eq(count_of("h1")->link_recovers, 1);
    overrun_periods(6, 2); /* the count begins anew */
    ck_assert_uint_eq(count_of("h2")->excess_overrun, 1);
    overrun_periods(8, 1);
    ck_assert_uint_eq(count_of("h2")->excess_overrun, 2);
    lab_host("h1")->out->overrun = 0;
    lab_send("h1", "h2", 0, 2078, 1);
    lab_run();
    ck_assert_uint_eq(count_of("h2")->rcv_pkts, 1);
    lab_check_credits(true);
    lab_down();
}
END_TEST

/* Packets lost by number, in this direction alone; a later list replaces an earlier list. */
START_TEST(packets_vanish_by_number)
{
    struct link_dir *l;

    lab_up("h1-h2", MODEL);
    l = lab_host("h1")->out;
    lab_send("h1", "h2", 0, 2078, 5);
    lab_run();
    link_lose(l, (const uint32_t[LINK_LOSE_MAX]){1, 3, 4, 9});
    lab_send("h2", "h1", 0, 2078, 10);
    lab_send("h1", "h2", 0, 2078, 2);
    lab_run();
    ck_assert_uint_eq(count_of("h1")->rcv_pkts, 10);
    ck_assert_uint_eq(count_of("h2")->rcv_pkts, 6);
    lab_send("h1", "h2", 0, 2078, 6);
    lab_run();
    ck_assert_uint_eq(count_of("h2")->rcv_pkts, 10);
    ck_assert_uint_eq(count_of("h2")->symbol_errors, 3);
    link_lose(l, (const uint32_t[LINK_LOSE_MAX]){1, 2, 3, 4, 5, 6, 7, 8});
    lab_send("h1", "h2", 0, 2078, 9);
    lab_run();
    ck_assert_uint_eq(count_of("h2")->rcv_pkts, 11);
    ck_assert_uint_eq(count_of("h2")->symbol_errors, 11);
    lab_check_credits(true);
    lab_down();
}
END_TEST

/* Seven packets fill the receiver's buffers; nothing more goes until flow control is heard again. */
START_TEST(a_sender_without_flow_control_stops)
{
    struct link_dir *l;

    lab_up("h1-h2", MODEL);
    l = lab_host("h1")->out;
    link_flow_control(l, true);
    lab_send("h1", "h2", 0, 2078, 20);
    lab_run_to(WATCH_PS - 1);
    ck_assert_uint_eq(count_of("h2")->rcv_pkts, 7);
    ck_assert_uint_eq(count_of("h1")->link_recovers, 0);
    lab_run_to(WATCH_PS);
    ck_assert_uint_eq(count_of("h1")->link_recovers, 1);
    ck_assert_uint_eq(count_of("h2")->link_recovers, 1);
    lab_run_to(3 * WATCH_PS);
    ck_assert_uint_eq(count_of("h1")->link_recovers, 3);
    ck_assert_uint_eq(count_of("h2")->rcv_pkts, 7);
    link_flow_control(l, false);
    lab_run();
    ck_assert_uint_eq(count_of("h2")->rcv_pkts, 20);
    ck_assert_uint_eq(count_of("h1")->link_recovers, 3);
    ck_assert_uint_eq(lab.background, 0);
    lab_check_credits(true);
    lab_down();
}
END_TEST

/* Both ends see the same error, with one recovery; the watch begins anew with each fault. */
START_TEST(both_directions_recover_as_one)
{
    lab_up("h1-h2", MODEL);
    link_flow_control(lab_host("h1")->out, true);
    link_flow_control(lab_host("h2")->out, true);
    lab_run_to(WATCH_PS);
    ck_assert_uint_eq(count_of("h1")->link_recovers, 1);
    ck_assert_uint_eq(count_of("h2")->link_recovers, 1);
    link_flow_control(lab_host("h1")->out, false);
    link_flow_control(lab_host("h2")->out, false);
    lab_run_to(WATCH_PS + WATCH_PS / 2);
    link_flow_control(lab_host("h1")->out, true);
    lab_run_to(2 * WATCH_PS);
    ck_assert_uint_eq(count_of("h1")->link_recovers, 1);
    lab_run_to(2 * WATCH_PS + WATCH_PS / 2);
    ck_assert_uint_eq(count_of("h1")->link_recovers, 2);
    lab_down();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("link_error");

    tcase_set_timeout(c, 60);
    tcase_add_test(c, overruns_on_end_are_excessive);
    tcase_add_test(c, packets_vanish_by_number);
    tcase_add_test(c, a_sender_without_flow_control_stops);
    tcase_add_test(c, both_directions_recover_as_one);
    return check_run(c, NULL);
}
