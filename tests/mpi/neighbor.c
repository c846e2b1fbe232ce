/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives on grids (also of one or two processes along a dimension), graphs and distributed graphs
 * with repeated edges. An edge is identified by its two ends and its number among the edges between them.
 */
#include "mt.h"
#ifdef FORM
#include "coll_forms.h"
#endif

enum { EDGES_MAX = 60 };

struct edge {
    int peer; /* MPI_PROC_NULL: there is none */
    int name; /* the same at both ends, another one for each edge between the two */
};

/* This rank's neighbours, obtained independently of the library. */
static struct {
    int num_in, num_out;
    struct edge in[EDGES_MAX], out[EDGES_MAX];
} my;

static int val(int from, int to, int name, int i)
{
    return from * 1000003 + to * 10007 + name * 101 + i + 1;
}

static int *ints(long n)
{
    int *p = malloc(((size_t)n + 1) * sizeof(int));
    CHECK(p);
    for (long i = 0; i <= n; i++)
        p[i] = -77;
    return p;
}

static void gather(MPI_Comm c, int n)
{
    int *in = ints(n), *b = ints((long)n * my.num_in);
    for (int i = 0; i < n; i++)
        in[i] = val(rank, 0, 0, i);
    MPI_Neighbor_allgather(in, n, MPI_INT, b, n, MPI_INT, c);
    for (int k = 0; k < my.num_in; k++)
        for (int i = 0; i < n; i++)
            EQ(b[k * n + i], my.in[k].peer == MPI_PROC_NULL ? -77 : val(my.in[k].peer, 0, 0, i));
    EQ(b[n * my.num_in], -77);
    free(in);
    free(b);
    /* rank r gives n + r % 3; parts lie in falling order with a hole between */
    int counts[EDGES_MAX], disps[EDGES_MAX], all = 1, own = n + rank % 3;
    for (int k = my.num_in - 1; k >= 0; k--) {
        int p = my.in[k].peer;
        counts[k] = n + (p == MPI_PROC_NULL ? 5 : p % 3);
        disps[k] = all;
        all += counts[k] + 1;
    }
    in = ints(own);
    b = ints(all);
    for (int i = 0; i < own; i++)
        in[i] = val(rank, 0, 0, i);
    MPI_Neighbor_allgatherv(in, own, MPI_INT, b, counts, disps, MPI_INT, c);
    for (int k = 0; k < my.num_in; k++) {
        EQ(b[disps[k] - 1], -77);
        for (int i = 0; i < counts[k]; i++)
            EQ(b[disps[k] + i], my.in[k].peer == MPI_PROC_NULL ? -77 : val(my.in[k].peer, 0, 0, i));
    }
    free(in);
    free(b);
}

static void swap_all(MPI_Comm c, int n)
{
    int *in = ints((long)n * my.num_out), *b = ints((long)n * my.num_in);
    for (int k = 0; k < my.num_out; k++)
        for (int i = 0; i < n; i++)
            in[k * n + i] = val(rank, my.out[k].peer, my.out[k].name, i);
    MPI_Neighbor_alltoall(in, n, MPI_INT, b, n, MPI_INT, c);
    for (int k = 0; k < my.num_in; k++)
        for (int i = 0; i < n; i++)
            EQ(b[k * n + i], my.in[k].peer == MPI_PROC_NULL ? -77 : val(my.in[k].peer, rank, my.in[k].name, i));
    EQ(b[n * my.num_in], -77);
    free(in);
    free(b);
}

/* The edge with this name carries n + name % 3 elements; with w, every second neighbour's come as one struct. */
static void swap_parts(MPI_Comm c, int n, int w)
{
    int from[EDGES_MAX], to[EDGES_MAX], fd[EDGES_MAX], td[EDGES_MAX], fall = 1, tall = 1;
    MPI_Aint fb[EDGES_MAX], tb[EDGES_MAX];
    MPI_Datatype ft[EDGES_MAX], tt[EDGES_MAX];
    for (int k = my.num_out - 1; k >= 0; k--) {
        from[k] = n + my.out[k].name % 3;
        fd[k] = fall;
        fb[k] = 4 * (MPI_Aint)fall;
        ft[k] = MPI_INT;
        fall += from[k] + 1;
    }
    for (int k = my.num_in - 1; k >= 0; k--) {
        to[k] = n + my.in[k].name % 3;
        td[k] = tall;
        tb[k] = 4 * (MPI_Aint)tall;
        tall += to[k] + 1;
        tt[k] = MPI_INT;
        if (k % 2) {
            MPI_Type_contiguous(to[k], MPI_INT, &tt[k]);
            MPI_Type_commit(&tt[k]);
        }
    }
    int *in = ints(fall), *b = ints(tall);
    for (int k = 0; k < my.num_out; k++)
        for (int i = 0; i < from[k]; i++)
            in[fd[k] + i] = val(rank, my.out[k].peer, my.out[k].name, i);
    if (w) {
        int ones[EDGES_MAX];
        for (int k = 0; k < my.num_in; k++)
            ones[k] = k % 2 ? 1 : to[k];
        MPI_Neighbor_alltoallw(in, from, fb, ft, b, ones, tb, tt, c);
    } else {
        MPI_Neighbor_alltoallv(in, from, fd, MPI_INT, b, to, td, MPI_INT, c);
    }
    for (int k = 0; k < my.num_in; k++) {
        EQ(b[td[k] - 1], -77);
        for (int i = 0; i < to[k]; i++)
            EQ(b[td[k] + i], my.in[k].peer == MPI_PROC_NULL ? -77 : val(my.in[k].peer, rank, my.in[k].name, i));
        if (k % 2)
            MPI_Type_free(&tt[k]);
    }
    free(in);
    free(b);
}

static void all_of(MPI_Comm c)
{
    static const int counts[] = {0, 1, 10, 3000, 20000};
#if defined(FORM) && FORM >= LARGE
    arrays_len = EDGES_MAX;
#endif
    for (unsigned k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        gather(c, counts[k]);
        swap_all(c, counts[k]);
        swap_parts(c, counts[k], 0);
        swap_parts(c, counts[k], 1);
    }
}

/* In a grid, data sent down a dimension comes in from above: name 2 i going down, 2 i + 1 going up. */
static void grid(int ndims, const int *dims, const int *periods)
{
    MPI_Comm c;
    MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &c);
    my.num_in = my.num_out = 2 * ndims;
    for (int i = 0; i < ndims; i++) {
        int down, up;
        MPI_Cart_shift(c, i, 1, &down, &up);
        my.out[2 * i] = (struct edge){down, 2 * i};
        my.out[2 * i + 1] = (struct edge){up, 2 * i + 1};
        my.in[2 * i] = (struct edge){down, 2 * i + 1};
        my.in[2 * i + 1] = (struct edge){up, 2 * i};
    }
    all_of(c);
    MPI_Comm_free(&c);
}

static void grids(void)
{
    grid(1, (int[]){size}, (int[]){1});
    grid(1, (int[]){size}, (int[]){0});
    grid(3, (int[]){1, size, 1}, (int[]){1, 1, 1});
    grid(3, (int[]){1, 1, size}, (int[]){0, 1, 0});
    if (size % 2 == 0) {
        grid(2, (int[]){2, size / 2}, (int[]){1, 1});
        grid(2, (int[]){size / 2, 2}, (int[]){0, 1});
    }
}

/* Everybody's edge to everybody (some twice or three times, some not at all): how often from a to b. */
static int times(int a, int b)
{
    return size > 12 ? (a * 7 + b * 3) % 5 == 0 : (a * 7 + b * 3) % 4;
}

static void dist_graph(void)
{
    int in[EDGES_MAX], out[EDGES_MAX];
    my.num_in = my.num_out = 0;
    /* sources in falling order, destinations in rising order, repeated ones not side by side */
    for (int k = 0; k < 3; k++) {
        for (int p = size - 1; p >= 0; p--)
            if (k < times(p, rank))
                my.in[my.num_in++] = (struct edge){p, k};
        for (int p = 0; p < size; p++)
            if (k < times(rank, p))
                my.out[my.num_out++] = (struct edge){p, k};
    }
    for (int i = 0; i < my.num_in; i++)
        in[i] = my.in[i].peer;
    for (int i = 0; i < my.num_out; i++)
        out[i] = my.out[i].peer;
    MPI_Comm c;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, my.num_in, in, MPI_UNWEIGHTED, my.num_out, out, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &c);
    all_of(c);
    MPI_Comm_free(&c);
}

/* A ring and its chords to the rank opposite, in an order of everybody's own. */
static void graph(void)
{
    int degree = size > 2 ? 2 : 0, index[size], edges[2 * size + 1];
    for (int r = 0; r < size; r++) {
        index[r] = (r + 1) * degree;
        for (int k = 0; k < degree; k++)
            edges[r * degree + k] = (r + ((k + r) % 2 ? 1 : size - 1)) % size;
    }
    MPI_Comm c;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &c);
    my.num_in = my.num_out = degree;
    for (int k = 0; k < degree; k++)
        my.in[k] = my.out[k] = (struct edge){edges[rank * degree + k], 0};
    all_of(c);
    MPI_Comm_free(&c);
}

#ifndef FORM
static void errors(void)
{
    MPI_Comm c, cart;
    int x = 0, y[2], class;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Neighbor_allgather(&x, 1, MPI_INT, y, 1, MPI_INT, c), &class);
    EQ(class, MPI_ERR_TOPOLOGY);
    MPI_Cart_create(c, 1, (int[]){size}, (int[]){1}, 0, &cart);
    MPI_Error_class(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, y, 1, MPI_INT, cart), &class);
    EQ(class, MPI_ERR_BUFFER);
    MPI_Error_class(MPI_Neighbor_alltoallv(&x, (int[]){1, -1}, (int[]){0, 0}, MPI_INT, y, (int[]){1, 1}, (int[]){0, 1},
                                           MPI_INT, cart),
                    &class);
    EQ(class, MPI_ERR_COUNT);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&c);
}
#endif

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    grids();
    graph();
    dist_graph();
#ifndef FORM
    errors();
#endif
    return mt_end();
}
