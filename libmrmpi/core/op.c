/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction operations. A built-in one is a row of a table by number kind (core/basic.h); the loops come from one macro
 * per kind of arithmetic. NULL in the table: the operation is not defined on that type (MPI-4.0 section 6.9.2). As
 * MPICH does, this allows more than the standard: MPI_CHAR and MPI_CHARACTER as small integers, logical operations on
 * reals.
 */
#include "libmrmpi/core/objects.h"

#include <stdlib.h>

typedef void (*op_fn)(const void *in, void *inout, size_t n);

#define LOOP(name, op, T, EXPR)                                                                                        \
    static void name##_##op(const void *in, void *inout, size_t n)                                                     \
    {                                                                                                                  \
        const T *restrict x = in;                                                                                      \
        T *restrict y = inout;                                                                                         \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const T a = x[i], b = y[i];                                                                                \
            y[i] = (T)(EXPR);                                                                                          \
        }                                                                                                              \
    }

/* Integer sums wrap round: computed unsigned, so that overflow is defined. */
#define INT_LOOPS(name, T)                                                                                             \
    LOOP(name, max, T, a > b ? a : b)                                                                                  \
    LOOP(name, min, T, a < b ? a : b)                                                                                  \
    LOOP(name, sum, T, (uint64_t)a + (uint64_t)b)                                                                      \
    LOOP(name, prod, T, (uint64_t)a *(uint64_t)b)                                                                      \
    LOOP(name, land, T, a &&b)                                                                                         \
    LOOP(name, band, T, a &b)                                                                                          \
    LOOP(name, lor, T, a || b)                                                                                         \
    LOOP(name, bor, T, a | b)                                                                                          \
    LOOP(name, lxor, T, !a != !b)                                                                                      \
    LOOP(name, bxor, T, a ^ b)
MR_INTEGERS(INT_LOOPS)

#define FLOAT_LOOPS(name, T)                                                                                           \
    LOOP(name, max, T, a > b ? a : b)                                                                                  \
    LOOP(name, min, T, a < b ? a : b)                                                                                  \
    LOOP(name, sum, T, a + b)                                                                                          \
    LOOP(name, prod, T, a *b)                                                                                          \
    LOOP(name, land, T, a != 0 && b != 0)                                                                              \
    LOOP(name, lor, T, a != 0 || b != 0)                                                                               \
    LOOP(name, lxor, T, (a != 0) != (b != 0))
MR_FLOATS(FLOAT_LOOPS)

#define COMPLEX_LOOPS(name, T)                                                                                         \
    static void name##_sum(const void *in, void *inout, size_t n)                                                      \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = inout;                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            y[i].re += x[i].re;                                                                                        \
            y[i].im += x[i].im;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_prod(const void *in, void *inout, size_t n)                                                     \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = inout;                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            T a = x[i], b = y[i];                                                                                      \
            y[i].re = a.re * b.re - a.im * b.im;                                                                       \
            y[i].im = a.re * b.im + a.im * b.re;                                                                       \
        }                                                                                                              \
    }
MR_COMPLEXES(COMPLEX_LOOPS)

#define LOGICAL_LOOPS(name, T)                                                                                         \
    LOOP(name, land, T, a &&b)                                                                                         \
    LOOP(name, lor, T, a || b)                                                                                         \
    LOOP(name, lxor, T, !a != !b)
MR_LOGICALS(LOGICAL_LOOPS)

LOOP(BYTE, band, uint8_t, a &b)
LOOP(BYTE, bor, uint8_t, a | b)
LOOP(BYTE, bxor, uint8_t, a ^ b)

/* Of equal values the lower index wins. */
#define PAIR_LOOP(name, T, op, BETTER)                                                                                 \
    static void name##_##op(const void *in, void *inout, size_t n)                                                     \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = inout;                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            if (x[i].value BETTER y[i].value) {                                                                        \
                y[i].value = x[i].value;                                                                               \
                y[i].index = x[i].index;                                                                               \
            } else if (x[i].value == y[i].value && x[i].index < y[i].index) {                                          \
                y[i].index = x[i].index;                                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }
#define PAIR_LOOPS(name, T, vtype, itype)                                                                              \
    PAIR_LOOP(P##name, T, minloc, <)                                                                                   \
    PAIR_LOOP(P##name, T, maxloc, >)
MR_PAIRS(PAIR_LOOPS)

#define INT_ROW(name, T)                                                                                               \
    [MR_NUM_##name] = {                                                                                                \
        [MR_OP_MAX] = name##_max,   [MR_OP_MIN] = name##_min,   [MR_OP_SUM] = name##_sum, [MR_OP_PROD] = name##_prod,  \
        [MR_OP_LAND] = name##_land, [MR_OP_BAND] = name##_band, [MR_OP_LOR] = name##_lor, [MR_OP_BOR] = name##_bor,    \
        [MR_OP_LXOR] = name##_lxor, [MR_OP_BXOR] = name##_bxor,                                                        \
    },
#define FLOAT_ROW(name, T)                                                                                             \
    [MR_NUM_##name] = {                                                                                                \
        [MR_OP_MAX] = name##_max,   [MR_OP_MIN] = name##_min, [MR_OP_SUM] = name##_sum,  [MR_OP_PROD] = name##_prod,   \
        [MR_OP_LAND] = name##_land, [MR_OP_LOR] = name##_lor, [MR_OP_LXOR] = name##_lxor},
#define COMPLEX_ROW(name, T) [MR_NUM_##name] = {[MR_OP_SUM] = name##_sum, [MR_OP_PROD] = name##_prod},
#define LOGICAL_ROW(name, T)                                                                                           \
    [MR_NUM_##name] = {[MR_OP_LAND] = name##_land, [MR_OP_LOR] = name##_lor, [MR_OP_LXOR] = name##_lxor},
#define PAIR_ROW(name, ...) [MR_NUM_##name] = {[MR_OP_MINLOC] = P##name##_minloc, [MR_OP_MAXLOC] = P##name##_maxloc},

static const op_fn table[MR_NUM_COUNT][MR_OP_COUNT] = {
    /* clang-format off */
    MR_INTEGERS(INT_ROW) MR_FLOATS(FLOAT_ROW) MR_COMPLEXES(COMPLEX_ROW)
    MR_LOGICALS(LOGICAL_ROW) MR_PAIRS(PAIR_ROW)
    [MR_NUM_BYTE] = {[MR_OP_BAND] = BYTE_band, [MR_OP_BOR] = BYTE_bor, [MR_OP_BXOR] = BYTE_bxor},
    /* clang-format on */
};

static const uint8_t number_of[MR_NUM_BASICS] = {
#define X(id, ctype, num) [MR_BASIC_##id] = MR_NUM_##num,
    MR_BASICS(X)
#undef X
#define X(id, ...) [MR_BASIC_##id] = MR_NUM_##id,
        MR_PAIRS(X)
#undef X
};

#define BUILTIN(op) [MR_OP_##op] = {.refs = 1, .id = MR_OP_##op, .commutative = true}
struct mr_op mr_op_builtin[MR_OP_COUNT] = {
    BUILTIN(MAX),
    BUILTIN(MIN),
    BUILTIN(SUM),
    BUILTIN(PROD),
    BUILTIN(LAND),
    BUILTIN(BAND),
    BUILTIN(LOR),
    BUILTIN(BOR),
    BUILTIN(LXOR),
    BUILTIN(BXOR),
    BUILTIN(MINLOC),
    BUILTIN(MAXLOC),
    [MR_OP_REPLACE] = {.refs = 1, .id = MR_OP_REPLACE},
    [MR_OP_NO_OP] = {.refs = 1, .id = MR_OP_NO_OP},
};

struct mr_op *mr_op_new(void)
{
    struct mr_op *op = calloc(1, sizeof(*op));
    if (op)
        *op = (struct mr_op){.refs = 1, .id = MR_OP_USER};
    return op;
}

struct mr_op *mr_op_get(struct mr_op *op)
{
    if (op->id == MR_OP_USER)
        op->refs++;
    return op;
}

void mr_op_put(struct mr_op *op)
{
    if (op->id == MR_OP_USER && --op->refs == 0)
        free(op);
}

bool mr_op_allows(const struct mr_op *op, const struct mr_type *type)
{
    if (op->id == MR_OP_USER)
        return true;
    return type->builtin && table[number_of[type->basic]][op->id];
}

bool mr_op_alike(uint8_t a, uint8_t b)
{
    return a < MR_NUM_BASICS && b < MR_NUM_BASICS && number_of[a] == number_of[b];
}

const char *mr_op_name(const struct mr_op *op)
{
    static const char *const names[MR_OP_COUNT + 1] = {
        "MPI_MAX",  "MPI_MIN",  "MPI_SUM",    "MPI_PROD",   "MPI_LAND",    "MPI_BAND",  "MPI_LOR",          "MPI_BOR",
        "MPI_LXOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC", "MPI_REPLACE", "MPI_NO_OP", "user's operation",
    };
    return names[op->id];
}

void mr_op_apply(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type)
{
    if (count == 0)
        return;
    if (op->id == MR_OP_USER)
        op->invoke(op, in, inout, count, type);
    else
        table[number_of[type->basic]][op->id](in, inout, count);
}
