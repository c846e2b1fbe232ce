/* SPDX-License-Identifier: BSD-3-Clause */
/* Model settings of single ports: the ports reached, the common values of the two ends of a cable, and mistakes. */
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "tests/check.h"
#include "tests/simfab/input.h"

#define TOPOLOGY "etc/topologies/two-switches-two-paths.net"

static struct parse_error err;
static struct model *model;

static struct fabric *load(const char *text)
{
    model = input_model(text, &err);
    ck_assert_msg(model != NULL, "%s", err.text);
    return fabric_load(TOPOLOGY, model, &err);
}

static struct port *port_of(struct fabric *f, const char *node, unsigned num)
{
    struct node *n = fabric_node_by_name(f, node);

    ck_assert_ptr_nonnull(n);
    return &n->ports[num];
}

START_TEST(one_port_differs)
{
    struct fabric *f = load("link: {speed: HDR, vls: 8, mtu: 4096}\nports:\n"
                            "- {node: h2 mlx5_0, port: 1, vls: 4, mtu: 2048, width: 1, speed: SDR}\n");
    struct port *p = port_of(f, "h2 mlx5_0", 1), *other = port_of(f, "h1 mlx5_0", 1);

    ck_assert_uint_eq(p->vl_cap, 3);
    ck_assert_uint_eq(p->mtu_cap, 4);
    ck_assert_uint_eq(p->width_supported, 1);
    ck_assert_uint_eq(p->ext_speed_supported, 0);
    /* the other end of the cable is more capable, but both run at this end's values */
    ck_assert_uint_eq(p->peer->vl_cap, 4);
    ck_assert_uint_eq(p->peer->width_supported, 3);
    ck_assert_uint_eq(p->peer->ext_speed_supported, 7);
    ck_assert_uint_eq(port_rate_bps(p), 2000000000);
    ck_assert_uint_eq(port_rate_bps(p->peer), 2000000000);
    ck_assert_uint_eq(port_rate_bps(other), 200000000000);
    ck_assert_uint_eq(other->vl_cap, 4);
    /* and a retrained link comes back the same */
    port_cable(p, false);
    port_cable(p, true);
    ck_assert_uint_eq(port_rate_bps(p), 2000000000);
    fabric_free(f);
    model_free(model);
}
END_TEST

START_TEST(patterns_reach_several_and_later_items_win)
{
    struct fabric *f = load("ports:\n- {node: 'leaf*', vl_buffer_bytes: 8192, vlarb_entries: 3, vls: 2}\n"
                            "- {node: leaf2, port: 3, vl_buffer_bytes: 32768}\n");

    ck_assert_msg(f != NULL, "%s", err.text);
    ck_assert_uint_eq(port_of(f, "leaf1", 8)->vl_buffer_bytes, 8192);
    ck_assert_uint_eq(port_of(f, "leaf2", 1)->vl_buffer_bytes, 8192);
    ck_assert_uint_eq(port_of(f, "leaf2", 3)->vl_buffer_bytes, 32768);
    ck_assert_uint_eq(port_of(f, "leaf2", 3)->vlarb_high_cap, 3);
    ck_assert_uint_eq(port_of(f, "leaf2", 3)->vl_cap, 2);
    ck_assert_uint_eq(port_of(f, "leaf2", 3)->vlarb_low_cap, 3);
    ck_assert_uint_eq(port_of(f, "h1 mlx5_0", 1)->vlarb_low_cap, 8);
    ck_assert_uint_eq(port_of(f, "leaf2", 3)->vlarb_low[1].weight, 64);
    ck_assert_uint_eq(port_of(f, "leaf2", 3)->vlarb_low[2].weight, 0);
    ck_assert_uint_eq(port_of(f, "h1 mlx5_0", 1)->vl_buffer_bytes, model->vl_buffer_bytes);
    fabric_free(f);
    model_free(model);
}
END_TEST

static const struct {
    const char *text, *message;
} bad[] = {
    {"ports:\n- {node: h3 mlx5_0, vls: 4}\n", ":2:3: ports: no node of the topology is \"h3 mlx5_0\""},
    {"ports:\n- {node: leaf1, port: 9, vls: 4}\n", ":2:3: ports: port 9 of \"leaf1\": it has 8"},
};

START_TEST(mistakes)
{
    ck_assert_ptr_null(load(bad[_i].text));
    ck_assert_msg(strstr(err.text, bad[_i].message) != NULL, "%s", err.text);
    model_free(model);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("port_caps");

    tcase_add_test(c, one_port_differs);
    tcase_add_test(c, patterns_reach_several_and_later_items_win);
    tcase_add_loop_test(c, mistakes, 0, sizeof bad / sizeof *bad);
    return check_run(c, NULL);
}
