/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks are: rows in order of first ranks, columns in order of ranks, no grid where nodes differ in size. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/coll/place.h"
#include "tests/check.h"

/* Nodes as digits, a digit for each rank; the grid as rows of digits, "": there is none. */
static const struct {
    const char *nodes;
    int me, rows, node, local;
    const char *grid;
} cases[] = {
    {"0", 0, 1, 0, 0, "0"},           {"00", 1, 1, 0, 1, "01"},
    {"01", 1, 2, 1, 0, "01"},         {"0011", 2, 2, 1, 0, "0123"},
    {"0101", 2, 2, 0, 1, "0213"}, /* ranks in turn */
    {"7722", 3, 2, 1, 1, "0123"}, /* a part of the world */
    {"20202", 4, 2, 0, 0, ""},    /* three and two */
    {"001", 0, 2, 0, 0, ""},          {"001122", 5, 3, 2, 1, "012345"},
    {"210012", 3, 3, 2, 1, "051423"}, /* the nodes in order of appearance */
};

START_TEST(one)
{
    int node_of[8], size = (int)strlen(cases[_i].nodes);
    for (int i = 0; i < size; i++)
        node_of[i] = cases[_i].nodes[i] - '0';
    struct mr_place *w = mr_place_of(node_of, size, cases[_i].me);
    ck_assert_ptr_nonnull(w);
    ck_assert_int_eq(w->nodes, cases[_i].rows);
    if (*cases[_i].grid) {
        ck_assert_int_eq(w->each, size / cases[_i].rows);
        ck_assert_int_eq(w->node, cases[_i].node);
        ck_assert_int_eq(w->local, cases[_i].local);
        for (int i = 0; i < size; i++)
            ck_assert_int_eq(mr_place_rank(w, i / w->each, i % w->each), cases[_i].grid[i] - '0');
    } else {
        ck_assert_int_eq(w->each, 0);
    }
    free(w);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("place");
    tcase_add_loop_test(t, one, 0, sizeof(cases) / sizeof(cases[0]));
    return check_run(t, NULL);
}
