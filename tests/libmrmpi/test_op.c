/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction operations: values on every kind of number, what is not allowed, ties of MINLOC, orders of user operations;
 * the same bits from the loops of each level of vector instructions, at any address and of any length.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/core/op_loops.h"
#include "tests/check.h"

struct mr_comm *mr_comm_world;

static void apply(enum mr_op_id op, enum mr_basic b, const void *in, void *inout, size_t n)
{
    ck_assert_msg(mr_op_allows(&mr_op_builtin[op], &mr_type_basic[b]), "%s on %s", mr_op_name(&mr_op_builtin[op]),
                  mr_type_name(&mr_type_basic[b]));
    mr_op_apply(&mr_op_builtin[op], in, inout, n, &mr_type_basic[b]);
}

#define VALUE(op, basic, ctype, a, b, want)                                                                            \
    do {                                                                                                               \
        ctype x[3] = {(ctype)(a), (ctype)(a), (ctype)(a)}, y[3] = {(ctype)(b), (ctype)(b), (ctype)(b)};                \
        apply(MR_OP_##op, MR_BASIC_##basic, x, y, 2);                                                                  \
        ck_assert(y[0] == (ctype)(want) && y[1] == (ctype)(want));                                                     \
        ck_assert(y[2] == (ctype)(b)); /* not one too many */                                                          \
    } while (0)

#define INTEGER(basic, ctype)                                                                                          \
    do {                                                                                                               \
        VALUE(MAX, basic, ctype, 3, 5, 5);                                                                             \
        VALUE(MIN, basic, ctype, 3, 5, 3);                                                                             \
        VALUE(SUM, basic, ctype, 3, 5, 8);                                                                             \
        VALUE(PROD, basic, ctype, 3, 5, 15);                                                                           \
        VALUE(LAND, basic, ctype, 3, 4, 1);                                                                            \
        VALUE(LAND, basic, ctype, 0, 4, 0);                                                                            \
        VALUE(LOR, basic, ctype, 0, 4, 1);                                                                             \
        VALUE(LXOR, basic, ctype, 3, 4, 0);                                                                            \
        VALUE(LXOR, basic, ctype, 0, 4, 1);                                                                            \
        VALUE(BAND, basic, ctype, 6, 3, 2);                                                                            \
        VALUE(BOR, basic, ctype, 6, 3, 7);                                                                             \
        VALUE(BXOR, basic, ctype, 6, 3, 5);                                                                            \
    } while (0)

START_TEST(integers)
{
    INTEGER(CHAR, char);
    INTEGER(SIGNED_CHAR, signed char);
    INTEGER(UNSIGNED_CHAR, unsigned char);
    INTEGER(SHORT, short);
    INTEGER(UNSIGNED_SHORT, unsigned short);
    INTEGER(INT, int);
    INTEGER(UNSIGNED, unsigned);
    INTEGER(LONG, long);
    INTEGER(UNSIGNED_LONG, unsigned long);
    INTEGER(LONG_LONG_INT, long long);
    INTEGER(UNSIGNED_LONG_LONG, unsigned long long);
    INTEGER(INT8_T, int8_t);
    INTEGER(UINT64_T, uint64_t);
    INTEGER(AINT, intptr_t);
    INTEGER(OFFSET, int64_t);
    INTEGER(COUNT, int64_t);
    INTEGER(INTEGER, int);
    INTEGER(INTEGER8, int64_t);
    VALUE(MAX, SIGNED_CHAR, signed char, -3, 2, 2);
    VALUE(MAX, UNSIGNED_CHAR, unsigned char, 253, 2, 253);
    VALUE(MIN, LONG, long, -3, 2, -3);
    VALUE(SUM, INT, int, 0x7fffffff, 1, -0x7fffffff - 1); /* wraps, is not undefined */
}
END_TEST

#define FLOATING(basic, ctype)                                                                                         \
    do {                                                                                                               \
        VALUE(MAX, basic, ctype, -3.5, 2.25, 2.25);                                                                    \
        VALUE(MIN, basic, ctype, -3.5, 2.25, -3.5);                                                                    \
        VALUE(SUM, basic, ctype, -3.5, 2.25, -1.25);                                                                   \
        VALUE(PROD, basic, ctype, -3.5, 2, -7);                                                                        \
    } while (0)

START_TEST(floating)
{
    FLOATING(FLOAT, float);
    FLOATING(DOUBLE, double);
    FLOATING(LONG_DOUBLE, long double);
    FLOATING(REAL, float);
    FLOATING(DOUBLE_PRECISION, double);
    FLOATING(REAL16, __float128);
}
END_TEST

START_TEST(logical_complex_byte)
{
    VALUE(LAND, C_BOOL, bool, 1, 0, 0);
    VALUE(LOR, C_BOOL, bool, 1, 0, 1);
    VALUE(LXOR, C_BOOL, bool, 1, 1, 0);
    VALUE(LXOR, LOGICAL, int, 2, 1, 0);
    VALUE(BXOR, BYTE, uint8_t, 0xf0, 0x3c, 0xcc);
    double _Complex a = 2 + 3i, b = 1 - 1i;
    apply(MR_OP_PROD, MR_BASIC_C_DOUBLE_COMPLEX, &a, &b, 1);
    ck_assert(b == 5 + 1i);
    apply(MR_OP_SUM, MR_BASIC_DOUBLE_COMPLEX, &a, &b, 1);
    ck_assert(b == 7 + 4i);
    float _Complex c = 1i, d = 1i;
    apply(MR_OP_PROD, MR_BASIC_COMPLEX, &c, &d, 1);
    ck_assert(d == -1);
}
END_TEST

START_TEST(locations)
{
    struct mr_pair_double_int a[3] = {{1, 5}, {2, 2}, {3, 1}}, b[3] = {{2, 1}, {2, 4}, {1, 7}};
    apply(MR_OP_MINLOC, MR_BASIC_DOUBLE_INT, a, b, 3);
    ck_assert(b[0].value == 1 && b[0].index == 5);
    ck_assert(b[1].value == 2 && b[1].index == 2); /* a tie goes to the lower index */
    ck_assert(b[2].value == 1 && b[2].index == 7);
    struct mr_pair_short_int s = {7, 3}, t = {7, 2};
    apply(MR_OP_MAXLOC, MR_BASIC_SHORT_INT, &s, &t, 1);
    ck_assert(t.value == 7 && t.index == 2);
    struct mr_pair_2int x = {-1, 3}, y = {-2, 9};
    apply(MR_OP_MAXLOC, MR_BASIC_2INT, &x, &y, 1);
    ck_assert(y.value == -1 && y.index == 3);
    struct mr_pair_long_double_int u = {9.5L, 1}, v = {3, 0};
    apply(MR_OP_MAXLOC, MR_BASIC_LONG_DOUBLE_INT, &u, &v, 1);
    ck_assert(v.value == 9.5L && v.index == 1);
}
END_TEST

START_TEST(not_allowed)
{
    static const struct {
        enum mr_op_id op;
        enum mr_basic basic;
    } no[] = {
        {MR_OP_BAND, MR_BASIC_DOUBLE},  {MR_OP_SUM, MR_BASIC_BYTE},    {MR_OP_MAX, MR_BASIC_C_DOUBLE_COMPLEX},
        {MR_OP_MINLOC, MR_BASIC_INT},   {MR_OP_SUM, MR_BASIC_2INT},    {MR_OP_SUM, MR_BASIC_PACKED},
        {MR_OP_LAND, MR_BASIC_COMPLEX}, {MR_OP_SUM, MR_BASIC_LOGICAL}, {MR_OP_REPLACE, MR_BASIC_INT},
        {MR_OP_BXOR, MR_BASIC_REAL},    {MR_OP_SUM, MR_BASIC_WCHAR},   {MR_OP_SUM, MR_BASIC_C_BOOL},
    };
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        ck_assert_msg(!mr_op_allows(&mr_op_builtin[no[i].op], &mr_type_basic[no[i].basic]), "%zu", i);
    struct mr_type *t = mr_type_contiguous(2, &mr_type_basic[MR_BASIC_INT], false);
    ck_assert(!mr_op_allows(&mr_op_builtin[MR_OP_SUM], t));
    struct mr_op *user = mr_op_new();
    ck_assert(mr_op_allows(user, t));
    mr_op_put(user);
    mr_type_put(t);
}
END_TEST

/* Half precision the slow way, in double, where sums and products of halves are exact. */
static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent == 31  ? (fraction ? NAN : INFINITY)
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, exponent - 25);
    return h & 0x8000 ? -v : v;
}

static uint16_t half_of(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    int exponent;
    if (isnan(v))
        return 0x7e00;
    frexp(v, &exponent); /* v < 2^exponent */
    if (v == 0 || exponent < -13)
        exponent = -13;
    double steps = nearbyint(ldexp(fabs(v), 11 - exponent)); /* in the last place; ties to even */
    if (isinf(v) || ldexp(steps, exponent - 11) >= 65536)
        return sign | 0x7c00;
    /* a fraction that has been rounded up carries into the exponent */
    return sign | (uint16_t)(((exponent + 13) << 10) + (int)steps);
}

static bool same_half(uint16_t a, uint16_t b)
{
    return a == b || (isnan(half_value(a)) && isnan(half_value(b)));
}

/* Each half with others of all sizes: the result is the exact one, rounded once. */
START_TEST(half)
{
    enum { N = 1 << 16 };
    static const uint16_t others[] = {0x8000, 1, 0x3ff, 0xbc01, 0x7bff, 0x7c00, 0x7e00, 0x2e3f};
    static uint16_t x[N], y[N];
    for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
        double b = half_value(others[k]);
        for (int op = 0; op < 4; op++) {
            for (int i = 0; i < N; i++) {
                x[i] = (uint16_t)i;
                y[i] = others[k];
            }
            apply((enum mr_op_id[]){MR_OP_SUM, MR_OP_PROD, MR_OP_MAX, MR_OP_MIN}[op], MR_BASIC_C_FLOAT16, x, y, N);
            for (int i = 0; i < N; i++) {
                double a = half_value(x[i]);
                uint16_t want = op == 0   ? half_of(a + b)
                                : op == 1 ? half_of(a * b)
                                : op == 2 ? (a > b ? x[i] : others[k])
                                          : (a < b ? x[i] : others[k]);
                ck_assert_msg(same_half(y[i], want), "operation %d of %04x and %04x: %04x, not %04x", op, x[i],
                              others[k], y[i], want);
            }
        }
    }
}
END_TEST

/* The bytes of one number of a kind, 0: it has no operations. */
static const size_t size_of_kind[MR_NUM_COUNT] = {
/* clang-format off */
#define X(name, T, ...) [MR_NUM_##name] = sizeof(T),
    MR_INTEGERS(X) MR_FLOATS(X) MR_COMPLEXES(X) MR_LOGICALS(X) MR_PAIRS(X)
    [MR_NUM_BYTE] = 1, [MR_NUM_F16] = 2,
#undef X
    /* clang-format on */
};

/* Any bits are a number for integers. Of reals: both zeros, the largest and the smallest, others; and no NaN, whose
 * payload is nobody's business: small parts of complex numbers, whose products are none either. */
static double some_real(bool small)
{
    static const double special[] = {0., -0., 1., -1., 1e-40, 5e-324, INFINITY, -INFINITY, 3e38, 1e308};
    int which = rand() % 40;
    return which < (small ? 6 : 10) ? special[which] : ldexp(rand() - RAND_MAX / 2, rand() % 40 - 40);
}

static void fill(int kind, char *to, size_t n)
{
    for (size_t i = 0; i < n * size_of_kind[kind]; i++)
        to[i] = (char)rand();
#define REALS(T, parts)                                                                                                \
    for (size_t i = 0; i < (parts)*n; i++)                                                                             \
    memcpy(to + i * sizeof(T), &(T){(T)some_real((parts) > 1)}, sizeof(T))
#define PAIRS(name, T, vtype, itype)                                                                                   \
    else if (kind == MR_NUM_##name) for (size_t i = 0; i < n; i++)                                                     \
    {                                                                                                                  \
        T pair;                                                                                                        \
        memset(&pair, 0, sizeof(pair));                                                                                \
        pair.value = (vtype)(rand() % 8 ? rand() % 3 : -0.);                                                           \
        pair.index = (itype)(rand() % 5);                                                                              \
        memcpy(to + i * sizeof(pair), &pair, sizeof(pair));                                                            \
    }
    if (kind == MR_NUM_F32)
        REALS(float, 1);
    else if (kind == MR_NUM_F64)
        REALS(double, 1);
    else if (kind == MR_NUM_F80)
        REALS(long double, 1);
    else if (kind == MR_NUM_F128)
        REALS(__float128, 1);
    else if (kind == MR_NUM_C32)
        REALS(float, 2);
    else if (kind == MR_NUM_C64)
        REALS(double, 2);
    else if (kind == MR_NUM_C80)
        REALS(long double, 2);
    else if (kind == MR_NUM_C128)
        REALS(__float128, 2);
    else if (kind == MR_NUM_F16)
        for (size_t i = 0; i < n; i++)
            memcpy(to + 2 * i, &(uint16_t){half_of(some_real(false))}, 2);
    MR_PAIRS(PAIRS)
}

static void compare(const struct mr_op_loops *level, int kind, int op)
{
    enum { MAX = 150, GUARD = 8 };
    size_t size = size_of_kind[kind];
    static char x[MAX * 32 + 64], y[MAX * 32 + 64], want[MAX * 32 + 64];
    for (int turn = 0; turn < 12; turn++) {
        size_t n = turn < 6 ? (size_t)rand() % 20 : (size_t)rand() % MAX, to = (size_t)rand() % 17, from = 13 - to / 2;
        memset(y, 0x55, sizeof(y));
        fill(kind, x + from, n);
        fill(kind, y + to, n);
        memcpy(want, y, sizeof(y));
        for (size_t i = 0; i < n; i++) /* one at a time: no vectors */
            mr_op_loops_base.of[kind][op](x + from + i * size, want + to + i * size, 1);
        level->of[kind][op](x + from, y + to, n);
        ck_assert_msg(!memcmp(y, want, sizeof(y)), "kind %d, %s, %zu elements", kind, mr_op_name(&mr_op_builtin[op]),
                      n);
    }
}

START_TEST(levels)
{
    int defined = 0, highest = (int)mr_vectors();
    for (int l = 0; l <= highest; l++) {
        const struct mr_op_loops *level = mr_op_loops_at((enum mr_vectors)l);
        for (int kind = 0; kind < MR_NUM_COUNT; kind++)
            for (int op = 0; op < MR_OP_COUNT; op++) {
                ck_assert_msg(!level->of[kind][op] == !mr_op_loops_base.of[kind][op], "kind %d, %d", kind, op);
                if (!level->of[kind][op])
                    continue;
                ck_assert_uint_gt(size_of_kind[kind], 0);
                compare(level, kind, op);
                defined++;
            }
    }
    ck_assert_int_ge(defined, 150 * (highest + 1));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("op");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, integers);
    tcase_add_test(t, floating);
    tcase_add_test(t, logical_complex_byte);
    tcase_add_test(t, locations);
    tcase_add_test(t, not_allowed);
    tcase_add_test(t, half);
    tcase_add_test(t, levels);
    return check_run(t, NULL);
}
