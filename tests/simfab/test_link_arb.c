/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitration at the output of a switch: shares of saturated lanes, precedence and its limit, how long one waits. */
#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/wire/link.h"
#include "tests/check.h"
#include "tests/simfab/link_lab.h"

#define MODEL LAB_MODEL "vl_buffer_bytes: 65536}\n"
#define SER   2078000ull /* of the largest packet at 4X SDR, ps */
#define LANES 4

/* Lane i comes from host i+1, and from nobody else; all go to d. */
#define CABLES "h1-sw1.1 h2-sw1.2 h3-sw1.3 h4-sw1.4 d-sw1.5"

static const char *const hosts[LANES] = {"h1", "h2", "h3", "h4"};

static void up(void)
{
    lab_up(CABLES, MODEL);
    lab.model->rx_packet_ps = 1000; /* the receiver is fast enough for the smallest packets */
}

struct shares {
    struct vlarb_entry high[6], low[6];
    uint8_t limit;
    uint32_t bytes[LANES]; /* of the lane's packets; 0: the lane is idle */
    uint32_t turn[LANES];  /* packets in a round of all entries, by arithmetic */
};

/* A turn of weight w sends packets of u blocks until its weight is used up: w / u of them, rounded up. */
static const struct shares cases[] = {
    {{{0}}, {{1, 32}, {2, 64}, {3, 128}}, 0, {0, 2078, 2078, 2078}, {0, 1, 2, 4}},
    {{{0}}, {{1, 255}, {2, 255}}, 0, {0, 2078, 286, 0}, {0, 8, 51, 0}},
    {{{0}}, {{1, 33}, {2, 34}}, 0, {0, 2078, 2078, 0}, {0, 1, 2, 0}}, /* 33 blocks use up 33, not 34 */
    {{{0}}, {{1, 4}, {2, 200}, {1, 4}, {3, 100}}, 0, {0, 2078, 2078, 2078}, {0, 2, 7, 4}},
    {{{0}}, {{1, 10}, {2, 50}, {3, 100}}, 0, {0, 94, 1054, 2078}, {0, 5, 3, 4}},
    {{{0}}, {{1, 1}, {2, 0}, {3, 1}}, 0, {0, 2078, 0, 94}, {0, 1, 0, 1}},
    /*
     * a lane in both tables: two packets of it from the high table, then alternating with the other lane from the low
     * table
     */
    {{{1, 33}}, {{1, 33}, {2, 33}}, 1, {0, 2078, 2078, 0}, {0, 5, 1, 0}},
    /*
     * 4 * 4096 bytes are used up by 8 packets of 33 blocks, shared 2 to 1 by two lanes; then one packet goes from the
     * low table
     */
    {{{1, 66}, {2, 33}}, {{3, 33}}, 4, {0, 2078, 2078, 2078}, {0, 16, 8, 3}},
    {{{1, 255}}, {{2, 255}}, 0, {0, 94, 2078, 0}, {0, 1, 1, 0}},
    {{{1, 255}}, {{2, 100}, {3, 200}}, 254, {0, 2078, 2078, 94}, {0, 493, 1, 0}},
};

START_TEST(saturated_lanes_share_by_weight)
{
    const struct shares *c = &cases[_i];
    const struct port *to;
    uint64_t all = 0, round = 0;

    up();
    lab_arbitrate(lab_port("sw1", 5), c->high, c->low, c->limit);
    to = lab_host("d");
    for (unsigned i = 0; i < LANES; i++) {
        round += c->turn[i] * c->bytes[i];
        if (c->bytes[i])
            lab_send(hosts[i], "d", (uint8_t)i, c->bytes[i], 40000);
    }
    ck_assert(lab_run_until("d", 30000));
    for (unsigned i = 0; i < LANES; i++)
        all += to->vl[i].rcv_data;
    for (unsigned i = 0; i < LANES && c->limit != 254; i++)
        ck_assert_double_eq_tol((double)to->vl[i].rcv_data / (double)all,
                                (double)(c->turn[i] * c->bytes[i]) / (double)round, 0.005);
    /* 254 * 4096 bytes are 16256 blocks: 493 packets; then one from the low table */
    if (c->limit == 254)
        ck_assert_uint_le(to->vl[2].rcv_pkts + to->vl[3].rcv_pkts - to->vl[1].rcv_pkts / 493, 1);
    lab_down();
}
END_TEST

/* Bytes sent by a lane in a turn when its packets' sizes alternate: average over many turns. */
static double bytes_of_turn(uint32_t weight, const uint32_t *sizes, unsigned num)
{
    uint64_t sum = 0;
    unsigned at = 0;

    for (unsigned turn = 0; turn < 10000; turn++)
        for (int64_t left = weight; left > 0; at = (at + 1) % num) {
            left -= (sizes[at] + 63) / 64;
            sum += sizes[at];
        }
    return (double)sum / 10000;
}

START_TEST(mixed_sizes_share_by_weight)
{
    static const struct vlarb_entry low[] = {{1, 40}, {2, 100}, {0}};
    static const uint32_t one[] = {2078, 94, 286}, two[] = {94, 1054};
    double a = bytes_of_turn(40, one, 3), b = bytes_of_turn(100, two, 2), got;

    up();
    lab_arbitrate(lab_port("sw1", 5), NULL, low, 0);
    for (unsigned i = 0; i < 30000; i++) {
        lab_send("h2", "d", 1, one[i % 3], 1);
        lab_send("h3", "d", 2, two[i % 2], 1);
    }
    ck_assert(lab_run_until("d", 25000));
    got = (double)lab_host("d")->vl[1].rcv_data;
    ck_assert_double_eq_tol(got / (got + (double)lab_host("d")->vl[2].rcv_data), a / (a + b), 0.005);
    lab_down();
}
END_TEST

START_TEST(without_a_limit_the_low_table_starves)
{
    static const struct vlarb_entry high[] = {{1, 1}, {0}}, low[] = {{2, 255}, {0}};

    up();
    lab_arbitrate(lab_port("sw1", 5), high, low, 255);
    lab_send("h2", "d", 1, 2078, 5000);
    lab_send("h3", "d", 2, 94, 5000);
    ck_assert(lab_run_until("d", 4999));
    /* the small packets reach the switch first: one is on the wire before a large packet arrives */
    ck_assert_uint_le(lab_host("d")->vl[2].rcv_pkts, 1);
    lab_run();
    ck_assert_uint_eq(lab_host("d")->vl[2].rcv_pkts, 5000);
    lab_down();
}
END_TEST

START_TEST(limit_zero_lets_one_packet_pass)
{
    static const struct vlarb_entry high[] = {{1, 255}, {0}}, low[] = {{2, 255}, {0}};
    const struct port *to;
    uint64_t was = 0;

    up();
    lab_arbitrate(lab_port("sw1", 5), high, low, 0);
    to = lab_host("d");
    lab_send("h2", "d", 1, 2078, 1000);
    lab_send("h3", "d", 2, 2078, 1000);
    ck_assert(lab_run_until("d", 10));
    for (unsigned i = 11; i < 1900; i++) {
        was = to->vl[1].rcv_pkts;
        ck_assert(lab_run_until("d", i));
        ck_assert(lab_run_until("d", ++i));
        if (to->vl[1].rcv_pkts != was + 1)
            ck_abort_msg("packets %u and %u are of one table", i - 1, i);
    }
    lab_down();
}
END_TEST

/*
 * While lane 2 saturates the output, single packets of lane 1 come at all phases. Returns the longest wait; it must
 * also come near the bound, or the bound would prove nothing.
 */
static uint64_t worst_wait(uint32_t bytes)
{
    uint64_t worst = 0, alone = bytes * 1000ull + 2 * 10000 + 200000, start;

    lab_send("h3", "d", 2, 2078, 9000);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t got = lab_host("d")->vl[1].rcv_pkts;

        lab_run_to(sim_now(&lab) + 3 * SER + i * 7919);
        start = sim_now(&lab);
        lab_send("h2", "d", 1, bytes, 1);
        while (lab_host("d")->vl[1].rcv_pkts == got)
            if (!evq_run_one(&lab.q))
                ck_abort_msg("the packet is lost");
        if (sim_now(&lab) - start - alone > worst)
            worst = sim_now(&lab) - start - alone;
    }
    ck_assert_uint_lt(lab_host("d")->vl[2].rcv_pkts, 9000); /* saturated to the end */
    return worst;
}

START_TEST(high_waits_for_one_packet_at_most)
{
    static const struct vlarb_entry high[] = {{1, 255}, {0}}, low[] = {{2, 255}, {0}};
    uint64_t worst;

    up();
    lab_arbitrate(lab_port("sw1", 5), high, low, 255);
    worst = worst_wait(94);
    ck_assert_uint_le(worst, SER);
    ck_assert_uint_gt(worst, SER * 95 / 100);
    lab_down();
}
END_TEST

/* A limit of 2 * 4096 bytes is used up by 4 packets of 33 blocks. */
START_TEST(low_waits_for_the_limit_at_most)
{
    static const struct vlarb_entry high[] = {{2, 255}, {0}}, low[] = {{1, 255}, {0}};
    uint64_t worst;

    up();
    lab_arbitrate(lab_port("sw1", 5), high, low, 2);
    worst = worst_wait(94);
    ck_assert_uint_le(worst, 4 * SER);
    ck_assert_uint_gt(worst, 4 * SER * 95 / 100);
    lab_down();
}
END_TEST

START_TEST(a_lane_without_weight_is_off)
{
    static const struct vlarb_entry low[] = {{1, 10}, {0}};

    up();
    lab_arbitrate(lab_port("sw1", 5), NULL, low, 0);
    lab_send("h3", "d", 2, 94, 10);
    lab_send("h2", "d", 1, 94, 10);
    lab_run();
    ck_assert_uint_eq(lab_host("d")->vl[1].rcv_pkts, 10);
    ck_assert_uint_eq(lab_host("d")->vl[2].rcv_pkts, 0);
    /* until the tables say otherwise */
    lab_port("sw1", 5)->vlarb_low[1] = (struct vlarb_entry){2, 1};
    lab_port("sw1", 5)->changes++;
    link_port_changed(lab_port("sw1", 5));
    lab_run();
    ck_assert_uint_eq(lab_host("d")->vl[2].rcv_pkts, 10);
    lab_check_credits(true);
    lab_down();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("link_arb");

    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, saturated_lanes_share_by_weight, 0, sizeof cases / sizeof *cases);
    tcase_add_test(c, mixed_sizes_share_by_weight);
    tcase_add_test(c, without_a_limit_the_low_table_starves);
    tcase_add_test(c, limit_zero_lets_one_packet_pass);
    tcase_add_test(c, high_waits_for_one_packet_at_most);
    tcase_add_test(c, low_waits_for_the_limit_at_most);
    tcase_add_test(c, a_lane_without_weight_is_off);
    return check_run(c, NULL);
}
