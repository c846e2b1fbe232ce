/* SPDX-License-Identifier: BSD-3-Clause */
/* Who goes where (mrrun/placement) and who is where (libmrmpi/launch/nodemap). */
#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/launch/mapping.h"
#include "libmrmpi/launch/nodemap.h"
#include "mrrun/placement.h"
#include "tests/check.h"

static char why[256];

/* What the library reads of the text is where the ranks are. */
static void check_map(const struct placement *p)
{
    char *text = placement_map(p);
    uint32_t node_of[32];

    ck_assert_ptr_nonnull(text);
    ck_assert_int_le(p->ranks, 32);
    ck_assert_int_eq(mr_mapping_parse(text, p->ranks, node_of), 0);
    for (int r = 0; r < p->ranks; r++)
        ck_assert_int_eq(node_of[r], p->host_of[r]);
    free(text);
}

static void check_places(int ranks, int hosts, int ppn, const int *want)
{
    struct placement p;

    ck_assert_int_eq(placement_make(&p, ranks, hosts, ppn, why, sizeof(why)), 0);
    for (int r = 0; r < ranks; r++)
        ck_assert_int_eq(p.host_of[r], want[r]);
    ck_assert_int_eq(p.first[0], 0);
    ck_assert_int_eq(p.first[p.num_hosts], ranks);
    check_map(&p);
    placement_clear(&p);
}

START_TEST(blocks)
{
    check_places(4, 2, 0, (int[]){0, 0, 1, 1});
    check_places(5, 2, 0, (int[]){0, 0, 0, 1, 1});
    check_places(4, 4, 1, (int[]){0, 1, 2, 3});
    check_places(4, 4, 3, (int[]){0, 0, 0, 1});
    check_places(1, 8, 0, (int[]){0});
    check_places(3, 1, 0, (int[]){0, 0, 0});
}
END_TEST

START_TEST(map_is_short)
{
    struct placement p;
    char *text;

    ck_assert_int_eq(placement_make(&p, 100000, 100000, 1, why, sizeof(why)), 0);
    ck_assert_str_eq(text = placement_map(&p), "(vector,(0,100000,1))");
    free(text);
    placement_clear(&p);
    ck_assert_int_eq(placement_make(&p, 1001, 32, 32, why, sizeof(why)), 0);
    ck_assert_str_eq(text = placement_map(&p), "(vector,(0,31,32),(31,1,9))");
    free(text);
    placement_clear(&p);
}
END_TEST

START_TEST(unused_hosts_are_not_counted)
{
    struct placement p;

    ck_assert_int_eq(placement_make(&p, 3, 8, 2, why, sizeof(why)), 0);
    ck_assert_int_eq(p.num_hosts, 2);
    placement_clear(&p);
}
END_TEST

START_TEST(too_few_hosts)
{
    struct placement p;

    ck_assert_int_eq(placement_make(&p, 5, 2, 2, why, sizeof(why)), -1);
    ck_assert_str_eq(why, "5 ranks at 2 per host need 3 hosts, and there are 2 (more --hosts or a larger --ppn)");
    ck_assert_int_eq(placement_make(&p, 5, 0, 2, why, sizeof(why)), -1);
}
END_TEST

START_TEST(map_from_ids)
{
    struct mr_nodemap m;
    const uint32_t ids[] = {70, 3, 70, 4000000000u, 3, 70};
    const int nodes[] = {0, 1, 0, 2, 1, 0}, peers[] = {0, 2, 5};

    ck_assert_int_eq(mr_nodemap_from_ids(&m, 2, 6, ids), 0);
    ck_assert_int_eq(m.num_nodes, 3);
    ck_assert_int_eq(m.local_rank, 1);
    ck_assert_int_eq(m.local_size, 3);
    for (int r = 0; r < 6; r++)
        ck_assert_int_eq(m.node_of[r], nodes[r]);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(m.local_ranks[i], peers[i]);
    mr_nodemap_clear(&m);
}
END_TEST

/* In order of appearance already, but for one: they are not sorted, or all are. */
START_TEST(map_from_dense_ids)
{
    struct mr_nodemap m;
    const uint32_t dense[] = {0, 0, 1, 0, 2, 1}, other[] = {0, 0, 2, 0, 1, 2};
    const int peers[] = {2, 5};

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(mr_nodemap_from_ids(&m, 5, 6, i ? other : dense), 0);
        ck_assert_int_eq(m.num_nodes, 3);
        ck_assert_int_eq(m.local_rank, 1);
        ck_assert_int_eq(m.local_size, 2);
        for (int r = 0; r < 6; r++)
            ck_assert_int_eq(m.node_of[r], dense[r]);
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(m.local_ranks[k], peers[k]);
        mr_nodemap_clear(&m);
    }
}
END_TEST

START_TEST(map_from_names)
{
    struct mr_nodemap m;
    const char *const names[] = {"h2", "h10", "h1", "h10", "h2"};
    const int nodes[] = {0, 1, 2, 1, 0};

    ck_assert_int_eq(mr_nodemap_from_names(&m, 3, 5, names), 0);
    ck_assert_int_eq(m.num_nodes, 3);
    ck_assert_int_eq(m.local_rank, 1);
    ck_assert_int_eq(m.local_size, 2);
    ck_assert_int_eq(m.local_ranks[0], 1);
    ck_assert_int_eq(m.local_ranks[1], 3);
    for (int r = 0; r < 5; r++)
        ck_assert_int_eq(m.node_of[r], nodes[r]);
    mr_nodemap_clear(&m);
}
END_TEST

START_TEST(map_refuses_nonsense)
{
    struct mr_nodemap m;
    const uint32_t id = 0;

    ck_assert_int_eq(mr_nodemap_from_ids(&m, 0, 0, &id), -EINVAL);
    ck_assert_int_eq(mr_nodemap_from_ids(&m, 1, 1, &id), -EINVAL);
    ck_assert_int_eq(mr_nodemap_from_ids(&m, -1, 1, &id), -EINVAL);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("placement");

    tcase_add_test(tc, blocks);
    tcase_add_test(tc, map_is_short);
    tcase_add_test(tc, unused_hosts_are_not_counted);
    tcase_add_test(tc, too_few_hosts);
    tcase_add_test(tc, map_from_ids);
    tcase_add_test(tc, map_from_dense_ids);
    tcase_add_test(tc, map_from_names);
    tcase_add_test(tc, map_refuses_nonsense);
    return check_run(tc, NULL);
}
