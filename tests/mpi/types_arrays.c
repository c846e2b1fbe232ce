/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distributed arrays: every distribution in both orders, each element found by its owner according to the definition;
 * then the array assembled again from the parts sent by the ranks. Also their large-count twins, and refusals.
 */
#include "mt.h"

enum { DIMS = 3 };

struct grid {
    int gsizes[DIMS], distribs[DIMS], dargs[DIMS], psizes[DIMS];
};

static int owner(const struct grid *g, int d, int i)
{
    int n = g->psizes[d], darg = g->dargs[d], standard = darg == MPI_DISTRIBUTE_DFLT_DARG;
    if (g->distribs[d] == MPI_DISTRIBUTE_NONE)
        return 0;
    if (g->distribs[d] == MPI_DISTRIBUTE_BLOCK)
        return i / (standard ? (g->gsizes[d] + n - 1) / n : darg);
    return i / (standard ? 1 : darg) % n;
}

/* The memory positions of the elements of a rank, in order. */
static int positions(const struct grid *g, int order, int who, int *at)
{
    int coords[DIMS], n = 0, total = g->gsizes[0] * g->gsizes[1] * g->gsizes[2];
    coords[2] = who % g->psizes[2];
    coords[1] = who / g->psizes[2] % g->psizes[1];
    coords[0] = who / g->psizes[2] / g->psizes[1];
    for (int m = 0; m < total; m++) {
        int rest = m, mine = 1;
        for (int k = 0; k < DIMS; k++) {
            int d = order == MPI_ORDER_C ? DIMS - 1 - k : k;
            mine &= owner(g, d, rest % g->gsizes[d]) == coords[d];
            rest /= g->gsizes[d];
        }
        if (mine)
            at[n++] = m;
    }
    return n;
}

static void one(const struct grid *g, int order, MPI_Datatype old)
{
    int total = g->gsizes[0] * g->gsizes[1] * g->gsizes[2], np = g->psizes[0] * g->psizes[1] * g->psizes[2];
    int *at = malloc((size_t)total * sizeof(int)), *out = malloc((size_t)total * sizeof(int)), seen = 0, bytes;
    int *array = malloc((size_t)total * 2 * sizeof(int));
    MPI_Aint lb, extent, old_extent;
    MPI_Type_get_extent(old, &lb, &old_extent);
    int step = (int)(old_extent / (MPI_Aint)sizeof(int));
    for (int who = 0; who < np; who++) {
        MPI_Datatype t, u;
        MPI_Count wide[DIMS] = {g->gsizes[0], g->gsizes[1], g->gsizes[2]};
        EQ(MPI_Type_create_darray(np, who, DIMS, g->gsizes, g->distribs, g->dargs, g->psizes, order, old, &t), 0);
        EQ(MPI_Type_create_darray_c(np, who, DIMS, wide, g->distribs, g->dargs, g->psizes, order, old, &u), 0);
        MPI_Type_commit(&t);
        MPI_Type_commit(&u);
        int n = positions(g, order, who, at), pos = 0;
        seen += n;
        MPI_Type_size(t, &bytes);
        EQ(bytes, n * (int)sizeof(int));
        MPI_Type_get_extent(t, &lb, &extent);
        EQ(lb, 0);
        EQ(extent, total * old_extent);
        for (int i = 0; i < total * step; i++)
            array[i] = i;
        MPI_Pack(array, 1, t, out, total * (int)sizeof(int), &pos, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            EQ(out[i], at[i] * step);
        for (int i = 0; i < total * step; i++)
            array[i] = -1;
        pos = 0;
        MPI_Unpack(out, n * (int)sizeof(int), &pos, array, 1, u, MPI_COMM_WORLD);
        for (int i = 0, k = 0; i < total * step; i++) {
            int mine = k < n && i == at[k] * step;
            EQ(array[i], mine ? i : -1);
            k += mine;
        }
        MPI_Type_free(&t);
        MPI_Type_free(&u);
    }
    EQ(seen, total);
    free(at);
    free(out);
    free(array);
}

static void grids(void)
{
    static const int kinds[3] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    MPI_Datatype spaced;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
    for (int k = rank; k < 27 * 2 * 2; k += size) { /* the ranks share the work */
        struct grid g = {{7, 5, 6}, {kinds[k % 3], kinds[k / 3 % 3], kinds[k / 9 % 3]}, {0}, {0}};
        int own = k / 27 % 2, order = k / 54 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
        for (int d = 0; d < DIMS; d++) {
            int block = g.distribs[d] == MPI_DISTRIBUTE_BLOCK;
            g.psizes[d] = g.distribs[d] == MPI_DISTRIBUTE_NONE ? 1 : 2 + (d == 1);
            g.dargs[d] = own ? (block ? 4 : 2) : MPI_DISTRIBUTE_DFLT_DARG;
        }
        one(&g, order, k % 2 ? spaced : MPI_INT);
    }
    MPI_Type_free(&spaced);
}

/* Each rank sends its part of an array; rank 0 receives each into place. */
static void scattered(void)
{
    int gsize = 10 * size + 3, cyclic = MPI_DISTRIBUTE_CYCLIC, darg = 2, n;
    int *array = malloc((size_t)gsize * sizeof(int)), *whole = malloc((size_t)gsize * sizeof(int));
    MPI_Datatype t;
    MPI_Request r;
    for (int i = 0; i < gsize; i++) {
        array[i] = i * 7;
        whole[i] = -1;
    }
    MPI_Type_create_darray(size, rank, 1, &gsize, &cyclic, &darg, &size, MPI_ORDER_C, MPI_INT, &t);
    MPI_Type_commit(&t);
    MPI_Isend(array, 1, t, 0, 5, MPI_COMM_WORLD, &r);
    for (int who = 0; rank == 0 && who < size; who++) {
        MPI_Datatype part;
        MPI_Status st;
        MPI_Type_create_darray(size, who, 1, &gsize, &cyclic, &darg, &size, MPI_ORDER_C, MPI_INT, &part);
        MPI_Type_commit(&part);
        MPI_Recv(whole, 1, part, who, 5, MPI_COMM_WORLD, &st);
        MPI_Get_count(&st, part, &n);
        EQ(n, 1);
        MPI_Type_free(&part);
    }
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; rank == 0 && i < gsize; i++)
        EQ(whole[i], i * 7);
    MPI_Type_free(&t);
    free(array);
    free(whole);
}

static void recipes(void)
{
    int g[2] = {8, 9}, dist[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arg[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    int p[2] = {2, 3}, ni, na, nd, combiner, ints[10];
    MPI_Count wide[2] = {8, 9}, nc, ci, ca, cd, counts[6];
    MPI_Datatype t, old;
    MPI_Type_create_darray(6, 4, 2, g, dist, arg, p, MPI_ORDER_C, MPI_FLOAT, &t);
    MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner);
    CHECK(ni == 12 && na == 0 && nd == 1 && combiner == MPI_COMBINER_DARRAY);
    int all[12] = {0};
    MPI_Type_get_contents(t, 12, 0, 1, all, NULL, &old);
    static const int want[12] = {
        6, 4, 2, 8, 9, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 2, 2, 3, MPI_ORDER_C};
    for (int i = 0; i < 12; i++)
        EQ(all[i], want[i]);
    MPI_Type_free(&t);
    MPI_Type_create_darray_c(6, 4, 2, wide, dist, arg, p, MPI_ORDER_C, MPI_FLOAT, &t);
    MPI_Type_get_envelope_c(t, &ci, &ca, &nc, &cd, &combiner);
    CHECK(ci == 10 && ca == 0 && nc == 2 && cd == 1 && combiner == MPI_COMBINER_DARRAY);
    MPI_Type_get_contents_c(t, 10, 0, 2, 1, ints, NULL, counts, &old);
    CHECK(ints[0] == 6 && ints[1] == 4 && ints[2] == 2 && ints[3] == MPI_DISTRIBUTE_BLOCK && ints[8] == 3 &&
          ints[9] == MPI_ORDER_C && counts[0] == 8 && counts[1] == 9 && old == MPI_FLOAT);
    MPI_Type_free(&t);
}

static int class_of(int code)
{
    int c;
    MPI_Error_class(code, &c);
    return c;
}

static void refusals(void)
{
    int g = 10, block = MPI_DISTRIBUTE_BLOCK, none = MPI_DISTRIBUTE_NONE, bad = 7, arg = 2,
        std = MPI_DISTRIBUTE_DFLT_DARG;
    int p = 4, one_p = 1;
    MPI_Datatype t;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#define REFUSED(class, ...) EQ(class_of(MPI_Type_create_darray(__VA_ARGS__, MPI_INT, &t)), class)
    REFUSED(MPI_ERR_RANK, 4, 4, 1, &g, &block, &std, &p, MPI_ORDER_C); /* no such rank */
    REFUSED(MPI_ERR_ARG, 3, 0, 1, &g, &block, &std, &p, MPI_ORDER_C);  /* the grid is of four */
    REFUSED(MPI_ERR_ARG, 4, 0, 1, &g, &block, &arg, &p, MPI_ORDER_C);  /* blocks too short */
    REFUSED(MPI_ERR_ARG, 4, 0, 1, &g, &none, &std, &p, MPI_ORDER_C);   /* not distributed over four */
    REFUSED(MPI_ERR_ARG, 1, 0, 1, &g, &bad, &std, &one_p, MPI_ORDER_C);
    REFUSED(MPI_ERR_ARG, 1, 0, 1, &g, &block, &std, &one_p, 5);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    grids();
    scattered();
    recipes();
    refusals();
    return mt_end();
}
