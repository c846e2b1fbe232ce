/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairing of rails: by subnet and not by number, the same at both ends, every rail with a pair, weights that follow
 * shared ports.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/conn/route/pair.h"
#include "tests/check.h"

static struct mr_rail_addr near[MR_RAILS_MAX], far[MR_RAILS_MAX];
static struct mr_pair_side a, b;
static struct mr_pair pair[MR_SUBS_MAX];
static unsigned left_out;

static struct mr_rail_addr port(unsigned subnet, uint32_t mbps)
{
    return (struct mr_rail_addr){.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, (uint8_t)subnet}, .rate_mbps = mbps};
}

static struct mr_rail_addr roce(uint8_t kind)
{
    return (struct mr_rail_addr){.gid = {0xfe, (uint8_t)rand()}, .global = 1, .gid_kind = kind, .rate_mbps = 100000};
}

/* Subnets of the rails of each side, a digit for each. */
static unsigned match(const char *first, const char *second)
{
    a = (struct mr_pair_side){.rail = near, .num_rails = (unsigned)strlen(first), .paths = 1};
    b = (struct mr_pair_side){.rail = far, .num_rails = (unsigned)strlen(second), .paths = 1};
    for (unsigned i = 0; i < a.num_rails; i++)
        near[i] = port((unsigned)(first[i] - '0'), 100000);
    for (unsigned i = 0; i < b.num_rails; i++)
        far[i] = port((unsigned)(second[i] - '0'), 100000);
    return mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out);
}

static void expect(unsigned n, const char *rails) /* two digits for each pair */
{
    ck_assert_uint_eq(n, strlen(rails) / 2);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(pair[i].rail[0], (unsigned)(rails[2 * i] - '0'));
        ck_assert_uint_eq(pair[i].rail[1], (unsigned)(rails[2 * i + 1] - '0'));
    }
}

START_TEST(equal_hosts)
{
    expect(match("0", "0"), "00");
    expect(match("00", "00"), "0011");
    expect(match("01", "01"), "0011");
    expect(match("0011", "0011"), "00112233");
}
END_TEST

START_TEST(numbers_say_nothing)
{
    expect(match("1", "01"), "01");    /* the first plane is missing here */
    expect(match("01", "1"), "10");    /* or there */
    expect(match("01", "10"), "0110"); /* ports in the other order */
    expect(match("010", "1001"), "01221013");
}
END_TEST

/* Rails of one subnet of each side, by their rates in 1000 Mb/s, a digit for each. */
static unsigned match_rates(const char *first, const char *second)
{
    a = (struct mr_pair_side){.rail = near, .num_rails = (unsigned)strlen(first), .paths = 1};
    b = (struct mr_pair_side){.rail = far, .num_rails = (unsigned)strlen(second), .paths = 1};
    for (unsigned i = 0; i < a.num_rails; i++)
        near[i] = port(0, (uint32_t)(first[i] - '0') * 1000);
    for (unsigned i = 0; i < b.num_rails; i++)
        far[i] = port(0, (uint32_t)(second[i] - '0') * 1000);
    return mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out);
}

/*
 * Ports of one rate are paired if all pairs then carry more; else the order stays, as the order of cables and switches.
 */
START_TEST(rates)
{
    expect(match_rates("81", "18"), "0110");
    expect(match_rates("81", "81"), "0011");
    expect(match_rates("18", "18"), "0011");
    expect(match_rates("81", "88"), "0011"); /* nothing is gained */
    expect(match_rates("18", "88"), "0011");
    expect(match_rates("421", "142"), "011220");
    expect(match_rates("182", "18"), "001120"); /* by rate, the fast port would be shared */
    expect(match_rates("811", "18"), "011021");
    expect(match_rates("80", "08"), "0011"); /* a rate is not known */
    expect(match_rates("1", "18"), "0001");
}
END_TEST

START_TEST(nothing_in_common)
{
    ck_assert_uint_eq(match("0", "1"), 0);
    ck_assert_uint_eq(match("", "01"), 0);
    ck_assert_uint_eq(match("01", ""), 0);
    expect(match("02", "12"), "11");
    ck_assert_uint_eq(left_out, 0);
}
END_TEST

START_TEST(every_rail_has_a_pair)
{
    expect(match("00", "0"), "0010");
    expect(match("0", "000"), "000102");
    expect(match("000", "00"), "001120");
    expect(match("0001", "1100"), "0213223031");
}
END_TEST

START_TEST(roce_by_kind)
{
    ck_assert_uint_eq(match("00", "00"), 2);
    near[0] = roce(0x11);
    near[1] = roce(0x12);
    far[0] = roce(0x12);
    far[1] = roce(0x11);
    expect(mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out), "0110");
    far[0] = port(0, 1); /* InfiniBand does not reach RoCE */
    expect(mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out), "01");
}
END_TEST

START_TEST(all_pairs)
{
    match("00", "00");
    a.all = true;
    expect(mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out), "0011"); /* if both agree */
    b.all = true;
    expect(mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out), "00110110");
    match("0001", "10");
    a.all = b.all = true;
    expect(mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out), "01112130");
}
END_TEST

START_TEST(paths)
{
    match("01", "10");
    a.paths = 4;
    b.paths = 3;
    near[0].lmc = near[1].lmc = far[1].lmc = 3;
    far[0].lmc = 1;
    expect(mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out),
           "0101011010"); /* three paths in one subnet, two in the other */
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(pair[i].path, i % 3);
    mr_pair_weigh(pair, 5, &a, &b, true);
    ck_assert_uint_eq(pair[0].weight + pair[1].weight + pair[2].weight, 3 * (MR_WEIGHT_MAX * 2 / 3));
    ck_assert_uint_eq(pair[3].weight, MR_WEIGHT_MAX);
}
END_TEST

/* More than there can be: fewer paths for each pair first, then pairs, but no rail is left out. */
START_TEST(bound)
{
    unsigned used[2] = {0, 0};

    match("00000000", "00000000");
    a.paths = b.paths = 8;
    for (unsigned i = 0; i < 8; i++)
        near[i].lmc = far[i].lmc = 3;
    ck_assert_uint_eq(mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out), 32);
    ck_assert_uint_eq(left_out, 32);
    for (unsigned i = 0; i < 32; i++) {
        ck_assert_uint_eq(pair[i].rail[0], i / 4);
        ck_assert_uint_eq(pair[i].path, i % 4);
    }
    a.all = b.all = true;
    ck_assert_uint_eq(mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out), 32);
    ck_assert_uint_eq(left_out, 64 * 8 - 32);
    for (unsigned i = 0; i < 32; i++) {
        used[0] |= 1u << pair[i].rail[0];
        used[1] |= 1u << pair[i].rail[1];
        for (unsigned k = 0; k < i; k++)
            ck_assert_int_ne(memcmp(&pair[i].rail, &pair[k].rail, 2), 0);
    }
    ck_assert_uint_eq(used[0], 0xff);
    ck_assert_uint_eq(used[1], 0xff);
}
END_TEST

START_TEST(weights)
{
    unsigned n = match("000", "00");

    mr_pair_weigh(pair, n, &a, &b, true); /* 0-0 and 2-0 share a port */
    ck_assert_uint_eq(pair[0].weight, MR_WEIGHT_MAX / 2);
    ck_assert_uint_eq(pair[1].weight, MR_WEIGHT_MAX);
    ck_assert_uint_eq(pair[2].weight, MR_WEIGHT_MAX / 2);
    n = match("0", "00");
    mr_pair_weigh(pair, n, &a, &b, true);
    ck_assert_uint_eq(pair[0].weight, MR_WEIGHT_MAX);
    ck_assert_uint_eq(pair[1].weight, MR_WEIGHT_MAX);
    n = match("01", "01"); /* the slower end counts */
    near[1].rate_mbps = 25000;
    far[0].rate_mbps = 50000;
    mr_pair_weigh(pair, n, &a, &b, true);
    ck_assert_uint_eq(pair[0].weight, MR_WEIGHT_MAX);
    ck_assert_uint_eq(pair[1].weight, MR_WEIGHT_MAX / 2);
    mr_pair_weigh(pair, n, &a, &b, false);
    ck_assert_uint_eq(pair[1].weight, MR_WEIGHT_MAX);
    near[1].rate_mbps = 1;
    near[0].rate_mbps = far[0].rate_mbps = 0; /* not known: as the fastest */
    mr_pair_weigh(pair, n, &a, &b, true);
    ck_assert_uint_eq(pair[0].weight, MR_WEIGHT_MAX);
    ck_assert_uint_eq(pair[1].weight, MR_WEIGHT_MIN);
}
END_TEST

/* Both ends have the same list, pair each rail of a common subnet, and each pair is in one subnet. */
START_TEST(any_hosts)
{
    char first[9] = "", second[9] = "";
    struct mr_pair again[MR_SUBS_MAX];
    unsigned n, subs = 0, used[2] = {0, 0};

    srand((unsigned)_i);
    for (unsigned i = 0; i < 1 + (unsigned)rand() % 8; i++)
        first[i] = (char)('0' + rand() % 3);
    for (unsigned i = 0; i < 1 + (unsigned)rand() % 8; i++)
        second[i] = (char)('0' + rand() % 3);
    match(first, second);
    a.all = b.all = rand() % 2;
    n = mr_pair_match(&a, &b, pair, MR_SUBS_MAX, &left_out);
    mr_pair_weigh(pair, n, &a, &b, true);
    ck_assert_uint_eq(mr_pair_match(&a, &b, again, MR_SUBS_MAX, &left_out), n);
    for (unsigned i = 0; i < n; i++) {
        const struct mr_rail_addr *x = &near[pair[i].rail[0]], *y = &far[pair[i].rail[1]];

        ck_assert(mr_pair_reaches(x, y) && mr_pair_reaches(y, x));
        ck_assert_mem_eq(pair[i].rail, again[i].rail, 2);
        ck_assert_uint_le(pair[i].weight, MR_WEIGHT_MAX);
        ck_assert_uint_ge(pair[i].weight, MR_WEIGHT_MIN);
        used[0] |= 1u << pair[i].rail[0];
        used[1] |= 1u << pair[i].rail[1];
    }
    for (unsigned i = 0; i < a.num_rails; i++)
        for (unsigned k = 0; k < b.num_rails; k++)
            if (first[i] == second[k]) {
                subs++;
                ck_assert_uint_ne(used[0] & 1u << i, 0);
                ck_assert_uint_ne(used[1] & 1u << k, 0);
            }
    if (a.all)
        ck_assert_uint_eq(n + left_out, subs);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pair");

    tcase_add_test(t, equal_hosts);
    tcase_add_test(t, numbers_say_nothing);
    tcase_add_test(t, rates);
    tcase_add_test(t, nothing_in_common);
    tcase_add_test(t, every_rail_has_a_pair);
    tcase_add_test(t, roce_by_kind);
    tcase_add_test(t, all_pairs);
    tcase_add_test(t, paths);
    tcase_add_test(t, bound);
    tcase_add_test(t, weights);
    tcase_add_loop_test(t, any_hosts, 0, 500);
    return check_run(t, NULL);
}
