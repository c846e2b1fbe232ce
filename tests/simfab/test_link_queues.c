/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares of an output of a switch among several inputs, and effects of a busy output: turns of inputs, heads of line in
 * both kinds of switches, and the fate of packets that wait too long.
 */
#include <stdio.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "tests/check.h"
#include "tests/simfab/link_lab.h"

#define SER 2078000ull /* of the largest packet at 4X SDR, ps */
#define US  1000000ull

static void up(const char *cables, const char *queues)
{
    char model[512];

    snprintf(model, sizeof model, "%s vl_buffer_bytes: 16384, switch_queues: %s}\n", LAB_MODEL, queues);
    lab_up(cables, model);
}

static const char *const kinds[] = {"lane", "output"};

/* ---- turns ----------------------------------------------------------------------------------------------------- */

START_TEST(inputs_take_turns_by_packets)
{
    up("h1-sw1.1 h2-sw1.2 d-sw1.3", kinds[_i]);
    lab.model->rx_packet_ps = 1000;
    lab_send("h1", "d", 0, 2078, 5000);
    lab_send("h2", "d", 0, 286, 20000);
    ck_assert(lab_run_until("d", 8000));
    /* packets that have left the hosts without arriving are in the switch's buffers: 7 packets of 33 blocks, 51 of 5 */
    ck_assert_double_eq_tol((double)lab_host("h1")->count.xmit_pkts, 4000, 7 + 2);
    ck_assert_double_eq_tol((double)lab_host("h2")->count.xmit_pkts, 4000, 51 + 2);
    lab_down();
}
END_TEST

/* Two hosts on one input, one on another: each input has its half. */
START_TEST(turns_are_of_inputs_not_of_flows)
{
    up("h1-sw1.1 h2-sw1.2 sw1.3-sw2.1 h3-sw2.2 d-sw2.3", kinds[_i]);
    lab_send("h1", "d", 0, 2078, 10000);
    lab_send("h2", "d", 0, 2078, 10000);
    lab_send("h3", "d", 0, 2078, 10000);
    ck_assert(lab_run_until("d", 12000));
    ck_assert_double_eq_tol((double)lab_host("h1")->count.xmit_pkts, 3000, 30);
    ck_assert_double_eq_tol((double)lab_host("h2")->count.xmit_pkts, 3000, 30);
    ck_assert_double_eq_tol((double)lab_host("h3")->count.xmit_pkts, 6000, 60);
    ck_assert_uint_eq(sim_now(&lab) / SER, 12000); /* and the output never rests */
    lab_down();
}
END_TEST

/* ---- heads of line --------------------------------------------------------------------------------------------- */

/*
 * h1 sends in turn to b, which takes nothing, and to d. b's buffer takes 7 packets. Then the 8th packet for b is at the
 * head of the switch's buffer. With one queue for the lane no packet passes; otherwise 7 such packets fill the buffer,
 * and the packets between them have passed.
 */
START_TEST(a_blocked_receiver_holds_up_others)
{
    up("h1-sw1.1 b-sw1.2 d-sw1.3", kinds[_i]);
    lab_slow_receiver("b", 4000000);
    for (int i = 0; i < 50; i++) {
        lab_send("h1", "b", 0, 2078, 1);
        lab_send("h1", "d", 0, 2078, 1);
    }
    lab_run_to(1000 * US);
    ck_assert_uint_eq(lab_host("b")->count.rcv_pkts, 7);
    ck_assert_uint_eq(lab_host("d")->count.rcv_pkts, _i ? 13 : 7);
    lab_down();
}
END_TEST

/*
 * Three hosts share the port to b. One of them comes over a trunk, which an undisturbed flow to d also takes. When the
 * trunk's buffer is full, the flow to d gets as much of the trunk as the flow to b: a third of a link, although its own
 * output is idle for two thirds. This holds for both kinds of switches: congestion spreads through credits.
 */
START_TEST(congestion_spreads_to_a_victim_on_the_trunk)
{
    up("h1-sw1.1 v-sw1.2 sw1.3-sw2.1 h2-sw2.2 h3-sw2.3 b-sw2.4 d-sw2.5", kinds[_i]);
    for (int i = 1; i <= 3; i++) {
        char name[16];

        snprintf(name, sizeof name, "h%d", i);
        lab_send(name, "b", 0, 2078, 20000);
    }
    lab_send("v", "d", 0, 2078, 20000);
    lab_run_to(6000 * SER);
    ck_assert_double_eq_tol((double)lab_host("b")->count.rcv_pkts, 6000, 10);
    ck_assert_double_eq_tol((double)lab_host("d")->count.rcv_pkts, 2000, 20);
    lab_down();
}
END_TEST

/* The same victim in a lane of its own has its link to itself. */
START_TEST(a_lane_of_its_own_saves_the_victim)
{
    up("h1-sw1.1 v-sw1.2 sw1.3-sw2.1 h2-sw2.2 h3-sw2.3 b-sw2.4 d-sw2.5", kinds[_i]);
    lab_send("h1", "b", 0, 2078, 20000);
    lab_send("h2", "b", 0, 2078, 20000);
    lab_send("h3", "b", 0, 2078, 20000);
    lab_send("v", "d", 1, 2078, 20000);
    lab_run_to(6000 * SER);
    /* h1 has its third of b, so two thirds of the trunk are v's */
    ck_assert_double_eq_tol((double)lab_host("d")->count.rcv_pkts, 4000, 20);
    lab_down();
}
END_TEST

static uint32_t next_random(uint32_t *r)
{
    *r = *r * 1664525u + 1013904223u;
    return *r >> 10;
}

/* Every host sends to random hosts (itself included), as fast as possible: the share of its link. */
static double uniform_throughput(unsigned hosts)
{
    char from[16], to[16];
    uint32_t r = 7;
    uint64_t got = 0;

    for (unsigned i = 0; i < 8000 * hosts; i++) {
        snprintf(from, sizeof from, "h%u", i % hosts + 1);
        snprintf(to, sizeof to, "h%u", next_random(&r) % hosts + 1);
        lab_send(from, to, 0, 2078, 1);
    }
    lab_run_to(8000 * SER);
    for (unsigned i = 1; i <= hosts; i++) {
        snprintf(to, sizeof to, "h%u", i);
        got += lab_host(to)->count.rcv_pkts;
    }
    return (double)got / (8000.0 * hosts);
}

/*
 * With one queue for each input, a switch with random destinations saturates at 0.75 for two ports, 0.6825 for three,
 * 0.6553 for four (Karol, Hluchyj and Morgan, 1987), whoever is chosen. Queues for each output do much better.
 */
START_TEST(head_of_line_blocking_costs_what_it_must)
{
    static const double limit[] = {0.75, 0.6825, 0.6553};
    static const char *const cables[] = {"h1-sw1.1 h2-sw1.2", "h1-sw1.1 h2-sw1.2 h3-sw1.3",
                                         "h1-sw1.1 h2-sw1.2 h3-sw1.3 h4-sw1.4"};

    up(cables[_i], "lane");
    ck_assert_double_eq_tol(uniform_throughput((unsigned)_i + 2), limit[_i], 0.01);
    lab_down();
    up(cables[_i], "output");
    ck_assert_double_gt(uniform_throughput((unsigned)_i + 2), limit[_i] + 0.15);
    lab_down();
}
END_TEST

/* ---- lives ----------------------------------------------------------------------------------------------------- */

static const struct port *blocked_output(uint8_t hoq, uint8_t stall, uint8_t life)
{
    struct port *out;

    up("h1-sw1.1 b-sw1.2 h2-sw1.3 d-sw1.4", "output");
    lab_slow_receiver("b", 4000000);
    out = lab_port("sw1", 2);
    out->hoq_life = hoq;
    out->vl_stall = stall;
    out->node->life_time = life;
    return out;
}

/* Seven packets fill b's buffer; the eighth is at the head as soon as it comes. */
#define HEAD_SINCE (10000 + 200000 + 7 * SER)

START_TEST(the_head_of_a_lane_lives_for_its_time)
{
    const struct port *out = blocked_output(8, 0, 20);
    uint64_t life = 4096000ull << 8;

    lab_send("h1", "b", 0, 2078, 20);
    for (uint64_t k = 1; k <= 13; k++) {
        lab_run_to(HEAD_SINCE + k * life - 1);
        ck_assert_uint_eq(out->count.xmit_discards, k - 1);
        lab_run_to(HEAD_SINCE + k * life);
        ck_assert_uint_eq(out->count.xmit_discards, k);
    }
    ck_assert_uint_eq(out->count.discard_sw_hoq, 13);
    ck_assert_uint_eq(lab_host("b")->count.rcv_pkts, 7);
    lab_check_credits(false);
    lab_down();
}
END_TEST

START_TEST(nothing_is_discarded_without_a_limit)
{
    const struct port *out = blocked_output(20, 7, 31);

    lab_send("h1", "b", 0, 2078, 20);
    lab_run();
    ck_assert_uint_eq(out->count.xmit_discards, 0);
    ck_assert_uint_eq(lab_host("b")->count.rcv_pkts, 20);
    lab_check_credits(true);
    lab_down();
}
END_TEST

START_TEST(a_lane_that_drops_too_often_is_stalled)
{
    const struct port *out = blocked_output(8, 3, 20);
    uint64_t life = 4096000ull << 8, stall = HEAD_SINCE + 3 * life;

    lab_send("h1", "b", 0, 2078, 12);
    lab_run_to(stall - 1);
    ck_assert_uint_eq(out->count.xmit_discards, 2);
    lab_run_to(stall); /* the third in a row: the rest goes with it */
    ck_assert_uint_eq(out->count.xmit_discards, 5);
    /* packets are discarded at once for 8 lifetimes */
    lab_send("h1", "b", 0, 2078, 4);
    lab_run_to(stall + 100 * US);
    ck_assert_uint_eq(out->count.xmit_discards, 9);
    lab_run_to(stall + 8 * life - 1);
    lab_send("h1", "b", 0, 94, 1); /* on its way when the stall ends */
    lab_run_to(stall + 8 * life + US);
    ck_assert_uint_eq(out->count.xmit_discards, 9);
    lab_run_to(stall + 9 * life + US);
    ck_assert_uint_eq(out->count.xmit_discards, 9);
    /* it fits: 25 blocks were left of b's buffer. Other lanes never noticed */
    ck_assert_uint_eq(lab_host("b")->count.rcv_pkts, 8);
    ck_assert_uint_eq(out->count.discard_sw_hoq, 9);
    lab_down();
}
END_TEST

START_TEST(other_lanes_and_outputs_live_on)
{
    const struct port *out = blocked_output(5, 2, 20);

    lab_slow_receiver("d", 1);
    for (int i = 0; i < 500; i++) {
        lab_send("h1", "b", 0, 2078, 1);
        lab_send("h2", "d", 0, 2078, 1);
    }
    lab_run_to(1000000 * US);
    ck_assert_uint_eq(out->count.discard_sw_hoq, 493);
    ck_assert_uint_eq(lab_host("d")->count.rcv_pkts, 500);
    ck_assert_uint_eq(lab_port("sw1", 4)->count.xmit_discards, 0);
    lab_down();
}
END_TEST

/* The first packet without room enters the switch after the seven before. */
START_TEST(a_packet_lives_in_a_switch_for_its_time)
{
    const struct port *out = blocked_output(20, 7, 9);
    uint64_t life = 4096000ull << 9;

    lab_send("h1", "b", 0, 2078, 20);
    for (uint64_t k = 0; k < 7; k++) {
        lab_run_to(10000 + (7 + k) * SER + life - 1);
        ck_assert_uint_eq(out->count.xmit_discards, k);
        lab_run_to(10000 + (7 + k) * SER + life);
        ck_assert_uint_eq(out->count.xmit_discards, k + 1);
    }
    ck_assert_uint_eq(out->count.discard_sw_lifetime, 7);
    lab_down();
}
END_TEST

/*
 * A ring of switches, with two hosts each that all send two hops on, deadlocks for ever; with a lifetime it continues.
 */
START_TEST(a_credit_loop_ends_with_a_life_time)
{
    uint64_t discarded = 0, got = 0;

    up("h1-sw1.1 h4-sw1.4 h2-sw2.1 h5-sw2.4 h3-sw3.1 h6-sw3.4 sw1.2-sw2.3 sw2.2-sw3.3 sw3.2-sw1.3", kinds[_i & 1]);
    for (unsigned i = 1; i <= 3; i++) { /* all routes go the same direction: over port 2 */
        char sw[16];

        snprintf(sw, sizeof sw, "sw%u", i);
        for (unsigned k = 1; k <= 3; k++) {
            char host[16];

            snprintf(host, sizeof host, "h%u", k);
            lab_port(sw, 1)->node->lft[lab_host(host)->lid] = k == i ? 1 : 2;
        }
        for (unsigned n = 1; n <= 4; n++)
            lab_port(sw, n)->hoq_life = _i & 2 ? 6 : 20;
    }
    lab_send("h1", "h3", 0, 2078, 1000);
    lab_send("h2", "h1", 0, 2078, 1000);
    lab_send("h3", "h2", 0, 2078, 1000);
    lab_send("h4", "h3", 0, 2078, 1000);
    lab_send("h5", "h1", 0, 2078, 1000);
    lab_send("h6", "h2", 0, 2078, 1000);
    lab_run();
    for (unsigned i = 1; i <= 3; i++) {
        char name[16];

        snprintf(name, sizeof name, "h%u", i);
        got += lab_host(name)->count.rcv_pkts;
        snprintf(name, sizeof name, "sw%u", i);
        discarded += lab_port(name, 2)->count.discard_sw_hoq;
    }
    if (_i & 2) {
        ck_assert_uint_eq(got + discarded, 6000);
        ck_assert_uint_gt(discarded, 0);
        lab_check_credits(true);
    } else {
        ck_assert_uint_lt(got, 6000);
        ck_assert_uint_eq(discarded, 0);
    }
    lab_down();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("link_queues");

    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, inputs_take_turns_by_packets, 0, 2);
    tcase_add_loop_test(c, turns_are_of_inputs_not_of_flows, 0, 2);
    tcase_add_loop_test(c, a_blocked_receiver_holds_up_others, 0, 2);
    tcase_add_loop_test(c, congestion_spreads_to_a_victim_on_the_trunk, 0, 2);
    tcase_add_loop_test(c, a_lane_of_its_own_saves_the_victim, 0, 2);
    tcase_add_loop_test(c, head_of_line_blocking_costs_what_it_must, 0, 3);
    tcase_add_test(c, the_head_of_a_lane_lives_for_its_time);
    tcase_add_test(c, nothing_is_discarded_without_a_limit);
    tcase_add_test(c, a_lane_that_drops_too_often_is_stalled);
    tcase_add_test(c, other_lanes_and_outputs_live_on);
    tcase_add_test(c, a_packet_lives_in_a_switch_for_its_time);
    tcase_add_loop_test(c, a_credit_loop_ends_with_a_life_time, 0, 4);
    return check_run(c, NULL);
}
