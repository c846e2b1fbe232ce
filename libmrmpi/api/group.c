/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups (MPI-3.1 section 6.3). */
#include "libmrmpi/api/api.h"

#include <stdlib.h>

MPI_FN(int, Group_size, (MPI_Group group, int *size))
{
    struct mr_group *g;
    API_ENTER();
    NOT_NULL(size);
    CHECK(api_group(group, &g));
    *size = g->size;
    API_LEAVE(NULL);
}

MPI_FN(int, Group_rank, (MPI_Group group, int *rank))
{
    struct mr_group *g;
    API_ENTER();
    NOT_NULL(rank);
    CHECK(api_group(group, &g));
    *rank = g->rank == MR_UNDEFINED ? MPI_UNDEFINED : g->rank;
    API_LEAVE(NULL);
}

/* Ranks of g, each once. */
static enum mr_err check_ranks(const struct mr_group *g, int n, const int *ranks)
{
    if (n < 0)
        return mr_fail(MR_ERR_ARG, "n is %d", n);
    if (n && !ranks)
        return api_null("ranks");
    bool *seen = calloc((size_t)g->size + 1, sizeof(*seen));
    if (!seen)
        return MR_ERR_NO_MEM;
    enum mr_err err = MR_SUCCESS;
    for (int i = 0; i < n && !err; i++) {
        if (ranks[i] < 0 || ranks[i] >= g->size)
            err = mr_fail(MR_ERR_RANK, "ranks[%d] is %d, the group has ranks 0 to %d", i, ranks[i], g->size - 1);
        else if (seen[ranks[i]])
            err = mr_fail(MR_ERR_RANK, "ranks[%d]: rank %d is there twice", i, ranks[i]);
        else
            seen[ranks[i]] = true;
    }
    free(seen);
    return err;
}

MPI_FN(int, Group_translate_ranks, (MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]))
{
    struct mr_group *a, *b;
    API_ENTER();
    CHECK(api_group(group1, &a));
    CHECK(api_group(group2, &b));
    if (n < 0)
        CHECK(mr_fail(MR_ERR_ARG, "n is %d", n));
    if (n) {
        NOT_NULL(ranks1);
        NOT_NULL(ranks2);
    }
    for (int i = 0; i < n; i++) {
        if (ranks1[i] == MPI_PROC_NULL) {
            ranks2[i] = MPI_PROC_NULL;
            continue;
        }
        if (ranks1[i] < 0 || ranks1[i] >= a->size)
            CHECK(mr_fail(MR_ERR_RANK, "ranks1[%d] is %d, the group has ranks 0 to %d", i, ranks1[i], a->size - 1));
        int r = mr_group_find(b, a->world[ranks1[i]]);
        ranks2[i] = r == MR_UNDEFINED ? MPI_UNDEFINED : r;
    }
    API_LEAVE(NULL);
}

MPI_FN(int, Group_compare, (MPI_Group group1, MPI_Group group2, int *result))
{
    struct mr_group *a, *b;
    API_ENTER();
    NOT_NULL(result);
    CHECK(api_group(group1, &a));
    CHECK(api_group(group2, &b));
    enum mr_compare cmp = mr_group_compare(a, b);
    *result = cmp == MR_IDENT ? MPI_IDENT : cmp == MR_SIMILAR ? MPI_SIMILAR : MPI_UNEQUAL;
    API_LEAVE(NULL);
}

#define SET_OPERATION(name, make)                                                                                      \
    MPI_FN(int, name, (MPI_Group group1, MPI_Group group2, MPI_Group * newgroup))                                      \
    {                                                                                                                  \
        struct mr_group *a, *b;                                                                                        \
        API_ENTER();                                                                                                   \
        NOT_NULL(newgroup);                                                                                            \
        CHECK(api_group(group1, &a));                                                                                  \
        CHECK(api_group(group2, &b));                                                                                  \
        err = api_new_group(make(a, b), newgroup);                                                                     \
        API_LEAVE(NULL);                                                                                               \
    }
SET_OPERATION(Group_union, mr_group_union)
SET_OPERATION(Group_intersection, mr_group_intersection)
SET_OPERATION(Group_difference, mr_group_difference)

#define BY_RANKS(name, make)                                                                                           \
    MPI_FN(int, name, (MPI_Group group, int n, const int ranks[], MPI_Group *newgroup))                                \
    {                                                                                                                  \
        struct mr_group *g;                                                                                            \
        API_ENTER();                                                                                                   \
        NOT_NULL(newgroup);                                                                                            \
        CHECK(api_group(group, &g));                                                                                   \
        CHECK(check_ranks(g, n, ranks));                                                                               \
        err = api_new_group(make(g, n, ranks), newgroup);                                                              \
        API_LEAVE(NULL);                                                                                               \
    }
BY_RANKS(Group_incl, mr_group_incl)
BY_RANKS(Group_excl, mr_group_excl)

#define BY_RANGES(name, make)                                                                                          \
    MPI_FN(int, name, (MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup))                                  \
    {                                                                                                                  \
        struct mr_group *g;                                                                                            \
        int *ranks, count;                                                                                             \
        API_ENTER();                                                                                                   \
        NOT_NULL(newgroup);                                                                                            \
        CHECK(api_group(group, &g));                                                                                   \
        if (n < 0)                                                                                                     \
            CHECK(mr_fail(MR_ERR_ARG, "n is %d", n));                                                                  \
        if (n)                                                                                                         \
            NOT_NULL(ranges);                                                                                          \
        CHECK(mr_group_range(g, n, ranges, &ranks, &count));                                                           \
        struct mr_group *made = make(g, count, ranks);                                                                 \
        free(ranks);                                                                                                   \
        err = api_new_group(made, newgroup);                                                                           \
        API_LEAVE(NULL);                                                                                               \
    }
BY_RANGES(Group_range_incl, mr_group_incl)
BY_RANGES(Group_range_excl, mr_group_excl)

MPI_FN(int, Group_free, (MPI_Group * group))
{
    struct mr_group *g;
    API_ENTER();
    NOT_NULL(group);
    CHECK(api_group(*group, &g));
    if (g != &mr_group_empty) {
        if (api_handle_free(ABI_GROUP, abi_number(*group)))
            g->handle = 0;
        mr_group_put(g);
    }
    *group = MPI_GROUP_NULL;
    API_LEAVE(NULL);
}
