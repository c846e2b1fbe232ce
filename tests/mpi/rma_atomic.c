/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accumulates: every predefined datatype with every operation allowed by the standard, compared with MPI_Reduce_local;
 * then all ranks at once on the same elements: nothing is lost, every fetched value is unique, the order of one
 * origin's accumulates is kept.
 */
#include "rma.h"

#include <complex.h>
#include <stdbool.h>

enum { N = 5, BYTES = 32 * N };

#define SCALAR(name, ctype)                                                                                            \
    static void set_##name(void *p, int v)                                                                             \
    {                                                                                                                  \
        *(ctype *)p = (ctype)v;                                                                                        \
    }                                                                                                                  \
    static long double get_##name(const void *p)                                                                       \
    {                                                                                                                  \
        return (long double)*(const ctype *)p;                                                                         \
    }
#define COMPLEX(name, ctype)                                                                                           \
    static void set_##name(void *p, int v)                                                                             \
    {                                                                                                                  \
        *(ctype _Complex *)p = (ctype)v + (ctype)(v + 1) * (ctype _Complex)1.0i;                                       \
    }                                                                                                                  \
    static long double get_##name(const void *p)                                                                       \
    {                                                                                                                  \
        long double _Complex z = *(const ctype _Complex *)p;                                                           \
        return 1000 * creall(z) + cimagl(z);                                                                           \
    }
/* Some values are equal, so the index decides. */
#define PAIR(name, ctype, itype)                                                                                       \
    struct name {                                                                                                      \
        ctype v;                                                                                                       \
        itype i;                                                                                                       \
    };                                                                                                                 \
    static void set_##name(void *p, int v)                                                                             \
    {                                                                                                                  \
        ((struct name *)p)->v = (ctype)(v / 2);                                                                        \
        ((struct name *)p)->i = (itype)v;                                                                              \
    }                                                                                                                  \
    static long double get_##name(const void *p)                                                                       \
    {                                                                                                                  \
        const struct name *s = p;                                                                                      \
        return 1000 * (long double)s->v + (long double)s->i;                                                           \
    }
SCALAR(i8, int8_t)
SCALAR(i16, int16_t)
SCALAR(i32, int32_t)
SCALAR(i64, int64_t)
SCALAR(u8, uint8_t)
SCALAR(u16, uint16_t)
SCALAR(u32, uint32_t)
SCALAR(u64, uint64_t)
SCALAR(f32, float)
SCALAR(f64, double)
SCALAR(flong, long double)
SCALAR(boolean, bool)
COMPLEX(c32, float)
COMPLEX(c64, double)
COMPLEX(clong, long double)
PAIR(float_int, float, int)
PAIR(double_int, double, int)
PAIR(long_int, long, int)
PAIR(two_int, int, int)
PAIR(short_int, short, int)
PAIR(longdouble_int, long double, int)
PAIR(two_real, float, float)
PAIR(two_double, double, double)

/*
 * COUNTING: the integers of Fortran and of all languages, without logical operations; BYTE: like MPI_UNSIGNED_CHAR to
 * operations on windows
 */
enum group { INTEGER, COUNTING, REAL, LOGIC, BYTE, IMAGINARY, LOCATION };

static const struct type {
    MPI_Datatype t;
    enum group group;
    void (*set)(void *, int);
    long double (*get)(const void *);
    bool swaps; /* allowed in MPI_Compare_and_swap */
} types[] = {
#define T(mpi, group, name, swaps)                                                                                     \
    {                                                                                                                  \
        mpi, group, set_##name, get_##name, swaps                                                                      \
    }
    T(MPI_SIGNED_CHAR, INTEGER, i8, true),
    T(MPI_UNSIGNED_CHAR, INTEGER, u8, true),
    T(MPI_SHORT, INTEGER, i16, true),
    T(MPI_UNSIGNED_SHORT, INTEGER, u16, true),
    T(MPI_INT, INTEGER, i32, true),
    T(MPI_UNSIGNED, INTEGER, u32, true),
    T(MPI_LONG, INTEGER, i64, true),
    T(MPI_UNSIGNED_LONG, INTEGER, u64, true),
    T(MPI_LONG_LONG, INTEGER, i64, true),
    T(MPI_UNSIGNED_LONG_LONG, INTEGER, u64, true),
    T(MPI_INT8_T, INTEGER, i8, true),
    T(MPI_INT16_T, INTEGER, i16, true),
    T(MPI_INT32_T, INTEGER, i32, true),
    T(MPI_INT64_T, INTEGER, i64, true),
    T(MPI_UINT8_T, INTEGER, u8, true),
    T(MPI_UINT16_T, INTEGER, u16, true),
    T(MPI_UINT32_T, INTEGER, u32, true),
    T(MPI_UINT64_T, INTEGER, u64, true),
    T(MPI_AINT, COUNTING, i64, true),
    T(MPI_OFFSET, COUNTING, i64, true),
    T(MPI_COUNT, COUNTING, i64, true),
    T(MPI_INTEGER, COUNTING, i32, true),
    T(MPI_INTEGER1, COUNTING, i8, true),
    T(MPI_INTEGER2, COUNTING, i16, true),
    T(MPI_INTEGER4, COUNTING, i32, true),
    T(MPI_INTEGER8, COUNTING, i64, true),
    T(MPI_FLOAT, REAL, f32, false),
    T(MPI_DOUBLE, REAL, f64, false),
    T(MPI_LONG_DOUBLE, REAL, flong, false),
    T(MPI_REAL, REAL, f32, false),
    T(MPI_DOUBLE_PRECISION, REAL, f64, false),
    T(MPI_REAL4, REAL, f32, false),
    T(MPI_REAL8, REAL, f64, false),
    T(MPI_C_BOOL, LOGIC, boolean, true),
    T(MPI_CXX_BOOL, LOGIC, boolean, true),
    T(MPI_LOGICAL, LOGIC, i32, true),
    T(MPI_BYTE, BYTE, u8, true),
    T(MPI_C_FLOAT_COMPLEX, IMAGINARY, c32, false),
    T(MPI_C_DOUBLE_COMPLEX, IMAGINARY, c64, false),
    T(MPI_C_LONG_DOUBLE_COMPLEX, IMAGINARY, clong, false),
    T(MPI_COMPLEX, IMAGINARY, c32, false),
    T(MPI_DOUBLE_COMPLEX, IMAGINARY, c64, false),
    T(MPI_CXX_FLOAT_COMPLEX, IMAGINARY, c32, false),
    T(MPI_CXX_DOUBLE_COMPLEX, IMAGINARY, c64, false),
    T(MPI_FLOAT_INT, LOCATION, float_int, false),
    T(MPI_DOUBLE_INT, LOCATION, double_int, false),
    T(MPI_LONG_INT, LOCATION, long_int, false),
    T(MPI_2INT, LOCATION, two_int, false),
    T(MPI_SHORT_INT, LOCATION, short_int, false),
    T(MPI_LONG_DOUBLE_INT, LOCATION, longdouble_int, false),
    T(MPI_2REAL, LOCATION, two_real, false),
    T(MPI_2DOUBLE_PRECISION, LOCATION, two_double, false),
    T(MPI_2INTEGER, LOCATION, two_int, false),
#undef T
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static const struct op {
    MPI_Op op;
    unsigned groups;
} ops[] = {
    {MPI_SUM, 1 << INTEGER | 1 << COUNTING | 1 << BYTE | 1 << REAL | 1 << IMAGINARY},
    {MPI_PROD, 1 << INTEGER | 1 << COUNTING | 1 << BYTE | 1 << REAL | 1 << IMAGINARY},
    {MPI_MAX, 1 << INTEGER | 1 << COUNTING | 1 << BYTE | 1 << REAL},
    {MPI_MIN, 1 << INTEGER | 1 << COUNTING | 1 << BYTE | 1 << REAL},
    {MPI_LAND, 1 << INTEGER | 1 << BYTE | 1 << LOGIC},
    {MPI_LOR, 1 << INTEGER | 1 << BYTE | 1 << LOGIC},
    {MPI_LXOR, 1 << INTEGER | 1 << BYTE | 1 << LOGIC},
    {MPI_BAND, 1 << INTEGER | 1 << COUNTING | 1 << BYTE},
    {MPI_BOR, 1 << INTEGER | 1 << COUNTING | 1 << BYTE},
    {MPI_BXOR, 1 << INTEGER | 1 << COUNTING | 1 << BYTE},
    {MPI_MINLOC, 1 << LOCATION},
    {MPI_MAXLOC, 1 << LOCATION},
    {MPI_REPLACE, ~0u},
    {MPI_NO_OP, ~0u},
};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

/* A value of rank r: small, for exact sums and products in every type, and a truth value where needed. */
static int value(const struct type *y, MPI_Op op, int r, int i)
{
    if (y->group == LOGIC)
        return (r + i) % 2;
    if (op == MPI_PROD)
        return (r + i) % 7 == 3 ? 2 : 1;
    return (r * 5 + i * 3) % 7;
}

static void fill(const struct type *y, MPI_Aint extent, char *buf, MPI_Op op, int r)
{
    memset(buf, 0, BYTES);
    for (int i = 0; i < N; i++)
        y->set(buf + i * extent, value(y, op, r, i));
}

/* The expected result of the operation on the target's elements. */
static void model(const char *origin, char *target, int n, const struct type *y, MPI_Op op)
{
    if (op == MPI_REPLACE)
        memcpy(target, origin, BYTES);
    else if (op != MPI_NO_OP)
        MPI_Reduce_local(origin, target, n, y->group == BYTE ? MPI_UNSIGNED_CHAR : y->t, op);
}

#define SAME(a, b, n)                                                                                                  \
    do {                                                                                                               \
        for (int i_ = 0; i_ < (n); i_++)                                                                               \
            CHECK(y->get((a) + i_ * extent) == y->get((b) + i_ * extent));                                             \
    } while (0)

/* One origin for each target. */
static void alone(const struct win *w, const struct type *y, MPI_Op op)
{
    _Alignas(16) char mine[BYTES], was[BYTES], want[BYTES], got[BYTES], own[BYTES];
    MPI_Aint lb, extent;
    int right = (w->me + 1) % w->n, left = (w->me + w->n - 1) % w->n;
    MPI_Type_get_extent(y->t, &lb, &extent);
    fill(y, extent, mine, op, w->me + 1);
    fill(y, extent, was, op, right + 3);
    fill(y, extent, own, op, w->me + 3);
    fill(y, extent, want, op, w->me + 3); /* the own part's result, by the left rank */
    own_open(w);
    memcpy(w->mem, own, BYTES);
    own_close(w);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, w->w);
    memset(got, 0, sizeof(got));
    if (op != MPI_NO_OP) {
        MPI_Accumulate(mine, 2, y->t, right, at_of(w, right, 0), 2, y->t, op, w->w);
        MPI_Get_accumulate(mine + 2 * extent, 2, y->t, got, 2, y->t, right, at_of(w, right, 2 * extent), 2, y->t, op,
                           w->w);
    } else {
        MPI_Get_accumulate(NULL, 0, MPI_INT, got, 2, y->t, right, at_of(w, right, 2 * extent), 2, y->t, op, w->w);
    }
    MPI_Fetch_and_op(mine + 4 * extent, got + 2 * extent, y->t, right, at_of(w, right, 4 * extent), op, w->w);
    MPI_Win_unlock(right, w->w);
    SAME(got, was + 2 * extent, 3);
    MPI_Barrier(w->comm);
    fill(y, extent, mine, op, left + 1);
    model(mine, want, N, y, op);
    own_open(w);
    SAME(w->mem, want, N);
    own_close(w);
    MPI_Barrier(w->comm);
}

/* All ranks at all ranks, with operations that commute. */
static void together(const struct win *w, const struct type *y, MPI_Op op)
{
    _Alignas(16) char mine[BYTES], want[BYTES], got[BYTES];
    MPI_Aint lb, extent;
    MPI_Type_get_extent(y->t, &lb, &extent);
    own_open(w);
    fill(y, extent, w->mem, op, w->me);
    memcpy(want, w->mem, BYTES);
    own_close(w);
    fill(y, extent, mine, op, w->me + 1);
    way_open(LOCK_ALL, w);
    for (int i = 0; i < w->n; i++) {
        int t = (w->me + i) % w->n;
        if (i % 2)
            MPI_Accumulate(mine, N, y->t, t, at_of(w, t, 0), N, y->t, op, w->w);
        else
            MPI_Get_accumulate(mine, N, y->t, got, N, y->t, t, at_of(w, t, 0), N, y->t, op, w->w);
    }
    way_close(LOCK_ALL, w);
    for (int r = 0; r < w->n; r++) {
        fill(y, extent, mine, op, r + 1);
        model(mine, want, N, y, op);
    }
    own_open(w);
    SAME(w->mem, want, N);
    own_close(w);
    MPI_Barrier(w->comm);
}

/* Equal: the new value; not equal: the old value stays. The old value is returned. */
static void swap(const struct win *w, const struct type *y)
{
    _Alignas(16) char old[16] = {0}, no[16] = {0}, new[16] = {0}, got[16] = {0}, after[16] = {0};
    int right = (w->me + 1) % w->n;
    y->set(old, 1);
    y->set(no, y->group == LOGIC ? 0 : 2);
    y->set(new, y->group == LOGIC ? 0 : 3);
    own_set(w, 0);
    own_open(w);
    y->set(w->mem, 1);
    y->set(w->mem + 16, 1);
    own_close(w);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, w->w);
    MPI_Compare_and_swap(new, no, got, y->t, right, at_of(w, right, 0), w->w);
    MPI_Compare_and_swap(new, old, after, y->t, right, at_of(w, right, 16), w->w);
    MPI_Win_unlock(right, w->w);
    CHECK(y->get(got) == 1 && y->get(after) == 1);
    MPI_Barrier(w->comm);
    own_open(w);
    CHECK(y->get(w->mem) == 1 && y->get(w->mem + 16) == y->get(new));
    for (int i = 0, n; MPI_Type_size(y->t, &n), i < 16 - n; i++) /* nothing beside */
        CHECK(w->mem[n + i] == 0 && w->mem[16 + n + i] == 0);
    own_close(w);
    MPI_Barrier(w->comm);
}

/* A job's counter at each rank: all values from 0 on are given out, each once, to each rank in rising order. */
static void tickets(enum flavor f, int how)
{
    enum { EACH = 40 };
    struct win w;
    int64_t one = 1, mine[EACH], v;
    int *given;
    win_make(&w, f, 2 * sizeof(int64_t));
    given = calloc((size_t)w.n * EACH, sizeof(int));
    CHECK(given);
    for (int t = 0; t < w.n; t++) {
        MPI_Aint at = at_of(&w, t, 8);
        MPI_Win_lock_all(0, w.w);
        for (int i = 0; i < EACH; i++) {
            if (how == 0) {
                MPI_Fetch_and_op(&one, &mine[i], MPI_INT64_T, t, at, MPI_SUM, w.w);
            } else if (how == 1) {
                MPI_Get_accumulate(&one, 1, MPI_INT64_T, &mine[i], 1, MPI_INT64_T, t, at, 1, MPI_INT64_T, MPI_SUM, w.w);
            } else {
                int64_t old = 0, new;
                for (;; old = mine[i]) { /* until nobody else was faster */
                    new = old + 1;
                    MPI_Compare_and_swap(&new, &old, &mine[i], MPI_INT64_T, t, at, w.w);
                    MPI_Win_flush(t, w.w);
                    if (mine[i] == old)
                        break;
                }
            }
            if (i % 4 == 0) { /* the counter does not go back */
                MPI_Fetch_and_op(NULL, &v, MPI_INT64_T, t, at, MPI_NO_OP, w.w);
                MPI_Win_flush(t, w.w);
                CHECK(v > mine[i]);
            }
        }
        MPI_Win_unlock_all(w.w);
        memset(given, 0, sizeof(int) * EACH * (size_t)w.n);
        for (int i = 0; i < EACH; i++) {
            CHECK(mine[i] >= 0 && mine[i] < EACH * w.n && (i == 0 || mine[i] > mine[i - 1]));
            given[mine[i]]++;
        }
        MPI_Allreduce(MPI_IN_PLACE, given, EACH * w.n, MPI_INT, MPI_SUM, w.comm);
        for (int i = 0; i < EACH * w.n; i++)
            EQ(given[i], 1);
    }
    own_open(&w);
    EQ(((int64_t *)w.mem)[1], EACH * w.n);
    EQ(((int64_t *)w.mem)[0], 0);
    own_close(&w);
    free(given);
    win_free(&w);
}

/*
 * Operations of all kinds on the same elements at the same time, short and long, in one piece and with holes, and on an
 * element across word boundaries: each applies to an element as a whole.
 */
static void kinds(enum flavor f)
{
    enum { KINDS = 6, ACROSS = 8 * 5 + 3 };
    struct win w;
    int64_t one[3] = {1, 1, 1}, got[3], old, v[3] = {0}, across;
    MPI_Datatype apart;
    int each = 20;
    win_make(&w, f, 64);
    if (f == ALLOCATE || f == SHARED) { /* in a node's memory they are short: many, so that some meet */
        MPI_Comm node;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &each);
        each = each == size ? 10000 / size : 20;
        MPI_Comm_free(&node);
    }
    MPI_Type_vector(2, 1, 2, MPI_INT64_T, &apart); /* the first and the third */
    MPI_Type_commit(&apart);
    MPI_Win_lock_all(0, w.w);
    for (int i = 0; i < each * KINDS; i++)
        for (int t = 0; t < w.n; t++) {
            MPI_Aint at = at_of(&w, t, 8);
            switch ((i + w.me) % KINDS) {
            case 0:
                MPI_Fetch_and_op(one, got, MPI_INT64_T, t, at, MPI_SUM, w.w);
                break;
            case 1:
                MPI_Accumulate(one, 1, MPI_INT64_T, t, at, 1, MPI_INT64_T, MPI_SUM, w.w);
                break;
            case 2:
                MPI_Accumulate(one, 2, MPI_INT64_T, t, at, 1, apart, MPI_SUM, w.w);
                break;
            case 3:
                MPI_Get_accumulate(one, 3, MPI_INT64_T, got, 3, MPI_INT64_T, t, at, 3, MPI_INT64_T, MPI_SUM, w.w);
                break;
            case 4:
                for (old = 0;; old = got[0]) {
                    int64_t new = old + 1;
                    MPI_Compare_and_swap(&new, &old, got, MPI_INT64_T, t, at, w.w);
                    MPI_Win_flush(t, w.w);
                    if (got[0] == old)
                        break;
                }
                break;
            default:
                MPI_Fetch_and_op(one, got, MPI_INT64_T, t, at_of(&w, t, ACROSS), MPI_SUM, w.w);
                MPI_Accumulate(one, 1, MPI_INT64_T, t, at_of(&w, t, ACROSS), 1, MPI_INT64_T, MPI_SUM, w.w);
            }
            MPI_Win_flush(t, w.w);
        }
    MPI_Win_unlock_all(w.w);
    MPI_Barrier(w.comm);
    own_open(&w);
    memcpy(v, w.mem + 8, sizeof(v));
    memcpy(&across, w.mem + ACROSS, sizeof(across));
    own_close(&w);
    EQ(v[0], 5 * each * w.n);
    EQ(v[1], each * w.n);
    EQ(v[2], 2 * each * w.n);
    EQ(across, 2 * each * w.n);
    MPI_Type_free(&apart);
    win_free(&w);
}

/* Long vectors of all ranks on one: element by element, nothing is lost. */
static void vectors(enum flavor f, enum way way)
{
    enum { LONG = 20000 };
    struct win w;
    double *v = room(LONG * sizeof(double));
    win_make(&w, f, LONG * sizeof(double));
    for (int i = 0; i < LONG; i++)
        v[i] = w.me + i % 5;
    way_open(way, &w);
    for (int k = 0; k < 3; k++)
        for (int t = 0; t < w.n; t++)
            MPI_Accumulate(v, LONG, MPI_DOUBLE, t, at_of(&w, t, 0), LONG, MPI_DOUBLE, MPI_SUM, w.w);
    way_close(way, &w);
    own_open(&w);
    for (int i = 0; i < LONG; i++)
        CHECK(((double *)w.mem)[i] == 3 * (w.n * (w.n - 1) / 2 + w.n * (i % 5)));
    own_close(&w);
    win_free(&w);
    free(v);
}

/* An origin's accumulates on one element happen in the order of the calls: short and long ones mixed. */
static void order(enum flavor f)
{
    enum { LONG = 9000, ROUNDS = 12 };
    struct win w;
    int *out = room(sizeof(int) * LONG * ROUNDS), *in = room(sizeof(int) * LONG), got[ROUNDS];
    win_make(&w, f, LONG * sizeof(int));
    int right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n;
    for (int i = 0; i < LONG * ROUNDS; i++)
        out[i] = i / LONG + 100 * w.me;
    way_open(LOCK_ALL, &w);
    for (int k = 0; k < ROUNDS; k++) {
        int n = k % 3 == 1 ? LONG : 1;
        MPI_Accumulate(out + k * LONG, n, MPI_INT, right, at_of(&w, right, 0), n, MPI_INT, MPI_REPLACE, w.w);
        if (k % 2)
            MPI_Fetch_and_op(NULL, &got[k], MPI_INT, right, at_of(&w, right, 0), MPI_NO_OP, w.w);
        else
            MPI_Get_accumulate(NULL, 0, MPI_INT, &got[k], 1, MPI_INT, right, at_of(&w, right, 0), 1, MPI_INT, MPI_NO_OP,
                               w.w);
    }
    MPI_Get_accumulate(NULL, 0, MPI_INT, in, LONG, MPI_INT, right, at_of(&w, right, 0), LONG, MPI_INT, MPI_NO_OP, w.w);
    way_close(LOCK_ALL, &w);
    for (int k = 0; k < ROUNDS; k++)
        EQ(got[k], k + 100 * w.me);
    for (int i = 0; i < LONG; i++)
        EQ(in[i], 100 * w.me + (i ? ROUNDS - 2 : ROUNDS - 1));
    own_open(&w);
    for (int i = 0; i < LONG; i++)
        EQ(((int *)w.mem)[i], 100 * left + (i ? ROUNDS - 2 : ROUNDS - 1));
    own_close(&w);
    win_free(&w);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    for (enum flavor f = 0; f < FLAVORS; f++) {
        struct win w;
        win_make(&w, f, BYTES);
        for (int i = 0; i < TYPES; i++) {
            if (types[i].t == MPI_DATATYPE_NULL)
                continue;
            for (int k = f == CREATE ? 0 : (i + (int)f) % 3; k < OPS; k += f == CREATE ? 1 : 3)
                if (ops[k].groups & 1u << types[i].group) {
                    alone(&w, &types[i], ops[k].op);
                    if (ops[k].op != MPI_REPLACE && ops[k].op != MPI_NO_OP)
                        together(&w, &types[i], ops[k].op);
                }
            if (types[i].swaps)
                swap(&w, &types[i]);
        }
        win_free(&w);
        for (int how = 0; how < 3; how++)
            tickets(f, how);
        kinds(f);
        vectors(f, (enum way)((unsigned)f % WAYS));
        order(f);
    }
    return mt_end();
}
