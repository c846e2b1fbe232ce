/* SPDX-License-Identifier: BSD-3-Clause */
/* The GID used on a RoCE port, and the values of MRMPI_ROCE_GID. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "libmrmpi/verbs/gid.h"
#include "tests/check.h"

/* A port as adapters have it: both versions of each address, version 1 first, link-local before the others. */
static const struct {
    const char *address;
    uint8_t version;
} port[] = {
    {"fe80::1", MR_GID_ROCE_V1},         {"fe80::1", MR_GID_ROCE_V2},         {"fd00::1", MR_GID_ROCE_V1},
    {"fd00::1", MR_GID_ROCE_V2},         {"::ffff:10.0.0.1", MR_GID_ROCE_V1}, {"::ffff:10.0.0.1", MR_GID_ROCE_V2},
    {"::ffff:10.9.0.1", MR_GID_ROCE_V2},
};

static size_t fill(struct mr_gid_entry *table, uint64_t places)
{
    size_t n = 0;

    for (size_t i = 0; i < sizeof port / sizeof *port; i++)
        if (places & 1u << i) {
            table[n] = (struct mr_gid_entry){.index = (uint16_t)i, .version = port[i].version};
            ck_assert_int_eq(inet_pton(AF_INET6, port[i].address, table[n].gid), 1);
            n++;
        }
    return n;
}

static const struct {
    const char *wish;
    uint64_t places; /* set of the port's GID entries */
    int chosen;      /* -1: none */
} choices[] = {
    {"", 0x7f, 5},          {"", 0x1f, 3},      {"", 0x17, 1},         {"", 0x15, 4},
    {"", 0x05, 2},          {"", 0x01, 0},      {"", 0, -1},           {"ipv6", 0x7f, 3},
    {"ipv6", 0x73, 1},      {"ipv6", 0x70, -1}, {"roce-v1", 0x7f, 4},  {"roce-v1/ipv6", 0x7f, 2},
    {"IPv6/RoCE-v2", 8, 3}, {"ipv4", 0x10, 4},  {"roce-v2", 0x15, -1}, {"roce-v1/roce-v2/ipv6/ipv4", 0x7f, 5},
    {"6", 0x7f, 6},         {"0", 0x7f, 0},     {"6", 0x3f, -1},       {"255", 0x7f, -1},
};

START_TEST(choice)
{
    struct mr_gid_entry table[8];
    struct mr_gid_wish wish;
    const struct mr_gid_entry *e;
    size_t n = fill(table, choices[_i].places);

    ck_assert(mr_gid_wish_parse(choices[_i].wish, &wish));
    e = mr_gid_choose(&wish, table, n);
    ck_assert_int_eq(e ? e->index : -1, choices[_i].chosen);
}
END_TEST

static const char *const bad[] = {"-1",      "256",       "1x",    "0x3",   "roce",
                                  "roce-v3", "ipv4,ipv6", "ipv4/", "/ipv4", "ipv4//ipv6"};

START_TEST(refused)
{
    struct mr_gid_wish wish;

    ck_assert_msg(!mr_gid_wish_parse(bad[_i], &wish), "taken: %s", bad[_i]);
}
END_TEST

/* Link-local and other IPv6 addresses can talk to each other; version 1 and 2, IPv4 and IPv6 cannot. */
START_TEST(kinds)
{
    struct mr_gid_entry table[8];

    fill(table, 0x7f);
    ck_assert_int_eq(mr_gid_kind(&table[1]), mr_gid_kind(&table[3]));
    ck_assert_int_eq(mr_gid_kind(&table[5]), mr_gid_kind(&table[6]));
    ck_assert_int_ne(mr_gid_kind(&table[3]), mr_gid_kind(&table[5]));
    ck_assert_int_ne(mr_gid_kind(&table[4]), mr_gid_kind(&table[5]));
    for (int i = 0; i < 7; i++)
        ck_assert_int_ne(mr_gid_kind(&table[i]), 0);
    ck_assert_int_eq(mr_gid_family((const uint8_t[16]){0xfe, 0xbf}), MR_GID_LINK_LOCAL);
    ck_assert_int_eq(mr_gid_family((const uint8_t[16]){0xfe, 0xc0}), MR_GID_IPV6);
}
END_TEST

START_TEST(traffic_class)
{
    ck_assert_int_eq(mr_roce_traffic_class(0), 0);
    ck_assert_int_eq(mr_roce_traffic_class(3), 24 << 2);
    ck_assert_int_eq(mr_roce_traffic_class(7), 56 << 2);
    ck_assert_int_eq(mr_roce_traffic_class(8), 0);
    ck_assert_int_eq(mr_roce_traffic_class(13), 40 << 2);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("gid");

    tcase_add_loop_test(t, choice, 0, sizeof choices / sizeof *choices);
    tcase_add_loop_test(t, refused, 0, sizeof bad / sizeof *bad);
    tcase_add_test(t, kinds);
    tcase_add_test(t, traffic_class);
    return check_run(t, NULL);
}
