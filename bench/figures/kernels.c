/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels is|ft CLASS ITERATIONS: the communication of two NAS Parallel Benchmarks, with their sizes and their steps.
 *
 *   is   integer sort: counts of buckets are summed over all (allreduce), then each rank tells the others how many keys
 * they get (alltoall), and sends them (alltoallv). The keys are really sorted, and that is checked. ft   3-D FFT over
 * slabs of planes: one transpose of the whole array in each iteration (alltoall) and a checksum (allreduce). The
 * elements really move, and where each of them lands is checked; the transforms in between are left out.
 *
 * Rank 0 prints "IS A comm US total US": microseconds of an iteration, in MPI and in all, of the rank that has spent
 * most there. The first iteration, which opens connections and registers memory, does not count.
 */
#include <complex.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"

enum { BUCKETS = 1024, TAG = 1 };

static int rank, size;
static double in_mpi; /* seconds */

static void fail(int code, const char *why)
{
    fprintf(stderr, "kernels: rank %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, code);
}

static void *memory(size_t n, size_t bytes)
{
    void *p = calloc(n + 1, bytes);

    if (!p)
        fail(3, "no memory");
    return p;
}

/* ---- integer sort --------------------------------------------------------------------------------------------------
 */

static const struct is_class {
    char name;
    int keys_log2, most_log2;
} is_classes[] = {{'S', 16, 11}, {'W', 20, 16}, {'A', 23, 19}, {'B', 25, 21}};

static struct {
    int keys, most, shift;         /* of a rank; keys are below most; a key's bucket is key >> shift */
    int *key, *sorted, *got, room; /* by bucket; as received, and how many fit */
    int first, end, count;         /* this rank's keys afterwards: from first, below end */
    int *send, *send_at, *receive, *receive_at;
} is;

static uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The mean of four numbers, as the benchmark's keys are: many in the middle. */
static void is_keys(void)
{
    uint64_t state = (uint64_t)rank + 1;

    for (int i = 0; i < is.keys; i++) {
        uint64_t r = random_next(&state);
        unsigned sum = (r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (unsigned)(r >> 48);

        is.key[i] = (int)((uint64_t)sum * (unsigned)is.most >> 18);
    }
}

static void is_to_buckets(int *counts)
{
    int at[BUCKETS], sum = 0;

    memset(counts, 0, BUCKETS * sizeof *counts);
    for (int i = 0; i < is.keys; i++)
        counts[is.key[i] >> is.shift]++;
    for (int b = 0; b < BUCKETS; b++) {
        at[b] = sum;
        sum += counts[b];
    }
    for (int i = 0; i < is.keys; i++)
        is.sorted[at[is.key[i] >> is.shift]++] = is.key[i];
}

/* Each rank gets buckets in turn until it has its share of all keys. */
static void is_deal(const int *mine, const int *all)
{
    long share = (long)is.keys, sum = 0;
    int to = 0;

    memset(is.send, 0, sizeof *is.send * (size_t)size);
    is.first = rank ? is.most : 0;
    is.end = is.most;
    for (int b = 0; b < BUCKETS; b++) {
        is.send[to] += mine[b];
        sum += all[b];
        if (sum >= share * (to + 1) && to < size - 1) {
            to++;
            if (to == rank)
                is.first = (b + 1) << is.shift;
            if (to == rank + 1)
                is.end = (b + 1) << is.shift;
        }
    }
    for (int r = 1; r < size; r++)
        is.send_at[r] = is.send_at[r - 1] + is.send[r - 1];
}

static void is_iteration(int iteration)
{
    static int mine[BUCKETS], all[BUCKETS];
    double start;

    is.key[iteration % is.keys] = iteration; /* as in the benchmark, so iterations differ */
    is_to_buckets(mine);
    start = MPI_Wtime();
    MPI_Allreduce(mine, all, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    in_mpi += MPI_Wtime() - start;
    is_deal(mine, all);
    start = MPI_Wtime();
    MPI_Alltoall(is.send, 1, MPI_INT, is.receive, 1, MPI_INT, MPI_COMM_WORLD);
    in_mpi += MPI_Wtime() - start;
    for (int r = 1; r < size; r++)
        is.receive_at[r] = is.receive_at[r - 1] + is.receive[r - 1];
    is.count = is.receive_at[size - 1] + is.receive[size - 1];
    if (is.count > is.room)
        fail(1, "too many keys");
    start = MPI_Wtime();
    MPI_Alltoallv(is.sorted, is.send, is.send_at, MPI_INT, is.got, is.receive, is.receive_at, MPI_INT, MPI_COMM_WORLD);
    in_mpi += MPI_Wtime() - start;
}

/* Sorts the received keys, in place of the benchmark's ranking, and compares with the neighbours' keys. */
static void is_verify(void)
{
    int range = is.end - is.first, n = 0, below = -1;
    int *counts = memory((size_t)(range > 0 ? range : 0), sizeof *counts);
    long mine = is.count, all;

    for (int i = 0; i < is.count; i++) {
        if (is.got[i] < is.first || is.got[i] >= is.end)
            fail(1, "a key is not where it belongs");
        counts[is.got[i] - is.first]++;
    }
    for (int k = 0; k < range; k++)
        for (int c = 0; c < counts[k]; c++)
            is.got[n++] = is.first + k;
    MPI_Sendrecv(is.count ? &is.got[is.count - 1] : &is.first, 1, MPI_INT, (rank + 1) % size, TAG, &below, 1, MPI_INT,
                 (rank + size - 1) % size, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank && is.count && below > is.got[0])
        fail(1, "keys are not sorted");
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (all != (long)is.keys * size)
        fail(1, "keys are missing");
    free(counts);
}

static void is_begin(char name)
{
    const struct is_class *c = is_classes;

    while (c->name != name)
        if (++c == is_classes + sizeof is_classes / sizeof *is_classes)
            fail(2, "no such class");
    is.keys = (1 << c->keys_log2) / size;
    is.most = 1 << c->most_log2;
    is.shift = c->most_log2 - 10;
    is.room = is.keys * 2 + BUCKETS;
    is.key = memory((size_t)is.keys, sizeof(int));
    is.sorted = memory((size_t)is.keys, sizeof(int));
    is.got = memory((size_t)is.room, sizeof(int));
    is.send = memory((size_t)size, sizeof(int));
    is.send_at = memory((size_t)size, sizeof(int));
    is.receive = memory((size_t)size, sizeof(int));
    is.receive_at = memory((size_t)size, sizeof(int));
    is_keys();
}

/* ---- FFT -----------------------------------------------------------------------------------------------------------
 */

static const struct ft_class {
    char name;
    int nx, ny, nz;
} ft_classes[] = {{'S', 64, 64, 64}, {'W', 128, 128, 32}, {'A', 256, 256, 128}, {'B', 512, 256, 256}};

/* Before a transpose a rank has rows of all z and columns of y*x that are its own; afterwards the other way round. */
static struct {
    size_t rows, columns; /* of the whole matrix: z, and y*x */
    double complex *a, *packed, *b;
} ft;

static double complex ft_value(size_t row, size_t column)
{
    return (double)row + (double)column * I;
}

static void ft_begin(char name)
{
    const struct ft_class *c = ft_classes;
    size_t mine;

    while (c->name != name)
        if (++c == ft_classes + sizeof ft_classes / sizeof *ft_classes)
            fail(2, "no such class");
    ft.rows = (size_t)c->nz;
    ft.columns = (size_t)c->nx * (size_t)c->ny;
    if (ft.rows % (size_t)size || ft.columns % (size_t)size)
        fail(2, "the array cannot be divided among so many ranks");
    mine = ft.rows * ft.columns / (size_t)size;
    ft.a = memory(mine, sizeof *ft.a);
    ft.packed = memory(mine, sizeof *ft.packed);
    ft.b = memory(mine, sizeof *ft.b);
    for (size_t r = 0; r < ft.rows / (size_t)size; r++)
        for (size_t c2 = 0; c2 < ft.columns; c2++)
            ft.a[r * ft.columns + c2] = ft_value((size_t)rank * (ft.rows / (size_t)size) + r, c2);
}

/* From rows of this rank to blocks for each rank; received data is transposed. */
static void ft_iteration(int iteration)
{
    size_t n = (size_t)size, rows = ft.rows / n, columns = ft.columns / n;
    double complex mine, sum;
    double start;

    for (size_t to = 0; to < n; to++)
        for (size_t r = 0; r < rows; r++)
            memcpy(ft.packed + (to * rows + r) * columns, ft.a + r * ft.columns + to * columns, columns * sizeof *ft.a);
    start = MPI_Wtime();
    MPI_Alltoall(ft.packed, (int)(rows * columns), MPI_C_DOUBLE_COMPLEX, ft.b, (int)(rows * columns),
                 MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    in_mpi += MPI_Wtime() - start;
    for (size_t from = 0; from < n; from++)
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < columns; c++)
                ft.packed[c * ft.rows + from * rows + r] = ft.b[(from * rows + r) * columns + c];
    mine = ft.packed[(size_t)iteration % (ft.rows * columns)];
    start = MPI_Wtime();
    MPI_Allreduce(&mine, &sum, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    in_mpi += MPI_Wtime() - start;
}

static void ft_verify(void)
{
    size_t columns = ft.columns / (size_t)size;

    for (size_t c = 0; c < columns; c++)
        for (size_t r = 0; r < ft.rows; r++)
            if (ft.packed[c * ft.rows + r] != ft_value(r, (size_t)rank * columns + c))
                fail(1, "an element is not where it belongs");
}

/* ---- both ----------------------------------------------------------------------------------------------------------
 */

static const struct kernel {
    const char *name, *shown;
    void (*begin)(char class);
    void (*iteration)(int number);
    void (*verify)(void);
} kernels[] = {{"is", "IS", is_begin, is_iteration, is_verify}, {"ft", "FT", ft_begin, ft_iteration, ft_verify}};

static void measure(const struct kernel *k, char class, int iterations)
{
    double start, mine[2], most[2];

    k->begin(class);
    k->iteration(0);
    gate_wait();
    in_mpi = 0;
    start = MPI_Wtime();
    for (int i = 1; i <= iterations; i++)
        k->iteration(i);
    mine[0] = in_mpi * 1e6 / iterations;
    mine[1] = (MPI_Wtime() - start) * 1e6 / iterations;
    k->verify();
    MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        gate_stop();
        printf("%s %c comm %.3f total %.3f\n", k->shown, class, most[0], most[1]);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4 || atoi(argv[3]) < 1)
        fail(2, "usage: kernels is|ft CLASS ITERATIONS");
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        if (!strcmp(argv[1], kernels[k].name)) {
            measure(&kernels[k], argv[2][0], atoi(argv[3]));
            MPI_Finalize();
            return 0;
        }
    fail(2, "no such kernel");
}
