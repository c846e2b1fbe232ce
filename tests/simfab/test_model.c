/* SPDX-License-Identifier: BSD-3-Clause */
/* Models: the shipped ones load, values land in their units, and every mistake has its line and column. */
#include "tests/check.h"
#include "tests/simfab/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct parse_error err;

static struct model *load(const char *text)
{
    return input_model(text, &err);
}

START_TEST(defaults)
{
    struct model *m = model_load(NULL, &err);

    ck_assert_msg(m != NULL, "%s", err.text);
    ck_assert_int_eq(m->width, 2);
    ck_assert_int_eq(m->speed, 4);
    ck_assert_int_eq(m->mtu, 5);
    ck_assert_int_eq(m->vl_cap, 4);
    ck_assert_uint_eq(m->cpu_factor_milli, 0);
    ck_assert_uint_gt(m->max_qp_wr, 0);
    ck_assert_uint_gt(m->seed, 0);
    model_free(m);
}
END_TEST

START_TEST(values)
{
    struct model *m = load("name: x\nlink:\n  width: 12\n  speed: hdr\n  mtu: 256\n  vls: 15\n  propagation_ns: 1.5\n"
                           "  cut_through: false\nhca: {bus_mbytes_per_s: 943, max_sge: 7}\n"
                           "program:\n  cpu_factor: 0.25\nfault: {loss: 0.125, seed: 99}\n");

    ck_assert_msg(m != NULL, "%s", err.text);
    ck_assert_str_eq(m->name, "x");
    ck_assert_int_eq(m->width, 8);
    ck_assert_int_eq(m->ext_speed, 4);
    ck_assert_int_eq(m->mtu, 1);
    ck_assert_int_eq(m->vl_cap, 5);
    ck_assert_uint_eq(m->propagation_ps, 1500);
    ck_assert(!m->cut_through);
    ck_assert_uint_eq(m->bus_bps, 7544000000ull);
    ck_assert_uint_eq(m->max_sge, 7);
    ck_assert_uint_eq(m->cpu_factor_milli, 250);
    ck_assert(m->loss == 0.125);
    ck_assert_uint_eq(m->seed, 99);
    model_free(m);
}
END_TEST

START_TEST(lists)
{
    struct model *m =
        load("name: x\nports:\n- {node: \"h2 mlx5_0\", port: 1, vls: 4, mtu: 2048, width: 1, speed: SDR}\n"
             "- node: leaf*\n  vl_buffer_bytes: 8192\n  vlarb_entries: 3\n");

    ck_assert_msg(m != NULL, "%s", err.text);
    ck_assert_uint_eq(m->num_ports, 2);
    ck_assert_str_eq(m->ports[0].node, "h2 mlx5_0");
    ck_assert_uint_eq(m->ports[0].port, 1);
    ck_assert_uint_eq(m->ports[0].vl_cap, 3);
    ck_assert_uint_eq(m->ports[0].mtu, 4);
    ck_assert_uint_eq(m->ports[0].width, 1);
    ck_assert_uint_eq(m->ports[0].speed, 1);
    ck_assert_uint_eq(m->ports[0].vl_buffer_bytes, 0);
    ck_assert_uint_eq(m->ports[1].at.line, 4);
    ck_assert_uint_eq(m->ports[1].at.column, 3);
    ck_assert_str_eq(m->ports[1].node, "leaf*");
    ck_assert_uint_eq(m->ports[1].port, 0);
    ck_assert_uint_eq(m->ports[1].vl_buffer_bytes, 8192);
    ck_assert_uint_eq(m->ports[1].vlarb_cap, 3);
    model_error(m, &m->ports[1].at, &err, "%s", "text");
    ck_assert_msg(strstr(err.text, ":4:3: text") != NULL, "%s", err.text);
    model_free(m);
    m = load("ports: []\n");
    ck_assert_msg(m != NULL, "%s", err.text);
    ck_assert_uint_eq(m->num_ports, 0);
    model_free(m);
}
END_TEST

static const struct {
    const char *text, *message;
} bad[] = {
    {"ports: 3\n", "F:1:8: ports is a list: indented"},
    {"ports: {node: a}\n", "F:1:8: ports is a list: indented"},
    {"ports:\n- 3\n", "F:2:3: an item of ports is a mapping"},
    {"ports:\n- {port: 3}\n", "F:2:3: an item of ports wants a node"},
    {"ports:\n- {node: a}\n- {node: b, nod: a}\n", "F:3:13: unknown key \"nod\" in ports"},
    {"ports:\n- {node: a, port: 0}\n", "F:2:19: port: 0 is out of range: 1 to 254"},
    {"ports:\n- {node: a, vls: 3}\n", "F:2:18: vls: \"3\" is not 1, 2, 4, 8 or 15"},
    {"ports:\n- {node: a, node: b}\n", "F:2:13: node is given twice"},
    {"ports: []\nports: []\n", "F:2:1: ports is given twice"},
    {"ports:\n- {node: [a]}\n", "F:2:10: node wants one value"},
    {"", "F:1:1: the file is empty"},
    {"- 1\n", "F:1:1: \"key: value\" lines are wanted"},
    {"nmae: x\n", "F:1:1: unknown key \"nmae\""},
    {"link:\n  mtu: 1024\n  mut: 2048\n", "F:3:3: unknown key \"mut\" in link"},
    {"link:\n  mtu: 1000\n", "F:2:8: mtu: \"1000\" is not 256, 512"},
    {"link:\n  width: 3\n", "F:2:10: width: \"3\" is not 1, 2"},
    {"link:\n  speed: XDR\n", "F:2:10: speed: \"XDR\" is not SDR"},
    {"link:\n  vls: 16\n", "F:2:8: vls: \"16\" is not 1, 2, 4, 8 or 15"},
    {"link:\n  cut_through: yes\n", "F:2:16: cut_through: \"yes\" is not true or false"},
    {"link:\n  propagation_ns: fast\n", "F:2:19: propagation_ns: \"fast\" is not a number"},
    {"link:\n  propagation_ns: 10ns\n", "F:2:19: propagation_ns: \"10ns\" is not a number"},
    {"link:\n  propagation_ns: -1\n", "F:2:19: propagation_ns: -1 is out of range: 0 to 1000000000"},
    {"link:\n  propagation_ns: nan\n", "F:2:19: propagation_ns: \"nan\" is not a number"},
    {"link:\n  vlarb_entries: 65\n", "F:2:18: vlarb_entries: 65 is out of range: 1 to 64"},
    {"hca:\n  max_sge: 2.5\n", "F:2:12: max_sge: \"2.5\" is not a whole number"},
    {"fault:\n  loss: 1.5\n", "F:2:9: loss: 1.5 is out of range: 0 to 1"},
    {"fault:\n  loss: [1]\n", "F:2:9: loss wants one value"},
    {"fault: 3\n", "F:1:8: fault is a section"},
    {"link: {mtu: 256, mtu: 512}\n", "F:1:18: mtu is given twice"},
    {"link:\n  mtu: [\n", "F:3:"},
};

START_TEST(mistakes)
{
    ck_assert_ptr_null(load(bad[_i].text));
    ck_assert_msg(!strncmp(err.text, bad[_i].message, strlen(bad[_i].message)), "\"%s\", not \"%s\"", err.text,
                  bad[_i].message);
}
END_TEST

START_TEST(shipped)
{
    static const char *const paths[] = {"etc/models/sdr-pcix.yaml", "etc/models/hdr.yaml"};

    for (size_t i = 0; i < 2; i++) {
        struct model *m = model_load(paths[i], &err);

        ck_assert_msg(m != NULL, "%s", err.text);
        ck_assert(strstr(paths[i], m->name) != NULL);
        model_free(m);
    }
    ck_assert_ptr_null(model_load("/nonexistent.yaml", &err));
    ck_assert_str_eq(err.text, "/nonexistent.yaml: No such file or directory");
}
END_TEST

/* etc/models/KEYS.md has a line for every key, with its default. */
START_TEST(documented)
{
    const char *section, *name, *def;
    static char readme[65536];
    FILE *f = fopen("etc/models/KEYS.md", "r");
    size_t i;

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(fread(readme, 1, sizeof readme - 1, f), 0);
    fclose(f);
    for (i = 0; model_key(i, &section, &name, &def); i++) {
        char row[256];

        snprintf(row, sizeof row, "| %s%s| %s | %s%s| ", section, *section ? " " : "", name, def, *def ? " " : "");
        ck_assert_msg(strstr(readme, row) != NULL, "no row \"%s\"", row);
    }
    ck_assert_uint_gt(i, 30);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("model");

    tcase_add_test(t, defaults);
    tcase_add_test(t, values);
    tcase_add_test(t, lists);
    tcase_add_loop_test(t, mistakes, 0, sizeof bad / sizeof *bad);
    tcase_add_test(t, shipped);
    tcase_add_test(t, documented);
    return check_run(t, NULL);
}
