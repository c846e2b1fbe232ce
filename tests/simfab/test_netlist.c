/* SPDX-License-Identifier: BSD-3-Clause */
/* Netlists: both dialects give the same fabric, and every mistake is named with its line. */
#include "tests/check.h"
#include "tests/simfab/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct parse_error err;

/* Load text as a netlist, with the default model. */
static struct fabric *load(const char *text)
{
    struct model *model = model_load(NULL, &err);
    struct fabric *f = input_fabric(text, model, &err);

    if (!f)
        model_free(model);
    return f;
}

static void unload(struct fabric *f)
{
    struct model *m = f->model;

    fabric_free(f);
    model_free(m);
}

START_TEST(simple_form)
{
    struct fabric *f = load("Switch 8 \"Switch1\"\n[1] \"Hca1\"[2]\n[2] \"Hca2\"[1] w=12\n\n"
                            "Hca 2 \"Hca1\"\n\nHca 2 \"Hca2\"\n");
    struct node *sw, *a, *b;

    ck_assert_msg(f != NULL, "%s", err.text);
    ck_assert_uint_eq(f->num_nodes, 3);
    ck_assert_uint_eq(f->num_hosts, 2);
    sw = fabric_node_by_name(f, "Switch1");
    a = fabric_node_by_name(f, "Hca1");
    b = fabric_node_by_name(f, "Hca2");
    ck_assert_ptr_eq(sw->ports[1].peer, &a->ports[2]);
    ck_assert_ptr_eq(a->ports[2].peer, &sw->ports[1]);
    ck_assert_ptr_eq(b->ports[1].peer, &sw->ports[2]);
    ck_assert_int_eq(b->ports[1].width_active, 8);
    ck_assert_int_eq(a->ports[1].state, PORT_DOWN);
    ck_assert_int_eq(a->ports[2].state, PORT_INIT);
    ck_assert_str_eq(a->host->name, "Hca1");
    ck_assert_str_eq(a->dev_name, "mlx5_0");
    ck_assert(a->node_guid && b->node_guid && a->node_guid != b->node_guid);
    ck_assert(a->ports[1].guid != a->ports[2].guid);
    ck_assert_int_eq(sw->lft[5], FABRIC_NO_PORT);
    unload(f);
}
END_TEST

START_TEST(discover_form)
{
    struct fabric *f =
        load("# Topology file: generated on Tue Jun  5 14:15:10 2007\n#\n\nNon-Chassis Nodes\n\n"
             "vendid=0x8f1\ndevid=0x5a06\nsysimgguid=0x5442ba00003000\n"
             "switchguid=0x5442ba00003080(5442ba00003081)\n"
             "Switch  24 \"S-005442ba00003080\"         # \"ISR9024 Voltaire\" enhanced port 0 lid 6 lmc 0\n"
             "[22]    \"H-0008f10403961354\"[1](8f10403961355)         # \"h1 mlx5_3\" lid 4 1xDDR\n"
             "[3][ext 7]    \"H-0008f10403961358\"[1](8f10403961359)         # \"h1 HCA-2\" lid 5 4xEDR\n\n"
             "vendid=0x2c9\ndevid=0x5a44\ncaguid=0x8f10403961354\n"
             "Ca      2 \"H-0008f10403961354\"          # \"h1 mlx5_3\"\n"
             "[1](8f10403961355)     \"S-005442ba00003080\"[22]                # lid 4 lmc 1 \"ISR9024 "
             "Voltaire\" lid 6 1xDDR\n\n"
             "Ca      1 \"H-0008f10403961358\"          # \"h1 HCA-2\"\n"
             "[1](8f10403961359)     \"S-005442ba00003080\"[3]                # lid 5 lmc 0 \"ISR9024 "
             "Voltaire\" lid 6 4xEDR\n");
    struct node *sw, *a, *b;

    ck_assert_msg(f != NULL, "%s", err.text);
    sw = fabric_node_by_name(f, "ISR9024 Voltaire");
    a = fabric_node_by_name(f, "h1 mlx5_3");
    b = fabric_node_by_name(f, "h1 HCA-2");
    ck_assert_uint_eq(f->num_hosts, 1);
    ck_assert_str_eq(a->dev_name, "mlx5_3");
    ck_assert_str_eq(b->dev_name, "mlx5_0");
    ck_assert_ptr_eq(fabric_host_by_name(f, "h1")->cas[1], b);
    ck_assert_uint_eq(sw->vendor, 0x8f1);
    ck_assert_uint_eq(sw->device, 0x5a06);
    ck_assert_uint_eq(sw->sys_guid, 0x5442ba00003000);
    ck_assert_uint_eq(sw->ports[0].guid, 0x5442ba00003081);
    ck_assert(sw->enhanced_port0);
    ck_assert_uint_eq(a->ports[1].guid, 0x8f10403961355);
    ck_assert_uint_eq(b->node_guid, 0x8f10403961358);
    ck_assert_int_eq(a->ports[1].width_active, 1);
    ck_assert_int_eq(a->ports[1].speed_active, 2);
    ck_assert_uint_eq(port_rate_bps(&a->ports[1]), 4000000000ull);
    ck_assert_uint_eq(port_rate_bps(&sw->ports[3]), 100000000000ull);
    unload(f);
}
END_TEST

/* The contents of a grown cluster's file: chassis, a router, adapters with empty or equal descriptions, every rate. */
START_TEST(grown_cluster)
{
    static const struct {
        unsigned port;
        uint64_t rate;
        const char *host, *device;
    } wanted[] = {
        {1, 200000000000ull, "node01", "mlx5_0"},
        {2, 100000000000ull, "localhost", "mlx5_0"},
        {3, 40000000000ull, "H-0000000000000030", "mlx5_0"},
        {4, 100000000000ull, "H-0000000000000040", "mlx5_0"},
        {5, 54545454544ull, "H-0000000000000050", "mlx5_0"},
        {7, 400000000000ull, "H-0000000000000070", "mlx5_0"},
        {41, 200000000000ull, "H-0000000000000080", "mlx5_0"},
    };
    struct model *m = model_load(NULL, &err);
    struct fabric *f = fabric_load("tests/simfab/grown.net", m, &err);
    struct node *sw;

    ck_assert_msg(f != NULL, "%s", err.text);
    ck_assert_uint_eq(f->num_nodes, 10);
    ck_assert_uint_eq(f->num_hosts, 7);
    sw = f->nodes[0];
    ck_assert_uint_eq(strlen(sw->desc), 64);
    ck_assert(sw->enhanced_port0);
    ck_assert_uint_eq(sw->sys_guid, 0x5442ba00003000);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct port *p = &sw->ports[wanted[i].port];

        ck_assert_uint_eq(port_rate_bps(p), wanted[i].rate);
        ck_assert_uint_eq(port_rate_bps(p->peer), wanted[i].rate);
        ck_assert_str_eq(p->peer->node->host->name, wanted[i].host);
        ck_assert_str_eq(p->peer->node->dev_name, wanted[i].device);
    }
    ck_assert_int_eq(sw->ports[6].peer->node->kind, NODE_ROUTER);
    ck_assert_uint_eq(port_rate_bps(&sw->ports[6]), 32000000000ull);
    ck_assert_uint_eq(port_rate_bps(&sw->ports[8]), 48000000000ull);
    ck_assert_int_eq(sw->ports[5].peer->num, 2);
    ck_assert_int_eq(sw->ports[5].peer->node->ports[1].state, PORT_DOWN);
    unload(f);
}
END_TEST

/* ibnetdiscover -p */
START_TEST(port_lines)
{
    struct fabric *f =
        load("CA     5  2 0x0000000000000012 4x HDR - SW     2  4 0x0000000000000100 ( 'h2 mlx4_0' - 'leaf1' )\n"
             "CA     3  1 0x0000000000000011 2x HDR - SW     2  3 0x0000000000000100 ( 'h2 mlx4_0' - 'leaf1' )\n"
             "CA     4  1 0x0000000000000021 4x EDR - SW     2  2 0x0000000000000100 ( 'h1 mlx5_1' - 'leaf1' )\n"
             "SW     2  8 0x0000000000000100 4x SDR                                    'leaf1'\n"
             "SW     2  4 0x0000000000000100 4x HDR - CA     5  2 0x0000000000000012 ( 'leaf1' - 'h2 mlx4_0' )\n"
             "SW     2  3 0x0000000000000100 2x HDR - CA     3  1 0x0000000000000011 ( 'leaf1' - 'h2 mlx4_0' )\n"
             "SW     2  2 0x0000000000000100 4x EDR - CA     4  1 0x0000000000000021 ( 'leaf1' - 'h1 mlx5_1' )\n"
             "SW     2  1 0x0000000000000100 4x QDR - RT     1  1 0x0000000000000031 ( 'leaf1' - 'r' )\n"
             "RT     1  1 0x0000000000000031 4x QDR - SW     2  1 0x0000000000000100 ( 'r' - 'leaf1' )\n");
    struct node *sw;

    ck_assert_msg(f != NULL, "%s", err.text);
    ck_assert_uint_eq(f->num_nodes, 4);
    ck_assert_uint_eq(f->num_hosts, 2);
    sw = fabric_node_by_name(f, "leaf1");
    ck_assert_uint_eq(sw->num_ports, 8);
    ck_assert_uint_eq(sw->node_guid, 0x100);
    ck_assert_str_eq(sw->ports[4].peer->node->host->name, "h2");
    ck_assert_uint_eq(sw->ports[4].peer->node->num_ports, 2);
    ck_assert_ptr_eq(sw->ports[3].peer->node, sw->ports[4].peer->node);
    ck_assert_uint_eq(sw->ports[4].peer->guid, 0x12);
    ck_assert_uint_eq(port_rate_bps(&sw->ports[3]), 100000000000ull);
    ck_assert_uint_eq(port_rate_bps(&sw->ports[1]), 32000000000ull);
    ck_assert_int_eq(sw->ports[8].state, PORT_DOWN);
    unload(f);
}
END_TEST

START_TEST(link_state_machine)
{
    struct fabric *f = load("Switch 4 \"S\"\n[1] \"A\"[1]\n\nHca 1 \"A\"\n");
    struct port *p, *q;

    ck_assert_msg(f != NULL, "%s", err.text);
    p = &f->nodes[0]->ports[1];
    q = p->peer;
    port_set_state(p, PORT_ARMED);
    port_set_state(p, PORT_ACTIVE);
    port_set_phys(p, PHYS_DISABLED);
    ck_assert_int_eq(p->state, PORT_DOWN);
    ck_assert_int_eq(p->phys_state, PHYS_DISABLED);
    ck_assert_int_eq(q->state, PORT_DOWN);
    ck_assert_int_eq(q->phys_state, PHYS_POLLING);
    ck_assert_uint_eq(q->count.link_downed, 1);
    port_set_state(q, PORT_DOWN); /* nothing happens while the peer is disabled */
    ck_assert_int_eq(q->state, PORT_DOWN);
    port_set_phys(p, PHYS_POLLING);
    ck_assert_int_eq(p->state, PORT_INIT);
    ck_assert_int_eq(q->state, PORT_INIT);
    port_cable(q, false);
    ck_assert_int_eq(p->state, PORT_DOWN);
    ck_assert_int_eq(p->phys_state, PHYS_POLLING);
    port_set_phys(p, PHYS_LINKUP);
    ck_assert_int_eq(p->state, PORT_DOWN);
    port_cable(p, true);
    ck_assert_int_eq(q->state, PORT_INIT);
    ck_assert_int_eq(q->phys_state, PHYS_LINKUP);
    /* set Down: the link trains again at once */
    port_set_state(p, PORT_ARMED);
    p->width_enabled = 1;
    port_set_state(p, PORT_DOWN);
    ck_assert_int_eq(p->state, PORT_INIT);
    ck_assert_int_eq(q->width_active, 1);
    unload(f);
}
END_TEST

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "F:1: no nodes"},
    {"Switch 8 \"S\"\n", "F:1: no hosts"},
    {"Switch 300 \"S\"\n", "F:1: port count 300 is out of range"},
    {"Switch \"S\"\n", "F:1: port count is missing"},
    {"Switch 0 \"S\"\n", "F:1: a node without ports"},
    {"Switch 8 \"\"\n", "F:1: node name is empty"},
    {"Switch 8 \"S\n", "F:1: node name: the closing quote"},
    {"Switch 8 \"S\" x\n", "F:1: unexpected \"x\""},
    {"[1] \"S\"[1]\n", "F:1: a cable outside"},
    {"Hca 1 \"A\"\n\n[1] \"S\"[1]\n", "F:3: a cable outside"},
    {"Hca 1 \"A\"\n[1] \"S\"[1]\n", "F:2: there is no node \"S\""},
    {"Hca 1 \"A\"\n[2] \"B\"[1]\n\nHca 1 \"B\"\n", "F:2: port 2 of \"A\": it has 1"},
    {"Hca 1 \"A\"\n[1] \"B\"[2]\n\nHca 1 \"B\"\n", "F:2: port 2 of \"B\": it has 1"},
    {"Hca 1 \"A\"\n[0] \"B\"[1]\n\nHca 1 \"B\"\n", "F:2: port number 0"},
    {"Hca 1 \"A\"\n[x] \"B\"[1]\n\nHca 1 \"B\"\n", "F:2: port number is missing"},
    {"Hca 1 \"A\"\n[1] \"B\"\n\nHca 1 \"B\"\n", "F:2: '[' is missing"},
    {"Hca 1 \"A\"\n[1] \"A\"[1]\n", "F:2: \"A\"[1] is joined to itself"},
    {"Switch 4 \"S\"\n[1] \"A\"[1]\n[1] \"A\"[2]\n\nHca 2 \"A\"\n", "F:3: \"S\"[1] is used twice: see line 2"},
    {"Switch 4 \"S\"\n[1] \"A\"[1]\n\nHca 2 \"A\"\n[1] \"S\"[2]\n", "F:5: \"A\"[1] is used twice: line 2 joins it"},
    {"Switch 4 \"S\"\n[1] \"A\"[1]\n[2] \"A\"[1]\n\nHca 2 \"A\"\n", "F:3: \"A\"[1] is used twice: line 2"},
    {"Switch 4 \"S\"\n[1] \"A\"[1]\n[2] \"A\"[2]\n\nHca 2 \"A\"\n[1] \"S\"[1]\n", "F:3: dangling: the record of \"A\""},
    {"Switch 4 \"S\"\n[1] \"A\"[1] w=3\n\nHca 2 \"A\"\n", "F:2: width 3"},
    {"Switch 4 \"S\"\n[1] \"A\"[1] s=XDR\n\nHca 2 \"A\"\n", "F:2: unknown speed \"XDR\""},
    {"Switch 4 \"S\"\n[1] \"A\"[1] w=4\n\nHca 2 \"A\"\n[1] \"S\"[1] w=1\n", "F:5: the cable at"},
    {"Hca 2 \"A\"\n\nHca 2 \"A\"\n", "F:3: node \"A\" is there already (line 1)"},
    {"Hca 1 \"A\" # \"h1 mlx5_0\"\n\nHca 1 \"B\" # \"h1 mlx5_0\"\n",
     "F:3: host h1 has a device mlx5_0 already (line 1)"},
    {"Hca 1 \"A\" # \"h/1 mlx5_0\"\n", "F:1: \"h/1\" is not a host's name"},
    {"Hca 1 \"A\" # \"h1 a-very-long-device-name\"\n", "F:1: \"a-very-long-device-name\" is not a device's name"},
    {"caguid=0x12\nHca 1 \"A\"\n\ncaguid=0x12\nHca 1 \"B\"\n", "F:5: node \"B\" has the GUID 0x12 of \"A\""},
    {"caguid=xyz\nHca 1 \"A\"\n", "F:1: value: a hexadecimal number"},
    {"caguid=0x11112222333344445\nHca 1 \"A\"\n", "F:1: value: 0x11112222333344445 does not fit"},
    {"color=1\nHca 1 \"A\"\n", "F:1: unknown attribute \"color\""},
    {"Hub 1 \"A\"\n", "F:1: \"Hub\": a node"},
    {"Hca 1 \"A\"\n[1](5) \"S\"[1]\n\nSwitch 2 \"S\"\n[1] \"A\"[1](6)\n", "F:5: \"A\"[1] has GUID 0x6 here and 0x5"},
    {"Hca 1 \"A\"\n[1](5) \"S\"[1]\n\nSwitch 2 \"S\"\n[2] \"B\"[1](5)\n\nHca 1 \"B\"\n", "both have port GUID 0x5"},
    {"Hca 1 \"A\" # \"h1 mlx5_0\n", "F:1: description: the closing quote"},
    {"Switch 4 \"S\"\n[1] \"A\"[1] # \"h1\" lid 4 4xWDR\n\nHca 1 \"A\"\n", "F:2: unknown rate \"4xWDR\""},
    {"Switch 4 \"S\"\n[1] \"A\"[1] # 3xSDR\n\nHca 1 \"A\"\n", "F:2: unknown rate \"3xSDR\""},
    {"CA 5 1 0x11 4x\n", "F:1: width and speed are missing"},
    {"CA 5 1 0x11 4x HDR - SW x\n", "F:1: behind \"-\" the port"},
    {"CA 5 0 0x11 4x HDR 'h'\n", "F:1: port numbers are 1 to 254"},
    {"CA 5 1 0x11 4x HDR - SW 2 300 0x1 ( 'h' - 's' )\n", "F:1: port numbers are 1 to 254"},
    {"caguid=0xffffffffffffffff\nHca 1 \"A\"\n", "F:2: the GUID of \"A\" leaves none"},
    {"CA 5 1 0x0 4x HDR 'h'\n", "F:1: a GUID is not 0"},
    {"CA 5 1 0x11 4x HDR\n", "F:1: the description in single quotes"},
    {"CA 5 1 0x11 4x HDR - SW 2 3 0x1 ( 'h' )\n", "F:1: the description in single quotes"},
    {"CA 5 1 0x11 7x HDR - SW 2 3 0x1 ( 'h' - 's' )\n", "F:1: unknown rate \"7x HDR\""},
    {"include other.net\n", "F:1: include is not supported"},
};

START_TEST(mistakes)
{
    struct fabric *f = load(bad[_i].text);

    ck_assert_ptr_null(f);
    ck_assert_msg(strstr(err.text, bad[_i].message) != NULL, "\"%s\" is not in \"%s\"", bad[_i].message, err.text);
}
END_TEST

START_TEST(missing_file)
{
    struct model *m = model_load(NULL, &err);

    ck_assert_ptr_null(fabric_load("/nonexistent/x.net", m, &err));
    ck_assert_str_eq(err.text, "/nonexistent/x.net: No such file or directory");
    model_free(m);
}
END_TEST

START_TEST(shipped_topologies)
{
    struct model *m = model_load("etc/models/sdr-pcix.yaml", &err);
    struct fabric *f;

    ck_assert_msg(m != NULL, "%s", err.text);
    f = fabric_load("etc/topologies/two-hosts-two-rails.net", m, &err);
    ck_assert_msg(f != NULL, "%s", err.text);
    ck_assert_uint_eq(f->num_hosts, 2);
    ck_assert_uint_eq(fabric_host_by_name(f, "h2")->num_cas, 2);
    ck_assert_str_eq(fabric_host_by_name(f, "h2")->cas[1]->dev_name, "mlx5_1");
    ck_assert_uint_eq(port_rate_bps(&f->nodes[0]->ports[1]), 8000000000ull);
    fabric_free(f);
    f = fabric_load("etc/topologies/two-switches-two-paths.net", m, &err);
    ck_assert_msg(f != NULL, "%s", err.text);
    ck_assert_uint_eq(f->num_nodes, 4);
    ck_assert_ptr_eq(f->nodes[0]->ports[5].peer, &f->nodes[1]->ports[5]);
    fabric_free(f);
    f = fabric_load("etc/topologies/eight-hosts-two-rails.net", m, &err);
    ck_assert_msg(f != NULL, "%s", err.text);
    ck_assert_uint_eq(f->num_hosts, 8);
    ck_assert_uint_eq(f->num_nodes, 17);
    ck_assert_str_eq(f->nodes[0]->ports[16].peer->node->desc, "h8 mlx5_1");
    fabric_free(f);
    f = fabric_load("etc/topologies/eight-hosts-two-planes.net", m, &err);
    ck_assert_msg(f != NULL, "%s", err.text);
    ck_assert_uint_eq(f->num_hosts, 8);
    ck_assert_uint_eq(f->num_nodes, 18);
    fabric_free(f);
    model_free(m);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("netlist");

    tcase_add_test(t, simple_form);
    tcase_add_test(t, discover_form);
    tcase_add_test(t, grown_cluster);
    tcase_add_test(t, port_lines);
    tcase_add_test(t, link_state_machine);
    tcase_add_loop_test(t, mistakes, 0, sizeof bad / sizeof *bad);
    tcase_add_test(t, missing_file);
    tcase_add_test(t, shipped_topologies);
    return check_run(t, NULL);
}
