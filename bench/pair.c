/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements of a pair of ranks: pair KIND:BYTES:COUNT...
 *
 *   latency:BYTES:COUNT    half a round trip, COUNT round trips: "latency BYTES MICROSECONDS BEST"
 *   rate:BYTES:COUNT       COUNT windows of WINDOW messages one way, each window answered: "rate BYTES MB/S BEST"
 * (10^6)
 *
 * Every figure is the median over up to BLOCKS equal parts of COUNT, so a pause of the machine in one part does not
 * show, with the best part beside. A plain MPI program: the same source is measured under every MPI.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 8
#define BLOCKS 9
#define WARMUP 2

static int rank;
static char *buf;

static void round_trip(int bytes)
{
    if (rank == 0) {
        MPI_Send(buf, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(buf, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buf, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buf, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void window(int bytes)
{
    MPI_Request req[WINDOW];
    MPI_Status status[WINDOW];

    for (int i = 0; i < WINDOW; i++) {
        char *at = buf + (size_t)i * (size_t)bytes;

        if (rank == 0)
            MPI_Isend(at, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &req[i]);
        else
            MPI_Irecv(at, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &req[i]);
    }
    MPI_Waitall(WINDOW, req, status);
    if (rank == 0)
        MPI_Recv(buf, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(buf, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Seconds for one call of step: the median over the blocks, and the best. */
static double measure(void (*step)(int bytes), int bytes, int count, double *best)
{
    int blocks = count < BLOCKS ? count : BLOCKS, each = count / blocks;
    double second[BLOCKS];

    for (int i = 0; i < WARMUP; i++)
        step(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int b = 0; b < blocks; b++) {
        double start = MPI_Wtime();

        for (int i = 0; i < each; i++)
            step(bytes);
        second[b] = (MPI_Wtime() - start) / each;
    }
    qsort(second, (size_t)blocks, sizeof second[0], ascending);
    *best = second[0];
    return (second[(blocks - 1) / 2] + second[blocks / 2]) / 2;
}

int main(int argc, char **argv)
{
    int size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 1; i < argc; i++) {
        char kind[16];
        int bytes, count, rate;
        double s, best;

        if (sscanf(argv[i], "%15[a-z]:%d:%d", kind, &bytes, &count) != 3 || bytes < 0 || count < 1)
            MPI_Abort(MPI_COMM_WORLD, 2);
        rate = !strcmp(kind, "rate");
        buf = calloc(WINDOW, bytes ? (size_t)bytes : 1);
        if (!buf)
            MPI_Abort(MPI_COMM_WORLD, 3);
        s = measure(rate ? window : round_trip, bytes, count, &best);
        if (rank == 0)
            printf("%s %d %.4f %.4f\n", kind, bytes, rate ? 1e-6 * WINDOW * bytes / s : 1e6 * s / 2,
                   rate ? 1e-6 * WINDOW * bytes / best : 1e6 * best / 2);
        free(buf);
    }
    MPI_Finalize();
    return 0;
}
