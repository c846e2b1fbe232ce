/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups, grids and the division of messages into parts: functions from data to data. */
#include <stdlib.h>

#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/core/core.h"
#include "tests/check.h"

struct mr_comm *mr_comm_world;

static struct mr_group *group(int n, const int *world)
{
    struct mr_group *g = mr_group_new(n, world);
    ck_assert_ptr_nonnull(g);
    return g;
}

static void expect(struct mr_group *g, int n, const int *world)
{
    ck_assert_int_eq(g->size, n);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(g->world[i], world[i]);
    mr_group_put(g);
}

START_TEST(sets)
{
    struct mr_group *a = group(4, (int[]){3, 1, 7, 5}), *b = group(3, (int[]){5, 9, 1});
    expect(mr_group_union(a, b), 5, (int[]){3, 1, 7, 5, 9});
    expect(mr_group_intersection(a, b), 2, (int[]){1, 5});
    expect(mr_group_difference(a, b), 2, (int[]){3, 7});
    expect(mr_group_incl(a, 2, (int[]){3, 0}), 2, (int[]){5, 3});
    expect(mr_group_excl(a, 2, (int[]){3, 0}), 2, (int[]){1, 7});
    ck_assert_ptr_eq(mr_group_difference(a, a), &mr_group_empty);
    expect(mr_group_union(&mr_group_empty, b), 3, (int[]){5, 9, 1});
    mr_group_put(a);
    mr_group_put(b);
}
END_TEST

/* By color, in order of the keys, else of the ranks. All of a group in its order takes no memory of its own. */
START_TEST(splits)
{
    struct mr_group *g = group(4, (int[]){3, 1, 7, 5}),
                    *all = mr_group_split(g, (int[][2]){{2, 0}, {2, 0}, {2, 1}, {2, 1}}, 2);
    ck_assert_ptr_eq(all, g);
    ck_assert_int_eq(g->refs, 2);
    mr_group_put(all);
    expect(mr_group_split(g, (int[][2]){{2, 0}, {2, 0}, {2, -1}, {2, 0}}, 2), 4, (int[]){7, 3, 1, 5});
    expect(mr_group_split(g, (int[][2]){{2, 1}, {0, 0}, {2, 0}, {0, 0}}, 2), 2, (int[]){7, 3});
    expect(mr_group_split(g, (int[][2]){{2, 0}, {2, 0}, {2, 0}, {0, 0}}, 2), 3, (int[]){3, 1, 7});
    ck_assert_int_eq(g->refs, 1);
    mr_group_put(g);
}
END_TEST

/* Groups made from a session's group belong to the session, which lives as long as they do. */
START_TEST(sessions)
{
    struct mr_session *s = mr_session_new();
    struct mr_group *a = group(4, (int[]){3, 1, 7, 5}), *b = mr_session_group(s, a), *of_b[4];
    ck_assert_ptr_null(a->session);
    ck_assert_ptr_eq(b->session, s);
    ck_assert_int_eq(mr_group_compare(a, b), MR_IDENT);
    of_b[0] = mr_group_incl(b, 2, (int[]){1, 0});
    of_b[1] = mr_group_excl(b, 2, (int[]){1, 0});
    of_b[2] = mr_group_union(&mr_group_empty, b);
    of_b[3] = mr_group_difference(b, of_b[0]);
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_eq(of_b[i]->session, s);
    ck_assert_ptr_eq(mr_group_difference(b, b), &mr_group_empty);
    ck_assert_ptr_null(mr_group_empty.session);
    ck_assert_int_eq(s->refs, 6);
    mr_session_put(s);
    mr_group_put(b);
    for (int i = 0; i < 4; i++)
        mr_group_put(of_b[i]);
    mr_group_put(a);
}
END_TEST

START_TEST(compare)
{
    struct mr_group *a = group(3, (int[]){1, 2, 3}), *b = group(3, (int[]){3, 2, 1}), *c = group(3, (int[]){1, 2, 4}),
                    *d = group(3, (int[]){1, 2, 3});
    ck_assert_int_eq(mr_group_compare(a, d), MR_IDENT);
    ck_assert_int_eq(mr_group_compare(a, b), MR_SIMILAR);
    ck_assert_int_eq(mr_group_compare(a, c), MR_UNEQUAL);
    ck_assert_int_eq(mr_group_compare(a, &mr_group_empty), MR_UNEQUAL);
    ck_assert_int_eq(mr_group_find(b, 1), 2);
    ck_assert_int_eq(mr_group_find(b, 9), MR_UNDEFINED);
    mr_group_put(a);
    mr_group_put(b);
    mr_group_put(c);
    mr_group_put(d);
}
END_TEST

START_TEST(ranges)
{
    int world[10], *ranks, n;
    for (int i = 0; i < 10; i++)
        world[i] = 10 * i;
    struct mr_group *g = group(10, world);
    ck_assert_int_eq(mr_group_range(g, 2, (int[][3]){{1, 5, 2}, {8, 6, -1}}, &ranks, &n), MR_SUCCESS);
    ck_assert_int_eq(n, 6);
    int want[] = {1, 3, 5, 8, 7, 6};
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(ranks[i], want[i]);
    free(ranks);
    ck_assert_int_eq(mr_group_range(g, 1, (int[][3]){{0, 10, 1}}, &ranks, &n), MR_ERR_RANK);
    ck_assert_int_eq(mr_group_range(g, 2, (int[][3]){{0, 3, 1}, {3, 4, 1}}, &ranks, &n), MR_ERR_RANK);
    ck_assert_int_eq(mr_group_range(g, 1, (int[][3]){{0, 3, 0}}, &ranks, &n), MR_ERR_ARG);
    mr_group_put(g);
}
END_TEST

START_TEST(grids)
{
    int d[3] = {0, 0, 0};
    ck_assert_int_eq(mr_dims_create(24, 3, d), MR_SUCCESS);
    ck_assert(d[0] == 4 && d[1] == 3 && d[2] == 2);
    int e[3] = {0, 3, 0};
    ck_assert_int_eq(mr_dims_create(12, 3, e), MR_SUCCESS);
    ck_assert(e[0] == 2 && e[1] == 3 && e[2] == 2);
    int f[2] = {5, 0};
    ck_assert_int_eq(mr_dims_create(12, 2, f), MR_ERR_DIMS);
    struct mr_topology *t = mr_cart_new(2, (int[]){3, 4}, (int[]){1, 0}, 6);
    ck_assert(t->coords[0] == 1 && t->coords[1] == 2);
    ck_assert_int_eq(mr_cart_rank(t, (int[]){-1, 3}), 11);
    ck_assert_int_eq(mr_cart_rank(t, (int[]){0, 4}), MR_PROC_NULL);
    mr_topology_put(t);
}
END_TEST

START_TEST(parts_cover_all)
{
    for (int p = 1; p < 9; p++) {
        for (size_t n = 0; n < 40; n++) {
            ck_assert_uint_eq(mr_part(n, p, 0), 0);
            ck_assert_uint_eq(mr_part(n, p, p), n);
            for (int i = 0; i < p; i++) {
                size_t len = mr_part(n, p, i + 1) - mr_part(n, p, i);
                ck_assert(len == n / (size_t)p || len == n / (size_t)p + 1);
                ck_assert(len <= mr_part(n, p, 1)); /* the first is the longest: buffers are made for it */
            }
        }
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("group");
    tcase_add_test(t, sets);
    tcase_add_test(t, splits);
    tcase_add_test(t, sessions);
    tcase_add_test(t, compare);
    tcase_add_test(t, ranges);
    tcase_add_test(t, grids);
    tcase_add_test(t, parts_cover_all);
    return check_run(t, NULL);
}
