/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver that cannot keep up, without any process: packets without destination cross the bus and are dropped there.
 * The bus of the receiving host is the bottleneck; the credits of each lane hold the senders back.
 */
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "tests/check.h"
#include "tests/simfab/sim_lab.h"

#define PAYLOAD  2018u /* 2048 bytes on the wire */
#define BUS_MB   100u
#define PER_LANE (16384u / 2048u) /* packets in the receive buffer of a lane */

static struct sim sim;
static struct port *a, *b, *to;

static void bring_up(void)
{
    struct parse_error err = {""};

    memset(&sim, 0, sizeof sim);
    sim.model = model_load("etc/models/sdr-pcix.yaml", &err);
    ck_assert_msg(sim.model != NULL, "%s", err.text);
    sim.model->bus_overhead_bytes = 0;
    sim.fabric = fabric_load("etc/topologies/two-hosts-two-rails.net", sim.model, &err);
    ck_assert_msg(sim.fabric != NULL, "%s", err.text);
    sim_lab_up(&sim, 0);
    a = sim_lab_port(&sim, "h1 mlx5_0", 1);
    b = sim_lab_port(&sim, "h1 mlx5_1", 1);
    to = sim_lab_port(&sim, "h2 mlx5_0", 1);
    to->node->hca->bus->bps = BUS_MB * 8000000ull;
}

/* Time of one packet on the receiver's bus. */
static uint64_t bus_ps(void)
{
    return transfer_ps(PAYLOAD, BUS_MB * 8000000ull);
}

/* A packet that carries a reference to mark, if any, until dropped. */
static void send_packet(struct port *from, uint8_t sl, struct chunk *mark)
{
    struct packet *p = packet_new();

    p->slid = from->lid;
    p->dlid = to->lid;
    p->sl = sl;
    p->vl = (uint8_t)link_lane(from, 0, sl);
    p->payload = PAYLOAD;
    p->wire_bytes = PAYLOAD + sim.model->packet_overhead_bytes;
    p->chunk = chunk_get(mark);
    link_enqueue(from->out, p);
}

static void run_until(uint64_t t)
{
    uint64_t next;

    while (evq_next(&sim.q, &next) && next <= t)
        evq_run_one(&sim.q);
}

/* How many packets with the mark have not landed. */
static uint32_t left(const struct chunk *mark)
{
    return mark->refs - 1;
}

static void run_until_landed(struct chunk *mark)
{
    while (left(mark))
        ck_assert(evq_run_one(&sim.q));
    chunk_put(mark);
}

START_TEST(credits_hold_the_sender_back_and_nothing_is_lost)
{
    struct chunk *mark = chunk_new(PAYLOAD);

    bring_up();
    for (int i = 0; i < 200; i++)
        send_packet(a, 0, mark);
    ck_assert_uint_eq(left(mark), 200);
    run_until(100 * bus_ps());
    /* packets neither in memory nor in the two buffers on the way have not left */
    ck_assert_uint_ge(left(mark), 99);
    ck_assert_uint_le(a->count.xmit_pkts, 101 + 2 * PER_LANE);
    ck_assert_uint_gt(a->count.xmit_wait, 0);
    run_until_landed(mark);
    ck_assert_uint_eq(to->count.rcv_pkts, 200);
    ck_assert_uint_eq(a->count.xmit_discards + to->peer->count.xmit_discards, 0);
    /* the bus was never idle: 200 packets, after the first has come and before the last is written */
    ck_assert_uint_eq(sim_now(&sim), 200 * bus_ps() + 2048 * 1000 + 2 * sim.model->propagation_ps +
                                         sim.model->switch_delay_ps + sim.model->dma_write_ps);
    sim_lab_down(&sim);
}
END_TEST

/* A lane that comes late waits for the packets in the buffers, in the order of arrival, and no longer. */
static void wait_behind(unsigned lanes)
{
    uint64_t asked, waited, ahead = (uint64_t)lanes * PER_LANE * bus_ps();
    struct chunk *late = chunk_new(PAYLOAD);

    bring_up();
    memset(to->peer->vlarb_high, 0, sizeof to->peer->vlarb_high);
    to->peer->vlarb_high[0] = (struct vlarb_entry){.vl = 7, .weight = 255};
    for (int i = 0; i < 100; i++)
        for (unsigned sl = 0; sl < lanes; sl++)
            send_packet(a, (uint8_t)sl, NULL);
    run_until(40 * bus_ps());
    asked = sim_now(&sim);
    send_packet(b, 7, late);
    run_until_landed(late);
    waited = sim_now(&sim) - asked;
    ck_assert_uint_le(waited,
                      ahead + bus_ps() + 3 * 2048 * 1000 + sim.model->switch_delay_ps + sim.model->dma_write_ps);
    ck_assert_uint_ge(waited, ahead - 2 * bus_ps());
    sim_lab_down(&sim);
}

START_TEST(a_late_lane_waits_for_the_buffers_only)
{
    wait_behind(1);
    wait_behind(3);
}
END_TEST

START_TEST(backlogged_lanes_share_by_their_buffers)
{
    static const struct vlarb_entry low[] = {{0, 32}, {1, 96}};
    struct chunk *mark[2] = {chunk_new(PAYLOAD), chunk_new(PAYLOAD)};
    uint32_t lane[2];

    bring_up();
    memset(to->peer->vlarb_high, 0, sizeof to->peer->vlarb_high);
    memset(to->peer->vlarb_low, 0, sizeof to->peer->vlarb_low);
    memcpy(to->peer->vlarb_low, low, sizeof low);
    for (int i = 0; i < 400; i++) {
        send_packet(a, 0, mark[0]);
        send_packet(b, 1, mark[1]);
    }
    run_until(400 * bus_ps());
    /* 3 : 1 on the cable, but a credit comes back for each packet that the bus took: 1 : 1 */
    lane[0] = left(mark[0]);
    lane[1] = left(mark[1]);
    ck_assert_uint_le(lane[0] > lane[1] ? lane[0] - lane[1] : lane[1] - lane[0], PER_LANE);
    run_until_landed(mark[0]);
    run_until_landed(mark[1]);
    ck_assert_uint_eq(to->count.rcv_pkts, 800);
    sim_lab_down(&sim);
}
END_TEST

/* The host's other adapter has a bus of its own, and is not delayed by a slow bus beside. */
START_TEST(a_slow_bus_is_its_own_trouble)
{
    struct chunk *slow = chunk_new(PAYLOAD), *fast = chunk_new(PAYLOAD);
    struct port *slow_port;

    bring_up();
    slow_port = to;
    for (int i = 0; i < 50; i++)
        send_packet(a, 0, slow);
    to = sim_lab_port(&sim, "h2 mlx5_1", 1);
    for (int i = 0; i < 50; i++)
        send_packet(b, 0, fast);
    run_until_landed(fast);
    ck_assert_uint_lt(sim_now(&sim), 60 * transfer_ps(PAYLOAD, sim.model->bus_bps));
    ck_assert_uint_gt(left(slow), 40);
    to = slow_port;
    run_until_landed(slow);
    sim_lab_down(&sim);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("a receiver that cannot keep up");

    tcase_add_test(c, credits_hold_the_sender_back_and_nothing_is_lost);
    tcase_add_test(c, a_late_lane_waits_for_the_buffers_only);
    tcase_add_test(c, backlogged_lanes_share_by_their_buffers);
    tcase_add_test(c, a_slow_bus_is_its_own_trouble);
    return check_run(c, NULL);
}
