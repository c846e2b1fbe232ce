/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * external32: the bytes of every basic type against the standard's table (sizes, big endian, quad precision worked out
 * by hand), back again, derived types in the order of their typemap, positions, and refusals.
 */
#include "mt.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

static char REP[] = "external32";

/* Packs one element; compares with the bytes given as hexadecimal digits; unpacks and compares with the original. */
static void one(const void *value, size_t memory, MPI_Datatype t, const char *hex, int line)
{
    unsigned char flat[80], back[80];
    char got[161] = "";
    MPI_Aint at = 0, n = 0;
    MPI_Count wide = 0;
    memset(flat, 0xee, sizeof(flat));
    memcpy(back, value, memory);
    MPI_Pack_external(REP, value, 1, t, flat, sizeof(flat), &at);
    for (MPI_Aint i = 0; i < at; i++)
        sprintf(got + 2 * i, "%02x", flat[i]);
    if (strcmp(got, hex))
        fprintf(stderr, "line %d: %s, not %s\n", line, got, hex);
    CHECK(!strcmp(got, hex) && flat[at] == 0xee);
    MPI_Pack_external_size(REP, 1, t, &n);
    MPI_Pack_external_size_c(REP, 1, t, &wide);
    CHECK(n == at && wide == at);
    memset(back, 0, memory);
    at = 0;
    MPI_Unpack_external(REP, flat, n, &at, back, 1, t);
    EQ(at, n);
    if (memcmp(back, value, memory))
        fprintf(stderr, "line %d: did not come back\n", line);
    CHECK(!memcmp(back, value, memory));
}
#define ONE(ctype, value, mpitype, hex)      one((ctype[]){value}, sizeof(ctype), mpitype, hex, __LINE__)
#define COMPLEX(ctype, re, im, mpitype, hex) one((ctype[2]){re, im}, 2 * sizeof(ctype), mpitype, hex, __LINE__)

static void integers(void)
{
    ONE(char, 'x', MPI_CHAR, "78");
    ONE(signed char, -2, MPI_SIGNED_CHAR, "fe");
    ONE(unsigned char, 200, MPI_UNSIGNED_CHAR, "c8");
    ONE(unsigned char, 7, MPI_BYTE, "07");
    ONE(unsigned char, 9, MPI_PACKED, "09");
    ONE(wchar_t, 0x20ac, MPI_WCHAR, "20ac");
    ONE(short, -2, MPI_SHORT, "fffe");
    ONE(unsigned short, 0x1234, MPI_UNSIGNED_SHORT, "1234");
    ONE(int, -2, MPI_INT, "fffffffe");
    ONE(unsigned, 0x12345678, MPI_UNSIGNED, "12345678");
    ONE(long, -3, MPI_LONG, "fffffffd");
    ONE(long, 0x12345678, MPI_LONG, "12345678");
    ONE(unsigned long, 0xfedcba98, MPI_UNSIGNED_LONG, "fedcba98");
    ONE(long long, -2, MPI_LONG_LONG, "fffffffffffffffe");
    ONE(unsigned long long, 0x0123456789abcdef, MPI_UNSIGNED_LONG_LONG, "0123456789abcdef");
    ONE(int8_t, -1, MPI_INT8_T, "ff");
    ONE(int16_t, 258, MPI_INT16_T, "0102");
    ONE(int32_t, 258, MPI_INT32_T, "00000102");
    ONE(int64_t, 258, MPI_INT64_T, "0000000000000102");
    ONE(uint8_t, 255, MPI_UINT8_T, "ff");
    ONE(uint16_t, 65534, MPI_UINT16_T, "fffe");
    ONE(uint32_t, 65534, MPI_UINT32_T, "0000fffe");
    ONE(uint64_t, 65534, MPI_UINT64_T, "000000000000fffe");
    ONE(MPI_Aint, -5, MPI_AINT, "fffffffffffffffb");
    ONE(MPI_Offset, 5, MPI_OFFSET, "0000000000000005");
    ONE(MPI_Count, 6, MPI_COUNT, "0000000000000006");
    ONE(bool, true, MPI_C_BOOL, "01");
    ONE(bool, true, MPI_CXX_BOOL, "01");
    ONE(char, 'q', MPI_CHARACTER, "71");
    ONE(int, 1, MPI_LOGICAL, "00000001");
    ONE(int8_t, 1, MPI_LOGICAL1, "01");
    ONE(int16_t, 1, MPI_LOGICAL2, "0001");
    ONE(int32_t, 1, MPI_LOGICAL4, "00000001");
    ONE(int64_t, 1, MPI_LOGICAL8, "0000000000000001");
    ONE(__int128, 1, MPI_LOGICAL16, "00000000000000000000000000000001");
    ONE(int, 77, MPI_INTEGER, "0000004d");
    ONE(int8_t, 77, MPI_INTEGER1, "4d");
    ONE(int16_t, 77, MPI_INTEGER2, "004d");
    ONE(int32_t, 77, MPI_INTEGER4, "0000004d");
    ONE(int64_t, 77, MPI_INTEGER8, "000000000000004d");
}

static void reals(void)
{
    ONE(float, 1.5f, MPI_FLOAT, "3fc00000");
    ONE(float, -1.5f, MPI_REAL, "bfc00000");
    ONE(float, 1.5f, MPI_REAL4, "3fc00000");
    ONE(double, 1.5, MPI_DOUBLE, "3ff8000000000000");
    ONE(double, 1.5, MPI_DOUBLE_PRECISION, "3ff8000000000000");
    ONE(double, 1.5, MPI_REAL8, "3ff8000000000000");
    COMPLEX(float, 1.5f, 2, MPI_C_COMPLEX, "3fc0000040000000");
    COMPLEX(float, 1.5f, 2, MPI_COMPLEX, "3fc0000040000000");
    COMPLEX(float, 1.5f, 2, MPI_COMPLEX8, "3fc0000040000000");
    COMPLEX(float, 1.5f, 2, MPI_CXX_FLOAT_COMPLEX, "3fc0000040000000");
    COMPLEX(double, 1.5, 2, MPI_C_DOUBLE_COMPLEX, "3ff80000000000004000000000000000");
    COMPLEX(double, 1.5, 2, MPI_CXX_DOUBLE_COMPLEX, "3ff80000000000004000000000000000");
    COMPLEX(double, 1.5, 2, MPI_DOUBLE_COMPLEX, "3ff80000000000004000000000000000");
    COMPLEX(double, 1.5, 2, MPI_COMPLEX16, "3ff80000000000004000000000000000");
}

/* Quad precision in bytes: sign, 15 bits of exponent with a bias of 16383, 112 bits behind the point. */
static void quad_hex(long double x, char *hex)
{
    int e;
    long double f = frexpl(fabsl(x), &e); /* [0.5, 1) */
    unsigned biased = 0;
    if (isinf(x)) {
        biased = 0x7fff;
        f = 0.5L;
    } else if (x != 0 && e - 1 >= -16382) {
        biased = (unsigned)(e - 1 + 16383);
    } else if (x != 0) { /* denormal */
        f = ldexpl(f, e + 16382 - 1);
        f += 0.5L;
    } else {
        f = 0.5L;
    }
    hex += sprintf(hex, "%04x", (signbit(x) ? 0x8000u : 0) | biased);
    f = 2 * f - 1;
    for (int i = 0; i < 28; i++) {
        f *= 16;
        int digit = (int)f;
        hex += sprintf(hex, "%x", digit);
        f -= digit;
    }
}

static void quads(void)
{
    static const long double values[] = {0.0L,
                                         -0.0L,
                                         1.0L,
                                         -2.5L,
                                         3.14159265358979323846L,
                                         1.0L + 0x1p-63L,
                                         0x1.fffffffffffffffep16383L,
                                         0x1p-16382L,
                                         0x1p-16445L,
                                         1e-4940L,
                                         INFINITY};
    struct {
        long double re, im;
    } z;
    char hex[80];
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        long double x;
        memset(&x, 0, sizeof(x)); /* six bytes of it are padding */
        memcpy(&x, &values[i], 10);
        quad_hex(x, hex);
        one(&x, sizeof(x), MPI_LONG_DOUBLE, hex, __LINE__);
        memset(&z, 0, sizeof(z));
        memcpy(&z.re, &x, 10);
        memcpy(&z.im, &values[3], 10);
        quad_hex(values[3], hex + 32);
        one(&z, sizeof(z), MPI_C_LONG_DOUBLE_COMPLEX, hex, __LINE__);
        one(&z, sizeof(z), MPI_CXX_LONG_DOUBLE_COMPLEX, hex, __LINE__);
    }
    char flat[16], nan_bytes[16];
    long double not_a_number = NAN, back = 0;
    MPI_Aint at = 0;
    memcpy(nan_bytes, &not_a_number, 10);
    MPI_Pack_external(REP, &not_a_number, 1, MPI_LONG_DOUBLE, flat, 16, &at);
    CHECK((flat[0] & 0x7f) == 0x7f && (unsigned char)flat[1] == 0xff);
    at = 0;
    MPI_Unpack_external(REP, flat, 16, &at, &back, 1, MPI_LONG_DOUBLE);
    CHECK(isnan(back));
    /* 16 byte reals of Fortran are quads already */
    unsigned char native[16];
    for (int i = 0; i < 16; i++)
        native[i] = (unsigned char)(16 * i + i);
    one(native, 16, MPI_REAL16, "ffeeddccbbaa99887766554433221100", __LINE__);
}

struct pair_li {
    long v;
    int i;
};
struct pair_di {
    double v;
    int i;
};
struct pair_si {
    short v;
    int i;
};

static void mixed(void)
{
    struct rec {
        char c;
        double d[2];
        long l;
    } recs[3], back[3];
    int len[3] = {1, 2, 1};
    MPI_Aint where[3] = {offsetof(struct rec, c), offsetof(struct rec, d), offsetof(struct rec, l)}, n, at = 0;
    MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_LONG}, t, v;
    unsigned char flat[128], want[64];
    MPI_Type_create_struct(3, len, where, types, &t);
    MPI_Type_vector(2, 1, 2, t, &v);
    MPI_Type_commit(&v);
    memset(recs, 0, sizeof(recs));
    memset(back, 0, sizeof(back));
    for (int i = 0; i < 3; i++) {
        recs[i].c = (char)('a' + i);
        recs[i].d[0] = i;
        recs[i].d[1] = -1;
        recs[i].l = -i;
    }
    MPI_Pack_external_size(REP, 1, v, &n);
    EQ(n, 42);
    MPI_Pack_external(REP, recs, 1, v, flat, 42, &at);
    EQ(at, 42);
    memset(want, 0, sizeof(want));
    want[0] = 'a';
    want[9] = 0xbf;
    want[10] = 0xf0;
    want[21] = 'c';
    want[22] = 0x40;
    want[30] = 0xbf;
    want[31] = 0xf0;
    memset(want + 38, 0xff, 4);
    want[41] = 0xfe;
    CHECK(!memcmp(flat, want, 42));
    MPI_Count wide = 0;
    MPI_Unpack_external_c(REP, flat, 42, &wide, back, 1, v);
    EQ(wide, 42);
    CHECK(!memcmp(&back[0], &recs[0], sizeof(recs[0])) && !memcmp(&back[2], &recs[2], sizeof(recs[2])));
    CHECK(back[1].c == 0 && back[1].l == 0);
    MPI_Type_free(&t);
    MPI_Type_free(&v);
}

static void pairs(void)
{
    struct pair_li li[2] = {{-7, 3}, {8, 4}}, li2[2] = {{0, 0}};
    struct pair_di di = {1.5, 3}, di2 = {0, 0};
    struct pair_si si = {-2, 3}, si2 = {0, 0};
    int ii[2] = {1, 2}, ii2[2];
    unsigned char flat[64];
    MPI_Aint at = 0, n;
    MPI_Pack_external_size(REP, 2, MPI_LONG_INT, &n);
    EQ(n, 16);
    MPI_Pack_external(REP, li, 2, MPI_LONG_INT, flat, 16, &at);
    CHECK(!memcmp(flat, "\xff\xff\xff\xf9\0\0\0\3\0\0\0\10\0\0\0\4", 16));
    MPI_Pack_external(REP, &di, 1, MPI_DOUBLE_INT, flat, 64, &at);
    MPI_Pack_external(REP, &si, 1, MPI_SHORT_INT, flat, 64, &at);
    MPI_Pack_external(REP, ii, 1, MPI_2INT, flat, 64, &at);
    EQ(at, 16 + 12 + 6 + 8);
    at = 0;
    MPI_Unpack_external(REP, flat, 64, &at, li2, 2, MPI_LONG_INT);
    MPI_Unpack_external(REP, flat, 64, &at, &di2, 1, MPI_DOUBLE_INT);
    MPI_Unpack_external(REP, flat, 64, &at, &si2, 1, MPI_SHORT_INT);
    MPI_Unpack_external(REP, flat, 64, &at, ii2, 1, MPI_2INT);
    CHECK(li2[0].v == -7 && li2[0].i == 3 && li2[1].v == 8 && li2[1].i == 4 && di2.v == 1.5 && di2.i == 3);
    CHECK(si2.v == -2 && si2.i == 3 && ii2[0] == 1 && ii2[1] == 2);
    MPI_Pack_external_size(REP, 1, MPI_LONG_DOUBLE_INT, &n);
    EQ(n, 20);
}

/* Long enough for several pieces, and from rank to rank as bytes. */
static void messages(void)
{
    enum { N = 5000 };
    static int a[2 * N], b[N];
    static unsigned char flat[4 * N], got[4 * N];
    MPI_Datatype t;
    MPI_Count at = 0;
    MPI_Type_vector(N, 1, 2, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int i = 0; i < N; i++)
        a[2 * i] = i * 65537 + rank;
    MPI_Pack_external_c(REP, a, 1, t, flat, sizeof(flat), &at);
    EQ(at, 4 * N);
    for (int i = 0; i < N; i++) {
        unsigned x = (unsigned)a[2 * i];
        CHECK(flat[4 * i] == x >> 24 && flat[4 * i + 1] == (x >> 16 & 255) && flat[4 * i + 3] == (x & 255));
    }
    int left = (rank + size - 1) % size;
    MPI_Sendrecv(flat, 4 * N, MPI_PACKED, (rank + 1) % size, 0, got, 4 * N, MPI_PACKED, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Aint from = 0;
    MPI_Unpack_external(REP, got, sizeof(got), &from, b, N, MPI_INT);
    for (int i = 0; i < N; i++)
        EQ(b[i], i * 65537 + left);
    MPI_Type_free(&t);
}

static void refusals(void)
{
    char buf[16];
    MPI_Aint at = 14, n;
    static char other[] = "native";
    int x = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Pack_external(REP, &x, 1, MPI_INT, buf, 16, &at) != MPI_SUCCESS);
    EQ(at, 14);
    CHECK(MPI_Unpack_external(REP, buf, 16, &at, &x, 1, MPI_INT) != MPI_SUCCESS);
    CHECK(MPI_Pack_external_size(other, 1, MPI_INT, &n) != MPI_SUCCESS);
    CHECK(MPI_Pack_external_size(REP, -1, MPI_INT, &n) != MPI_SUCCESS);
    CHECK(MPI_Pack_external_size(REP, 1, MPI_DATATYPE_NULL, &n) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    integers();
    reals();
    quads();
    mixed();
    pairs();
    messages();
    refusals();
    return mt_end();
}
