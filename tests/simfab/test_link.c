/* SPDX-License-Identifier: BSD-3-Clause */
/* Links against arithmetic: rates, delays, credits and their way, waiting, unequal ends, lanes hop by hop. */
#include <stdio.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/pma.h"
#include "simfab/engine/wire/link.h"
#include "tests/check.h"
#include "tests/simfab/link_lab.h"

#define MODEL  LAB_MODEL "vl_buffer_bytes: 16384}\n"
#define US     1000000ull
#define SDR_PS 1000ull /* a byte on a 4X SDR link */

static uint64_t arrival(const char *host, uint64_t packets)
{
    ck_assert(lab_run_until(host, packets));
    return sim_now(&lab);
}

START_TEST(a_flow_gets_the_rate_of_the_link)
{
    static const uint32_t sizes[] = {30, 94, 286, 1054, 2078};
    uint32_t bytes = sizes[_i];

    lab_up("h1-sw1.1 sw1.2-sw2.1 sw2.2-h2", MODEL);
    lab.model->rx_packet_ps = 1000; /* the receiver is fast enough for the smallest ones */
    lab_send("h1", "h2", 0, bytes, 3000);
    uint64_t first = arrival("h2", 1);

    ck_assert_uint_eq(first, bytes * SDR_PS + 3 * 10000 + 2 * 200000);
    ck_assert_uint_eq(arrival("h2", 3000) - first, 2999 * bytes * SDR_PS);
    lab_run();
    lab_check_credits(true);
    ck_assert_uint_eq(lab_host("h1")->count.xmit_wait, 0);
    lab_down();
}
END_TEST

START_TEST(store_and_forward_adds_the_packet_at_every_switch)
{
    lab_up("h1-sw1.1 sw1.2-sw2.1 sw2.2-h2", LAB_MODEL "cut_through: false}\n");
    lab_send("h1", "h2", 0, 2078, 1);
    ck_assert_uint_eq(arrival("h2", 1), 3 * 2078 * SDR_PS + 3 * 10000 + 2 * 200000);
    lab_down();
}
END_TEST

/*
 * Two adapters on a long cable: the sender has credits for 7 packets of 33 blocks. The first comes back when the
 * receive engine has had the packet for its 1 us and a flow control packet of 8 bytes has crossed the cable.
 */
START_TEST(a_long_cable_is_as_fast_as_its_credits_come_back)
{
    const uint64_t ser = 2078 * SDR_PS, way = 20 * US, round = ser + way + 1 * US + 8 * SDR_PS + way;

    lab_up("h1-h2", "hca: {rx_packet_ns: 1000, dma_write_ns: 0, bus_mbytes_per_s: 0}\n"
                    "link: {width: 4, speed: SDR, mtu: 2048, propagation_ns: 20000, vl_buffer_bytes: 16384}\n");
    lab_send("h1", "h2", 0, 2078, 700);
    uint64_t first = arrival("h2", 1);

    ck_assert_uint_eq(arrival("h2", 7) - first, 6 * ser);
    ck_assert_uint_eq(arrival("h2", 8) - first, round);
    ck_assert_uint_eq(arrival("h2", 694) - first, 99 * round);
    lab_run();
    lab_check_credits(true);
    /* the wire was idle, with packets waiting, for the rest of every round; a tick is the time of 4 bytes */
    ck_assert_uint_eq(lab_host("h1")->count.xmit_wait, 99 * (round - 7 * ser) / (4 * SDR_PS));
    lab_down();
}
END_TEST

/* A flow control packet waits for the packet on the wire in its direction, which has 1000 bytes to go. */
START_TEST(flow_control_goes_before_data_but_interrupts_nothing)
{
    const uint64_t ser = 2078 * SDR_PS, way = 20 * US;

    lab_up("h1-h2", "hca: {rx_packet_ns: 1000, dma_write_ns: 0, bus_mbytes_per_s: 0}\n"
                    "link: {width: 4, speed: SDR, mtu: 2048, propagation_ns: 20000, vl_buffer_bytes: 16384}\n");
    lab_send("h1", "h2", 0, 2078, 8);
    lab_run_to(ser + way + 1 * US - 1078 * SDR_PS);
    lab_send("h2", "h1", 0, 2078, 7);
    ck_assert_uint_eq(arrival("h2", 8), ser + way + 1 * US + 1000 * SDR_PS + 8 * SDR_PS + way + ser + way);
    lab_run();
    lab_check_credits(true);
    lab_down();
}
END_TEST

START_TEST(a_blocked_lane_does_not_count_while_another_sends)
{
    lab_up("h1-sw1.1 h2-sw1.2 h3-sw1.3", MODEL);
    lab_slow_receiver("h2", 1000);
    lab_send("h1", "h2", 0, 2078, 30);
    lab_send("h1", "h3", 1, 2078, 1000);
    ck_assert(lab_run_until("h3", 1000));
    /* as many as fit into the two buffers on the way, and as the receiver took in these two milliseconds */
    ck_assert_uint_eq(lab_host("h1")->vl[0].xmit_pkts, 7 + 7 + 2);
    ck_assert_uint_eq(lab_host("h1")->count.xmit_wait, 0);
    lab_run();
    /* then it counts: the last packet of 30 left when the receiver had taken 16 */
    uint64_t idle = lab_host("h1")->count.xmit_wait * 4 * SDR_PS, sent = 1030 * 2078 * SDR_PS;

    ck_assert_uint_gt(idle + sent, 16 * 1000 * US);
    ck_assert_uint_lt(idle + sent, 16 * 1000 * US + 10 * US);
    ck_assert_uint_gt(lab_host("h1")->vl[0].xmit_wait_ps, idle);
    ck_assert_uint_eq(lab_host("h1")->vl[1].xmit_wait_ps, 0);
    lab_check_credits(true);
    lab_down();
}
END_TEST

/* h1 has a 1X link. Its packets leave the switch at 4X, in one piece, and take a quarter of that link's time. */
START_TEST(a_slow_link_does_not_hold_a_fast_one)
{
    const uint64_t slow = 4 * 2078 * SDR_PS, fast = 2078 * SDR_PS;

    lab_up("h1-sw1.1 h2-sw1.2 h3-sw1.3", MODEL "ports: [{node: h1, width: 1}]\n");
    lab_send("h1", "h3", 0, 2078, 1);
    /* it ends when its last byte has come and was looked at */
    ck_assert_uint_eq(arrival("h3", 1), slow + 10000 + 200000 + 10000);
    lab_run();
    lab_send("h1", "h3", 0, 2078, 1000);
    lab_send("h2", "h3", 1, 2078, 3000);
    uint64_t start = sim_now(&lab);

    ck_assert_uint_lt(arrival("h3", 4001) - start, 4000 * fast + 2 * slow);
    lab_down();
}
END_TEST

START_TEST(every_hop_has_its_own_lanes)
{
    lab_up("h1-sw1.1 sw1.2-sw2.1 sw2.2-sw3.1 sw3.2-h2", MODEL);
    lab_host("h1")->sl2vl[0][6] = 1;
    lab_port("sw1", 2)->sl2vl[1][6] = 3;
    lab_port("sw2", 2)->sl2vl[1][6] = 0;
    lab_port("sw3", 2)->sl2vl[1][6] = 5;
    lab_port("sw2", 2)->sl2vl[3][6] = 7; /* of another input */
    lab_send("h1", "h2", 6, 2078, 10);
    lab_run();
    ck_assert_uint_eq(lab_host("h1")->vl[1].xmit_pkts, 10);
    ck_assert_uint_eq(lab_port("sw1", 2)->vl[3].xmit_pkts, 10);
    ck_assert_uint_eq(lab_port("sw2", 2)->vl[0].xmit_pkts, 10);
    ck_assert_uint_eq(lab_port("sw3", 2)->vl[5].xmit_pkts, 10);
    ck_assert_uint_eq(lab_host("h2")->vl[5].rcv_pkts, 10);
    lab_check_credits(true);
    lab_down();
}
END_TEST

START_TEST(levels_without_a_lane_are_discarded)
{
    lab_up("h1-sw1.1 h2-sw1.2", MODEL "ports: [{node: h2, vls: 2}]\n");
    struct port *out = lab_port("sw1", 2);

    ck_assert_uint_eq(out->op_vls, 2);
    out->sl2vl[1][3] = 2;  /* beyond the two operational lanes */
    out->sl2vl[1][4] = 15; /* "discard" */
    lab_send("h1", "h2", 3, 100, 5);
    lab_send("h1", "h2", 4, 100, 7);
    lab_send("h1", "h2", 0, 100, 3);
    lab_run();
    ck_assert_uint_eq(lab_host("h2")->count.rcv_pkts, 3);
    ck_assert_uint_eq(out->count.xmit_discards, 12);
    lab_check_credits(true);
    lab_down();
}
END_TEST

START_TEST(packets_beyond_the_neighbours_mtu_are_discarded)
{
    lab_up("h1-sw1.1 h2-sw1.2", MODEL "ports: [{node: h2, mtu: 1024}]\n");
    lab_send("h1", "h2", 0, 1024 + 30, 3);
    lab_send("h1", "h2", 0, 1025 + 30, 4);
    lab_run();
    ck_assert_uint_eq(lab_host("h2")->count.rcv_pkts, 3);
    ck_assert_uint_eq(lab_port("sw1", 2)->count.discard_mtu, 4);
    ck_assert_uint_eq(lab_port("sw1", 2)->count.xmit_discards, 4);
    lab_check_credits(true);
    lab_down();
}
END_TEST

/* A small buffer at one port is the limit of its sender, and of nobody else. */
START_TEST(each_port_has_its_own_buffers)
{
    lab_up("h1-sw1.1 h2-sw1.2 h3-sw1.3", MODEL "ports: [{node: h2, vl_buffer_bytes: 4352}]\n");
    lab_slow_receiver("h2", 1000);
    lab_slow_receiver("h3", 1000);
    lab_send("h1", "h2", 0, 2078, 30);
    lab_send("h1", "h3", 1, 2078, 30);
    lab_run_to(500 * US);
    ck_assert_uint_eq(lab_host("h2")->count.rcv_pkts, 2); /* 68 blocks */
    ck_assert_uint_eq(lab_host("h3")->count.rcv_pkts, 7); /* 256 blocks */
    lab_down();
}
END_TEST

static uint32_t next_random(uint32_t *r)
{
    *r = *r * 1664525u + 1013904223u;
    return *r >> 8;
}

/* A tree of three switches with random packets of all lanes among six hosts, the links unequal; lost: on every cable.
 */
static void random_traffic(const char *queues, double lost)
{
    static const char *const hosts[] = {"h1", "h2", "h3", "h4", "h5", "h6"};
    char model[512];
    uint32_t r = 42;
    uint64_t sent = 0, got = 0;

    snprintf(model, sizeof model, "%s vl_buffer_bytes: 4352, switch_queues: %s}\nfault: {loss: %.2f}\n%s", LAB_MODEL,
             queues, lost, "ports: [{node: h2, width: 1}, {node: sw2, port: 1, vls: 4, vl_buffer_bytes: 16384}]\n");
    lab_up("h1-sw1.1 h2-sw1.2 sw1.3-sw2.1 h3-sw2.2 h4-sw2.3 sw2.4-sw3.1 h5-sw3.2 h6-sw3.3", model);
    for (int i = 0; i < 20000; i++) {
        const char *from = hosts[next_random(&r) % 6], *to = hosts[next_random(&r) % 6];

        if (from == to)
            continue;
        lab_send(from, to, (uint8_t)(next_random(&r) % 16), 30 + next_random(&r) % 2049, 1);
        sent++;
        for (unsigned n = next_random(&r) % 8; n; n--)
            evq_run_one(&lab.q);
        lab_check_credits(false);
    }
    while (evq_run_one(&lab.q))
        if (next_random(&r) % 16 == 0)
            lab_check_credits(false);
    lab_check_credits(true);
    for (int i = 0; i < 6; i++)
        got += lab_host(hosts[i])->count.rcv_pkts;
    if (lost > 0)
        ck_assert_uint_lt(got, sent);
    else
        ck_assert_uint_eq(got, sent); /* nothing is ever lost to congestion */
    lab_down();
}

START_TEST(credits_hold_and_nothing_is_lost_to_congestion)
{
    random_traffic(_i & 1 ? "lane" : "output", _i & 2 ? 0.05 : 0);
}
END_TEST

/* Blocks of a lost packet come back when the counters are compared again: every 65536 symbols, 262.144 us at SDR. */
START_TEST(credits_of_lost_packets_come_back)
{
    const uint64_t period = 65536 * 4000ull;

    lab_up("h1-h2", MODEL);
    lab_host("h1")->out->loss = 1;
    lab_send("h1", "h2", 0, 2078, 8);
    lab_run_to(period - 1);
    ck_assert_uint_eq(lab_host("h1")->count.xmit_pkts, 7);
    lab_host("h1")->out->loss = 0;
    lab_run_until("h2", 1);
    ck_assert_uint_eq(sim_now(&lab), period + 10000 + 8 * SDR_PS + 10000 + 2078 * SDR_PS + 10000);
    lab_run();
    lab_check_credits(true);
    lab_down();
}
END_TEST

/* A manager has the port count for 100 us, from 20 us on: in ticks of 4 ns, and the traffic has its pace. */
START_TEST(samples_are_of_their_time)
{
    const uint16_t xmit_pkts = 3, xmit_data = 1;
    uint8_t mad[MAD_BYTES] = {0};

    lab_up("h1-h2", MODEL);
    lab.model->rx_packet_ps = 1000;
    wire_put(mad, MAD_BASE_VERSION, 1);
    wire_put(mad, MAD_CLASS, CLASS_PERF);
    wire_put(mad, MAD_CLASS_VERSION, 1);
    wire_put(mad, MAD_METHOD, METHOD_SET);
    wire_put(mad, MAD_ATTR, 0x10);
    wire_put(mad + GMP_DATA, 8, 8, 1);
    wire_put(mad + GMP_DATA, 224, 32, 5000);
    wire_put(mad + GMP_DATA, 256, 32, 25000);
    wire_put(mad + GMP_DATA, 304, 16, xmit_pkts);
    wire_put(mad + GMP_DATA, 320, 16, xmit_data);
    ck_assert(pma_answer(lab_host("h1"), mad));
    ck_assert_uint_eq(wire_get(mad, MAD_STATUS), STATUS_OK);
    ck_assert_uint_eq(lab.background, 1);
    lab_send("h1", "h2", 0, 2000, 100); /* 2 us each */
    lab_run();
    ck_assert_uint_eq(lab_host("h1")->count.xmit_pkts, 100);
    ck_assert_uint_eq(lab.background, 0);
    wire_put(mad, MAD_METHOD, METHOD_GET);
    wire_put(mad, MAD_ATTR, 0x11);
    ck_assert(pma_answer(lab_host("h1"), mad));
    ck_assert_uint_eq(wire_get(mad + GMP_DATA, 30, 2), 0);
    ck_assert_uint_eq(wire_get(mad + GMP_DATA, 32, 32), 50);
    ck_assert_uint_eq(wire_get(mad + GMP_DATA, 64, 32), 50 * 2000 / 4);
    lab_down();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("link");

    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, a_flow_gets_the_rate_of_the_link, 0, 5);
    tcase_add_test(c, store_and_forward_adds_the_packet_at_every_switch);
    tcase_add_test(c, a_long_cable_is_as_fast_as_its_credits_come_back);
    tcase_add_test(c, flow_control_goes_before_data_but_interrupts_nothing);
    tcase_add_test(c, a_blocked_lane_does_not_count_while_another_sends);
    tcase_add_test(c, a_slow_link_does_not_hold_a_fast_one);
    tcase_add_test(c, every_hop_has_its_own_lanes);
    tcase_add_test(c, levels_without_a_lane_are_discarded);
    tcase_add_test(c, packets_beyond_the_neighbours_mtu_are_discarded);
    tcase_add_test(c, each_port_has_its_own_buffers);
    tcase_add_loop_test(c, credits_hold_and_nothing_is_lost_to_congestion, 0, 4);
    tcase_add_test(c, credits_of_lost_packets_come_back);
    tcase_add_test(c, samples_are_of_their_time);
    return check_run(c, NULL);
}
