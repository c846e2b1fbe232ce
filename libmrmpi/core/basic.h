/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The basic datatypes, once: X(name, C type, number). `number` is the kind for reduction operations (core/op.c); types
 * without operations in the standard have the number NONE. The ABI headers in api/ map their handles to MR_BASIC_name.
 */
#ifndef MRMPI_CORE_BASIC_H
#define MRMPI_CORE_BASIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

struct mr_pair_float_int {
    float value;
    int index;
};
struct mr_pair_double_int {
    double value;
    int index;
};
struct mr_pair_long_int {
    long value;
    int index;
};
struct mr_pair_short_int {
    short value;
    int index;
};
struct mr_pair_long_double_int {
    long double value;
    int index;
};
struct mr_pair_2int {
    int value, index;
};
struct mr_pair_2real {
    float value, index;
};
struct mr_pair_2double {
    double value, index;
};
struct mr_c32 {
    float re, im;
};
struct mr_c64 {
    double re, im;
};
struct mr_c80 {
    long double re, im;
};
struct mr_c128 {
    __float128 re, im;
};

/* clang-format off */
#define MR_BASICS(X) \
    X(CHAR, char, I8) X(SIGNED_CHAR, signed char, I8) X(UNSIGNED_CHAR, unsigned char, U8) X(BYTE, uint8_t, BYTE) \
    X(WCHAR, wchar_t, NONE) X(SHORT, short, I16) X(UNSIGNED_SHORT, unsigned short, U16) X(INT, int, I32) \
    X(UNSIGNED, unsigned, U32) X(LONG, long, I64) X(UNSIGNED_LONG, unsigned long, U64) X(FLOAT, float, F32) \
    X(DOUBLE, double, F64) X(LONG_DOUBLE, long double, F80) X(LONG_LONG_INT, long long, I64) \
    X(UNSIGNED_LONG_LONG, unsigned long long, U64) X(PACKED, uint8_t, NONE) \
    X(INT8_T, int8_t, I8) X(INT16_T, int16_t, I16) X(INT32_T, int32_t, I32) X(INT64_T, int64_t, I64) \
    X(UINT8_T, uint8_t, U8) X(UINT16_T, uint16_t, U16) X(UINT32_T, uint32_t, U32) X(UINT64_T, uint64_t, U64) \
    X(C_BOOL, bool, BOOL) X(C_COMPLEX, struct mr_c32, C32) X(C_DOUBLE_COMPLEX, struct mr_c64, C64) \
    X(C_LONG_DOUBLE_COMPLEX, struct mr_c80, C80) X(AINT, intptr_t, I64) X(OFFSET, int64_t, I64) X(COUNT, int64_t, I64) \
    X(CXX_BOOL, bool, BOOL) X(CXX_FLOAT_COMPLEX, struct mr_c32, C32) X(CXX_DOUBLE_COMPLEX, struct mr_c64, C64) \
    X(CXX_LONG_DOUBLE_COMPLEX, struct mr_c80, C80) X(C_FLOAT16, uint16_t, F16) \
    X(CHARACTER, char, I8) X(LOGICAL, int, LOGICAL) X(INTEGER, int, I32) X(REAL, float, F32) \
    X(DOUBLE_PRECISION, double, F64) X(COMPLEX, struct mr_c32, C32) X(DOUBLE_COMPLEX, struct mr_c64, C64) \
    X(REAL4, float, F32) X(REAL8, double, F64) X(REAL16, __float128, F128) X(COMPLEX8, struct mr_c32, C32) \
    X(COMPLEX16, struct mr_c64, C64) X(COMPLEX32, struct mr_c128, C128) X(INTEGER1, int8_t, I8) \
    X(INTEGER2, int16_t, I16) \
    X(INTEGER4, int32_t, I32) X(INTEGER8, int64_t, I64) X(LOGICAL1, int8_t, LOGICAL1) X(LOGICAL2, int16_t, LOGICAL2) \
    X(LOGICAL4, int, LOGICAL) X(LOGICAL8, int64_t, LOGICAL8) X(LOGICAL16, __int128, LOGICAL16)

/* Pairs for MINLOC and MAXLOC: X(name, C type, type of value, type of index). */
#define MR_PAIRS(X) \
    X(FLOAT_INT, struct mr_pair_float_int, float, int) X(DOUBLE_INT, struct mr_pair_double_int, double, int) \
    X(LONG_INT, struct mr_pair_long_int, long, int) X(SHORT_INT, struct mr_pair_short_int, short, int) \
    X(LONG_DOUBLE_INT, struct mr_pair_long_double_int, long double, int) X(2INT, struct mr_pair_2int, int, int) \
    X(2INTEGER, struct mr_pair_2int, int, int) X(2REAL, struct mr_pair_2real, float, float) \
    X(2DOUBLE_PRECISION, struct mr_pair_2double, double, double)

enum mr_basic {
#define X(name, ...) MR_BASIC_##name,
    MR_BASICS(X) MR_PAIRS(X)
#undef X
    MR_BASIC_LB, MR_BASIC_UB, /* markers of MPI-1 */
    MR_NUM_BASICS,
    MR_BASIC_MIXED = 0xff,
};

/* How reductions see a type: X(number, C type). */
#define MR_INTEGERS(X) X(I8, int8_t) X(U8, uint8_t) X(I16, int16_t) X(U16, uint16_t) X(I32, int32_t) X(U32, uint32_t) \
    X(I64, int64_t) X(U64, uint64_t)
#define MR_FLOATS(X) X(F32, float) X(F64, double) X(F80, long double) X(F128, __float128)
#define MR_LOGICALS(X) X(BOOL, bool) X(LOGICAL, int) X(LOGICAL1, int8_t) X(LOGICAL2, int16_t) X(LOGICAL8, int64_t) \
    X(LOGICAL16, __int128)
#define MR_COMPLEXES(X) X(C32, struct mr_c32) X(C64, struct mr_c64) X(C80, struct mr_c80) X(C128, struct mr_c128)

enum mr_number {
    MR_NUM_NONE,
#define X(name, ...) MR_NUM_##name,
    MR_INTEGERS(X) MR_FLOATS(X) MR_COMPLEXES(X) MR_LOGICALS(X)
#undef X
    MR_NUM_BYTE, MR_NUM_F16,
#define X(name, ...) MR_NUM_##name,
    MR_PAIRS(X)
#undef X
    MR_NUM_COUNT,
};
/* clang-format on */

#endif
