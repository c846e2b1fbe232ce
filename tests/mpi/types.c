/* SPDX-License-Identifier: BSD-3-Clause */
/* Derived datatypes through messages of all sizes, packing, envelopes, sizes, partial receives. */
#include "mt.h"

static int left, right;

struct particle {
    char tag;
    double x[3];
    int id;
};

static MPI_Datatype particle_type(void)
{
    MPI_Datatype t, r, types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    int lengths[3] = {1, 3, 1};
    MPI_Aint at[3] = {offsetof(struct particle, tag), offsetof(struct particle, x), offsetof(struct particle, id)};
    MPI_Type_create_struct(3, lengths, at, types, &t);
    MPI_Type_create_resized(t, 0, sizeof(struct particle), &r);
    MPI_Type_free(&t);
    MPI_Type_commit(&r);
    return r;
}

static void structs(int n)
{
    MPI_Datatype t = particle_type();
    struct particle *a = calloc((size_t)n, sizeof(*a)), *b = calloc((size_t)n, sizeof(*b));
    MPI_Status st;
    int count;
    for (int i = 0; i < n; i++)
        a[i] = (struct particle){(char)i, {i + rank, i + 0.5, -i}, rank};
    MPI_Sendrecv(a, n, t, right, 0, b, n, t, left, 0, MPI_COMM_WORLD, &st);
    for (int i = 0; i < n; i++)
        CHECK(b[i].tag == (char)i && b[i].x[0] == i + left && b[i].x[1] == i + 0.5 && b[i].x[2] == -i &&
              b[i].id == left);
    MPI_Get_count(&st, t, &count);
    EQ(count, n);
    MPI_Get_elements(&st, t, &count);
    EQ(count, 5 * n);
    MPI_Type_size(t, &count);
    EQ(count, 29);
    free(a);
    free(b);
    MPI_Type_free(&t);
    EQ(t, MPI_DATATYPE_NULL);
}

/* A column of a matrix goes out, a row comes in. */
static void columns(int n)
{
    MPI_Datatype col;
    int *m = malloc((size_t)n * 7 * sizeof(int)), *v = malloc((size_t)n * sizeof(int));
    MPI_Type_vector(n, 1, 7, MPI_INT, &col);
    MPI_Type_commit(&col);
    for (int i = 0; i < 7 * n; i++)
        m[i] = rank * 10 + i;
    MPI_Sendrecv(m + 3, 1, col, right, 1, v, n, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        EQ(v[i], left * 10 + 7 * i + 3);
    for (int i = 0; i < 7 * n; i++)
        m[i] = -1;
    MPI_Sendrecv(v, n, MPI_INT, left, 2, m + 2, 1, col, right, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 7 * n; i++)
        EQ(m[i], i % 7 == 2 ? rank * 10 + 7 * (i / 7) + 3 : -1);
    MPI_Type_free(&col);
    free(m);
    free(v);
}

static void subarrays(void)
{
    int sizes[3] = {6, 5, 4}, sub[3] = {2, 3, 2}, starts[3] = {3, 1, 2};
    int m[6][5][4], got[12], k = 0;
    MPI_Datatype t;
    MPI_Type_create_subarray(3, sizes, sub, starts, MPI_ORDER_C, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int i = 0; i < 6 * 5 * 4; i++)
        (&m[0][0][0])[i] = i;
    MPI_Sendrecv(m, 1, t, right, 0, got, 12, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int x = 3; x < 5; x++)
        for (int y = 1; y < 4; y++)
            for (int z = 2; z < 4; z++)
                EQ(got[k++], m[x][y][z]);
    int ni, na, nd, combiner;
    MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner);
    CHECK(ni == 11 && na == 0 && nd == 1 && combiner == MPI_COMBINER_SUBARRAY);
    int ints[11];
    MPI_Datatype old;
    MPI_Type_get_contents(t, 11, 0, 1, ints, NULL, &old);
    CHECK(ints[0] == 3 && ints[1] == 6 && ints[4] == 2 && ints[9] == 2 && ints[10] == MPI_ORDER_C && old == MPI_INT);
    MPI_Type_free(&t);
}

/* Receives of less than was offered: partial elements. */
static void partial(void)
{
    MPI_Datatype t, pairs;
    int lengths[2] = {1, 1}, n;
    MPI_Aint at[2] = {0, 8}, lb, extent;
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT};
    char out[64] = {0}, in[64];
    MPI_Status st;
    MPI_Type_create_struct(2, lengths, at, types, &t);
    MPI_Type_contiguous(2, t, &pairs);
    MPI_Type_commit(&t);
    MPI_Type_commit(&pairs);
    MPI_Type_get_extent(t, &lb, &extent);
    CHECK(lb == 0 && extent == 16);
    MPI_Type_get_true_extent(t, &lb, &extent);
    CHECK(lb == 0 && extent == 12);
    MPI_Sendrecv(out, 1, t, right, 0, in, 2, pairs, left, 0, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, pairs, &n);
    EQ(n, MPI_UNDEFINED);
    MPI_Get_elements(&st, pairs, &n);
    EQ(n, 2);
    /* bytes that end inside an element */
    MPI_Sendrecv(out, 9, MPI_CHAR, right, 0, in, 9, MPI_CHAR, left, 0, MPI_COMM_WORLD, &st);
    MPI_Get_elements(&st, t, &n);
    EQ(n, MPI_UNDEFINED);
    MPI_Sendrecv(out, 1, t, right, 0, in, 2, pairs, left, 0, MPI_COMM_WORLD, &st);
    MPI_Count x;
    MPI_Get_elements_x(&st, t, &x);
    EQ(x, 2);
    MPI_Type_free(&t);
    MPI_Type_free(&pairs);
}

static void packing(void)
{
    char buf[100];
    int a = 5, at = 0, n;
    double d[2] = {1.5, 2.5};
    MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &n);
    CHECK(n >= 4);
    MPI_Pack_size(25, MPI_INT, MPI_COMM_WORLD, &n);
    CHECK(n >= 100 && n < 1000);
    MPI_Pack(&a, 1, MPI_INT, buf, sizeof(buf), &at, MPI_COMM_WORLD);
    MPI_Pack(d, 2, MPI_DOUBLE, buf, sizeof(buf), &at, MPI_COMM_WORLD);
    EQ(at, 20);
    char got[100];
    MPI_Sendrecv(buf, at, MPI_PACKED, right, 0, got, sizeof(got), MPI_PACKED, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    a = 0;
    d[1] = 0;
    at = 0;
    MPI_Unpack(got, sizeof(got), &at, &a, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(got, sizeof(got), &at, d, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    CHECK(a == 5 && d[0] == 1.5 && d[1] == 2.5);
}

/* Absolute addresses with MPI_BOTTOM, the names of MPI-1. */
static void addresses(void)
{
    int a = rank, c = -1;
    double b = rank + 0.25, d = -1;
    int one[2] = {1, 1}, size_ab;
    MPI_Aint at[2], ext;
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, s, r;
    MPI_Address(&a, &at[0]);
    MPI_Get_address(&b, &at[1]);
    MPI_Type_struct(2, one, at, types, &s);
    MPI_Get_address(&c, &at[0]);
    MPI_Get_address(&d, &at[1]);
    MPI_Type_create_struct(2, one, at, types, &r);
    MPI_Type_commit(&s);
    MPI_Type_commit(&r);
    MPI_Sendrecv(MPI_BOTTOM, 1, s, right, 0, MPI_BOTTOM, 1, r, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(c == left && d == left + 0.25);
    MPI_Type_size(s, &size_ab);
    EQ(size_ab, 12);
    MPI_Type_extent(MPI_DOUBLE_INT, &ext);
    EQ(ext, 16);
    EQ(MPI_Aint_diff(MPI_Aint_add(at[0], 24), at[0]), 24);
    MPI_Type_free(&s);
    MPI_Type_free(&r);
}

/* The constructors and the bounds of MPI-1, with displacements of MPI_Aint and names removed from the standard. */
static void old_names(void)
{
    int lengths[2] = {1, 2}, from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8] = {0};
    MPI_Aint at[2] = {4, 16}, lb, ub;
    MPI_Datatype indexed, vector;
    MPI_Type_hindexed(2, lengths, at, MPI_INT, &indexed);
    MPI_Type_lb(indexed, &lb);
    MPI_Type_ub(indexed, &ub);
    CHECK(lb == 4 && ub == 24);
    MPI_Type_hvector(3, 1, 8, MPI_INT, &vector);
    MPI_Type_lb(vector, &lb);
    MPI_Type_ub(vector, &ub);
    CHECK(lb == 0 && ub == 20);
    MPI_Type_commit(&indexed);
    MPI_Type_commit(&vector);
    MPI_Sendrecv(from, 1, indexed, rank, 0, to, 1, vector, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 8; i++)
        EQ(to[i], i == 0 ? 2 : i == 2 ? 5 : i == 4 ? 6 : 0);
    MPI_Type_free(&indexed);
    MPI_Type_free(&vector);
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    MPI_Datatype t, u;
    MPI_Type_get_name(MPI_UNSIGNED_LONG, name, &len);
    CHECK(!strcmp(name, "MPI_UNSIGNED_LONG"));
    MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &len); /* the synonym has the same handle */
    CHECK(!strcmp(name, "MPI_C_COMPLEX"));
    MPI_Type_get_name(MPI_2INT, name, &len);
    CHECK(!strcmp(name, "MPI_2INT"));
    MPI_Type_contiguous(3, MPI_INT, &t);
    MPI_Type_set_name(t, "triple");
    MPI_Type_get_name(t, name, &len);
    CHECK(!strcmp(name, "triple") && len == 6);
    MPI_Type_dup(t, &u);
    MPI_Type_free(&t);
    int ni, na, nd, combiner, n;
    MPI_Type_get_envelope(u, &ni, &na, &nd, &combiner);
    EQ(combiner, MPI_COMBINER_DUP);
    MPI_Type_get_contents(u, 0, 0, 1, NULL, NULL, &t);
    MPI_Type_size(t, &n);
    EQ(n, 12);
    MPI_Type_free(&t);
    MPI_Type_free(&u);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t);
    EQ(t, MPI_REAL8);
#ifdef MPICH_NAME /* its fields of a status */
    MPI_Fint f[5] = {12, 0, 3, 4, 5};
    MPI_Status st;
    MPI_Status_f2c(f, &st);
    MPI_Get_count(&st, MPI_INT, &n);
    CHECK(n == 3 && st.MPI_SOURCE == 3 && st.MPI_TAG == 4);
    st.MPI_TAG = 9;
    MPI_Status_c2f(&st, f);
    EQ(f[3], 9);
#endif
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    left = (rank - 1 + size) % size;
    right = (rank + 1) % size;
    static const int ns[] = {1, 10, 1000, 30000, 200000};
    for (int i = 0; i < (size > 4 ? 4 : 5); i++) {
        structs(ns[i]);
        columns(ns[i]);
    }
    subarrays();
    partial();
    packing();
    addresses();
    old_names();
    names();
    return mt_end();
}
