/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node KIND... [BYTES...]: two ranks inside one host, one line for each kind and size: "KIND BYTES VALUE".
 *
 *   latency  half a round trip, us          bw    windows of 64 messages one way, MB/s (10^6)
 *   rate     as bw, million messages/s      bibw  windows of 64 messages both ways at once, MB/s
 *   fresh    half a round trip of buffers that are written before they are sent and read when they have come, us
 *   vector   as latency, of blocks of 64 bytes with gaps of 64
 *
 * Sizes: every power of two from 1 B to 4 MiB unless some are given. A value is the median of BLOCKS blocks of BLOCK_S
 * seconds, so that a pause of the machine in one of them does not show. A plain MPI program: the same source is
 * measured under every MPI. All messages of a window use one buffer, as in the programs that others measure with.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW  64
#define BLOCKS  7
#define BLOCK_S .0015
#define MOST    (4 << 20)

static int rank;
static char *out, *in;
static volatile long sum;
static MPI_Datatype blocks; /* of vector */

static void round_trip(int bytes)
{
    if (rank == 0) {
        MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void use(int bytes)
{
    long s = 0;

    for (int i = 0; i < bytes; i += 8)
        s += in[i];
    sum += s;
}

static void fresh(int bytes)
{
    static char value;

    if (rank == 0) {
        memset(out, ++value, (size_t)bytes);
        MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        use(bytes);
    } else {
        MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        use(bytes);
        memset(out, ++value, (size_t)bytes);
        MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void vector(int bytes)
{
    int n = bytes / 64;

    if (rank == 0) {
        MPI_Send(out, n, blocks, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, n, blocks, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, n, blocks, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, n, blocks, 0, 1, MPI_COMM_WORLD);
    }
}

static void one_way(int bytes)
{
    MPI_Request req[WINDOW];

    for (int i = 0; i < WINDOW; i++)
        if (rank == 0)
            MPI_Isend(out, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &req[i]);
        else
            MPI_Irecv(in, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &req[i]);
    MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(in, 4, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, 4, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

static void both_ways(int bytes)
{
    MPI_Request req[2 * WINDOW];

    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(in, bytes, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &req[i]);
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(out, bytes, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &req[WINDOW + i]);
    MPI_Waitall(2 * WINDOW, req, MPI_STATUSES_IGNORE);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double timed(void (*step)(int bytes), int bytes, int count)
{
    double begin;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (int i = 0; i < count; i++)
        step(bytes);
    return (MPI_Wtime() - begin) / count;
}

/* Seconds of one step. */
static double measure(void (*step)(int bytes), int bytes)
{
    double second[BLOCKS];
    int count = 2;

    timed(step, bytes, 2);
    if (rank == 0) {
        double once = timed(step, bytes, 2);

        count = once > BLOCK_S / 2 ? 2 : (int)(BLOCK_S / once);
    } else {
        timed(step, bytes, 2);
    }
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int b = 0; b < BLOCKS; b++)
        second[b] = timed(step, bytes, count);
    qsort(second, BLOCKS, sizeof second[0], ascending);
    return second[BLOCKS / 2];
}

static void report(const char *kind, int bytes)
{
    double s = 0;

    if (!strcmp(kind, "latency"))
        s = 1e6 * measure(round_trip, bytes) / 2;
    else if (!strcmp(kind, "fresh"))
        s = 1e6 * measure(fresh, bytes) / 2;
    else if (!strcmp(kind, "vector"))
        s = 1e6 * measure(vector, bytes) / 2;
    else if (!strcmp(kind, "bw"))
        s = 1e-6 * WINDOW * bytes / measure(one_way, bytes);
    else if (!strcmp(kind, "rate"))
        s = 1e-6 * WINDOW / measure(one_way, bytes);
    else if (!strcmp(kind, "bibw"))
        s = 2e-6 * WINDOW * bytes / measure(both_ways, bytes);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (rank == 0)
        printf("%s %d %.4f\n", kind, bytes, s);
}

int main(int argc, char **argv)
{
    int size, kinds = 1;
    MPI_Datatype block;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (kinds < argc && (argv[kinds][0] < '0' || argv[kinds][0] > '9'))
        kinds++;
    out = aligned_alloc(4096, 2 * MOST);
    in = aligned_alloc(4096, 2 * MOST);
    if (size != 2 || !out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(out, 1, 2 * MOST);
    memset(in, 2, 2 * MOST);
    MPI_Type_contiguous(64, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, 128, &blocks);
    MPI_Type_commit(&blocks);
    for (int k = 1; k < kinds; k++) {
        if (kinds == argc)
            for (int bytes = strcmp(argv[k], "vector") ? 1 : 64; bytes <= MOST; bytes *= 2)
                report(argv[k], bytes);
        for (int i = kinds; i < argc; i++)
            report(argv[k], atoi(argv[i]));
    }
    MPI_Finalize();
    return 0;
}
