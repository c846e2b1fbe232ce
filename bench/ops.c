/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The speed of MPI_Reduce_local: for each operation, type and size allowed by the MPI, "OP TYPE BYTES GB/S". A byte
 * counts each time it is read or written: a reduction reads two vectors and writes one. The least time of PARTS, since
 * other load only adds. "memcpy" (one vector read, one written) and "triad" (y += s * x on doubles, compiled for this
 * processor) show the limits of the memory. A plain MPI program of one process; the arguments are the sizes of a vector
 * in bytes.
 */
#include <float.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PARTS = 7, MAX_BYTES = 64 << 20, PAGE = 2 << 20, GAP = 4096 + 512 };

struct float_int {
    float v;
    int i;
};
struct double_int {
    double v;
    int i;
};
struct long_int {
    long v;
    int i;
};
struct short_int {
    short v;
    int i;
};
struct long_double_int {
    long double v;
    int i;
};
struct two_int {
    int v, i;
};

static const struct {
    const char *name;
    MPI_Op op;
} ops[] = {
    {"sum", MPI_SUM},   {"prod", MPI_PROD}, {"max", MPI_MAX},       {"min", MPI_MIN},
    {"land", MPI_LAND}, {"lor", MPI_LOR},   {"lxor", MPI_LXOR},     {"band", MPI_BAND},
    {"bor", MPI_BOR},   {"bxor", MPI_BXOR}, {"minloc", MPI_MINLOC}, {"maxloc", MPI_MAXLOC},
};

/* ONE is 1 in each type: repeated multiplication or addition neither overflows nor becomes denormal. */
#define TYPE(name, handle, ctype, ...)                                                                                 \
    {                                                                                                                  \
        name, handle, sizeof(ctype), &(const ctype)__VA_ARGS__, false                                                  \
    }
#define REAL(name, handle, ctype, ...)                                                                                 \
    {                                                                                                                  \
        name, handle, sizeof(ctype), &(const ctype)__VA_ARGS__, true                                                   \
    }
static const struct {
    const char *name;
    MPI_Datatype type;
    size_t size;
    const void *one;
    bool real;
} types[] = {
    TYPE("int8", MPI_INT8_T, int8_t, {1}),
    TYPE("uint8", MPI_UINT8_T, uint8_t, {1}),
    TYPE("int16", MPI_INT16_T, int16_t, {1}),
    TYPE("uint16", MPI_UINT16_T, uint16_t, {1}),
    TYPE("int", MPI_INT, int, {1}),
    TYPE("unsigned", MPI_UNSIGNED, unsigned, {1}),
    TYPE("long", MPI_LONG, long, {1}),
    TYPE("uint64", MPI_UINT64_T, uint64_t, {1}),
    REAL("float", MPI_FLOAT, float, {1}),
    REAL("double", MPI_DOUBLE, double, {1}),
    REAL("longdouble", MPI_LONG_DOUBLE, long double, {1}),
#ifdef MPIX_C_FLOAT16
    REAL("float16", MPIX_C_FLOAT16, uint16_t, {0x3c00}),
#endif
    REAL("real16", MPI_REAL16, __float128, {1}),
    REAL("complex", MPI_C_FLOAT_COMPLEX, float _Complex, {1}),
    REAL("dcomplex", MPI_C_DOUBLE_COMPLEX, double _Complex, {1}),
    REAL("ldcomplex", MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex, {1}),
    TYPE("bool", MPI_C_BOOL, bool, {1}),
    TYPE("logical", MPI_LOGICAL, int, {1}),
    TYPE("byte", MPI_BYTE, unsigned char, {1}),
    TYPE("floatint", MPI_FLOAT_INT, struct float_int, {1, 1}),
    TYPE("doubleint", MPI_DOUBLE_INT, struct double_int, {1, 1}),
    TYPE("longint", MPI_LONG_INT, struct long_int, {1, 1}),
    TYPE("shortint", MPI_SHORT_INT, struct short_int, {1, 1}),
    TYPE("ldoubleint", MPI_LONG_DOUBLE_INT, struct long_double_int, {1, 1}),
    TYPE("2int", MPI_2INT, struct two_int, {1, 1}),
    TYPE("2real", MPI_2REAL, struct float_int, {1, 1}),
    TYPE("2dprec", MPI_2DOUBLE_PRECISION, double _Complex, {1}),
};

#define ARITHMETIC(op) ((op) == MPI_SUM || (op) == MPI_PROD || (op) == MPI_MAX || (op) == MPI_MIN)

static char *in, *inout;

struct work {
    size_t bytes;
    int count;
    MPI_Datatype type;
    MPI_Op op;
};

static void reduce(const struct work *w)
{
    MPI_Reduce_local(in, inout, w->count, w->type, w->op);
}

static void copy(const struct work *w)
{
    memcpy(inout, in, w->bytes);
    __asm__ volatile("" ::: "memory");
}

static void triad(const struct work *w)
{
    const double *restrict x = (const double *)in;
    double *restrict y = (double *)inout;
    for (size_t i = 0; i < w->bytes / sizeof(double); i++)
        y[i] += 0.5 * x[i];
    __asm__ volatile("" ::: "memory");
}

static void measure(const char *op, const char *type, void (*what)(const struct work *), const struct work *w,
                    int vectors)
{
    int repeats = 1 + (1 << 20) / (int)w->bytes;
    double least = DBL_MAX;
    what(w);
    for (int p = 0; p < PARTS; p++) {
        double start = MPI_Wtime();
        for (int i = 0; i < repeats; i++)
            what(w);
        double s = (MPI_Wtime() - start) / repeats;
        least = s < least ? s : least;
    }
    printf("%s %s %zu %.3f\n", op, type, w->bytes, (double)w->bytes * vectors / least / 1e9);
}

static void fill(const void *one, size_t size, size_t bytes)
{
    for (size_t i = 0; i + size <= bytes; i += size) {
        memcpy(in + i, one, size);
        memcpy(inout + i, one, size);
    }
}

/* MPICH 4.0 claims to allow sums of MPIX_C_FLOAT16, and ends the program. */
static bool knows_float16(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len;
    MPI_Get_library_version(version, &len);
    return strncmp(version, "MPICH", 5) != 0;
}

static void measure_type(size_t t, size_t bytes)
{
    if (!strcmp(types[t].name, "float16") && !knows_float16())
        return;
    for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
        if (types[t].real && !ARITHMETIC(ops[o].op))
            continue; /* not in the standard, and MPICH 4.0 ends the program */
        struct work w = {bytes, (int)(bytes / types[t].size), types[t].type, ops[o].op};
        fill(types[t].one, types[t].size, bytes);
        if (MPI_Reduce_local(in, inout, 1, w.type, w.op) == MPI_SUCCESS)
            measure(ops[o].name, types[t].name, reduce, &w, 3);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int a = 1; a < argc; a++) {
        size_t bytes = strtoul(argv[a], NULL, 0);
        if (bytes < 64 || bytes > MAX_BYTES) {
            fprintf(stderr, "ops: %s: not a size from 64 bytes to %d\n", argv[a], MAX_BYTES);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        /* large pages: how small ones lie in the caches is another lottery in each run; not at the same place in two */
        size_t room = (2 * bytes + GAP + PAGE - 1) & ~(size_t)(PAGE - 1);
        in = aligned_alloc(PAGE, room);
        if (!in)
            MPI_Abort(MPI_COMM_WORLD, 1);
        madvise(in, room, MADV_HUGEPAGE);
        inout = in + bytes + GAP;
        fill(&(const double){1}, sizeof(double), bytes);
        measure("memcpy", "-", copy, &(struct work){.bytes = bytes}, 2);
        measure("triad", "-", triad, &(struct work){.bytes = bytes}, 3);
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
            measure_type(t, bytes);
        free(in);
    }
    MPI_Finalize();
    return 0;
}
