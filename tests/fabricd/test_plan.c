/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions: the arbiter against shares made by hand, the three narrow places, loads by name and from
 * files, buses. */
#include "fabricd/fabric/pci.h"
#include "fabricd/policy/plan.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct policy policy(unsigned n, const uint32_t *shares)
{
    struct policy p = {.vls = 8, .mtu = 2048, .bulk_minimum = 20, .high_limit = -1, .num_classes = n};
    for (unsigned i = 0; i < n; i++) {
        snprintf(p.classes[i].name, sizeof(p.classes[i].name), "c%u", i);
        p.classes[i].share = shares[i];
        p.classes[i].priority = i ? PRIORITY_NORMAL : PRIORITY_HIGH;
        p.classes[i].lanes = 1;
        p.classes[i].small_max = 1024;
    }
    return p;
}

/* Tables as they might be: class i has bulk lane i of `packets` packets a round, and lane 8 + i in the high table. */
static struct qos_tables tables(const struct policy *p, const unsigned *packets)
{
    struct qos_tables t = {.vls = 15, .num_classes = p->num_classes};
    unsigned all = 0;
    for (unsigned i = 0; i < p->num_classes; i++)
        all += packets[i];
    for (unsigned i = 0; i < p->num_classes; i++) {
        struct class_levels *l = &t.classes[i];
        t.low[t.num_low++] = (struct vlarb){(uint8_t)i, (uint8_t)(packets[i] * 32)};
        t.high[t.num_high++] = (struct vlarb){(uint8_t)(8 + i), 1};
        l->num_lanes = 1;
        l->num_ahead = 1;
        l->vl_bulk[0] = (uint8_t)i;
        l->vl_small = (uint8_t)(8 + i);
        l->share = 100.0 * packets[i] / all;
    }
    return t;
}

static const struct plan_fabric ddr = {
    .mtu = 2048, .rate_mbps = 16000, .hops = 2, .bus_read_mbytes = 1500, .bus_write_mbytes = 1650};
static const struct plan_fabric hdr = {.mtu = 2048, .rate_mbps = 200000, .hops = 2};

static struct plan_result predict(const struct policy *p, const struct qos_tables *t, const struct plan_fabric *f,
                                  const char *name)
{
    struct diag d = {.file = "load"};
    struct plan_load load;
    struct plan_result r;
    ck_assert(plan_load_named(&load, p, name, &d));
    plan_predict(p, t, f, &load, &r);
    text_free(&d.out);
    return r;
}

static void near(double got, double want, double by)
{
    ck_assert_msg(fabs(got - want) <= by, "%f, expected %f", got, want);
}

static const uint32_t nine_one[] = {90, 10}, three[] = {60, 30, 10};
static const unsigned nine_one_packets[] = {7, 1}, three_packets[] = {6, 3, 1};

START_TEST(narrow_places)
{
    struct policy p = policy(3, three);
    struct qos_tables t = tables(&p, three_packets);
    struct plan_fabric f = ddr;
    struct plan_result r = predict(&p, &t, &ddr, "bulk");
    ck_assert_int_eq(r.limit, PLAN_SENDER);
    near(r.classes[0].share, 60, 0.1);
    near(r.classes[2].share, 10, 0.1);
    near(r.mbytes, 1525, 1);
    r = predict(&p, &t, &ddr, "many-to-one");
    ck_assert_int_eq(r.limit, PLAN_RECEIVER);
    ck_assert(r.paced);
    near(r.classes[0].share, 60, 0.01);
    near(r.classes[2].share, 10, 0.01);
    near(r.mbytes, 0.96 * 1677, 1);
    ck_assert_uint_eq(r.classes[0].wait_ns, 0); /* tables do not matter here */
    f.rate_mbps = 8000;                         /* SDR */
    f.bus_read_mbytes = 870;
    f.bus_write_mbytes = 900;
    r = predict(&p, &t, &f, "many-to-one");
    ck_assert_int_eq(r.limit, PLAN_RECEIVER);
    ck_assert(!r.paced);
    for (unsigned i = 0; i < 3; i++)
        near(r.classes[i].share, 100.0 / 3, 0.01);
    f = ddr;
    f.bus_write_mbytes = 700;
    f.bus_read_mbytes = 300; /* the first cannot give its share: the others have the rest by theirs */
    r = predict(&p, &t, &f, "many-to-one");
    near(r.classes[0].share, 100 * 300 / (0.96 * 700), 0.1);
    near(r.classes[1].share, 0.75 * (100 - 100 * 300 / (0.96 * 700)), 0.1);
    r = predict(&p, &t, &hdr, "many-to-one");
    ck_assert_int_eq(r.limit, PLAN_CABLE);
    near(r.classes[1].share, 30, 0.1);
    near(r.classes[1].mbytes, 7500, 20);
}
END_TEST

START_TEST(buses_make_waits_longer)
{
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, nine_one_packets);
    struct plan_fabric f = {.mtu = 2048, .rate_mbps = 16000, .hops = 2};
    double links = (double)predict(&p, &t, &f, "bulk").classes[1].wait_ns;
    /*
     * a bulk packet in service, one of the other class's small messages and, with a high limit of 0, another bulk
     * packet
     */
    near(links, 2 * (2078 + 1054 + 2078) / 2.0, 1);
    f.bus_write_mbytes = 2000;
    near((double)predict(&p, &t, &f, "bulk").classes[1].wait_ns, links + 1024, 1);
    f.bus_read_mbytes = 1500; /* 1525 with headers */
    near((double)predict(&p, &t, &f, "bulk").classes[1].wait_ns, links + links / 2 * 2000 / 1524.9 + 1024, 2);
    t.high_limit = 255; /* and c1 on its bulk lane, starved by others */
    t.classes[1].vl_small = t.classes[1].vl_bulk[0];
    ck_assert_uint_eq(predict(&p, &t, &f, "bulk").classes[1].wait_ns, WAIT_UNBOUNDED);
}
END_TEST

START_TEST(hosts_that_cannot_give_more)
{
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, nine_one_packets);
    struct plan_fabric f = {.mtu = 2048, .rate_mbps = 16000, .bus_read_mbytes = 1500, .bus_write_mbytes = 5000};
    struct plan_result r = predict(&p, &t, &f, "many-to-one");
    /* 7 of 8 packets would be 1750 MB/s, and the host of class 0 has 1500 of data, 1525 with headers */
    ck_assert_int_eq(r.limit, PLAN_CABLE);
    near(r.classes[0].mbytes, 1525, 5);
    near(r.classes[1].mbytes, 475, 5);
    f.bus_read_mbytes = 900;
    ck_assert_int_eq(predict(&p, &t, &f, "many-to-one").limit, PLAN_NOTHING);
    near(predict(&p, &t, &f, "many-to-one").classes[1].share, 50, 0.1);
}
END_TEST

START_TEST(small_messages_keep_to_the_share)
{
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, nine_one_packets);
    struct plan_result r = predict(&p, &t, &hdr, "aggressor c1/1K");
    /*
     * within 2 points: small messages ahead are 8 percent of 12.5 percent, the rest is weighed; packets of 17 blocks
     * and a bit
     */
    near(r.classes[1].share, 12.5, 2);
    r = predict(&p, &t, &hdr, "small");
    near(r.classes[0].share, 87.5, 2);
    /* a class without a lane ahead: its small messages are on its bulk lane */
    t.classes[1].vl_small = t.classes[1].vl_bulk[0];
    t.classes[1].num_ahead = 0;
    r = predict(&p, &t, &hdr, "bulk");
    ck_assert(r.classes[0].ahead && !r.classes[1].ahead);
    near(r.classes[0].share, 87.5, 0.1);
}
END_TEST

/* Of 2 microseconds a message at SDR, a class has its share; of 5 ns at HDR its bytes are less. */
START_TEST(so_many_messages_a_second_go_ahead)
{
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, nine_one_packets);
    struct plan_fabric f = {.mtu = 2048, .rate_mbps = 8000, .hops = 2};
    struct plan_result r = predict(&p, &t, &f, "bulk");
    near(r.classes[1].ahead_per_s, 0.125 * 500000, 1e-6);
    near(r.classes[0].ahead_per_s, 0.875 * 500000, 1e-6);
    f.rate_mbps = 16000;
    r = predict(&p, &t, &f, "bulk");
    near(r.classes[1].ahead_per_s, 0.0137 * 2e9 / 72, 1e4); /* D / (1 - share) of the link, 1.37 percent */
    r = predict(&p, &t, &hdr, "bulk");
    near(r.classes[1].ahead_per_s, 0.0137 * 25e9 / 72, 1e5);
    t.classes[1].num_ahead = 2;
    near(predict(&p, &t, &hdr, "bulk").classes[1].ahead_per_s, r.classes[1].ahead_per_s / 2, 1);
    t.classes[1].num_ahead = 0;
    near(predict(&p, &t, &hdr, "bulk").classes[1].ahead_per_s, 0, 0);
    f.rate_mbps = 0;
    near(predict(&p, &t, &f, "bulk").classes[0].ahead_per_s, 0, 0);
}
END_TEST

static struct plan_result predict_file(const struct policy *p, const struct qos_tables *t, const struct plan_fabric *f,
                                       const char *text)
{
    struct diag d = {.file = "load"};
    struct plan_load load;
    struct plan_result r;
    ck_assert_msg(plan_load_parse(&load, p, text, strlen(text), &d), "%s", text_str(&d.out));
    plan_predict(p, t, f, &load, &r);
    text_free(&d.out);
    return r;
}

/*
 * To a receiver whose bus is slower than the cable, 8 KiB goes in parts of 1738 bytes, 28 blocks of the tables, and 64
 * KiB in packets of 2082 bytes, 33 blocks. A turn of 32 blocks is two of the parts, or one of the packets.
 */
START_TEST(messages_are_cut_where_the_receiver_gives_paces)
{
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, (const unsigned[]){1, 1});
    struct plan_fabric f = ddr;
    const char *load = "[{class: c0, sizes: [8K]}, {class: c1, sizes: [64K]}]";
    struct plan_result r;
    t.classes[0].share = 90; /* so that no pace limits the class */
    r = predict_file(&p, &t, &ddr, load);
    ck_assert_int_eq(r.limit, PLAN_SENDER);
    near(r.classes[0].share, 100.0 * 2 * 1698 / (2 * 1698 + 2082), 0.5);
    f.bus_write_mbytes = 0; /* unknown: assumed to be fast enough */
    near(predict_file(&p, &t, &f, load).classes[0].share, 50, 0.5);
}
END_TEST

/*
 * Turns of one packet of 2048 bytes let two parts of 1738 go: 2:20:20 would be 2:12:12 and more for the first. But its
 * receiver's processes pace it to 5/85 of their bus, of which 96 percent are 1.06 times the sender's share; the others,
 * with a higher limit than that, are not limited.
 */
START_TEST(a_receivers_pace_holds_what_the_tables_do_not)
{
    static const uint32_t shares[] = {5, 40, 40};
    static const unsigned packets[] = {1, 7, 7};
    struct policy p = policy(3, shares);
    struct qos_tables t = tables(&p, packets);
    struct plan_load load = {0};
    struct plan_result r;
    for (unsigned i = 0; i < 3; i++) {
        t.classes[i].share = shares[i] * 100.0 / 85;
        load.stream[load.num_streams++] =
            (struct plan_stream){.class_index = i, .jobs = 2, .num_sizes = 1, .size = {8192}};
    }
    plan_predict(&p, &t, &ddr, &load, &r);
    ck_assert_int_eq(r.limit, PLAN_SENDER);
    near(r.classes[0].share, 100 * 5.0 / 85 * 1.056, 0.1);
    near(r.classes[1].share, r.classes[2].share, 0.2);
    near(r.classes[0].share + r.classes[1].share + r.classes[2].share, 100, 0.01);
    load.num_streams = 2; /* without the last one there is more for the first */
    plan_predict(&p, &t, &ddr, &load, &r);
    ck_assert_double_gt(r.classes[0].share, 11);
    ck_assert_double_lt(r.classes[0].share, 100 * 5.0 / 45 * 1.056 + 0.1);
}
END_TEST

START_TEST(small_messages_without_a_lane_ahead_have_all_lanes)
{
    static const unsigned packets[] = {6, 1};
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, packets);
    t.classes[1].num_lanes = 2;
    t.classes[1].vl_bulk[1] = 2;
    t.classes[1].vl_small = 1;
    t.classes[1].num_ahead = 0;
    t.low[t.num_low++] = (struct vlarb){2, 32};
    near(predict(&p, &t, &hdr, "bulk").classes[1].share, 25, 0.1);
    /* two packets of 17 blocks a turn on each, against six of 33 */
    near(predict(&p, &t, &hdr, "aggressor c1/1K").classes[1].share, 100 * 4328.0 / (4328 + 6 * 2082), 0.1);
}
END_TEST

/* Beyond the library's budget: shares by the tables alone, with high lanes always full. */
static double high_part(uint8_t limit, unsigned high_bytes, unsigned low_bytes)
{
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, nine_one_packets);
    struct arbiter_lane *lane = calloc(ARBITER_LANES, sizeof(*lane));
    struct arbiter_sent *sent = calloc(1, sizeof(*sent));
    ck_assert(lane && sent);
    t.high_limit = limit;
    lane[0] = (struct arbiter_lane){.num_packets = 1, .packet = {{(uint16_t)low_bytes, 0}}};
    lane[9] = (struct arbiter_lane){.num_packets = 1, .packet = {{(uint16_t)high_bytes, 1}}};
    arbiter_run(&t, lane, 1e7, sent);
    double part = sent->bytes[9][1] / (sent->bytes[0][0] + sent->bytes[9][1]);
    free(lane);
    free(sent);
    return part;
}

START_TEST(high_limits)
{
    near(high_part(0, 1000, 1000), 0.5, 0.001); /* by turns */
    near(high_part(0, 500, 2000), 0.2, 0.001);
    near(high_part(4, 4096, 4096), 0.8, 0.001); /* 16 KiB for each packet of the low table */
    near(high_part(255, 64, 4096), 1, 0);
}
END_TEST

START_TEST(limits_of_lanes)
{
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, nine_one_packets);
    struct arbiter_lane *lane = calloc(ARBITER_LANES, sizeof(*lane));
    struct arbiter_sent *sent = calloc(1, sizeof(*sent));
    ck_assert(lane && sent);
    lane[0] = (struct arbiter_lane){.num_packets = 1, .most = 0.1, .packet = {{2082, 0}}};
    lane[1] = (struct arbiter_lane){.num_packets = 1, .most = 0.2, .packet = {{2082, 1}}};
    arbiter_run(&t, lane, 1e7, sent);
    near(sent->bytes[0][0] / sent->time, 0.1, 0.01); /* the link is idle otherwise */
    near(sent->bytes[1][1] / sent->time, 0.2, 0.01);
    lane[1].most = 0;
    arbiter_run(&t, lane, 1e7, sent);
    near(sent->bytes[1][1] / sent->time, 0.9, 0.01); /* the rest */
    free(lane);
    free(sent);
}
END_TEST

static unsigned load_errors(const char *text, struct plan_load *load, char *first, size_t size)
{
    struct policy p = policy(2, nine_one);
    struct diag d = {.file = "dir/l.yaml"};
    bool ok = plan_load_parse(load, &p, text, strlen(text), &d);
    ck_assert_int_eq(ok, !d.errors);
    snprintf(first, size, "%.*s", (int)strcspn(text_str(&d.out), "\n"), text_str(&d.out));
    text_free(&d.out);
    return d.errors;
}

START_TEST(load_files)
{
    struct plan_load load;
    char said[300];
    ck_assert_uint_eq(
        load_errors("- {class: c0, sizes: [8, 64K], jobs: 3, pattern: many-to-one}\n- {class: c1, sizes: 1M}\n", &load,
                    said, sizeof(said)),
        0);
    ck_assert_str_eq(load.name, "l.yaml");
    ck_assert_uint_eq(load.num_streams, 2);
    ck_assert_uint_eq(load.stream[0].jobs, 3);
    ck_assert_uint_eq(load.stream[0].size[1], 65536);
    ck_assert(load.stream[0].many_to_one && !load.stream[1].many_to_one);
    static const char *const bad[][2] = {
        {"- {class: c9, sizes: 8}\n", "dir/l.yaml:1:11: error: the policy has no class 'c9'"},
        {"- {class: c0}\n", "dir/l.yaml:1:3: error: a stream has no 'sizes'"},
        {"- {class: c0, sizes: []}\n", "dir/l.yaml:1:22: error: sizes is empty; allowed: 1 to 8 sizes"},
        {"- {class: c0, sizes: 8, pattern: x}\n", "dir/l.yaml:1:34: error: pattern is 'x'"},
        {"- {class: c0, sizes: 8, jobs: 0}\n", "dir/l.yaml:1:31: error: jobs is '0'"},
        {"[]\n", "dir/l.yaml:1:1: error: nobody sends; allowed: a list of {class, sizes, jobs, pattern}"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_uint_ge(load_errors(bad[i][0], &load, said, sizeof(said)), 1);
        ck_assert_msg(!strncmp(said, bad[i][1], strlen(bad[i][1])), "%s", said);
    }
}
END_TEST

START_TEST(load_names)
{
    struct policy p = policy(2, nine_one);
    struct plan_load load;
    struct diag d = {.file = "l"};
    static const char *const bad[] = {"",
                                      "bulks",
                                      "aggressor",
                                      "aggressor c0",
                                      "aggressor c0/",
                                      "aggressor c9/8",
                                      "aggressor c0/8x",
                                      "aggressor c0/-8",
                                      "aggressor c0/2048M"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert(!plan_load_named(&load, &p, bad[i], &d));
        ck_assert_uint_eq(d.errors, i + 1);
    }
    ck_assert(plan_load_named(&load, &p, "aggressor c1/64K", &d));
    ck_assert_uint_eq(load.stream[1].size[0], 65536);
    ck_assert_uint_eq(load.stream[0].size[0], PLAN_BULK_BYTES);
    text_free(&d.out);
}
END_TEST

START_TEST(warnings)
{
    struct policy p = policy(2, nine_one);
    struct qos_tables t = tables(&p, nine_one_packets);
    struct diag d = {.file = "p"};
    plan_warn(&p, &t, &hdr, &d);
    ck_assert_uint_eq(d.warnings, 0);
    plan_warn(&p, &t, &ddr, &d); /* the library divides the bus */
    ck_assert_uint_eq(d.warnings, 0);
    struct plan_fabric sdr = {
        .mtu = 2048, .rate_mbps = 8000, .hops = 2, .bus_read_mbytes = 870, .bus_write_mbytes = 900};
    plan_warn(&p, &t, &sdr, &d);
    ck_assert_uint_eq(d.warnings, 1);
    ck_assert(strstr(text_str(&d.out), "900 MB/s and their cables carry 1000"));
    t.high_limit = 255;
    plan_warn(&p, &t, &hdr, &d);
    ck_assert_uint_eq(d.warnings, 3);
    text_free(&d.out);
}
END_TEST

START_TEST(buses)
{
    near(pci_mbytes("2.5 GT/s PCIe\n", "8\n"), 1650, 1650 * 0.02); /* measured on such adapters */
    near(pci_mbytes("16.0 GT/s PCIe", "16"), 27500, 27500 * 0.05);
    near(pci_mbytes("8.0 GT/s", "8"), 7100, 100);
    static const char *const bad[][2] = {
        {"Unknown", "0"},        {"", ""},          {"8.0", "8"},     {"8.0 GT/s PCIe", "0"},
        {"8.0 GT/s PCIe", "63"}, {"1e9 GT/s", "1"}, {"nan GT/s", "1"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_uint_eq(pci_mbytes(bad[i][0], bad[i][1]), 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("plan");
    tcase_add_test(c, narrow_places);
    tcase_add_test(c, buses_make_waits_longer);
    tcase_add_test(c, hosts_that_cannot_give_more);
    tcase_add_test(c, small_messages_keep_to_the_share);
    tcase_add_test(c, so_many_messages_a_second_go_ahead);
    tcase_add_test(c, messages_are_cut_where_the_receiver_gives_paces);
    tcase_add_test(c, a_receivers_pace_holds_what_the_tables_do_not);
    tcase_add_test(c, small_messages_without_a_lane_ahead_have_all_lanes);
    tcase_add_test(c, high_limits);
    tcase_add_test(c, limits_of_lanes);
    tcase_add_test(c, load_files);
    tcase_add_test(c, load_names);
    tcase_add_test(c, warnings);
    tcase_add_test(c, buses);
    return check_run(c, NULL);
}
