/* SPDX-License-Identifier: BSD-3-Clause */
/* The oversubscription of fabrics: known ones, and any against the definition. */
#include "fabricd/fabric/cables.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#define NODES  200
#define CABLES 1000

static bool is_switch[NODES];
static struct cable cables[CABLES];
static size_t nodes, num;

static void nothing(void)
{
    nodes = num = 0;
}

static uint32_t add_switch(void)
{
    is_switch[nodes] = true;
    return (uint32_t)nodes++;
}

static void join(uint32_t a, uint32_t b, unsigned times)
{
    while (times--)
        cables[num++] = random() % 2 ? (struct cable){a, b} : (struct cable){b, a};
}

static void adapters(uint32_t at, unsigned n)
{
    while (n--) {
        is_switch[nodes] = false;
        join(at, (uint32_t)nodes++, 1);
    }
}

static unsigned switch_with(unsigned n)
{
    uint32_t s = add_switch();
    adapters(s, n);
    return s;
}

static unsigned result(void)
{
    struct cable copy[CABLES];
    memcpy(copy, cables, num * sizeof(*copy));
    return cables_oversubscription(is_switch, nodes, copy, num);
}

/* ---- known fabrics ---- */

static void line(unsigned switches, unsigned each, unsigned trunk)
{
    nothing();
    for (uint32_t i = 0, before = 0; i < switches; i++) {
        uint32_t s = switch_with(each);
        if (i)
            join(before, s, trunk);
        before = s;
    }
}

START_TEST(one_switch)
{
    nothing();
    ck_assert_uint_eq(result(), 1);
    switch_with(40);
    ck_assert_uint_eq(result(), 1);
    nothing(); /* two adapters and no switch */
    is_switch[0] = is_switch[1] = false;
    nodes = 2;
    join(0, 1, 1);
    ck_assert_uint_eq(result(), 1);
}
END_TEST

START_TEST(a_trunk)
{
    line(2, 4, 1);
    ck_assert_uint_eq(result(), 4);
    line(2, 4, 2);
    ck_assert_uint_eq(result(), 2);
    line(2, 4, 3);
    ck_assert_uint_eq(result(), 2); /* rounded up */
    line(2, 4, 8);
    ck_assert_uint_eq(result(), 1);
}
END_TEST

START_TEST(the_middle_of_a_line)
{
    line(6, 4, 1);
    ck_assert_uint_eq(result(), 12); /* either half */
    line(6, 4, 2);
    ck_assert_uint_eq(result(), 6);
    line(5, 4, 1);
    ck_assert_uint_eq(result(), 8);
}
END_TEST

static void fat_tree(unsigned leaves, unsigned each, unsigned spines, unsigned trunk)
{
    nothing();
    uint32_t spine[16];
    for (unsigned i = 0; i < spines; i++)
        spine[i] = add_switch();
    for (unsigned i = 0; i < leaves; i++) {
        uint32_t leaf = switch_with(each);
        for (unsigned k = 0; k < spines; k++)
            join(leaf, spine[k], trunk);
    }
}

START_TEST(fat_trees)
{
    fat_tree(4, 8, 8, 1);
    ck_assert_uint_eq(result(), 1);
    fat_tree(4, 8, 4, 1);
    ck_assert_uint_eq(result(), 2);
    fat_tree(4, 8, 2, 2);
    ck_assert_uint_eq(result(), 2);
    fat_tree(4, 9, 4, 1);
    ck_assert_uint_eq(result(), 3);
    fat_tree(3, 8, 1, 8); /* the only way, and wide enough */
    ck_assert_uint_eq(result(), 1);
    fat_tree(6, 8, 1, 4);
    ck_assert_uint_eq(result(), 2);
}
END_TEST

/* Two fabrics of three switches each, in rings, and a cable between the rings. */
START_TEST(a_bridge)
{
    nothing();
    uint32_t s[6];
    for (unsigned i = 0; i < 6; i++)
        s[i] = switch_with(2);
    for (unsigned i = 0; i < 6; i++)
        join(s[i], s[i / 3 * 3 + (i + 1) % 3], 1);
    join(s[0], s[3], 1);
    ck_assert_uint_eq(result(), 6);
    join(s[3], s[0], 2);
    ck_assert_uint_eq(result(), 2);
    join(s[1], s[4], 1); /* no bridge any more, and each switch has 2 ports and 2 cables or more */
    ck_assert_uint_eq(result(), 1);
}
END_TEST

/* ---- any fabric: each trunk is removed, and the rest is checked ---- */

static unsigned ports_from(uint32_t start, uint32_t no_a, uint32_t no_b, bool *reached)
{
    unsigned ports = 0;
    memset(reached, 0, NODES * sizeof(*reached));
    reached[start] = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < num; i++) {
            uint32_t a = cables[i].a, b = cables[i].b;
            if ((a == no_a && b == no_b) || (a == no_b && b == no_a) || reached[a] == reached[b])
                continue;
            reached[a] = reached[b] = more = true;
        }
    }
    for (size_t i = 0; i < nodes; i++)
        ports += reached[i] && !is_switch[i];
    return ports;
}

static unsigned up(unsigned ports, unsigned n)
{
    return (ports + n - 1) / n;
}

static unsigned by_definition(void)
{
    unsigned most = 1, all = 0;
    bool reached[NODES];
    for (size_t i = 0; i < nodes; i++)
        all += !is_switch[i];
    for (uint32_t s = 0; s < nodes; s++) {
        unsigned own = 0, others = 0;
        for (size_t i = 0; i < num && is_switch[s]; i++)
            if ((cables[i].a == s) != (cables[i].b == s)) {
                bool to_switch = is_switch[cables[i].a == s ? cables[i].b : cables[i].a];
                own += !to_switch;
                others += to_switch;
            }
        if (others && up(own, others) > most)
            most = up(own, others);
    }
    for (size_t i = 0; i < num; i++) {
        uint32_t a = cables[i].a, b = cables[i].b;
        unsigned side, same = 0;
        if (!is_switch[a] || !is_switch[b] || a == b)
            continue;
        side = ports_from(a, a, b, reached);
        if (reached[b])
            continue;
        for (size_t k = 0; k < num; k++)
            same += (cables[k].a == a && cables[k].b == b) || (cables[k].a == b && cables[k].b == a);
        side = up(side < all - side ? side : all - side, same);
        most = side > most ? side : most;
    }
    return most;
}

START_TEST(any_fabric)
{
    unsigned bridged = 0;
    for (unsigned seed = 0; seed < 2000; seed++) {
        srandom(seed);
        nothing();
        unsigned switches = 1 + (unsigned)random() % 12, extra = (unsigned)random() % (1 + switches);
        for (uint32_t i = 0; i < switches; i++)
            add_switch();
        for (uint32_t i = 1; i < switches; i++)
            join(i, (uint32_t)random() % i, 1 + (unsigned)random() % 3);
        while (extra--) /* also from a switch to itself */
            join((uint32_t)random() % switches, (uint32_t)random() % switches, 1);
        for (uint32_t i = 0; i < switches; i++)
            adapters(i, (unsigned)random() % 9);
        unsigned want = by_definition(), got = result();
        ck_assert_msg(want == got, "seed %u: %u, should be %u", seed, got, want);
        bridged += got > 8; /* no single switch has so many */
    }
    ck_assert_uint_gt(bridged, 100);
}
END_TEST

/* As deep as a fabric can be. */
START_TEST(a_long_line)
{
    enum { N = 60000 };
    static bool all_switches[N];
    static struct cable chain[N];
    for (uint32_t i = 0; i < N; i++)
        all_switches[i] = i % 2; /* an adapter, and its switch */
    for (uint32_t i = 1, k = 0; i < N; i += 2) {
        chain[k++] = (struct cable){i - 1, i};
        if (i > 1)
            chain[k++] = (struct cable){i, i - 2};
    }
    ck_assert_uint_eq(cables_oversubscription(all_switches, N, chain, N - 1), N / 4);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("cables");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, one_switch);
    tcase_add_test(c, a_trunk);
    tcase_add_test(c, the_middle_of_a_line);
    tcase_add_test(c, fat_trees);
    tcase_add_test(c, a_bridge);
    tcase_add_test(c, any_fabric);
    tcase_add_test(c, a_long_line);
    return check_run(c, NULL);
}
