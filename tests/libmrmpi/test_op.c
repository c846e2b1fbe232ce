/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction operations: values on every kind of number, what is not allowed, ties of MINLOC, orders of user operations.
 */
#include <stdlib.h>

#include "libmrmpi/core/objects.h"
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

int main(void)
{
    TCase *t = tcase_create("op");
    tcase_add_test(t, integers);
    tcase_add_test(t, floating);
    tcase_add_test(t, logical_complex_byte);
    tcase_add_test(t, locations);
    tcase_add_test(t, not_allowed);
    return check_run(t, NULL);
}
