/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies: grids, graphs, distributed graphs; queries compared with the arguments of their creation. */
#include "mt.h"

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/* ---- grids ---- */

/* The smallest gap between the largest and the smallest of three factors, by trying all. */
static int smallest_gap(int n)
{
    int best = n;
    for (int a = 1; a <= n; a++)
        for (int b = 1; n % a == 0 && b <= a; b++)
            if (n / a % b == 0 && n / a / b <= b && a - n / a / b < best)
                best = a - n / a / b;
    return best;
}

static void dims(void)
{
    for (int n = 1; n <= 400; n++) {
        int d[3] = {0, 0, 0}, e[3] = {0, 2, 0}, f[1] = {0};
        MPI_Dims_create(n, 3, d);
        EQ(d[0] * d[1] * d[2], n);
        CHECK(d[0] >= d[1] && d[1] >= d[2]);
        EQ(d[0] - d[2], smallest_gap(n));
        if (n % 2 == 0) {
            MPI_Dims_create(n, 3, e);
            EQ(e[0] * e[2] * 2, n);
            EQ(e[1], 2);
        }
        MPI_Dims_create(n, 1, f);
        EQ(f[0], n);
    }
    int four[4] = {0}; /* of 13 x 12 x 6 x 6 and 13 x 9 x 8 x 6 the more even one */
    MPI_Dims_create(5616, 4, four);
    CHECK(four[0] == 13 && four[1] == 9 && four[2] == 8 && four[3] == 6);
    int big[9] = {0}, total = 1, one[2] = {3, 7};
    MPI_Dims_create(735134400, 9, big); /* 1344 divisors */
    for (int i = 0; i < 9; i++)
        total *= big[i];
    EQ(total, 735134400);
    MPI_Dims_create(21, 2, one);
    CHECK(one[0] == 3 && one[1] == 7);
    int bad[2] = {5, 0}, negative[2] = {-1, 0};
    EQ(class_of(MPI_Dims_create(12, 2, bad)), MPI_ERR_DIMS);
    EQ(class_of(MPI_Dims_create(12, 2, negative)), MPI_ERR_DIMS);
}

/* The rank at coordinates, by hand: row-major; -1 outside of an open dimension. */
static int place(int n, const int *d, const int *p, const int *at)
{
    int r = 0;
    for (int i = 0; i < n; i++) {
        int c = at[i];
        if (p[i])
            c = (c % d[i] + d[i]) % d[i];
        if (c < 0 || c >= d[i])
            return MPI_PROC_NULL;
        r = r * d[i] + c;
    }
    return r;
}

static void shifts(MPI_Comm g, const int *d, const int *p)
{
    int at[3], to[3], src, dst;
    MPI_Cart_get(g, 3, (int[3]){0}, (int[3]){0}, at);
    for (int dir = 0; dir < 3; dir++) {
        for (int by = -5; by <= 5; by++) {
            MPI_Cart_shift(g, dir, by, &src, &dst);
            memcpy(to, at, sizeof(to));
            to[dir] += by;
            EQ(dst, place(3, d, p, to));
            to[dir] -= 2 * by;
            EQ(src, place(3, d, p, to));
        }
    }
}

static void slices(MPI_Comm g, const int *d, const int *p)
{
    int at[3], r, n, kind, sd[3], sp[3], sat[3];
    MPI_Cart_get(g, 3, sd, sp, at);
    for (int mask = 0; mask < 8; mask++) {
        int remain[3] = {mask & 1, mask >> 1 & 1, mask >> 2 & 1}, want = 1, left = 0, row = 0;
        MPI_Comm s;
        MPI_Cart_sub(g, remain, &s);
        EQ(s == MPI_COMM_NULL, mask == 0 && (at[0] || at[1] || at[2])); /* no dimensions: one place */
        if (s == MPI_COMM_NULL)
            continue;
        MPI_Topo_test(s, &kind);
        EQ(kind, MPI_CART);
        for (int i = 0; i < 3; i++) {
            if (remain[i]) {
                want *= d[i];
                row = row * d[i] + at[i];
            }
        }
        MPI_Comm_size(s, &n);
        EQ(n, want);
        MPI_Comm_rank(s, &r);
        EQ(r, row);
        MPI_Cartdim_get(s, &n);
        EQ(n, remain[0] + remain[1] + remain[2]);
        MPI_Cart_get(s, 3, sd, sp, sat);
        for (int i = 0; i < 3; i++) {
            if (!remain[i])
                continue;
            CHECK(sd[left] == d[i] && sp[left] == p[i] && sat[left] == at[i]);
            left++;
        }
        MPI_Comm_free(&s);
    }
}

static void grids(void)
{
    for (int shape = 0; shape < 8; shape++) {
        int d[3] = {0, 0, 0}, p[3] = {shape & 1, shape >> 1 & 1, shape >> 2 & 1}, r, kind, mapped;
        int gd[3], gp[3], at[3], n = size - (shape == 3 && size > 1); /* once not all have a place */
        MPI_Comm g, h;
        MPI_Dims_create(n, 3, d);
        MPI_Cart_map(MPI_COMM_WORLD, 3, d, p, &mapped);
        EQ(mapped == MPI_UNDEFINED, rank >= n);
        MPI_Cart_create(MPI_COMM_WORLD, 3, d, p, 0, &g);
        EQ(g == MPI_COMM_NULL, rank >= n);
        if (g == MPI_COMM_NULL)
            continue;
        MPI_Comm_rank(g, &r);
        EQ(r, rank);
        MPI_Cart_get(g, 3, gd, gp, at);
        for (int i = 0; i < 3; i++)
            CHECK(gd[i] == d[i] && gp[i] == p[i]);
        EQ(place(3, d, p, at), rank);
        for (int i = 0; i < n; i++) {
            MPI_Cart_coords(g, i, 3, at);
            int back;
            MPI_Cart_rank(g, at, &back);
            EQ(back, i);
            EQ(place(3, d, p, at), i);
        }
        shifts(g, d, p);
        slices(g, d, p);
        MPI_Comm_dup(g, &h);
        MPI_Comm_free(&g); /* the duplicate has the topology on its own */
        MPI_Topo_test(h, &kind);
        EQ(kind, MPI_CART);
        shifts(h, d, p);
        MPI_Comm_free(&h);
    }
    /* no dimension: one process has a place */
    MPI_Comm zero;
    MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &zero);
    EQ(zero == MPI_COMM_NULL, rank != 0);
    if (zero != MPI_COMM_NULL) {
        int n = -1, at;
        MPI_Cartdim_get(zero, &n);
        EQ(n, 0);
        MPI_Cart_rank(zero, &at, &n);
        EQ(n, 0);
        MPI_Comm_free(&zero);
    }
}

/* ---- graphs ---- */

/* Node i has i % 3 + 1 edges: to itself and the next ones (so some are there twice in a small graph). */
static int graph(int n, int *index, int *edges)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i % 3; j++)
            edges[k++] = (i + j) % n;
        index[i] = k;
    }
    return k;
}

static void ask_graph(MPI_Comm g, int n, const int *index, const int *edges)
{
    int nodes, num_edges, kind, count, at[n], to[3 * n + 1], few[1] = {-1};
    MPI_Topo_test(g, &kind);
    EQ(kind, MPI_GRAPH);
    MPI_Graphdims_get(g, &nodes, &num_edges);
    EQ(nodes, n);
    EQ(num_edges, index[n - 1]);
    MPI_Graph_get(g, n, num_edges, at, to);
    CHECK(!memcmp(at, index, (size_t)n * sizeof(int)) && !memcmp(to, edges, (size_t)num_edges * sizeof(int)));
    for (int i = 0; i < n; i++) {
        MPI_Graph_neighbors_count(g, i, &count);
        EQ(count, i % 3 + 1);
        MPI_Graph_neighbors(g, i, count, to);
        for (int j = 0; j < count; j++)
            EQ(to[j], (i + j) % n);
    }
    MPI_Graph_neighbors(g, 0, 1, few);
    EQ(few[0], 0);
}

static void graphs(void)
{
    MPI_Comm g, h;
    int n = size > 2 ? size - 1 : size, index[n], edges[3 * n], mapped;
    graph(n, index, edges);
    MPI_Graph_map(MPI_COMM_WORLD, n, index, edges, &mapped);
    EQ(mapped == MPI_UNDEFINED, rank >= n);
    MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &g);
    EQ(g == MPI_COMM_NULL, rank >= n);
    if (g != MPI_COMM_NULL) {
        ask_graph(g, n, index, edges);
        MPI_Comm_dup(g, &h);
        MPI_Comm_free(&g);
        ask_graph(h, n, index, edges);
        MPI_Comm_free(&h);
    }
    MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &g);
    EQ(g, MPI_COMM_NULL);
    int down[2] = {1, 0}, far[1] = {size};
    EQ(class_of(MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){1}, far, 0, &g)), MPI_ERR_ARG);
    EQ(class_of(MPI_Graph_create(MPI_COMM_WORLD, size + 1, index, edges, 0, &g)), MPI_ERR_ARG);
    if (size > 1)
        EQ(class_of(MPI_Graph_create(MPI_COMM_WORLD, 2, down, edges, 0, &g)), MPI_ERR_ARG);
    EQ(class_of(MPI_Graphdims_get(MPI_COMM_WORLD, &n, &mapped)), MPI_ERR_TOPOLOGY);
}

/* ---- distributed graphs ---- */

/* Everybody hears from its two left neighbours and speaks to its two right ones; weights tell the edge. */
static int weight(int from, int to)
{
    return 1000 * from + to;
}

static void ask_adjacent(MPI_Comm g, int weighted)
{
    int in, out, w, kind, src[2] = {-1, -1}, dst[2], sw[2] = {-5, -5}, dw[2] = {-5, -5};
    MPI_Topo_test(g, &kind);
    EQ(kind, MPI_DIST_GRAPH);
    MPI_Dist_graph_neighbors_count(g, &in, &out, &w);
    EQ(in, 2);
    EQ(out, 2);
    EQ(w, weighted);
    MPI_Dist_graph_neighbors(g, 2, src, sw, 2, dst, dw); /* without weights they are left alone */
    for (int i = 0; i < 2; i++) {
        EQ(src[i], (rank + size * 2 - 1 - i) % size);
        EQ(dst[i], (rank + 1 + i) % size);
        EQ(sw[i], weighted ? weight(src[i], rank) : -5);
        EQ(dw[i], weighted ? weight(rank, dst[i]) : -5);
    }
}

static void adjacent(void)
{
    MPI_Comm g, h;
    int src[2], dst[2], sw[2], dw[2], in, out, w;
    for (int i = 0; i < 2; i++) {
        src[i] = (rank + size * 2 - 1 - i) % size;
        dst[i] = (rank + 1 + i) % size;
        sw[i] = weight(src[i], rank);
        dw[i] = weight(rank, dst[i]);
    }
    for (int weighted = 0; weighted < 2; weighted++) {
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, src, weighted ? sw : MPI_UNWEIGHTED, 2, dst,
                                       weighted ? dw : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g);
        ask_adjacent(g, weighted);
        MPI_Comm_dup(g, &h);
        MPI_Comm_free(&g);
        ask_adjacent(h, weighted);
        MPI_Comm_free(&h);
    }
    /* nobody has neighbours, but weights */
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY,
                                   MPI_INFO_NULL, 0, &g);
    MPI_Dist_graph_neighbors_count(g, &in, &out, &w);
    CHECK(in == 0 && out == 0 && w == 1);
    MPI_Comm_free(&g);
    EQ(class_of(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, (int[]){0, size}, MPI_UNWEIGHTED, 0, NULL,
                                               MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g)),
       MPI_ERR_RANK);
    EQ(class_of(
           MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, src, sw, 2, dst, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g)),
       MPI_ERR_ARG);
}

/* Each process names the edges of another one, the last one all edges to rank 0; each end must get its edges. */
static void anybody(int weighted)
{
    MPI_Comm g;
    int of = (rank + 1) % size, last = rank == size - 1, n = last ? size + 1 : 1, in, out, w;
    int sources[size + 1], degrees[size + 1], dst[size + 3], weights[size + 3], k = 0;
    sources[0] = of;
    degrees[0] = 3;
    for (; k < 3; k++) {
        dst[k] = (of + k) % size;
        weights[k] = weight(of, dst[k]);
    }
    for (int i = 0; last && i < size; i++, k++) {
        sources[i + 1] = i;
        degrees[i + 1] = 1;
        dst[k] = 0;
        weights[k] = weight(i, 0);
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, dst, weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL,
                          0, &g);
    MPI_Dist_graph_neighbors_count(g, &in, &out, &w);
    EQ(w, weighted);
    EQ(out, 4);
    EQ(in, rank ? 3 : 3 + size);
    int from[in], to[out], fw[in], tw[out], seen_in[size], seen_out[size];
    MPI_Dist_graph_neighbors(g, in, from, fw, out, to, tw);
    memset(seen_in, 0, sizeof(seen_in));
    memset(seen_out, 0, sizeof(seen_out));
    for (int i = 0; i < in; i++) {
        seen_in[from[i]]++;
        EQ(!weighted || fw[i] == weight(from[i], rank), 1);
    }
    for (int i = 0; i < out; i++) {
        seen_out[to[i]]++;
        EQ(!weighted || tw[i] == weight(rank, to[i]), 1);
    }
    for (int i = 0; i < size; i++) {
        int want_in = rank == 0, want_out = i == 0;
        for (int j = 0; j < 3; j++) {
            want_in += (i + j) % size == rank;
            want_out += (rank + j) % size == i;
        }
        EQ(seen_in[i], want_in);
        EQ(seen_out[i], want_out);
    }
    MPI_Comm_free(&g);
}

static void wrong_kind(void)
{
    int n, m, w, d = size, p = 0;
    MPI_Comm g;
    EQ(class_of(MPI_Cartdim_get(MPI_COMM_WORLD, &n)), MPI_ERR_TOPOLOGY);
    EQ(class_of(MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &n, &m, &w)), MPI_ERR_TOPOLOGY);
    MPI_Topo_test(MPI_COMM_WORLD, &n);
    EQ(n, MPI_UNDEFINED);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &d, &p, 0, &g);
    EQ(class_of(MPI_Graphdims_get(g, &n, &m)), MPI_ERR_TOPOLOGY);
    EQ(class_of(MPI_Cart_rank(g, &d, &n)), MPI_ERR_ARG); /* one beyond the end */
    MPI_Comm_free(&g);
    d = size + 1;
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &d, &p, 0, &g) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    dims();
    grids();
    graphs();
    adjacent();
    anybody(0);
    anybody(1);
    wrong_kind();
    return mt_end();
}
