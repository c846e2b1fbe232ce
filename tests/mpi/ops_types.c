/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every built-in operation on every basic type: the right result where defined (over all ranks, and by MPI_Reduce_local
 * with int and with large counts), an error elsewhere. Then the user's operations, with counts of both widths.
 */
#include "mt.h"

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

enum { N = 19 };
enum {
    INTS = 0x3ff,
    REALS = 0x15f,
    HALVES = 0xf,
    COMPLEXES = 0xc,
    LOGICALS = 0x150,
    BITS = 0x2a0,
    PAIRS = 0xc00,
    NONE = 0
};

static MPI_Op ops[12];

/* Defined and undefined: all twelve operations on one type. fold(op, a, b) computes the operation. */
#define TYPE(ctype, mpitype, defined, make, fold)                                                                      \
    do {                                                                                                               \
        ctype in[N], out[N], want[N], local[N];                                                                        \
        memset(in, 0, sizeof(in));                                                                                     \
        memset(out, 0, sizeof(out));                                                                                   \
        for (int op = 0; op < 12; op++) {                                                                              \
            for (int i = 0; i < N; i++)                                                                                \
                in[i] = (ctype)make(rank, i);                                                                          \
            if (!((defined) >> op & 1)) {                                                                              \
                refused(MPI_Allreduce(in, out, N, mpitype, ops[op], MPI_COMM_WORLD), #mpitype, op);                    \
                refused(MPI_Reduce_local(in, out, N, mpitype, ops[op]), #mpitype, op);                                 \
                continue;                                                                                              \
            }                                                                                                          \
            for (int i = 0; i < N; i++) {                                                                              \
                want[i] = (ctype)make(0, i);                                                                           \
                for (int r = 1; r < size; r++)                                                                         \
                    want[i] = (ctype)fold(op, want[i], (ctype)make(r, i));                                             \
            }                                                                                                          \
            MPI_Allreduce(in, out, N, mpitype, ops[op], MPI_COMM_WORLD);                                               \
            for (int i = 0; i < N; i++)                                                                                \
                right(out[i] == want[i], #mpitype, op, i);                                                             \
            for (int i = 0; i < N; i++)                                                                                \
                local[i] = out[i] = (ctype)make(2, i);                                                                 \
            MPI_Reduce_local(in, out, N - 1, mpitype, ops[op]);                                                        \
            MPI_Reduce_local_c(in, local, N - 1, mpitype, ops[op]);                                                    \
            for (int i = 0; i < N; i++) {                                                                              \
                ctype w = (ctype)make(2, i);                                                                           \
                if (i < N - 1)                                                                                         \
                    w = (ctype)fold(op, in[i], w);                                                                     \
                right(out[i] == w && local[i] == w, "local " #mpitype, op, i);                                         \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

static void right(int good, const char *type, int op, int i)
{
    if (!good)
        fprintf(stderr, "%s, operation %d, element %d is wrong\n", type, op, i);
    CHECK(good);
}

static void refused(int code, const char *type, int op)
{
    int class;
    MPI_Error_class(code, &class);
    if (class != MPI_ERR_OP)
        fprintf(stderr, "%s, operation %d: error class %d\n", type, op, class);
    EQ(class, MPI_ERR_OP);
}

/* Exact in every type, products too; zeros at some places for the logical ones. */
#define SMALL(r, i) (((r) + (i)) % 3 == 0 ? 0 : 1 + ((r) + (i)) % 2)
#define TRUTH(r, i) (((r)*5 + (i)) % 3 == 0)

#define INTEGER(op, a, b) ((op) == 5 ? (a) & (b) : (op) == 7 ? (a) | (b) : (op) == 9 ? (a) ^ (b) : REAL(op, a, b))
#define REAL(op, a, b)                                                                                                 \
    ((op) == 0 ? ((a) > (b) ? (a) : (b)) : (op) == 1 ? ((a) < (b) ? (a) : (b)) : LOGICAL_OR(op, a, b, FIELD(op, a, b)))
#define FIELD(op, a, b)            ((op) == 2 ? (a) + (b) : (a) * (b))
#define LOGICAL_OR(op, a, b, rest) ((op) == 4 ? (a) && (b) : (op) == 6 ? (a) || (b) : (op) == 8 ? !(a) != !(b) : (rest))
#define LOGICAL(op, a, b)          LOGICAL_OR(op, a, b, 0)
#define BITWISE(op, a, b)          ((op) == 5 ? (a) & (b) : (op) == 7 ? (a) | (b) : (a) ^ (b))

static void integers(void)
{
    TYPE(signed char, MPI_SIGNED_CHAR, INTS, SMALL, INTEGER);
    TYPE(unsigned char, MPI_UNSIGNED_CHAR, INTS, SMALL, INTEGER);
    TYPE(short, MPI_SHORT, INTS, SMALL, INTEGER);
    TYPE(unsigned short, MPI_UNSIGNED_SHORT, INTS, SMALL, INTEGER);
    TYPE(int, MPI_INT, INTS, SMALL, INTEGER);
    TYPE(unsigned, MPI_UNSIGNED, INTS, SMALL, INTEGER);
    TYPE(long, MPI_LONG, INTS, SMALL, INTEGER);
    TYPE(unsigned long, MPI_UNSIGNED_LONG, INTS, SMALL, INTEGER);
    TYPE(long long, MPI_LONG_LONG, INTS, SMALL, INTEGER);
    TYPE(unsigned long long, MPI_UNSIGNED_LONG_LONG, INTS, SMALL, INTEGER);
    TYPE(int8_t, MPI_INT8_T, INTS, SMALL, INTEGER);
    TYPE(int16_t, MPI_INT16_T, INTS, SMALL, INTEGER);
    TYPE(int32_t, MPI_INT32_T, INTS, SMALL, INTEGER);
    TYPE(int64_t, MPI_INT64_T, INTS, SMALL, INTEGER);
    TYPE(uint8_t, MPI_UINT8_T, INTS, SMALL, INTEGER);
    TYPE(uint16_t, MPI_UINT16_T, INTS, SMALL, INTEGER);
    TYPE(uint32_t, MPI_UINT32_T, INTS, SMALL, INTEGER);
    TYPE(uint64_t, MPI_UINT64_T, INTS, SMALL, INTEGER);
    TYPE(int, MPI_INTEGER, INTS, SMALL, INTEGER);
    TYPE(int8_t, MPI_INTEGER1, INTS, SMALL, INTEGER);
    TYPE(int16_t, MPI_INTEGER2, INTS, SMALL, INTEGER);
    TYPE(int32_t, MPI_INTEGER4, INTS, SMALL, INTEGER);
    TYPE(int64_t, MPI_INTEGER8, INTS, SMALL, INTEGER);
    TYPE(MPI_Aint, MPI_AINT, INTS, SMALL, INTEGER);
    TYPE(MPI_Offset, MPI_OFFSET, INTS, SMALL, INTEGER);
    TYPE(MPI_Count, MPI_COUNT, INTS, SMALL, INTEGER);
}

static void reals(void)
{
    TYPE(float, MPI_FLOAT, REALS, SMALL, REAL);
    TYPE(double, MPI_DOUBLE, REALS, SMALL, REAL);
    TYPE(long double, MPI_LONG_DOUBLE, REALS, SMALL, REAL);
    TYPE(float, MPI_REAL, REALS, SMALL, REAL);
    TYPE(double, MPI_DOUBLE_PRECISION, REALS, SMALL, REAL);
    TYPE(float, MPI_REAL4, REALS, SMALL, REAL);
    TYPE(double, MPI_REAL8, REALS, SMALL, REAL);
#ifdef MRMPI /* elsewhere the type may have 80 bits */
    TYPE(__float128, MPI_REAL16, REALS, SMALL, REAL);
#ifdef __FLT16_MAX__
    TYPE(_Float16, MPIX_C_FLOAT16, HALVES, SMALL, REAL);
#endif
#endif
}

#define TURNED(r, i) (SMALL(r, i) + 1.0 * I * SMALL((i) + 1, r))
static void complexes(void)
{
    TYPE(float complex, MPI_C_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(float complex, MPI_C_FLOAT_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(double complex, MPI_C_DOUBLE_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(long double complex, MPI_C_LONG_DOUBLE_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(float complex, MPI_CXX_FLOAT_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(double complex, MPI_CXX_DOUBLE_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(long double complex, MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(float complex, MPI_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(double complex, MPI_DOUBLE_COMPLEX, COMPLEXES, TURNED, FIELD);
    TYPE(float complex, MPI_COMPLEX8, COMPLEXES, TURNED, FIELD);
    TYPE(double complex, MPI_COMPLEX16, COMPLEXES, TURNED, FIELD);
}

static void others(void)
{
    TYPE(bool, MPI_C_BOOL, LOGICALS, TRUTH, LOGICAL);
    TYPE(bool, MPI_CXX_BOOL, LOGICALS, TRUTH, LOGICAL);
    TYPE(int, MPI_LOGICAL, LOGICALS, TRUTH, LOGICAL);
#ifdef MRMPI /* of MPI-5.0 */
    TYPE(int8_t, MPI_LOGICAL1, LOGICALS, TRUTH, LOGICAL);
    TYPE(int16_t, MPI_LOGICAL2, LOGICALS, TRUTH, LOGICAL);
    TYPE(int32_t, MPI_LOGICAL4, LOGICALS, TRUTH, LOGICAL);
    TYPE(int64_t, MPI_LOGICAL8, LOGICALS, TRUTH, LOGICAL);
    TYPE(__int128, MPI_LOGICAL16, LOGICALS, TRUTH, LOGICAL);
#endif
    TYPE(uint8_t, MPI_BYTE, BITS, SMALL, BITWISE);
    TYPE(int, MPI_WCHAR, NONE, SMALL, REAL);
    TYPE(char, MPI_PACKED, NONE, SMALL, REAL);
}

/* One value and index per element and rank; the lowest index wins ties. */
#define PAIR(vtype, itype, mpitype)                                                                                    \
    do {                                                                                                               \
        struct pair {                                                                                                  \
            vtype v;                                                                                                   \
            itype i;                                                                                                   \
        } in[N], out[N], local[N];                                                                                     \
        for (int op = 0; op < 12; op++) {                                                                              \
            memset(out, 0, sizeof(out));                                                                               \
            for (int i = 0; i < N; i++)                                                                                \
                in[i] = (struct pair){(vtype)((rank * 3 + i) % 4), (itype)(size - rank)};                              \
            if (op < 10) {                                                                                             \
                refused(MPI_Allreduce(in, out, N, mpitype, ops[op], MPI_COMM_WORLD), #mpitype, op);                    \
                continue;                                                                                              \
            }                                                                                                          \
            MPI_Allreduce(in, out, N, mpitype, ops[op], MPI_COMM_WORLD);                                               \
            for (int i = 0; i < N; i++) {                                                                              \
                int value = i % 4, index = size;                                                                       \
                for (int r = 1; r < size; r++) {                                                                       \
                    int v = (r * 3 + i) % 4;                                                                           \
                    if (v == value || (op == 10 ? v < value : v > value)) {                                            \
                        value = v;                                                                                     \
                        index = size - r;                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
                right(out[i].v == value && out[i].i == index, #mpitype, op, i);                                        \
                local[i] = (struct pair){(vtype)(1), (itype)(0)};                                                      \
            }                                                                                                          \
            MPI_Reduce_local_c(in, local, N, mpitype, ops[op]);                                                        \
            for (int i = 0; i < N; i++) {                                                                              \
                int v = (rank * 3 + i) % 4, mine = op == 10 ? v < 1 : v > 1;                                           \
                right(local[i].v == (mine ? v : 1) && local[i].i == (mine ? size - rank : 0), "local " #mpitype, op,   \
                      i);                                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

static void pairs(void)
{
    PAIR(float, int, MPI_FLOAT_INT);
    PAIR(double, int, MPI_DOUBLE_INT);
    PAIR(long, int, MPI_LONG_INT);
    PAIR(short, int, MPI_SHORT_INT);
    PAIR(long double, int, MPI_LONG_DOUBLE_INT);
    PAIR(int, int, MPI_2INT);
    PAIR(int, int, MPI_2INTEGER);
    PAIR(float, float, MPI_2REAL);
    PAIR(double, double, MPI_2DOUBLE_PRECISION);
}

/* ---- the user's ---- */

static MPI_Datatype matrix;
static MPI_Count widest;

/* 2 by 2 matrices: the order of the factors matters, how they are grouped does not. */
static void multiply(const unsigned *a, unsigned *b, long long n)
{
    for (long long i = 0; i < n; i++, a += 4, b += 4) {
        unsigned c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                         a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof(c));
    }
}

static void user(void *in, void *inout, int *n, MPI_Datatype *t)
{
    CHECK(*t == matrix);
    multiply(in, inout, *n);
}

static void user_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *t)
{
    CHECK(*t == matrix);
    widest = *n > widest ? *n : widest;
    multiply(in, inout, *n);
}

static void users(void)
{
    MPI_Op plain, large;
    int flag;
    unsigned in[N][4], out[N][4], out_c[N][4], want[N][4], factor[N][4];
    MPI_Op_create(user, 0, &plain);
    MPI_Op_create_c(user_c, 0, &large);
    MPI_Op_commutative(plain, &flag);
    EQ(flag, 0);
    MPI_Op_commutative(MPI_SUM, &flag);
    EQ(flag, 1);
    MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix);
    MPI_Type_commit(&matrix);
    for (int r = size - 1; r >= 0; r--) { /* from the right, as a op (b op c) */
        for (int i = 0; i < N; i++)
            memcpy(factor[i], (unsigned[]){r + 2, i, 1, r + i}, sizeof(factor[i]));
        if (r == size - 1)
            memcpy(want, factor, sizeof(want));
        else
            multiply(factor[0], want[0], N);
    }
    for (int i = 0; i < N; i++)
        memcpy(in[i], (unsigned[]){rank + 2, i, 1, rank + i}, sizeof(in[i]));
    MPI_Allreduce(in, out, N, matrix, plain, MPI_COMM_WORLD);
    CHECK(!memcmp(out, want, sizeof(want)));
    MPI_Allreduce(in, out_c, N, matrix, large, MPI_COMM_WORLD);
    CHECK(!memcmp(out_c, want, sizeof(want)));
    memcpy(out, want, sizeof(out));
    multiply(in[0], out[0], N);
    widest = 0;
    MPI_Reduce_local_c(in, want, N, matrix, large);
    CHECK(!memcmp(out, want, sizeof(want)) && widest == N);
    MPI_Op_free(&plain);
    MPI_Op_free(&large);
    EQ(large, MPI_OP_NULL);
    MPI_Op_create_c(user_c, 1, &large);
    MPI_Op_commutative(large, &flag);
    EQ(flag, 1);
    MPI_Op_free(&large);
    MPI_Type_free(&matrix);
}

/* The pairs of MPI_MINLOC by their parts. */
static void pairs_by_parts(void)
{
    static const MPI_Datatype of[][3] = {
        {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
        {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
        {MPI_LONG, MPI_INT, MPI_LONG_INT},
        {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
        {MPI_INT, MPI_INT, MPI_2INT},
        {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
        {MPI_REAL, MPI_REAL, MPI_2REAL},
        {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
        {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
        {MPI_FLOAT, MPI_LONG, MPI_DATATYPE_NULL},
        {MPI_INT, MPI_FLOAT, MPI_DATATYPE_NULL},
        {MPI_FLOAT_INT, MPI_INT, MPI_DATATYPE_NULL},
    };
    MPI_Datatype pair, made;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        pair = MPI_BYTE;
        MPI_Type_get_value_index(of[i][0], of[i][1], &pair);
        EQ(pair, of[i][2]);
    }
    MPI_Type_contiguous(1, MPI_FLOAT, &made);
    MPI_Type_get_value_index(made, MPI_INT, &pair);
    EQ(pair, MPI_DATATYPE_NULL);
    MPI_Type_free(&made);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Op all[12] = {MPI_MAX, MPI_MIN, MPI_SUM,  MPI_PROD, MPI_LAND,   MPI_BAND,
                      MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
    memcpy(ops, all, sizeof(ops));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    integers();
    reals();
    complexes();
    others();
    pairs();
    users();
    pairs_by_parts();
    return mt_end();
}
