/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement of ranks (mrrun/placement), and its reading by the library (libmrmpi/launch/nodemap). */
#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/launch/mapping.h"
#include "libmrmpi/launch/nodemap.h"
#include "mrrun/placement.h"
#include "tests/check.h"

static char why[256];

/* The library reads the ranks' true places from the text. */
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

static struct placement_wish one_part(const struct placement_part *part, int hosts, int ppn)
{
    return (struct placement_wish){.part = part, .num_parts = 1, .num_hosts = hosts, .ppn = ppn};
}

/* want: the hosts of all ranks, by their numbers in the wish. */
static void check_wish(const struct placement_wish *wish, int ranks, const int *want)
{
    int local[32] = {0};
    struct placement p;

    ck_assert_msg(placement_make(&p, wish, why, sizeof(why)) == 0, "%s", why);
    ck_assert_int_eq(p.ranks, ranks);
    for (int r = 0; r < ranks; r++) {
        ck_assert_int_lt(p.host_of[r], p.num_hosts);
        ck_assert_int_eq(p.used[p.host_of[r]], want[r]);
        ck_assert_int_eq(p.local_rank[r], local[want[r]]++);
    }
    for (int h = 0; h < p.num_hosts; h++)
        ck_assert_int_eq(p.ranks_of[h], local[p.used[h]]);
    ck_assert_int_eq(p.part_first[0], 0);
    ck_assert_int_eq(p.part_first[p.num_parts], ranks);
    check_map(&p);
    placement_clear(&p);
}

static void check_places(int ranks, int hosts, int ppn, const int *want)
{
    const struct placement_part part = {.ranks = ranks};
    const struct placement_wish wish = one_part(&part, hosts, ppn);

    check_wish(&wish, ranks, want);
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

START_TEST(in_turn)
{
    const struct placement_part part = {.ranks = 5};
    struct placement_wish wish = one_part(&part, 2, 0);

    wish.by_node = true;
    check_wish(&wish, 5, (int[]){0, 1, 0, 1, 0});
    wish.ppn = 3;
    check_wish(&wish, 5, (int[]){0, 1, 0, 1, 0});
    wish.num_hosts = 3;
    wish.slots = (struct placement_slots[]){{1, 0}, {3, 0}, {1, 0}};
    wish.ppn = 0;
    check_wish(&wish, 5, (int[]){0, 1, 2, 1, 1});
}
END_TEST

START_TEST(slots)
{
    const struct placement_part part = {.ranks = 4};
    struct placement_wish wish = one_part(&part, 3, 0);
    struct placement p;

    wish.slots = (struct placement_slots[]){{1, 0}, {0, 0}, {2, 2}}; /* one host for which only others give a number */
    check_wish(&wish, 4, (int[]){0, 1, 2, 2});
    wish.num_hosts = 2;
    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), -1);
    ck_assert_str_eq(why, "4 ranks need as many slots, and the hosts have 2 (--oversubscribe takes more)");
    wish.oversubscribe = true;
    check_wish(&wish, 4, (int[]){0, 1, 0, 1});
    wish.slots = (struct placement_slots[]){{1, 1}, {1, 0}};
    check_wish(&wish, 4, (int[]){0, 1, 1, 1});
    wish.slots = (struct placement_slots[]){{1, 1}, {1, 2}};
    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), -1);
    ck_assert_str_eq(why, "4 ranks need as many slots, and the hosts have 3 (max_slots)");
}
END_TEST

/* Parts without hosts of their own are placed as one, the others on their hosts. */
START_TEST(parts)
{
    const struct placement_part part[] = {
        {.ranks = 1}, {.ranks = 3}, {.ranks = 3, .hosts = (int[]){3, 1}, .num_hosts = 2}, {.ranks = 1}};
    const int part_of[] = {0, 1, 1, 1, 2, 2, 2, 3};
    struct placement_wish wish = {.part = part, .num_parts = 2, .num_hosts = 2};
    struct placement p;

    check_wish(&wish, 4, (int[]){0, 0, 1, 1});
    wish.num_parts = 4;
    wish.num_hosts = 4;
    check_wish(&wish, 8, (int[]){0, 1, 2, 3, 3, 3, 1, 0});
    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), 0);
    for (int r = 0; r < 8; r++)
        ck_assert_int_eq(placement_part_of(&p, r), part_of[r]);
    placement_clear(&p);
    wish.ppn = 2; /* host 1 is full when the third part comes to it */
    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), -1);
    ck_assert_str_eq(why, "3 ranks at 2 per host need 2 hosts, and there are 2 (more --hosts or a larger --ppn)");
}
END_TEST

START_TEST(map_is_short)
{
    struct placement_part part = {.ranks = 100000};
    struct placement_wish wish = one_part(&part, 100000, 1);
    struct placement p;
    char *text;

    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), 0);
    ck_assert_str_eq(text = placement_map(&p), "(vector,(0,100000,1))");
    free(text);
    placement_clear(&p);
    part.ranks = 1001;
    wish.num_hosts = wish.ppn = 32;
    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), 0);
    ck_assert_str_eq(text = placement_map(&p), "(vector,(0,31,32),(31,1,9))");
    free(text);
    placement_clear(&p);
}
END_TEST

START_TEST(unused_hosts_are_not_counted)
{
    const struct placement_part part = {.ranks = 3};
    const struct placement_wish wish = one_part(&part, 8, 2);
    struct placement p;

    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), 0);
    ck_assert_int_eq(p.num_hosts, 2);
    placement_clear(&p);
}
END_TEST

START_TEST(too_few_hosts)
{
    const struct placement_part part = {.ranks = 5};
    struct placement_wish wish = one_part(&part, 2, 2);
    struct placement p;

    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), -1);
    ck_assert_str_eq(why, "5 ranks at 2 per host need 3 hosts, and there are 2 (more --hosts or a larger --ppn)");
    wish.num_hosts = 0;
    ck_assert_int_eq(placement_make(&p, &wish, why, sizeof(why)), -1);
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

/* Already in order of appearance, except one: unsorted, or all sorted. */
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
    tcase_add_test(tc, in_turn);
    tcase_add_test(tc, slots);
    tcase_add_test(tc, parts);
    tcase_add_test(tc, map_is_short);
    tcase_add_test(tc, unused_hosts_are_not_counted);
    tcase_add_test(tc, too_few_hosts);
    tcase_add_test(tc, map_from_ids);
    tcase_add_test(tc, map_from_dense_ids);
    tcase_add_test(tc, map_from_names);
    tcase_add_test(tc, map_refuses_nonsense);
    return check_run(tc, NULL);
}
