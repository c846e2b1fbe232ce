/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stencils lu|cg|mg CLASS ITERATIONS: the communication of three more NAS Parallel Benchmarks (kernels.c has others),
 * with their sizes, in their order; computing takes no time.
 *
 *   lu   a wave through the planes of a cube, from one corner and back: each rank of a 2-D grid waits for its
 * neighbours' edges of a plane, and sends its own on. Nearly all messages are short. cg   25 steps of a conjugate
 * gradient over a 2-D grid: parts of a vector are summed over a row and exchanged with the transposed rank, and two
 * sums of one number. Half of the messages are long. mg   one V cycle of a multigrid over a 3-D torus: faces to both
 * neighbours of each axis, on every level. Of all sizes.
 *
 * The number of ranks is a power of two. Rank 0 prints "LU W comm US": microseconds of an iteration, of the rank that
 * took longest. The first iteration, which opens connections, does not count. All begin at the gate (gate.h).
 */
#include <string.h>

#include "gate.h"

enum { TAG = 1, MOST = 1 << 22, CG_STEPS = 25, LU_WORDS = 5 };

static int rank, size;
static char *out, *in;

static void fail(int code, const char *why)
{
    fprintf(stderr, "stencils: rank %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, code);
    exit(code);
}

static int bytes_of(double doubles)
{
    int bytes = 8 * (int)doubles;

    if (bytes > MOST)
        fail(2, "too large a class");
    return bytes ? bytes : 8;
}

static void send_to(int other, int bytes)
{
    if (other >= 0)
        MPI_Send(out, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

static void receive_from(int other, int bytes)
{
    if (other >= 0)
        MPI_Recv(in, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(int to, int from, int bytes)
{
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, TAG, in, bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rows and columns of a grid, columns the more. */
static void grid(int *rows, int *columns)
{
    *rows = 1;
    while (*rows * *rows * 4 <= size)
        *rows *= 2;
    *columns = size / *rows;
}

static void lu_wave(int n, int step)
{
    int rows, columns, row, column, before[2], after[2], bytes[2];

    grid(&rows, &columns);
    row = rank / columns;
    column = rank % columns;
    before[0] = row - step >= 0 && row - step < rows ? rank - step * columns : -1;
    before[1] = column - step >= 0 && column - step < columns ? rank - step : -1;
    after[0] = row + step >= 0 && row + step < rows ? rank + step * columns : -1;
    after[1] = column + step >= 0 && column + step < columns ? rank + step : -1;
    bytes[0] = bytes_of(1.0 * LU_WORDS * n / columns);
    bytes[1] = bytes_of(1.0 * LU_WORDS * n / rows);
    for (int plane = 0; plane < n; plane++) {
        for (int i = 0; i < 2; i++)
            receive_from(before[i], bytes[i]);
        for (int i = 0; i < 2; i++)
            send_to(after[i], bytes[i]);
    }
}

static void lu(int n)
{
    double norm[LU_WORDS] = {1}, sum[LU_WORDS];

    lu_wave(n, 1);
    lu_wave(n, -1);
    MPI_Allreduce(norm, sum, LU_WORDS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void cg(int n)
{
    int rows, columns;
    double one = 1, sum;

    grid(&rows, &columns);
    for (int step = 0; step < CG_STEPS; step++) {
        int transposed = rows == columns ? rank % columns * columns + rank / columns : size - 1 - rank;

        for (int d = 1; d < columns; d *= 2)
            exchange(rank ^ d, rank ^ d, bytes_of(1.0 * n / rows));
        if (transposed != rank)
            exchange(transposed, transposed, bytes_of(1.0 * n / columns));
        for (int i = 0; i < 2; i++)
            MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* Faces to both neighbours of each axis. */
static void mg_faces(const int edge[3], int n)
{
    for (int axis = 0, stride = 1; axis < 3; stride *= edge[axis++]) {
        int at = rank / stride % edge[axis];
        int up = rank + ((at + 1) % edge[axis] - at) * stride,
            down = rank + ((at + edge[axis] - 1) % edge[axis] - at) * stride;
        double face = 1;

        if (edge[axis] == 1)
            continue;
        for (int other = 0; other < 3; other++)
            face *= other == axis ? 1 : (1.0 * n / edge[other] + 2);
        exchange(up, down, bytes_of(face));
        exchange(down, up, bytes_of(face));
    }
}

static void mg(int n)
{
    int edge[3] = {1, 1, 1};
    double norm = 1, sum;

    for (int axis = 0, left = size; left > 1; left /= 2, axis = (axis + 1) % 3)
        edge[axis] *= 2;
    for (int level = n; level >= 4; level /= 2) /* down: restriction */
        mg_faces(edge, level);
    for (int level = 4; level <= n; level *= 2) /* up: interpolation, residual, smoothing */
        for (int i = 0; i < 2; i++)
            mg_faces(edge, level);
    MPI_Allreduce(&norm, &sum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static const struct kernel {
    const char *name, *shown;
    void (*iteration)(int n);
    struct {
        char name;
        int n;
    } class[3]; /* points on an edge; cg: of the vector */
} kernels[] = {{"lu", "LU", lu, {{'S', 12}, {'W', 33}, {'A', 64}}},
               {"cg", "CG", cg, {{'S', 1400}, {'W', 7000}, {'A', 14000}}},
               {"mg", "MG", mg, {{'S', 32}, {'W', 128}, {'A', 256}}}};

static void measure(const struct kernel *k, char class, int iterations)
{
    double start, mine, most;
    int n = 0;

    for (int i = 0; i < 3; i++)
        if (k->class[i].name == class)
            n = k->class[i].n;
    if (!n)
        fail(2, "no such class");
    k->iteration(n);
    gate_wait();
    start = MPI_Wtime();
    for (int i = 0; i < iterations; i++)
        k->iteration(n);
    mine = (MPI_Wtime() - start) * 1e6 / iterations;
    MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        gate_stop();
        printf("%s %c comm %.3f\n", k->shown, class, most);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = calloc(1, MOST);
    in = calloc(1, MOST);
    if (argc != 4 || atoi(argv[3]) < 1 || !out || !in || size & (size - 1))
        fail(2, "usage: stencils lu|cg|mg CLASS ITERATIONS, with 2, 4, 8, ... ranks");
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        if (!strcmp(argv[1], kernels[k].name)) {
            measure(&kernels[k], argv[2][0], atoi(argv[3]));
            free(in);
            free(out);
            MPI_Finalize();
            return 0;
        }
    fail(2, "no such kernel");
}
