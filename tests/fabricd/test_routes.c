/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes through forwarding tables made by the test: known fabrics, missing tables, and unusual records. */
#include "fabricd/fabric/paths.h"
#include "fabricd/fabric/paths_text.h"
#include "fabricd/fabric/sweeps.h"
#include "tests/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct routes r;
static struct route route;
static struct routes_pair pair;
static uint8_t order[FD_PATHS_MAX];
static routes_need need;

/* ---- records ---- */

static uint8_t links[64 * 8];
static size_t num_links;

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void one_way(unsigned a, unsigned port_a, unsigned b, unsigned port_b)
{
    uint8_t *at = links + 8 * num_links++;
    put16(at, a);
    at[2] = (uint8_t)port_a;
    at[3] = (uint8_t)port_b;
    put16(at + 4, b);
}

static void cable(unsigned a, unsigned port_a, unsigned b, unsigned port_b)
{
    one_way(a, port_a, b, port_b);
    one_way(b, port_b, a, port_a);
}

static void take_links(uint64_t now)
{
    ck_assert_int_eq(routes_take(&r, ROUTES_CABLES, links, num_links, 8, now), 0);
}

struct way {
    unsigned lid, port;
};

/* A block of 64 LIDs. */
static void table_of(uint8_t rec[ROUTES_TABLE_RECORD], unsigned lid, unsigned block, const struct way *w)
{
    memset(rec, 255, ROUTES_TABLE_RECORD);
    put16(rec, lid);
    put16(rec + 2, block);
    for (; w->lid; w++)
        rec[8 + w->lid % 64] = (uint8_t)w->port;
}

static void take_table(unsigned lid, const struct way *w, uint64_t now)
{
    uint8_t rec[ROUTES_TABLE_RECORD];
    table_of(rec, lid, 0, w);
    ck_assert_int_eq(routes_take(&r, (routes_need)lid, rec, 1, sizeof(rec), now), 0);
}

/*
 * Leaves 1 and 2 with ports 1, 2 to hosts and 3, 4 to spines 3 and 5; hosts of two LIDs each: 10 and 12 on leaf 1, 20
 * on leaf 2. The paths of 20 take both spines, those to 12 only one.
 */
static void make_tree(void)
{
    routes_free(&r);
    num_links = 0;
    cable(1, 1, 10, 1);
    cable(1, 2, 12, 1);
    cable(2, 1, 20, 1);
    cable(1, 3, 3, 1);
    cable(1, 4, 5, 1);
    cable(2, 3, 3, 2);
    cable(2, 4, 5, 2);
    take_links(100);
    take_table(1, (struct way[]){{10, 1}, {11, 1}, {12, 2}, {13, 2}, {20, 3}, {21, 4}, {0}}, 100);
    take_table(2, (struct way[]){{10, 3}, {11, 4}, {12, 3}, {13, 3}, {20, 1}, {21, 1}, {0}}, 200);
    take_table(3, (struct way[]){{10, 1}, {11, 1}, {12, 1}, {13, 1}, {20, 2}, {21, 2}, {0}}, 300);
    take_table(5, (struct way[]){{10, 1}, {11, 1}, {12, 1}, {13, 1}, {20, 2}, {21, 2}, {0}}, 400);
}

static void is_hop(unsigned i, unsigned lid, unsigned port)
{
    ck_assert_uint_eq(route.hop[i].lid, lid);
    ck_assert_uint_eq(route.hop[i].port, port);
}

START_TEST(tree)
{
    make_tree();
    ck_assert_int_eq(routes_trace(&r, 10, 21, 20, &route, &need), ROUTES_THERE);
    ck_assert_uint_eq(route.num, 3);
    is_hop(0, 1, 4);
    is_hop(1, 5, 2);
    is_hop(2, 2, 1);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_THERE);
    ck_assert_uint_eq(routes_order(&pair, order), 2);
    ck_assert(order[0] == 0 && order[1] == 1);
    ck_assert_int_eq(routes_pair(&r, 20, 10, 2, &pair, &need), ROUTES_THERE);
    ck_assert_uint_eq(routes_order(&pair, order), 2);
    routes_free(&r);
}
END_TEST

/* There are two routes to 20 and one route back to 12: the paths share it, and so do those of hosts on one leaf. */
START_TEST(shared)
{
    make_tree();
    ck_assert_int_eq(routes_pair(&r, 12, 20, 2, &pair, &need), ROUTES_THERE);
    ck_assert_uint_eq(routes_order(&pair, order), 1);
    ck_assert(order[0] == 0 && order[1] == 1);
    ck_assert_int_eq(routes_pair(&r, 20, 12, 2, &pair, &need), ROUTES_THERE);
    ck_assert_uint_eq(routes_order(&pair, order), 1);
    ck_assert_int_eq(routes_pair(&r, 10, 12, 2, &pair, &need), ROUTES_THERE);
    ck_assert_uint_eq(pair.there[0].num, 1);
    ck_assert_uint_eq(routes_order(&pair, order), 1);
    routes_free(&r);
}
END_TEST

/* Of four paths, 0 and 2 share a cable, and so do 1 and 3: the second disjoint path is 1, whatever 2 is. */
START_TEST(later_ones)
{
    struct routes_pair p = {.num = 4, .has = {true, true, true, true}};
    for (unsigned i = 0; i < 4; i++) {
        p.there[i] = (struct route){.num = 3, .hop = {{1, (uint8_t)(3 + i % 2)}, {(uint16_t)(3 + i % 2), 9}, {2, 1}}};
        p.back[i] = (struct route){.num = 3, .hop = {{2, (uint8_t)(3 + i % 2)}, {(uint16_t)(3 + i % 2), 8}, {1, 1}}};
    }
    ck_assert_uint_eq(routes_order(&p, order), 2);
    ck_assert(order[0] == 0 && order[1] == 1 && order[2] == 2 && order[3] == 3);
    p.has[1] = false; /* it leads nowhere: 3 takes its part, and 1 comes last but for its number */
    ck_assert_uint_eq(routes_order(&p, order), 2);
    ck_assert(order[0] == 0 && order[1] == 3 && order[2] == 1 && order[3] == 2);
}
END_TEST

/* The same switches, but two cables between them. */
START_TEST(cables_count)
{
    routes_free(&r);
    num_links = 0;
    cable(1, 1, 10, 1);
    cable(2, 1, 20, 1);
    cable(1, 3, 2, 3);
    cable(1, 4, 2, 4);
    take_links(1);
    take_table(1, (struct way[]){{10, 1}, {11, 1}, {20, 3}, {21, 4}, {0}}, 1);
    take_table(2, (struct way[]){{10, 3}, {11, 4}, {20, 1}, {21, 1}, {0}}, 1);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_THERE);
    ck_assert_uint_eq(routes_order(&pair, order), 2);
    routes_free(&r);
}
END_TEST

/* Missing tables are named, one by one, and forgotten by age. */
START_TEST(missing)
{
    routes_free(&r);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_NEEDS);
    ck_assert_uint_eq(need, ROUTES_CABLES);
    make_tree();
    ck_assert_uint_gt(routes_memory(&r), 4 * 64);
    routes_forget(&r, 100);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_THERE);
    routes_forget(&r, 350);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_NEEDS);
    ck_assert_uint_eq(need, ROUTES_CABLES);
    take_links(500);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_NEEDS);
    ck_assert_uint_eq(need, 1);
    take_table(1, (struct way[]){{20, 4}, {0}}, 500); /* spine 5 is known still */
    ck_assert_int_eq(routes_pair(&r, 10, 20, 1, &pair, &need), ROUTES_NEEDS);
    ck_assert_uint_eq(need, 2);
    routes_free(&r);
    ck_assert_uint_eq(routes_memory(&r), 0);
}
END_TEST

/* Parts that are forgotten are listed, and a difference is noted when they are read again. */
START_TEST(changes)
{
    unsigned stale = 0;
    make_tree();
    struct routes_count n = routes_count(&r);
    ck_assert(n.switches == 4 && n.adapters == 3);
    ck_assert_uint_eq(routes_parts(&r), 5);
    routes_forget(&r, UINT64_MAX);
    for (unsigned i = 0; i < routes_parts(&r); i++) {
        stale += routes_stale(&r, i, &need);
        ck_assert_uint_eq(need, i == 4 ? 5 : i); /* cables, then switches 1, 2, 3 and 5 */
    }
    ck_assert_uint_eq(stale, 5);
    take_links(500);
    take_table(1, (struct way[]){{10, 1}, {11, 1}, {12, 2}, {13, 2}, {20, 3}, {21, 4}, {0}}, 500);
    ck_assert(!routes_stale(&r, 0, &need) && !routes_stale(&r, 1, &need) && routes_stale(&r, 2, &need));
    ck_assert(!r.changed);
    take_table(2, (struct way[]){{10, 3}, {11, 3}, {12, 3}, {13, 3}, {20, 1}, {21, 1}, {0}}, 500);
    ck_assert(r.changed); /* 11 goes another way */
    r.changed = false;
    take_table(3, (struct way[]){{10, 1}, {11, 1}, {12, 1}, {13, 1}, {20, 2}, {21, 2}, {0}}, 500);
    ck_assert(!r.changed);
    ck_assert_int_eq(routes_take(&r, 5, NULL, 0, ROUTES_TABLE_RECORD, 500), 0); /* the switch has gone */
    ck_assert(r.changed);
    r.changed = false;
    one_way(5, 3, 30, 1);
    take_links(600);
    ck_assert(r.changed);
    r.changed = false;
    links[5] = 99; /* the far end of the first cable */
    take_links(700);
    ck_assert(r.changed);
    routes_free(&r);
}
END_TEST

#define SM_RECORD 32

static void sm_record(uint8_t rec[SM_RECORD], uint8_t guid, unsigned count, unsigned state)
{
    memset(rec, 0, SM_RECORD);
    rec[11] = guid;
    put16(rec + 22, count);
    rec[24] = (uint8_t)(0x80 | state);
}

START_TEST(masters)
{
    uint8_t rec[2][SM_RECORD];
    uint64_t guid;
    uint32_t count;
    sm_record(rec[0], 7, 100, 2); /* stands by */
    sm_record(rec[1], 9, 200, 3);
    ck_assert(sweeps_master(rec[0], 2, SM_RECORD, &guid, &count));
    ck_assert(guid == 9 && count == 200);
    ck_assert(!sweeps_master(rec[0], 1, SM_RECORD, &guid, &count));
    ck_assert(!sweeps_master(rec[1], 1, 24, &guid, &count)); /* too short */
}
END_TEST

/* Counts as read from opensm with 5 switches: a light sweep each 10 s, then a cable pulled and back. */
START_TEST(sweeps)
{
    struct sweeps s = {0};
    static const unsigned light[] = {220, 221, 222, 223, 229, 230, 231};
    ck_assert(sweeps_take(&s, 1, 219, 5));
    ck_assert(sweeps_take(&s, 1, 219, 5)); /* what was under way at the first look may have ended since */
    for (unsigned i = 0; i < sizeof(light) / sizeof(*light); i++)
        ck_assert(!sweeps_take(&s, 1, light[i], 5));
    ck_assert(sweeps_take(&s, 1, 317, 5));
    ck_assert(sweeps_take(&s, 1, 384, 5));
    ck_assert(sweeps_take(&s, 1, 391, 5)); /* and once after it */
    ck_assert(!sweeps_take(&s, 1, 393, 5));
    ck_assert(sweeps_take(&s, 2, 393, 5)); /* another master */
    ck_assert(sweeps_take(&s, 2, 393, 5));
    ck_assert(sweeps_take(&s, 2, 12, 5)); /* the same, started again */
    ck_assert(sweeps_take(&s, 2, 12, 5));
    ck_assert(!sweeps_take(&s, 2, 12, 5));
}
END_TEST

/* Tables lead in a circle, out of a port without a cable, or have no port for the LID. */
START_TEST(nowhere)
{
    make_tree();
    ck_assert_int_eq(routes_trace(&r, 10, 30, 30, &route, &need), ROUTES_NOWHERE);
    ck_assert_int_eq(routes_trace(&r, 10, 64, 64, &route, &need), ROUTES_NOWHERE); /* beyond the table */
    ck_assert_int_eq(routes_trace(&r, 99, 20, 20, &route, &need), ROUTES_NOWHERE); /* without a cable */
    take_table(3, (struct way[]){{20, 1}, {0}}, 500);
    ck_assert_int_eq(routes_trace(&r, 10, 20, 20, &route, &need), ROUTES_NOWHERE);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_NOWHERE);
    take_table(1, (struct way[]){{20, 9}, {21, 0}, {0}}, 500);
    ck_assert_int_eq(routes_trace(&r, 10, 20, 20, &route, &need), ROUTES_NOWHERE);
    ck_assert_int_eq(routes_trace(&r, 10, 21, 20, &route, &need), ROUTES_NOWHERE);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 0, &pair, &need), ROUTES_NOWHERE);
    routes_free(&r);
}
END_TEST

/* Path 1 leads nowhere: path 0 does all the same. */
START_TEST(one_of_two)
{
    make_tree();
    take_table(5, (struct way[]){{20, 2}, {0}}, 500);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_THERE);
    ck_assert(pair.has[0] && !pair.has[1]);
    ck_assert_uint_eq(routes_order(&pair, order), 1);
    routes_free(&r);
}
END_TEST

/* Records of other switches, of impossible blocks, and too short. */
START_TEST(odd_records)
{
    uint8_t rec[3][ROUTES_TABLE_RECORD];
    make_tree();
    table_of(rec[0], 7, 0, (struct way[]){{20, 1}, {0}});
    table_of(rec[1], 8, 0, (struct way[]){{20, 2}, {0}});
    table_of(rec[2], 7, 768, (struct way[]){{20, 3}, {0}});
    ck_assert_int_eq(routes_take(&r, 7, rec[0], 3, sizeof(rec[0]), 1), 0);
    num_links = 0;
    cable(10, 1, 7, 5);
    cable(7, 1, 20, 1);
    take_links(1);
    ck_assert_int_eq(routes_trace(&r, 10, 20, 20, &route, &need), ROUTES_THERE);
    ck_assert_uint_eq(route.num, 1);
    is_hop(0, 7, 1);
    ck_assert_int_eq(routes_take(&r, 7, rec[0], 1, ROUTES_TABLE_RECORD - 1, 1), 0);
    ck_assert_int_eq(routes_trace(&r, 10, 20, 20, &route, &need), ROUTES_NOWHERE);
    ck_assert_int_eq(routes_take(&r, ROUTES_CABLES, links, num_links, 5, 1), 0);
    ck_assert_int_eq(routes_trace(&r, 10, 20, 20, &route, &need), ROUTES_NOWHERE);
    routes_free(&r);
}
END_TEST

/* A line of switches that is longer than a path may be ends. */
START_TEST(too_long)
{
    routes_free(&r);
    num_links = 0;
    cable(500, 1, 1, 1);
    take_links(1);
    one_way(1, 2, 1, 1); /* into itself */
    take_links(1);
    take_table(1, (struct way[]){{20, 2}, {0}}, 1);
    ck_assert_int_eq(routes_trace(&r, 500, 20, 20, &route, &need), ROUTES_NOWHERE);
    ck_assert_uint_eq(route.num, ROUTES_HOPS_MAX);
    routes_free(&r);
}
END_TEST

/* ---- for people ---- */

#define NODE 112
static uint8_t nodes[8 * NODE];

static void node(unsigned i, unsigned lid, unsigned type, const char *name)
{
    put16(nodes + i * NODE, lid);
    nodes[i * NODE + 6] = (uint8_t)type;
    memset(nodes + i * NODE + 44, 0, 64);
    memcpy(nodes + i * NODE + 44, name, strlen(name));
}

static int find(const struct paths_names *n, const char *a, const char *b, uint16_t *from, uint16_t *to)
{
    struct fd_ends ends = {.from = ""};
    struct text why = {0};
    strcpy(ends.from, a);
    strcpy(ends.to, b);
    int rc = paths_names_find(n, &ends, from, to, &why);
    ck_assert(!rc == !why.len);
    text_free(&why);
    return rc;
}

START_TEST(names)
{
    struct paths_names n = {0};
    uint16_t from, to;
    node(0, 20, 1, "h2 mlx5_0");
    node(1, 1, 2, "h3");
    node(2, 10, 1, "h1 mlx5_0");
    node(3, 12, 1, "h1 mlx5_1");
    node(4, 14, 1, "h11 mlx5_0");
    node(5, 16, 1, "0123456789012345678901234567890123456789012345678901234567890123"); /* no zero at its end */
    ck_assert_int_eq(paths_names_take(&n, nodes, 6, NODE), 0);
    ck_assert_int_eq(find(&n, "h1", "h2", &from, &to), 0);
    ck_assert(from == 10 && to == 20);
    ck_assert_int_eq(find(&n, "h2 mlx5_0", "h1 mlx5_1", &from, &to), 0);
    ck_assert(from == 20 && to == 12);
    ck_assert_int_eq(find(&n, "h1", "h3", &from, &to), -ENOENT); /* a switch */
    ck_assert_int_eq(find(&n, "h", "h2", &from, &to), -ENOENT);
    ck_assert_int_eq(find(&n, "h1", "h1 mlx5_0", &from, &to), -ENOENT); /* the same */
    ck_assert_int_eq(paths_names_take(&n, nodes, 6, NODE - 8), 0);      /* too short for a name */
    ck_assert_int_eq(find(&n, "h1", "h2", &from, &to), -ENOENT);
    paths_names_free(&n);
}
END_TEST

START_TEST(as_text)
{
    struct paths_question q = {.from = 10, .to = 20, .num = 2};
    struct paths_names n = {0};
    struct text t = {0};
    make_tree();
    node(0, 1, 2, "leaf: 1");
    node(1, 3, 2, "spine\x1b");
    ck_assert_int_eq(paths_names_take(&n, nodes, 2, NODE), 0);
    take_table(5, (struct way[]){{20, 2}, {0}}, 500);
    ck_assert_int_eq(routes_pair(&r, 10, 20, 2, &pair, &need), ROUTES_THERE);
    paths_text(&t, &n, &q, &pair);
    ck_assert_str_eq(text_str(&t),
                     "from: {node: LID 10, lid: 10}\nto: {node: LID 20, lid: 20}\ndisjoint: 1\npaths:\n"
                     "  - path: 0\n    disjoint: yes\n    there: [{switch: \"leaf: 1\", port: 3}, {switch: "
                     "\"spine\\\\x1b\", port: 2}, {switch: LID 2, port: 1}]\n    back: [{switch: LID 2, port: "
                     "3}, {switch: \"spine\\\\x1b\", port: 1}, {switch: \"leaf: 1\", port: 1}]\n"
                     "  - path: 1\n    disjoint: no\n    there: none\n");
    text_free(&t);
    paths_names_free(&n);
    routes_free(&r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("routes"), *people = tcase_create("people");
    tcase_add_test(t, tree);
    tcase_add_test(t, shared);
    tcase_add_test(t, later_ones);
    tcase_add_test(t, cables_count);
    tcase_add_test(t, missing);
    tcase_add_test(t, changes);
    tcase_add_test(t, masters);
    tcase_add_test(t, sweeps);
    tcase_add_test(t, nowhere);
    tcase_add_test(t, one_of_two);
    tcase_add_test(t, odd_records);
    tcase_add_test(t, too_long);
    tcase_add_test(people, names);
    tcase_add_test(people, as_text);
    return check_run(t, people, NULL);
}
