/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links and switches without any process: packets put on an adapter's link, followed by the counters of the ports they
 * pass. The shipped topologies, configured as a subnet manager would.
 */
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "tests/check.h"
#include "tests/simfab/input.h"
#include "tests/simfab/sim_lab.h"

#define TWO_RAILS "etc/topologies/two-hosts-two-rails.net"
#define TWO_PATHS "etc/topologies/two-switches-two-paths.net"

static struct sim sim;

static void bring_up(const char *netlist, uint8_t lmc)
{
    struct parse_error err = {""};

    memset(&sim, 0, sizeof sim);
    sim.model = model_load("etc/models/sdr-pcix.yaml", &err);
    ck_assert_msg(sim.model != NULL, "%s", err.text);
    sim.fabric = fabric_load(netlist, sim.model, &err);
    ck_assert_msg(sim.fabric != NULL, "%s", err.text);
    sim_lab_up(&sim, lmc);
}

static struct port *port_of(const char *node, unsigned num)
{
    return sim_lab_port(&sim, node, num);
}

static void send_packet(struct port *from, uint16_t dlid, uint8_t sl, uint32_t payload)
{
    struct packet *p = packet_new();
    int vl = link_lane(from, 0, sl);

    ck_assert_int_ge(vl, 0);
    p->slid = from->lid;
    p->dlid = dlid;
    p->sl = sl;
    p->vl = (uint8_t)vl;
    p->payload = payload;
    p->wire_bytes = payload + sim.model->packet_overhead_bytes;
    link_enqueue(from->out, p);
}

static void run_all(void)
{
    while (evq_run_one(&sim.q))
        ;
}

START_TEST(a_packet_goes_where_the_table_says)
{
    bring_up(TWO_RAILS, 0);
    struct port *from = port_of("h1 mlx5_0", 1), *to = port_of("h2 mlx5_1", 1);

    send_packet(from, to->lid, 0, 1000);
    run_all();
    ck_assert_uint_eq(from->count.xmit_pkts, 1);
    ck_assert_uint_eq(to->count.rcv_pkts, 1);
    ck_assert_uint_eq(to->count.rcv_data, (1030 + 3) / 4);
    ck_assert_uint_eq(port_of("h2 mlx5_0", 1)->count.rcv_pkts, 0);
    ck_assert_uint_eq(port_of("h1 mlx5_1", 1)->count.rcv_pkts, 0);

    /* the manager writes another port: the next packet goes there, and is not the adapter's */
    from->peer->node->lft[to->lid] = port_of("h2 mlx5_0", 1)->peer->num;
    send_packet(from, to->lid, 0, 1000);
    run_all();
    ck_assert_uint_eq(to->count.rcv_pkts, 1);
    ck_assert_uint_eq(port_of("h2 mlx5_0", 1)->count.rcv_pkts, 1);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(an_unknown_lid_is_dropped_and_counted)
{
    bring_up(TWO_RAILS, 0);
    struct port *from = port_of("h1 mlx5_0", 1);

    send_packet(from, 999, 0, 100);
    run_all();
    ck_assert_uint_eq(from->peer->count.rcv_switch_relay, 1);
    ck_assert_uint_eq(sim.packets_dropped, 1);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_router_takes_packets_and_forwards_none)
{
    struct parse_error err = {""};

    memset(&sim, 0, sizeof sim);
    sim.model = model_load("etc/models/sdr-pcix.yaml", &err);
    ck_assert_msg(sim.model != NULL, "%s", err.text);
    sim.fabric = input_fabric("Switch 4 \"sw1\" # \"sw1\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n\n"
                              "Ca 1 \"a\" # \"h1 mlx5_0\"\n[1] \"sw1\"[1]\n\n"
                              "Rt 1 \"b\" # \"r1\"\n[1] \"sw1\"[2]\n",
                              sim.model, &err);
    ck_assert_msg(sim.fabric != NULL, "%s", err.text);
    sim_lab_up(&sim, 0);
    struct port *from = port_of("h1 mlx5_0", 1), *to = port_of("r1", 1);

    ck_assert_uint_ne(to->lid, 0);
    for (int i = 0; i < 1000; i++)
        send_packet(from, to->lid, 0, 2000);
    run_all();
    ck_assert_uint_eq(to->count.rcv_pkts, 1000); /* credits come back */
    ck_assert_uint_eq(sim.packets_dropped, 1000);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(the_lids_of_a_port_take_different_cables)
{
    bring_up(TWO_PATHS, 1);
    struct port *from = port_of("h1 mlx5_0", 1), *to = port_of("h2 mlx5_0", 1);
    struct port *one = port_of("leaf1", 3), *two = port_of("leaf1", 5);

    ck_assert_uint_eq(to->lmc, 1);
    for (int i = 0; i < 10; i++)
        send_packet(from, to->lid, 0, 64);
    run_all();
    ck_assert_uint_eq(one->count.xmit_pkts + two->count.xmit_pkts, 10);
    ck_assert(one->count.xmit_pkts == 0 || two->count.xmit_pkts == 0);
    for (int i = 0; i < 10; i++)
        send_packet(from, (uint16_t)(to->lid + 1), 0, 64);
    run_all();
    ck_assert_uint_eq(one->count.xmit_pkts, 10);
    ck_assert_uint_eq(two->count.xmit_pkts, 10);
    ck_assert_uint_eq(to->count.rcv_pkts, 20);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(only_active_ports_carry_data)
{
    bring_up(TWO_RAILS, 0);
    struct port *from = port_of("h1 mlx5_0", 1), *to = port_of("h2 mlx5_0", 1);

    port_cable(to, false);
    send_packet(from, to->lid, 0, 100);
    run_all();
    ck_assert_uint_eq(to->count.rcv_pkts, 0);
    ck_assert_uint_eq(to->peer->count.xmit_discards, 1);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(every_hop_maps_the_service_level_by_its_own_table)
{
    bring_up(TWO_RAILS, 0);
    struct port *from = port_of("h1 mlx5_0", 1), *to = port_of("h2 mlx5_0", 1), *out = to->peer;
    uint8_t in = from->peer->num;

    from->sl2vl[0][5] = 1;
    out->sl2vl[in][5] = 3;
    send_packet(from, to->lid, 5, 100);
    run_all();
    ck_assert_uint_eq(from->vl[1].xmit_pkts, 1);
    ck_assert_uint_eq(out->vl[3].xmit_pkts, 1);
    ck_assert_uint_eq(to->vl[3].rcv_pkts, 1);
    /* lane 15 in the table, or a lane beyond the operational lanes: discard */
    out->sl2vl[in][5] = 15;
    send_packet(from, to->lid, 5, 100);
    run_all();
    ck_assert_uint_eq(to->count.rcv_pkts, 1);
    ck_assert_uint_eq(out->count.xmit_discards, 1);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(packets_take_the_time_of_their_bytes)
{
    bring_up(TWO_RAILS, 0);
    struct port *from = port_of("h1 mlx5_0", 1), *to = port_of("h2 mlx5_0", 1);
    const struct model *m = sim.model;
    uint64_t one, two;

    send_packet(from, to->lid, 0, 2048);
    while (to->count.rcv_pkts < 1)
        ck_assert(evq_run_one(&sim.q));
    one = sim_now(&sim);
    /* 8 Gbit/s: a nanosecond a byte; a cut-through switch adds its delay and a cable, not the packet again */
    ck_assert_uint_eq(one, 2078 * 1000 + 2 * m->propagation_ps + m->switch_delay_ps);
    run_all();
    two = sim_now(&sim);
    for (int i = 0; i < 11; i++)
        send_packet(from, to->lid, 0, 2048);
    while (to->count.rcv_pkts < 12)
        ck_assert(evq_run_one(&sim.q));
    ck_assert_uint_eq(sim_now(&sim) - two, one + 10 * 2078 * 1000);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_congested_output_is_shared_by_weight)
{
    static const struct vlarb_entry low[] = {{0, 32}, {1, 96}};

    bring_up(TWO_RAILS, 0);
    struct port *a = port_of("h1 mlx5_0", 1), *b = port_of("h1 mlx5_1", 1), *to = port_of("h2 mlx5_0", 1);
    struct port *out = to->peer;

    memset(out->vlarb_high, 0, sizeof out->vlarb_high);
    memset(out->vlarb_low, 0, sizeof out->vlarb_low);
    memcpy(out->vlarb_low, low, sizeof low);
    to->node->hca->bus->bps = 0; /* the cable is to be the narrow place, not the receiver */
    for (int i = 0; i < 4000; i++) {
        send_packet(a, to->lid, 0, 2018);
        send_packet(b, to->lid, 1, 2018);
    }
    while (to->count.rcv_pkts < 4000)
        ck_assert(evq_run_one(&sim.q));
    ck_assert_double_eq_tol((double)to->vl[1].rcv_pkts / 4000, 0.75, 0.01);
    ck_assert_uint_gt(a->vl[0].xmit_wait_ps, 0); /* the slow lane's sender had no credits */
    run_all();
    ck_assert_uint_eq(to->vl[0].rcv_pkts, 4000); /* nothing was lost */
    ck_assert_uint_eq(to->vl[1].rcv_pkts, 4000);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_full_lane_does_not_stop_another)
{
    bring_up(TWO_RAILS, 0);
    struct port *a = port_of("h1 mlx5_0", 1), *b = port_of("h1 mlx5_1", 1), *to = port_of("h2 mlx5_0", 1);
    struct port *elsewhere = port_of("h2 mlx5_1", 1);

    /* a and b fill lane 0 to one port; a's lane 1 goes elsewhere and must get through at half of a's link at least */
    for (int i = 0; i < 2000; i++) {
        send_packet(a, to->lid, 0, 2018);
        send_packet(b, to->lid, 0, 2018);
        send_packet(a, elsewhere->lid, 1, 2018);
    }
    while (elsewhere->count.rcv_pkts < 1000)
        ck_assert(evq_run_one(&sim.q));
    ck_assert_uint_le(sim_now(&sim), 1000 * 2048000ull * 21 / 10);
    run_all();
    sim_lab_down(&sim);
}
END_TEST

START_TEST(cables_lose_as_many_as_they_are_told)
{
    bring_up(TWO_RAILS, 0);
    struct port *from = port_of("h1 mlx5_0", 1), *to = port_of("h2 mlx5_0", 1);

    from->out->loss = to->peer->out->loss = 0.1;
    for (int i = 0; i < 20000; i++)
        send_packet(from, to->lid, 0, 64);
    run_all();
    ck_assert_double_eq_tol((double)to->count.rcv_pkts / 20000, 0.81, 0.01); /* two cables */
    ck_assert_uint_eq(to->count.symbol_errors, to->peer->count.xmit_pkts - to->count.rcv_pkts);
    ck_assert_uint_eq(to->count.rcv_errors, 0); /* a lost packet was never seen */
    sim_lab_down(&sim);
}
END_TEST

START_TEST(wrong_checksums_are_counted_and_forgiven_up_to_the_threshold)
{
    bring_up(TWO_RAILS, 0);
    struct port *from = port_of("h1 mlx5_0", 1), *to = port_of("h2 mlx5_0", 1);

    from->peer->local_phys_errors = 8;
    from->out->corrupt = 0.001;
    for (int i = 0; i < 20000; i++)
        send_packet(from, to->lid, 0, 64);
    run_all();
    ck_assert_uint_gt(from->peer->count.rcv_errors, 5);
    ck_assert_uint_eq(from->peer->count.rcv_errors, from->peer->count.symbol_errors);
    ck_assert_uint_eq(from->peer->count.rcv_errors + to->count.rcv_pkts, 20000);
    ck_assert_uint_eq(from->peer->count.local_integrity, 0);
    ck_assert_uint_eq(from->count.link_recovers, 0);
    /* all packets: every ninth passes it */
    from->out->corrupt = 1;
    from->peer->physical_errors = 0;
    for (int i = 0; i < 90; i++)
        send_packet(from, to->lid, 0, 64);
    run_all();
    ck_assert_uint_eq(from->peer->count.local_integrity, 10);
    ck_assert_uint_eq(from->peer->count.link_recovers, 10);
    ck_assert_uint_eq(from->count.link_recovers, 10);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_link_trains_at_what_a_fault_leaves_of_it)
{
    bring_up(TWO_RAILS, 0);
    struct port *p = port_of("h1 mlx5_0", 1);

    ck_assert_uint_eq(port_rate_bps(p), 8000000000ull);
    p->width_denied = (uint8_t)~1;
    port_retrain(p);
    ck_assert_uint_eq(p->width_active, 1);
    ck_assert_uint_eq(p->peer->width_active, 1);
    ck_assert_uint_eq(p->state, PORT_INIT);
    ck_assert_uint_eq(p->count.link_downed, 1);
    ck_assert_uint_eq(port_rate_bps(p), 2000000000ull);
    p->width_denied = 0;
    port_retrain(p);
    ck_assert_uint_eq(p->width_active, 2);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_switch_without_power_forgets)
{
    bring_up(TWO_PATHS, 1);
    struct node *sw = fabric_node_by_name(sim.fabric, "leaf2");
    struct port *p = &sw->ports[3];

    ck_assert_uint_ne(sw->ports[0].lid, 0);
    sw->dead = true;
    for (uint32_t i = 1; i <= sw->num_ports; i++)
        port_cable_settle(&sw->ports[i]);
    ck_assert_uint_eq(p->peer->state, PORT_DOWN);
    ck_assert_uint_eq(p->peer->phys_state, PHYS_POLLING);
    ck_assert_uint_eq(p->peer->count.link_downed, 1);
    p->peer->unplugged = true; /* a second reason */
    node_power_on(sw);
    sw->dead = false;
    for (uint32_t i = 1; i <= sw->num_ports; i++)
        port_cable_settle(&sw->ports[i]);
    ck_assert_uint_eq(sw->ports[0].lid, 0);
    ck_assert_uint_eq(sw->lft[sw->ports[1].peer->lid], FABRIC_NO_PORT);
    ck_assert_uint_eq(sw->ports[1].state, PORT_INIT);
    ck_assert_uint_eq(p->state, PORT_DOWN);
    p->peer->unplugged = false;
    ck_assert(port_cable_settle(p));
    ck_assert_uint_eq(p->state, PORT_INIT);
    sim_lab_down(&sim);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("links and switches");

    tcase_add_test(c, a_packet_goes_where_the_table_says);
    tcase_add_test(c, an_unknown_lid_is_dropped_and_counted);
    tcase_add_test(c, a_router_takes_packets_and_forwards_none);
    tcase_add_test(c, the_lids_of_a_port_take_different_cables);
    tcase_add_test(c, only_active_ports_carry_data);
    tcase_add_test(c, every_hop_maps_the_service_level_by_its_own_table);
    tcase_add_test(c, packets_take_the_time_of_their_bytes);
    tcase_add_test(c, a_congested_output_is_shared_by_weight);
    tcase_add_test(c, a_full_lane_does_not_stop_another);
    tcase_add_test(c, cables_lose_as_many_as_they_are_told);
    tcase_add_test(c, wrong_checksums_are_counted_and_forgiven_up_to_the_threshold);
    tcase_add_test(c, a_link_trains_at_what_a_fault_leaves_of_it);
    tcase_add_test(c, a_switch_without_power_forgets);
    return check_run(c, NULL);
}
