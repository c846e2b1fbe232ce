/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Constructors with large counts: each against its twin, their envelope and contents, types far larger than memory, and
 * the results of functions with int about them. Also the Fortran kinds, types by size, Get_count and friends.
 */
#include "mt.h"

static MPI_Datatype pair_of; /* an old type that is not built in: 12 bytes at 4, extent 20 */

static int class_of(int code)
{
    int c;
    MPI_Error_class(code, &c);
    return c;
}

/* t and u take the same bytes in the same order, and have the same bounds. */
static void same(MPI_Datatype t, MPI_Datatype u)
{
    enum { ROOM = 4000 };
    static unsigned char mem[ROOM], a[ROOM], b[ROOM];
    MPI_Aint lb, extent, lb2, extent2;
    MPI_Count n, n2, wide_lb, wide_extent, at = 0;
    int small, pos = 0;
    MPI_Type_get_extent(t, &lb, &extent);
    MPI_Type_get_extent(u, &lb2, &extent2);
    CHECK(lb == lb2 && extent == extent2);
    MPI_Type_get_extent_c(u, &wide_lb, &wide_extent);
    CHECK(lb == wide_lb && extent == wide_extent);
    MPI_Type_get_true_extent(t, &lb, &extent);
    MPI_Type_get_true_extent_c(u, &wide_lb, &wide_extent);
    CHECK(lb == wide_lb && extent == wide_extent && lb >= 0 && lb + 2 * extent < ROOM);
    MPI_Type_size(t, &small);
    MPI_Type_size_c(u, &n);
    MPI_Type_size_x(u, &n2);
    CHECK(small == n && n == n2 && n > 0);
    for (int i = 0; i < ROOM; i++)
        mem[i] = (unsigned char)(i * 7 + i / 256);
    MPI_Type_commit(&t);
    MPI_Type_commit(&u);
    MPI_Pack_size_c(1, u, MPI_COMM_WORLD, &n2);
    CHECK(n2 >= n);
    MPI_Pack(mem, 1, t, a, ROOM, &pos, MPI_COMM_WORLD);
    MPI_Pack_c(mem, 1, u, b, ROOM, &at, MPI_COMM_WORLD);
    CHECK(pos == at && !memcmp(a, b, (size_t)small));
    memset(mem, 0, ROOM);
    pos = 0;
    at = 0;
    MPI_Unpack_c(b, n, &at, mem, 1, t, MPI_COMM_WORLD);
    EQ(at, n);
    memset(b, 0xee, ROOM);
    MPI_Pack(mem, 1, u, b, ROOM, &pos, MPI_COMM_WORLD);
    CHECK(!memcmp(a, b, (size_t)small));
    MPI_Type_free(&t);
    MPI_Type_free(&u);
}

/* u was made with large counts: its contents. */
static void tells(MPI_Datatype u, int combiner, const MPI_Count *want, int num, int types)
{
    MPI_Count ni, na, nc, nd, counts[16] = {0};
    int k, a, b, c, ints[4];
    MPI_Datatype old[4];
    MPI_Type_get_envelope_c(u, &ni, &na, &nc, &nd, &k);
    CHECK(k == combiner && na == 0 && nc == num && nd == types);
    CHECK(MPI_Type_get_envelope(u, &a, &b, &c, &k) != MPI_SUCCESS);
    CHECK(MPI_Type_get_contents(u, 4, 0, 4, ints, NULL, old) != MPI_SUCCESS);
    CHECK(MPI_Type_get_contents_c(u, ni, 0, nc - 1, nd, ints, NULL, counts, old) != MPI_SUCCESS);
    MPI_Type_get_contents_c(u, ni, 0, nc, nd, ints, NULL, counts, old);
    for (int i = 0; i < num; i++)
        EQ(counts[i], want[i]);
    for (int i = 0; i < types; i++) {
        MPI_Type_get_envelope(old[i], &a, &b, &c, &k);
        if (k != MPI_COMBINER_NAMED)
            MPI_Type_free(&old[i]);
    }
}

#define TELLS(u, combiner, types, ...)                                                                                 \
    tells(u, combiner, (MPI_Count[]){__VA_ARGS__}, (int)(sizeof((MPI_Count[]){__VA_ARGS__}) / sizeof(MPI_Count)), types)

static void twins(void)
{
    MPI_Datatype t, u, types[3] = {MPI_DOUBLE, pair_of, MPI_CHAR};
    int len[3] = {2, 0, 3}, dis[3] = {1, 9, 5}, sizes[2] = {6, 7}, sub[2] = {2, 3}, start[2] = {1, 4};
    MPI_Count lenc[3] = {2, 0, 3}, disc[3] = {1, 9, 5}, sizesc[2] = {6, 7}, subc[2] = {2, 3}, startc[2] = {1, 4};
    MPI_Aint at[3] = {8, 100, 401};
    MPI_Count atc[3] = {8, 100, 401};

    MPI_Type_contiguous(5, pair_of, &t);
    MPI_Type_contiguous_c(5, pair_of, &u);
    TELLS(u, MPI_COMBINER_CONTIGUOUS, 1, 5);
    same(t, u);
    MPI_Type_vector(4, 2, 3, pair_of, &t);
    MPI_Type_vector_c(4, 2, 3, pair_of, &u);
    TELLS(u, MPI_COMBINER_VECTOR, 1, 4, 2, 3);
    same(t, u);
    MPI_Type_create_hvector(4, 2, 67, MPI_INT, &t);
    MPI_Type_create_hvector_c(4, 2, 67, MPI_INT, &u);
    TELLS(u, MPI_COMBINER_HVECTOR, 1, 4, 2, 67);
    same(t, u);
    MPI_Type_indexed(3, len, dis, pair_of, &t);
    MPI_Type_indexed_c(3, lenc, disc, pair_of, &u);
    TELLS(u, MPI_COMBINER_INDEXED, 1, 3, 2, 0, 3, 1, 9, 5);
    same(t, u);
    MPI_Type_create_hindexed(3, len, at, pair_of, &t);
    MPI_Type_create_hindexed_c(3, lenc, atc, pair_of, &u);
    TELLS(u, MPI_COMBINER_HINDEXED, 1, 3, 2, 0, 3, 8, 100, 401);
    same(t, u);
    MPI_Type_create_indexed_block(3, 2, dis, pair_of, &t);
    MPI_Type_create_indexed_block_c(3, 2, disc, pair_of, &u);
    TELLS(u, MPI_COMBINER_INDEXED_BLOCK, 1, 3, 2, 1, 9, 5);
    same(t, u);
    MPI_Type_create_hindexed_block(3, 2, at, pair_of, &t);
    MPI_Type_create_hindexed_block_c(3, 2, atc, pair_of, &u);
    TELLS(u, MPI_COMBINER_HINDEXED_BLOCK, 1, 3, 2, 8, 100, 401);
    same(t, u);
    len[1] = 2;
    lenc[1] = 2;
    MPI_Type_create_struct(3, len, at, types, &t);
    MPI_Type_create_struct_c(3, lenc, atc, types, &u);
    TELLS(u, MPI_COMBINER_STRUCT, 3, 3, 2, 2, 3, 8, 100, 401);
    same(t, u);
    MPI_Type_create_resized(pair_of, -2, 50, &t);
    MPI_Type_create_resized_c(pair_of, -2, 50, &u);
    TELLS(u, MPI_COMBINER_RESIZED, 1, -2, 50);
    same(t, u);
    MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, pair_of, &t);
    MPI_Type_create_subarray_c(2, sizesc, subc, startc, MPI_ORDER_C, pair_of, &u);
    TELLS(u, MPI_COMBINER_SUBARRAY, 1, 6, 7, 2, 3, 1, 4);
    same(t, u);
}

/* Memory of this size is not touched: only queries. */
static void huge(void)
{
    const MPI_Count G = 1000000000;
    MPI_Datatype t, u;
    MPI_Count n, lb, extent, els;
    MPI_Aint alb, aextent;
    int small;
    MPI_Status st = {0};
    MPI_Type_contiguous_c(5 * G, MPI_DOUBLE, &t);
    MPI_Type_size(t, &small);
    EQ(small, MPI_UNDEFINED);
    MPI_Type_size_c(t, &n);
    EQ(n, 40 * G);
    MPI_Type_get_extent(t, &alb, &aextent);
    EQ(aextent, 40 * G);
    MPI_Type_vector_c(3, 2, 4 * G, MPI_SHORT, &u);
    MPI_Type_get_true_extent_x(u, &lb, &extent);
    CHECK(lb == 0 && extent == 2 * (8 * G + 2));
    MPI_Type_free(&u);
    MPI_Type_create_hindexed_c(2, (MPI_Count[]){3 * G, 1}, (MPI_Count[]){-7 * G, 90 * G}, MPI_INT, &u);
    MPI_Type_get_extent_x(u, &lb, &extent);
    CHECK(lb == -7 * G && extent == 97 * G + 4);
    MPI_Type_size_x(u, &n);
    EQ(n, 12 * G + 4);
    MPI_Status_set_elements_x(&st, u, 6 * G + 2);
    MPI_Get_count(&st, u, &small);
    EQ(small, 2);
    MPI_Get_elements_x(&st, u, &els);
    EQ(els, 6 * G + 2);
    els = 0;
    MPI_Get_elements_c(&st, u, &els);
    EQ(els, 6 * G + 2);
    MPI_Get_elements(&st, u, &small);
    EQ(small, MPI_UNDEFINED);
    MPI_Get_count(&st, MPI_INT, &small);
    EQ(small, MPI_UNDEFINED);
    MPI_Get_count_c(&st, MPI_INT, &n);
    EQ(n, 6 * G + 2);
    small = 0;
    MPI_Pack_size(1, u, MPI_COMM_WORLD, &small);
    EQ(small, MPI_UNDEFINED);
    MPI_Pack_size_c(3, u, MPI_COMM_WORLD, &n);
    CHECK(n >= 3 * (12 * G + 4));
    MPI_Type_free(&t);
    MPI_Type_free(&u);
}

static void statuses(void)
{
    int len[3] = {1, 2, 1}, n;
    MPI_Aint at[3] = {0, 8, 32};
    MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE_INT, MPI_SHORT}, t, v; /* 27 bytes, elements 1 8 4 8 4 2 */
    MPI_Status st = {0};
    MPI_Count c;
    static const int bytes[] = {0, 1, 9, 13, 21, 25, 27, 28, 36, 40, 48, 52, 54};
    at[1] = 8;
    at[2] = 40;
    MPI_Type_create_struct(3, len, at, types, &t);
    MPI_Type_commit(&t);
    for (int e = 0; e <= 12; e++) {
        MPI_Status_set_elements(&st, t, e);
        MPI_Get_elements(&st, t, &n);
        EQ(n, e);
        MPI_Get_count(&st, MPI_BYTE, &n);
        EQ(n, bytes[e]);
        MPI_Get_count(&st, t, &n);
        EQ(n, e % 6 ? MPI_UNDEFINED : e / 6);
        MPI_Get_count_c(&st, t, &c);
        EQ(c, e % 6 ? MPI_UNDEFINED : e / 6);
    }
    MPI_Type_vector(3, 1, 2, t, &v);
    MPI_Status_set_elements_x(&st, v, 18 + 7);
    MPI_Get_count(&st, MPI_BYTE, &n);
    EQ(n, 4 * 27 + 1);
    MPI_Type_free(&v);
    MPI_Type_free(&t);
}

static void kinds(void)
{
    static const struct {
        int p, r, size;
    } real[] = {{6, 37, 4}, {7, 10, 8}, {15, 307, 8}, {MPI_UNDEFINED, 30, 4}, {10, MPI_UNDEFINED, 8}};
    static const int digits[][2] = {{1, 1}, {2, 1}, {4, 2}, {5, 4}, {9, 4}, {10, 8}, {18, 8}};
    MPI_Datatype t, u;
    int n, ni, na, nd, k, ints[2];
    for (int i = 0; i < 5; i++) {
        MPI_Type_create_f90_real(real[i].p, real[i].r, &t);
        MPI_Type_create_f90_real(real[i].p, real[i].r, &u);
        EQ(t, u);
        MPI_Type_size(t, &n);
        EQ(n, real[i].size);
        MPI_Type_get_envelope(t, &ni, &na, &nd, &k);
        CHECK(ni == 2 && na == 0 && nd == 0 && k == MPI_COMBINER_F90_REAL);
        MPI_Type_get_contents(t, 2, 0, 0, ints, NULL, NULL);
        CHECK(ints[0] == real[i].p && ints[1] == real[i].r);
        MPI_Type_create_f90_complex(real[i].p, real[i].r, &t);
        MPI_Type_size(t, &n);
        EQ(n, 2 * real[i].size);
        MPI_Type_get_envelope(t, &ni, &na, &nd, &k);
        EQ(k, MPI_COMBINER_F90_COMPLEX);
    }
    for (int i = 0; i < 7; i++) {
        MPI_Type_create_f90_integer(digits[i][0], &t);
        MPI_Type_size(t, &n);
        EQ(n, digits[i][1]);
        MPI_Type_get_envelope(t, &ni, &na, &nd, &k);
        CHECK(ni == 1 && na == 0 && nd == 0 && k == MPI_COMBINER_F90_INTEGER);
        MPI_Type_get_contents(t, 1, 0, 0, ints, NULL, NULL);
        EQ(ints[0], digits[i][0]);
    }
    /* they need no commit, can be sent and added up, and are not the user's to free */
    double mine = rank + 1.5, sum = 0;
    MPI_Type_create_f90_real(15, 307, &t);
    MPI_Allreduce(&mine, &sum, 1, t, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == 1.5 * size + size * (size - 1) / 2);
    EQ(class_of(MPI_Type_free(&t)), MPI_ERR_TYPE);
    EQ(class_of(MPI_Type_create_f90_real(400, 10, &t)), MPI_ERR_ARG);
    CHECK(MPI_Type_create_f90_integer(60, &t) != MPI_SUCCESS);
    MPI_Type_contiguous(3, u, &u); /* as part of another type */
    MPI_Type_free(&u);
}

static void by_size(void)
{
    static const struct {
        int typeclass, size;
    } want[] = {{MPI_TYPECLASS_REAL, 4},    {MPI_TYPECLASS_REAL, 8},    {MPI_TYPECLASS_REAL, 16},
                {MPI_TYPECLASS_INTEGER, 1}, {MPI_TYPECLASS_INTEGER, 2}, {MPI_TYPECLASS_INTEGER, 4},
                {MPI_TYPECLASS_INTEGER, 8}, {MPI_TYPECLASS_COMPLEX, 8}, {MPI_TYPECLASS_COMPLEX, 16}};
    static const MPI_Datatype types[] = {MPI_REAL4,    MPI_REAL8,    MPI_REAL16,   MPI_INTEGER1, MPI_INTEGER2,
                                         MPI_INTEGER4, MPI_INTEGER8, MPI_COMPLEX8, MPI_COMPLEX16};
    MPI_Datatype t;
    for (int i = 0; i < 9; i++) {
        MPI_Type_match_size(want[i].typeclass, want[i].size, &t);
        EQ(t, types[i]);
    }
    EQ(class_of(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &t)), MPI_ERR_ARG);
    EQ(class_of(MPI_Type_match_size(9, 4, &t)), MPI_ERR_ARG);
}

/* A message described by a large constructor. */
static void messages(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, a[30], b[10];
    MPI_Datatype t;
    MPI_Type_vector_c(10, 1, 3, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int i = 0; i < 30; i++)
        a[i] = rank * 100 + i;
    MPI_Sendrecv(a, 1, t, right, 0, b, 10, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 10; i++)
        EQ(b[i], left * 100 + 3 * i);
    MPI_Type_free(&t);
}

static void refusals(void)
{
    MPI_Datatype t;
    MPI_Count one = 1, minus = -1, zero = 0, pos = 0;
    char buf[8];
    EQ(class_of(MPI_Type_contiguous_c(-1, MPI_INT, &t)), MPI_ERR_COUNT);
    EQ(class_of(MPI_Type_vector_c(2, -1, 3, MPI_INT, &t)), MPI_ERR_ARG);
    EQ(class_of(MPI_Type_indexed_c(1, &minus, &zero, MPI_INT, &t)), MPI_ERR_ARG);
    EQ(class_of(MPI_Type_create_hindexed_c(1, &one, &zero, MPI_DATATYPE_NULL, &t)), MPI_ERR_TYPE);
    EQ(class_of(MPI_Type_create_subarray_c(1, &one, &one, &one, MPI_ORDER_C, MPI_INT, &t)), MPI_ERR_ARG);
    EQ(class_of(MPI_Type_create_subarray_c(0, &one, &one, &zero, MPI_ORDER_C, MPI_INT, &t)), MPI_ERR_DIMS);
    CHECK(MPI_Pack_c(buf, 3, MPI_INT, buf, 8, &pos, MPI_COMM_WORLD) != MPI_SUCCESS);
    EQ(pos, 0);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    int len[2] = {2, 1};
    MPI_Aint at[2] = {4, 16};
    MPI_Datatype t;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_create_hindexed(2, len, at, MPI_FLOAT, &t);
    MPI_Type_create_resized(t, 0, 20, &pair_of);
    MPI_Type_free(&t);
    twins();
    huge();
    statuses();
    kinds();
    by_size();
    messages();
    refusals();
    MPI_Type_free(&pair_of);
    return mt_end();
}
