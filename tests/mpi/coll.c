/* SPDX-License-Identifier: BSD-3-Clause */
/* Every blocking collective: sizes across all the algorithms' thresholds, all roots, MPI_IN_PLACE, derived types,
 * orders. */
#include "mt.h"
#ifdef FORM
#include "coll_forms.h"
#endif

static const int counts[] = {0, 1, 3, 64, 600, 5000, 40000};
enum { NCOUNTS = sizeof(counts) / sizeof(counts[0]) };

static MPI_Comm comm;

static int val(int r, int i)
{
    return r * 1000003 + i * 7 + 1;
}

static int *ints(long n)
{
    int *p = malloc(((size_t)n + 1) * sizeof(int));
    CHECK(p);
    for (long i = 0; i <= n; i++)
        p[i] = -77;
    return p;
}

static int roots(void)
{
    return size < 5 ? size : 3;
}

static void bcast(int n)
{
    MPI_Datatype v;
    MPI_Type_vector(n, 1, 2, MPI_INT, &v);
    MPI_Type_commit(&v);
    for (int root = 0; root < roots(); root++) {
        int *b = ints(2 * n);
        for (int i = 0; i < n && rank == root; i++)
            b[i] = val(root, i);
        MPI_Bcast(b, n, MPI_INT, root, comm);
        for (int i = 0; i < n; i++)
            EQ(b[i], val(root, i));
        EQ(b[n], -77);
        free(b);
        /* a strided root and contiguous others */
        b = ints(2 * n);
        for (int i = 0; i < n && rank == root; i++)
            b[2 * i] = val(root, i);
        if (rank == root)
            MPI_Bcast(b, n ? 1 : 0, v, root, comm);
        else
            MPI_Bcast(b, n, MPI_INT, root, comm);
        for (int i = 0; i < n; i++)
            EQ(b[rank == root ? 2 * i : i], val(root, i));
        free(b);
    }
    MPI_Type_free(&v);
}

static int sum(int i)
{
    int s = 0;
    for (int r = 0; r < size; r++)
        s += val(r, i);
    return s;
}

static void reduce(int n)
{
    int *in = ints(n);
    for (int i = 0; i < n; i++)
        in[i] = val(rank, i);
    for (int root = 0; root < roots(); root++) {
        int *out = ints(n);
        MPI_Reduce(in, rank == root ? out : NULL, n, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; i < n; i++)
            EQ(out[i], rank == root ? sum(i) : -77);
        EQ(out[n], -77);
        for (int i = 0; i < n; i++)
            out[i] = val(rank, i);
        if (rank == root)
            MPI_Reduce(MPI_IN_PLACE, out, n, MPI_INT, MPI_SUM, root, comm);
        else
            MPI_Reduce(out, NULL, n, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; i < n; i++)
            EQ(out[i], rank == root ? sum(i) : val(rank, i));
        free(out);
    }
    int *out = ints(n);
    MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n; i++)
        EQ(out[i], sum(i));
    EQ(out[n], -77);
    memcpy(out, in, (size_t)n * sizeof(int));
    MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_INT, MPI_MAX, comm);
    for (int i = 0; i < n; i++)
        EQ(out[i], val(size - 1, i));
    free(out);
    free(in);
}

/* 2x2 matrices under multiplication modulo 10007: associative, not commutative. */
struct mat {
    int a, b, c, d;
};
static MPI_Datatype mat_type;

static struct mat mul(struct mat x, struct mat y)
{
    const int m = 10007;
    return (struct mat){(x.a * y.a + x.b * y.c) % m, (x.a * y.b + x.b * y.d) % m, (x.c * y.a + x.d * y.c) % m,
                        (x.c * y.b + x.d * y.d) % m};
}

static void mat_op(void *in, void *inout, int *len, MPI_Datatype *type)
{
    struct mat *x = in, *y = inout;
    int bytes;
    MPI_Type_size(*type, &bytes); /* MPI may be called from here */
    EQ(bytes, sizeof(struct mat));
    for (int i = 0; i < *len; i++)
        y[i] = mul(x[i], y[i]);
}

static struct mat mat_of(int r, int i)
{
    return (struct mat){r + 2, i % 11 + 1, 3, r * 5 % 7 + 1};
}

static struct mat mats(int last, int i)
{
    struct mat m = mat_of(0, i);
    for (int r = 1; r <= last; r++)
        m = mul(m, mat_of(r, i));
    return m;
}

static int same(struct mat x, struct mat y)
{
    return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d;
}

static void in_order(int n)
{
    MPI_Op op;
    MPI_Op_create(mat_op, 0, &op);
    struct mat *in = calloc((size_t)n * (size_t)size + 1, sizeof(*in)),
               *out = calloc((size_t)n * (size_t)size + 1, sizeof(*out));
    for (int i = 0; i < n * size; i++)
        in[i] = mat_of(rank, i);
    for (int root = 0; root < roots(); root++) {
        MPI_Reduce(in, out, n, mat_type, op, root, comm);
        for (int i = 0; i < n && rank == root; i++)
            CHECK(same(out[i], mats(size - 1, i)));
        memcpy(out, in, (size_t)n * sizeof(*in));
        MPI_Reduce(rank == root ? MPI_IN_PLACE : out, out, n, mat_type, op, root, comm);
        for (int i = 0; i < n && rank == root; i++)
            CHECK(same(out[i], mats(size - 1, i)));
    }
    MPI_Allreduce(in, out, n, mat_type, op, comm);
    for (int i = 0; i < n; i++)
        CHECK(same(out[i], mats(size - 1, i)));
    MPI_Scan(in, out, n, mat_type, op, comm);
    for (int i = 0; i < n; i++)
        CHECK(same(out[i], mats(rank, i)));
    MPI_Exscan(in, out, n, mat_type, op, comm);
    for (int i = 0; i < n && rank; i++)
        CHECK(same(out[i], mats(rank - 1, i)));
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        memcpy(out, in, (size_t)n * sizeof(*in));
        (exclusive ? MPI_Exscan : MPI_Scan)(MPI_IN_PLACE, out, n, mat_type, op, comm);
        for (int i = 0; i < n && rank >= exclusive; i++)
            CHECK(same(out[i], mats(rank - exclusive, i)));
    }
    MPI_Reduce_scatter_block(in, out, n, mat_type, op, comm);
    for (int i = 0; i < n; i++)
        CHECK(same(out[i], mats(size - 1, rank * n + i)));
    MPI_Op_free(&op);
    EQ(op, MPI_OP_NULL);
    free(in);
    free(out);
}

static void scan(int n)
{
    int *in = ints(n), *out = ints(n);
    for (int i = 0; i < n; i++)
        in[i] = val(rank, i);
    MPI_Scan(in, out, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n; i++) {
        int s = 0;
        for (int r = 0; r <= rank; r++)
            s += val(r, i);
        EQ(out[i], s);
    }
    memcpy(out, in, (size_t)n * sizeof(int));
    MPI_Exscan(MPI_IN_PLACE, out, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n && rank; i++) {
        int s = 0;
        for (int r = 0; r < rank; r++)
            s += val(r, i);
        EQ(out[i], s);
    }
    free(in);
    free(out);
}

static void gather_scatter(int n)
{
    for (int root = 0; root < roots(); root++) {
        int *mine = ints(n), *all = ints((long)n * size);
        for (int i = 0; i < n; i++)
            mine[i] = val(rank, i);
        if (rank == root) /* in place: the root's block is in its final place */
            memcpy(all + (size_t)n * (size_t)rank, mine, (size_t)n * sizeof(int));
        MPI_Gather(rank == root ? MPI_IN_PLACE : mine, n, MPI_INT, all, n, MPI_INT, root, comm);
        for (int i = 0; i < n * size; i++)
            EQ(all[i], rank == root ? val(i / n, i % n) : -77);
        for (int i = 0; i < n * size && rank == root; i++)
            all[i] = -5;
        MPI_Gather(mine, n, MPI_INT, all, n, MPI_INT, root, comm);
        for (int i = 0; i < n * size && rank == root; i++)
            EQ(all[i], val(i / n, i % n));
        int *back = ints(n);
        MPI_Scatter(all, n, MPI_INT, back, n, MPI_INT, root, comm);
        for (int i = 0; i < n; i++)
            EQ(back[i], val(rank, i));
        EQ(back[n], -77);
        MPI_Scatter(all, n, MPI_INT, rank == root ? MPI_IN_PLACE : back, n, MPI_INT, root, comm);
        free(mine);
        free(all);
        free(back);
    }
}

/* rank r has n + r elements, with a gap of 2 after each block */
static void vectors(int n)
{
    int *lens = ints(size), *at = ints(size);
    long total = 0;
    for (int r = 0; r < size; r++) {
        lens[r] = r % 3 == 2 ? 0 : n + r;
        at[r] = (int)total;
        total += lens[r] + 2;
    }
    int *mine = ints(lens[rank]), *all = ints(total);
    for (int i = 0; i < lens[rank]; i++)
        mine[i] = val(rank, i);
    int root = size - 1;
    MPI_Gatherv(mine, lens[rank], MPI_INT, all, lens, at, MPI_INT, root, comm);
    for (int r = 0; r < size && rank == root; r++) {
        for (int i = 0; i < lens[r]; i++)
            EQ(all[at[r] + i], val(r, i));
        EQ(all[at[r] + lens[r]], -77);
    }
    int *back = ints(lens[rank]);
    MPI_Scatterv(all, lens, at, MPI_INT, back, lens[rank], MPI_INT, root, comm);
    for (int i = 0; i < lens[rank]; i++)
        EQ(back[i], val(rank, i));
    for (long i = 0; i < total; i++)
        all[i] = -77;
    MPI_Allgatherv(mine, lens[rank], MPI_INT, all, lens, at, MPI_INT, comm);
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < lens[r]; i++)
            EQ(all[at[r] + i], val(r, i));
        EQ(all[at[r] + lens[r]], -77);
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, lens, at, MPI_INT, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < lens[r]; i++)
            EQ(all[at[r] + i], val(r, i));
    free(lens);
    free(at);
    free(mine);
    free(all);
    free(back);
}

static void all_to_all(int n)
{
    int *in = ints((long)n * size), *out = ints((long)n * size);
    for (int i = 0; i < n; i++)
        in[i] = val(rank, i);
    MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
    for (int i = 0; i < n * size; i++)
        EQ(out[i], val(i / n, i % n));
    EQ(out[n * size], -77);
    for (int i = 0; i < n * size; i++)
        out[i] = i / n == rank ? val(rank, i % n) : -5;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, n, MPI_INT, comm);
    for (int i = 0; i < n * size; i++)
        EQ(out[i], val(i / n, i % n));

    for (int i = 0; i < n * size; i++) {
        in[i] = val(rank, i % n) + i / n * 31;
        out[i] = -5;
    }
    MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm);
    for (int i = 0; i < n * size; i++)
        EQ(out[i], val(i / n, i % n) + rank * 31);
    EQ(out[n * size], -77);
    memcpy(out, in, (size_t)n * (size_t)size * sizeof(int));
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, n, MPI_INT, comm);
    for (int i = 0; i < n * size; i++)
        EQ(out[i], val(i / n, i % n) + rank * 31);
    free(in);
    free(out);
}

/* rank r sends n + r + s elements to rank s, except that multiples of 4 get nothing */
static int vlen(int n, int r, int s)
{
    return (r + s) % 4 == 3 ? 0 : n + r + s;
}

static void all_to_all_v(int n)
{
    int *sl = ints(size), *sd = ints(size), *rl = ints(size), *rd = ints(size), *sb = ints(size), *rb = ints(size);
    long ns = 0, nr = 0;
    MPI_Datatype *types = malloc((size_t)size * sizeof(*types));
    for (int r = 0; r < size; r++) {
        sl[r] = vlen(n, rank, r);
        rl[r] = vlen(n, r, rank);
        sd[r] = (int)ns;
        rd[r] = (int)nr;
        sb[r] = sd[r] * (int)sizeof(int);
        rb[r] = rd[r] * (int)sizeof(int);
        ns += sl[r] + 1;
        nr += rl[r] + 1;
        types[r] = MPI_INT;
    }
    int *in = ints(ns), *out = ints(nr);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < sl[r]; i++)
            in[sd[r] + i] = val(rank, i) + r;
    for (int way = 0; way < 3; way++) {
        for (long i = 0; i < nr; i++)
            out[i] = -77;
        if (way == 0) {
            MPI_Alltoallv(in, sl, sd, MPI_INT, out, rl, rd, MPI_INT, comm);
        } else if (way == 1) {
            MPI_Alltoallw(in, sl, sb, types, out, rl, rb, types, comm);
        } else { /* the counts are symmetric, so the same layout serves in place */
            memcpy(out, in, (size_t)ns * sizeof(int));
            MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, rl, rd, MPI_INT, comm);
        }
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < rl[r]; i++)
                EQ(out[rd[r] + i], val(r, i) + rank);
            EQ(out[rd[r] + rl[r]], -77);
        }
    }
    free(in);
    free(out);
    free(sl);
    free(sd);
    free(rl);
    free(rd);
    free(sb);
    free(rb);
    free(types);
}

static void reduce_scatter(int n)
{
    int *lens = ints(size), total = 0, before = 0;
    for (int r = 0; r < size; r++) {
        lens[r] = r % 3 == 1 ? 0 : n + r;
        if (r < rank)
            before += lens[r];
        total += lens[r];
    }
    int *in = ints(total), *out = ints(total);
    for (int i = 0; i < total; i++)
        in[i] = val(rank, i);
    MPI_Reduce_scatter(in, out, lens, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < lens[rank]; i++)
        EQ(out[i], sum(before + i));
    EQ(out[lens[rank]], -77);
    memcpy(out, in, (size_t)total * sizeof(int));
    MPI_Reduce_scatter(MPI_IN_PLACE, out, lens, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < lens[rank]; i++)
        EQ(out[i], sum(before + i));
    free(in);
    free(out);
    free(lens);
}

/* A strided type on one side, contiguous on the other, extents resized so that blocks interleave. */
static void strided(int n)
{
    MPI_Datatype col, cols;
    int *m = ints((long)n * size), *mine = ints(n);
    MPI_Type_vector(n, 1, size, MPI_INT, &col);
    MPI_Type_create_resized(col, 0, sizeof(int), &cols);
    MPI_Type_commit(&cols);
    for (int i = 0; i < n; i++)
        mine[i] = val(rank, i);
    MPI_Allgather(mine, n, MPI_INT, m, 1, cols, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < n; i++)
            EQ(m[i * size + r], val(r, i));
    int *t = ints((long)n * size);
    MPI_Gather(mine, n, MPI_INT, t, 1, cols, 0, comm);
    for (int r = 0; r < size && rank == 0; r++)
        for (int i = 0; i < n; i++)
            EQ(t[i * size + r], val(r, i));
    MPI_Alltoall(m, 1, cols, t, n, MPI_INT, comm);
    for (int i = 0; i < n * size; i++)
        EQ(t[i], val(rank, i % n));
    free(m);
    free(t);
    free(mine);
    MPI_Type_free(&col);
    MPI_Type_free(&cols);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(4, MPI_INT, &mat_type);
    MPI_Type_commit(&mat_type);
    for (int k = 0; k < NCOUNTS; k++) {
        int n = counts[k];
        bcast(n);
        MPI_Barrier(comm);
        reduce(n);
        scan(n);
        if ((long)n * size <= 320000) {
            gather_scatter(n);
            all_to_all(n);
            vectors(n);
            all_to_all_v(n);
            reduce_scatter(n);
        }
        if (n && n <= 5000) {
            in_order(n);
            strided(n);
        }
    }
    MPI_Type_free(&mat_type);
    MPI_Comm_free(&comm);
    return mt_end();
}
