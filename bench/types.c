/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of datatypes: for each type, "NAME BYTES PACK UNPACK ROUND COPY" in microseconds: MPI_Pack and MPI_Unpack of
 * one element, half a round trip of it between two ranks, and memcpy of as many bytes. Of BLOCKS parts the least: the
 * load of others only adds. A plain MPI program: the same binary runs under every MPI with its binary interface. The
 * argument is the bytes of data that each type has, about.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 9 };

static int rank;
static char *memory, *flat;
static size_t room;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void pack(MPI_Datatype t, int bytes)
{
    int at = 0;
    MPI_Pack(memory, 1, t, flat, bytes, &at, MPI_COMM_SELF);
}

static void unpack(MPI_Datatype t, int bytes)
{
    int at = 0;
    MPI_Unpack(flat, bytes, &at, memory, 1, t, MPI_COMM_SELF);
}

static void copy(MPI_Datatype t, int bytes)
{
    memcpy(flat, memory, (size_t)bytes);
    __asm__ volatile("" ::: "memory");
}

static void round_trip(MPI_Datatype t, int bytes)
{
    if (rank == 0)
        MPI_Send(memory, 1, t, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(memory, 1, t, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(memory, 1, t, 0, 0, MPI_COMM_WORLD);
}

static double time_of(void (*what)(MPI_Datatype, int), MPI_Datatype t, int bytes, int repeats)
{
    double us[BLOCKS];
    what(t, bytes);
    for (int b = 0; b < BLOCKS; b++) {
        double start = MPI_Wtime();
        for (int i = 0; i < repeats; i++)
            what(t, bytes);
        us[b] = (MPI_Wtime() - start) / repeats * 1e6;
    }
    qsort(us, BLOCKS, sizeof(us[0]), by_value);
    return us[0];
}

static void measure(const char *name, MPI_Datatype t)
{
    int bytes;
    MPI_Aint lb, extent;
    MPI_Type_commit(&t);
    MPI_Type_size(t, &bytes);
    MPI_Type_get_true_extent(t, &lb, &extent);
    if (lb < 0 || (size_t)(lb + extent) > room || (size_t)bytes > room) {
        fprintf(stderr, "%s does not fit\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int repeats = 1 + (4 << 20) / (bytes + 2000);
    double in = 0, out = 0, plain = 0;
    if (rank == 0) {
        in = time_of(pack, t, bytes, repeats);
        out = time_of(unpack, t, bytes, repeats);
        plain = time_of(copy, t, bytes, repeats);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double both = time_of(round_trip, t, bytes, 1 + repeats / 4) / 2;
    if (rank == 0)
        printf("%s %d %.3f %.3f %.3f %.3f\n", name, bytes, in, out, both, plain);
    MPI_Type_free(&t);
}

struct record {
    char tag;
    double x[3];
    int id;
};

static MPI_Datatype records(int n)
{
    MPI_Datatype t, r, all, types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    MPI_Aint at[3] = {offsetof(struct record, tag), offsetof(struct record, x), offsetof(struct record, id)};
    MPI_Type_create_struct(3, (int[]){1, 3, 1}, at, types, &t);
    MPI_Type_create_resized(t, 0, sizeof(struct record), &r);
    MPI_Type_contiguous(n, r, &all);
    MPI_Type_free(&t);
    MPI_Type_free(&r);
    return all;
}

/* Every second double of a few, as a structure has them. */
static MPI_Datatype doubles(int n)
{
    MPI_Datatype t, r, all, types[2] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 16}, types, &t);
    MPI_Type_create_resized(t, 0, 40, &r);
    MPI_Type_contiguous(n, r, &all);
    MPI_Type_free(&t);
    MPI_Type_free(&r);
    return all;
}

/* n blocks of 64 bytes at irregular places. */
static MPI_Datatype blocks(int n)
{
    MPI_Aint *at = malloc((size_t)n * sizeof(MPI_Aint)), next = 0;
    MPI_Datatype t;
    for (int i = 0; i < n; i++) {
        at[i] = next;
        next += 64 + 8 * (1 + i * 7 % 5);
    }
    MPI_Type_create_hindexed_block(n, 8, at, MPI_DOUBLE, &t);
    free(at);
    return t;
}

/* Of a box of doubles, four deep, one of the faces with numbers apart. */
static MPI_Datatype face(int n)
{
    MPI_Datatype t;
    int whole[3] = {16, n / 16, 4}, part[3] = {16, n / 16, 1}, from[3] = {0, 0, 3};
    MPI_Type_create_subarray(3, whole, part, from, MPI_ORDER_C, MPI_DOUBLE, &t);
    return t;
}

/* n blocks at irregular places: of one double each, or of one to four. */
static MPI_Datatype scattered(int n, int max)
{
    int *len = malloc((size_t)n * sizeof(int)), *at = malloc((size_t)n * sizeof(int)), next = 0;
    MPI_Datatype t;
    for (int i = 0; i < n; i++) {
        len[i] = 1 + i % max;
        at[i] = next;
        next += len[i] + 1 + i * 7 % 3;
    }
    MPI_Type_indexed(n, len, at, MPI_DOUBLE, &t);
    free(len);
    free(at);
    return t;
}

/* A square matrix of doubles, column by column: a transposition when it is packed. */
static MPI_Datatype columns(int side)
{
    MPI_Datatype column, next, all;
    MPI_Type_vector(side, 1, side, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, sizeof(double), &next);
    MPI_Type_contiguous(side, next, &all);
    MPI_Type_free(&column);
    MPI_Type_free(&next);
    return all;
}

/* The inner half, in each of three dimensions, of a cube of doubles. */
static MPI_Datatype cube(int side)
{
    MPI_Datatype t;
    int whole[3] = {2 * side, 2 * side, 2 * side}, part[3] = {side, side, side},
        from[3] = {side / 2, side / 2, side / 2};
    MPI_Type_create_subarray(3, whole, part, from, MPI_ORDER_C, MPI_DOUBLE, &t);
    return t;
}

static int root_of(int n, int power)
{
    int r = 1;
    while (power == 2 ? (r + 1) * (r + 1) <= n : (r + 1) * (r + 1) * (r + 1) <= n)
        r++;
    return r;
}

int main(int argc, char **argv)
{
    int bytes = argc > 1 ? atoi(argv[1]) : 1 << 20, n = bytes / 8;
    MPI_Datatype t;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    room = (size_t)bytes * 10 + 4096;
    memory = malloc(room);
    flat = malloc(room);
    memset(memory, 1, room);
    memset(flat, 2, room);
    MPI_Type_contiguous(n, MPI_DOUBLE, &t);
    measure("contiguous", t);
    MPI_Type_vector(2 * n, 1, 2, MPI_INT, &t);
    measure("vector-of-int", t);
    MPI_Type_vector(n, 1, 2, MPI_DOUBLE, &t);
    measure("vector-of-double", t);
    MPI_Type_vector(n / 3, 3, 5, MPI_DOUBLE, &t);
    measure("vector-of-3", t);
    MPI_Type_vector(n / 16, 16, 32, MPI_DOUBLE, &t);
    measure("vector-of-16", t);
    MPI_Type_vector(n / 256, 256, 512, MPI_DOUBLE, &t);
    measure("vector-of-256", t);
    measure("struct", records(bytes / 29));
    measure("struct-of-8", doubles(n / 2));
    measure("blocks-of-64", blocks(n / 8));
    measure("indexed-1", scattered(n, 1));
    measure("indexed-1-to-4", scattered(2 * n / 5, 4));
    measure("columns", columns(root_of(n, 2)));
    measure("face", face(n));
    measure("subarray-3d", cube(root_of(n, 3)));
    free(memory);
    free(flat);
    MPI_Finalize();
    return 0;
}
