/* SPDX-License-Identifier: BSD-3-Clause */
/* Built-in operations over all ranks on C types: small vectors and ones long enough for the ring. */
#include "mt.h"

#include <stdbool.h>
#include <stdint.h>

#define TYPE(ctype, mpitype, n)                                                                                        \
    do {                                                                                                               \
        ctype *in = malloc((size_t)(n) * sizeof(ctype)), *out = malloc((size_t)(n) * sizeof(ctype));                   \
        for (int i = 0; i < (n); i++)                                                                                  \
            in[i] = (ctype)(rank + 1 + i % 3);                                                                         \
        MPI_Allreduce(in, out, n, mpitype, MPI_SUM, MPI_COMM_WORLD);                                                   \
        for (int i = 0; i < (n); i++)                                                                                  \
            CHECK(out[i] == (ctype)(size * (size + 1) / 2 + size * (i % 3)));                                          \
        MPI_Allreduce(in, out, n, mpitype, MPI_MAX, MPI_COMM_WORLD);                                                   \
        for (int i = 0; i < (n); i++)                                                                                  \
            CHECK(out[i] == (ctype)(size + i % 3));                                                                    \
        MPI_Allreduce(in, out, n, mpitype, MPI_MIN, MPI_COMM_WORLD);                                                   \
        for (int i = 0; i < (n); i++)                                                                                  \
            CHECK(out[i] == (ctype)(1 + i % 3));                                                                       \
        free(in);                                                                                                      \
        free(out);                                                                                                     \
    } while (0)

static void bits(void)
{
    unsigned x = 1u << rank % 32 | 0x80000000u, y;
    MPI_Allreduce(&x, &y, 1, MPI_UNSIGNED, MPI_BOR, MPI_COMM_WORLD);
    EQ(y, (size >= 32 ? 0xffffffffu : ((1u << size) - 1)) | 0x80000000u);
    MPI_Allreduce(&x, &y, 1, MPI_UNSIGNED, MPI_BAND, MPI_COMM_WORLD);
    EQ(y, size == 1 ? x : 0x80000000u);
    int l = rank == 0, m;
    MPI_Allreduce(&l, &m, 1, MPI_INT, MPI_LXOR, MPI_COMM_WORLD);
    EQ(m, 1);
    MPI_Allreduce(&l, &m, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    EQ(m, size == 1);
    bool b = rank == size - 1, c;
    MPI_Allreduce(&b, &c, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD);
    EQ(c, 1);
}

static void locations(void)
{
    struct {
        double v;
        int i;
    } a = {(rank * 7) % 5, rank}, b;
    int best = 0;
    for (int r = 0; r < size; r++)
        if ((r * 7) % 5 > (best * 7) % 5)
            best = r;
    MPI_Allreduce(&a, &b, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK(b.v == (best * 7) % 5 && b.i == best);
    struct {
        short v;
        int i;
    } s[500], t[500];
    for (int k = 0; k < 500; k++) {
        s[k].v = (short)((rank + k) % size);
        s[k].i = rank;
    }
    MPI_Allreduce(s, t, 500, MPI_SHORT_INT, MPI_MINLOC, MPI_COMM_WORLD);
    for (int k = 0; k < 500; k++) {
        EQ(t[k].v, 0);
        EQ(t[k].i, (size - k % size) % size);
    }
    long double _Complex z = rank + 1.0i, sum, want = 0;
    for (int r = 0; r < size; r++)
        want += r + 1.0i;
    MPI_Allreduce(&z, &sum, 1, MPI_C_LONG_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == want);
    int x = 3, y = 4;
    MPI_Reduce_local(&x, &y, 1, MPI_INT, MPI_PROD);
    EQ(y, 12);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    static const int ns[] = {1, 37, 30011};
    for (int k = 0; k < 3; k++) {
        int n = ns[k];
        TYPE(char, MPI_CHAR, n);
        TYPE(short, MPI_SHORT, n);
        TYPE(int, MPI_INT, n);
        TYPE(unsigned long, MPI_UNSIGNED_LONG, n);
        TYPE(int64_t, MPI_INT64_T, n);
        TYPE(uint16_t, MPI_UINT16_T, n);
        TYPE(float, MPI_FLOAT, n);
        TYPE(double, MPI_DOUBLE, n);
        TYPE(long double, MPI_LONG_DOUBLE, n);
    }
    bits();
    locations();
    return mt_end();
}
