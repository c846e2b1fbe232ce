/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: the words of a command (pure), and arrivals on a fabric without processes, against arithmetic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/clock/sched.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/fault/flow.h"
#include "tests/check.h"
#include "tests/simfab/sim_lab.h"

#define MS 1000000000ull

static struct text said;

/* ---- words ----------------------------------------------------------------------------------------------------- */

static bool parse(const char *line, struct flow_cmd *c)
{
    text_free(&said);
    return flow_parse(line, c, &said);
}

START_TEST(commands_say_what_they_mean)
{
    struct flow_cmd c;

    ck_assert(parse("add\nh1 mlx5_0\nh2 mlx5_0", &c));
    ck_assert_int_eq(c.verb, FLOW_ADD);
    ck_assert_uint_eq(c.size, 65536);
    ck_assert(c.rate_mbps == 0);
    ck_assert(
        parse("add\na\nb\nsl=15\nsize=1\nrate=0.5\nmtu=512\npath=3\nfrom_port=2\nto_port=254\nafter=1us\nfor=2s", &c));
    ck_assert(c.sl == 15 && c.size == 1 && c.rate_mbps == 0.5 && c.mtu == 512 && c.path == 3);
    ck_assert(c.from_port == 2 && c.to_port == 254 && c.relative);
    ck_assert_uint_eq(c.when_ps, 1000000);
    ck_assert_uint_eq(c.for_ps, 2000000000000ull);
    ck_assert(parse("add\na\nb\nrate=max\nat=5ms", &c) && !c.relative);
    ck_assert(parse("del\nall", &c) && c.id == 0);
    ck_assert(parse("del\n7", &c) && c.id == 7);
    ck_assert(parse("run\n10ms", &c) && c.time_ps == 10 * MS);
    ck_assert(parse("reached\n1000008485375000001", &c) && c.verb == FLOW_REACHED); /* 11 days */
    ck_assert_uint_eq(c.time_ps, 1000008485375000001ull);
    ck_assert(parse("list", &c) && c.verb == FLOW_LIST);
}
END_TEST

static const struct {
    const char *line, *says;
} wrong[] = {
    {"", "is not add, del, list or run"},
    {"add", "from where to where"},
    {"add\nh1", "from where to where"},
    {"add\na\nb\nfast", "nothing that can be said of a flow"},
    {"add\na\nb\nsl=16", "a service level"},
    {"add\na\nb\nsl=1\nsl=2", "given twice"},
    {"add\na\nb\nsize=0", "a number of bytes"},
    {"add\na\nb\nsize=4294967296", "a number of bytes"},
    {"add\na\nb\nmtu=1000", "256, 512"},
    {"add\na\nb\nrate=-1", "a rate"},
    {"add\na\nb\nrate=0", "a rate"},
    {"add\na\nb\nfrom_port=0", "a port"},
    {"add\na\nb\nat=1", "a time"},
    {"add\na\nb\nat=1s\nafter=1s", "not both"},
    {"del", "too many or too few"},
    {"del\nx", "not a flow's number"},
    {"del\n0", "not a flow's number"},
    {"run\nlong", "not a time"},
    {"run\n86401s", "not a time"},
    {"reached\n1ms", "picoseconds"},
    {"reached\n-1", "picoseconds"},
    {"reached\n18446744073709551616", "picoseconds"},
    {"list\nall", "too many or too few"},
};

START_TEST(what_is_wrong_is_named)
{
    struct flow_cmd c;

    ck_assert(!parse(wrong[_i].line, &c));
    ck_assert_msg(strstr(said.buf, wrong[_i].says) != NULL, "%s: %s", wrong[_i].line, said.buf);
}
END_TEST

START_TEST(messages_are_due_by_the_rate)
{
    ck_assert_uint_eq(flow_due_ps(0, 65536, 100), 0);
    ck_assert_uint_eq(flow_due_ps(1, 65536, 100), 655360000);
    ck_assert_uint_eq(flow_due_ps(3, 1, 3), 1000000);
    ck_assert_uint_eq(flow_due_ps(1000000, 65536, 0), 0);
    ck_assert_uint_ge(flow_due_ps(UINT64_MAX, 1ull << 31, 0.000001), 10000000000000000000ull);
}
END_TEST

/* ---- on a fabric ----------------------------------------------------------------------------------------------- */

static struct sim sim;

/* 8 Gbit/s of data: 2048 bytes and 30 of overhead are 2078 ns on the wire; nothing else limits. */
#define PACKET_PS 2078000ull
#define PLAIN_MODEL                                                                                                    \
    "link: {width: 4, speed: SDR, mtu: 2048, vls: 8, packet_overhead_bytes: 30, vl_buffer_bytes: 32768}\n"

static void start(const char *more)
{
    char model[1024];
    struct parse_error err;

    snprintf(model, sizeof model, "%s%s", PLAIN_MODEL, more);
    err = sim_lab_load(&sim, model, "etc/topologies/two-hosts-two-rails.net", 0);
    ck_assert_str_eq(err.text, "");
}

static struct port *port_of(const char *node, unsigned num)
{
    return sim_lab_port(&sim, node, num);
}

static bool flow(const char *line)
{
    text_free(&said);
    return flow_command(&sim, line, &said);
}

static bool fault(const char *line)
{
    text_free(&said);
    return fault_command(&sim, line, &said);
}

static void run_for(const char *line)
{
    uint64_t before = sim_now(&sim);

    ck_assert(flow(line));
    while (sched_run(&sim, false, true) == 0)
        ;
    ck_assert_uint_gt(sim_now(&sim), before);
}

struct result {
    char state[16];
    unsigned long long sent, got, lost;
    double mbps;
};

static struct result result_of(unsigned id)
{
    struct result r = {0};
    char start_of[32];
    const char *line;

    snprintf(start_of, sizeof start_of, "flow %u ", id);
    ck_assert(flow("list"));
    line = strstr(said.buf, start_of);
    ck_assert_ptr_nonnull(line);
    line = strstr(line, ": ");
    ck_assert_int_eq(sscanf(line,
                            ": %15[^,], sent %llu bytes, received %llu bytes, %lf MB/s (simulated), lost %llu packets",
                            r.state, &r.sent, &r.got, &r.mbps, &r.lost),
                     5);
    return r;
}

START_TEST(flows_alone_move_no_time)
{
    start("flows:\n- {from: h1 mlx5_0, to: h2 mlx5_0}\n");
    sched_run(&sim, false, true);
    ck_assert_uint_eq(sim_now(&sim), 0);
    run_for("run\n1ms");
    ck_assert_uint_eq(sim_now(&sim), 1 * MS);
    ck_assert_uint_gt(result_of(1).got, 900000);
    sched_run(&sim, false, true);
    ck_assert_uint_eq(sim_now(&sim), 1 * MS);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(one_flow_gets_the_link)
{
    struct result r;

    start("");
    ck_assert(flow("add\nh1 mlx5_0\nh2 mlx5_0"));
    ck_assert_str_eq(said.buf, "flow 1\n");
    run_for("run\n10ms");
    r = result_of(1);
    ck_assert_str_eq(r.state, "sending");
    ck_assert_double_eq_tol(r.mbps, 2048e6 / (double)PACKET_PS, 0.0005); /* as many digits as are printed */
    ck_assert_uint_eq(r.lost, 0);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(two_flows_of_a_lane_share_it_evenly)
{
    struct result a, b;

    start("flows:\n- {from: h1 mlx5_0, to: h2 mlx5_0}\n- {from: h1 mlx5_0, to: h2 mlx5_0, size_bytes: 1000000}\n");
    run_for("run\n20ms");
    a = result_of(1);
    b = result_of(2);
    ck_assert_double_eq_tol((double)a.got / (double)b.got, 1, 0.01);
    ck_assert_double_eq_tol(a.mbps + b.mbps, 2048e6 / (double)PACKET_PS, 1);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(lanes_share_by_their_weights)
{
    struct result a, b;
    struct port *p;

    start("flows:\n- {from: h1 mlx5_0, to: h2 mlx5_0, sl: 0}\n- {from: h1 mlx5_0, to: h2 mlx5_0, sl: 1}\n");
    p = port_of("h1 mlx5_0", 1);
    memset(p->vlarb_low, 0, sizeof p->vlarb_low);
    p->vlarb_low[0] = (struct vlarb_entry){.vl = 0, .weight = 192};
    p->vlarb_low[1] = (struct vlarb_entry){.vl = 1, .weight = 64};
    p->changes++;
    run_for("run\n20ms");
    a = result_of(1);
    b = result_of(2);
    ck_assert_double_eq_tol((double)a.got / (double)b.got, 3, 0.03);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_rate_is_kept)
{
    struct result r;

    start("");
    ck_assert(flow("add\nh1 mlx5_0\nh2 mlx5_0\nrate=100\nsize=10000\nfor=10ms"));
    run_for("run\n20ms");
    r = result_of(1);
    ck_assert_str_eq(r.state, "ended");
    ck_assert_uint_eq(r.sent, 1000000); /* a message every 100 us, the first at once */
    ck_assert_uint_eq(r.got, 1000000);
    ck_assert_double_eq_tol(r.mbps, 100, 0.0005);
    ck_assert_uint_eq(sim.background, 0);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(what_is_lost_is_counted)
{
    struct result r;

    start("faults:\n- {link: h1 mlx5_0, set: loss=0.1}\nflows:\n- {from: h1 mlx5_0, to: h2 mlx5_0, rate_mbytes_per_s: "
          "500, "
          "for_ms: 10}\n");
    run_for("run\n20ms");
    r = result_of(1);
    ck_assert_uint_eq((r.sent - r.got) / 2048, r.lost);
    ck_assert_uint_eq(r.lost, port_of("h1 mlx5_0", 1)->peer->count.symbol_errors);
    ck_assert_double_eq_tol((double)r.lost * 2048 / (double)r.sent, 0.1, 0.015);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_slow_receiver_pushes_back)
{
    struct result r;

    start("faults:\n- {host: h2, set: slow=4}\nflows:\n- {from: h1 mlx5_0, to: h2 mlx5_0}\n");
    run_for("run\n10ms");
    r = result_of(1);
    ck_assert_double_eq_tol(r.mbps, 250, 0.0005); /* its bus counts as one of the link's rate: 1000 MB/s, by 4 */
    ck_assert_uint_eq(r.lost, 0);
    ck_assert_uint_gt(port_of("h2 mlx5_0", 1)->peer->count.xmit_wait, 0);
    ck_assert(fault("host\nh2\nslow=1"));
    ck_assert(flow("del\nall"));
    ck_assert(flow("add\nh1 mlx5_0\nh2 mlx5_0"));
    run_for("run\n10ms");
    ck_assert_double_eq_tol(result_of(2).mbps, 2048e6 / (double)PACKET_PS, 1);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(a_flow_waits_while_it_has_no_path)
{
    struct result r;
    unsigned long long before;

    start("flows:\n- {from: h1 mlx5_0, to: h2 mlx5_0}\n");
    run_for("run\n1ms");
    ck_assert(fault("link\nh1 mlx5_0\n1\ndown"));
    run_for("run\n1ms");
    r = result_of(1);
    before = r.sent;
    ck_assert_str_eq(r.state, "no path");
    ck_assert_uint_le(r.lost, 16); /* packets that were under way */
    run_for("run\n1ms");
    ck_assert_uint_eq(result_of(1).sent, before);
    ck_assert(fault("link\nh1 mlx5_0\n1\nup"));
    run_for("run\n1ms");
    ck_assert_str_eq(result_of(1).state, "sending");
    ck_assert_uint_gt(result_of(1).sent, before + 900000);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(path_bits_choose_the_cable)
{
    struct parse_error err =
        sim_lab_load(&sim, PLAIN_MODEL "flows:\n- {from: h1 mlx5_0, to: h2 mlx5_0, path: 0, for_ms: 1}\n",
                     "etc/topologies/two-switches-two-paths.net", 1);
    struct port *one, *two;
    uint64_t first;

    ck_assert_str_eq(err.text, "");
    one = port_of("leaf1", 3);
    two = port_of("leaf1", 5);
    run_for("run\n2ms");
    first = one->count.xmit_pkts + two->count.xmit_pkts;
    ck_assert(one->count.xmit_pkts == 0 || two->count.xmit_pkts == 0);
    ck_assert(flow("add\nh1 mlx5_0\nh2 mlx5_0\npath=1\nfor=1ms"));
    run_for("run\n2ms");
    ck_assert_uint_gt(one->count.xmit_pkts, 0);
    ck_assert_uint_gt(two->count.xmit_pkts, 0);
    ck_assert_uint_gt(one->count.xmit_pkts + two->count.xmit_pkts, first);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(flows_come_and_go)
{
    start("");
    for (int i = 0; i < 20; i++) {
        ck_assert(flow("add\nh1 mlx5_0\nh2 mlx5_0\nsl=1"));
        ck_assert(flow("add\nh2 mlx5_0\nh1 mlx5_0\nrate=10"));
        run_for("run\n20us");
        ck_assert(flow("del\nall"));
        ck_assert_uint_eq(sim.background, 0);
    }
    ck_assert(!flow("del\n1"));
    ck_assert_str_eq(said.buf, "there is no flow 1");
    ck_assert(flow("list"));
    ck_assert_str_eq(said.buf, "no flows\n");
    run_for("run\n1ms");
    ck_assert_uint_eq(sim.packets_dropped, 0);
    sim_lab_down(&sim);
}
END_TEST

START_TEST(there_is_an_end_to_how_many)
{
    start("");
    for (int i = 0; i < 10000; i++)
        ck_assert(flow("add\nh1 mlx5_0\nh2 mlx5_0\nafter=1s"));
    ck_assert(!flow("add\nh1 mlx5_0\nh2 mlx5_0\nafter=1s"));
    ck_assert_str_eq(said.buf, "there are 10000 flows already: simfab flow del ends some");
    ck_assert(flow("del\nall"));
    ck_assert(flow("add\nh1 mlx5_0\nh2 mlx5_0\nafter=1s"));
    sim_lab_down(&sim);
}
END_TEST

static const struct {
    const char *item, *says;
} bad_items[] = {
    {"{from: h1 mlx5_0}", "wants a to"},
    {"{from: h9, to: h1 mlx5_0}", "no adapter \"h9\""},
    {"{from: leaf1, to: h1 mlx5_0}", "is no adapter"},
    {"{from: h1 mlx5_0, to: h1 mlx5_0}", "from one port to another"},
    {"{from: h1 mlx5_0, to: h2 mlx5_0, to_port: 7}", "no cable at that port"},
    {"{from: h1 mlx5_0, to: h2 mlx5_0, sl: 16}", "out of range"},
    {"{from: h1 mlx5_0, to: h2 mlx5_0, speed: 7}", "unknown key"},
};

START_TEST(wrong_items_are_named_with_their_place)
{
    char model[512];
    struct parse_error err;

    snprintf(model, sizeof model, "name: x\nflows:\n- %s\n", bad_items[_i].item);
    err = sim_lab_load(&sim, model, "etc/topologies/two-hosts-two-rails.net", 0);
    ck_assert_msg(strstr(err.text, bad_items[_i].says) != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, ":3:") != NULL, "%s", err.text);
    sim_lab_down(&sim);
}
END_TEST

int main(void)
{
    TCase *words = tcase_create("words"), *fabric = tcase_create("fabric");

    tcase_add_test(words, commands_say_what_they_mean);
    tcase_add_loop_test(words, what_is_wrong_is_named, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(words, messages_are_due_by_the_rate);
    tcase_add_test(fabric, flows_alone_move_no_time);
    tcase_add_test(fabric, one_flow_gets_the_link);
    tcase_add_test(fabric, two_flows_of_a_lane_share_it_evenly);
    tcase_add_test(fabric, lanes_share_by_their_weights);
    tcase_add_test(fabric, a_rate_is_kept);
    tcase_add_test(fabric, what_is_lost_is_counted);
    tcase_add_test(fabric, a_slow_receiver_pushes_back);
    tcase_add_test(fabric, a_flow_waits_while_it_has_no_path);
    tcase_add_test(fabric, path_bits_choose_the_cable);
    tcase_add_test(fabric, flows_come_and_go);
    tcase_add_test(fabric, there_is_an_end_to_how_many);
    tcase_add_loop_test(fabric, wrong_items_are_named_with_their_place, 0, sizeof bad_items / sizeof *bad_items);
    return check_run(words, fabric, NULL);
}
