/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll [-q] COLLECTIVES BYTES...: the time of collectives, one line each: name, bytes (of a message, or from each rank),
 * least time of several rounds in microseconds. A round is many, each after a barrier; its time is the mean at the
 * slowest rank. -q: two rounds only, since simulated time has no noise.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, rounds = 5;
static char *in, *out;
static int *counts;

static void run(const char *name, int n)
{
    MPI_Comm w = MPI_COMM_WORLD;
    int d = n / (int)sizeof(double);
    if (!strcmp(name, "barrier"))
        MPI_Barrier(w);
    else if (!strcmp(name, "bcast"))
        MPI_Bcast(in, n, MPI_BYTE, 0, w);
    else if (!strcmp(name, "reduce"))
        MPI_Reduce(in, out, d, MPI_DOUBLE, MPI_SUM, 0, w);
    else if (!strcmp(name, "allreduce"))
        MPI_Allreduce(in, out, d, MPI_DOUBLE, MPI_SUM, w);
    else if (!strcmp(name, "gather"))
        MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, w);
    else if (!strcmp(name, "scatter"))
        MPI_Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, w);
    else if (!strcmp(name, "allgather"))
        MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, w);
    else if (!strcmp(name, "allgatherv"))
        MPI_Allgatherv(in, n, MPI_BYTE, out, counts, counts + size, MPI_BYTE, w);
    else if (!strcmp(name, "alltoall"))
        MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, w);
    else if (!strcmp(name, "reduce_scatter"))
        MPI_Reduce_scatter_block(in, out, d, MPI_DOUBLE, MPI_SUM, w);
    else
        MPI_Abort(w, 2);
}

static double measure(const char *name, int n)
{
    double least = 1e9;
    long work = (long)n * size;
    int times = work > 1 << 22 ? 3 : work > 1 << 18 ? 10 : 25;
    for (int r = 0; r < size; r++) {
        counts[r] = n;
        counts[size + r] = r * n;
    }
    run(name, n); /* connections */
    for (int k = 0; k < rounds; k++) {
        double t = 0, most;
        for (int i = 0; i < times; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            run(name, n);
            t += MPI_Wtime() - begin;
        }
        t = t / times * 1e6;
        MPI_Allreduce(&t, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        least = most < least ? most : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    size_t most = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && !strcmp(argv[1], "-q")) {
        rounds = 2;
        argc--;
        argv++;
    }
    for (int i = 2; i < argc; i++)
        most = (size_t)atol(argv[i]) > most ? (size_t)atol(argv[i]) : most;
    in = calloc(most * (size_t)size + 1, 1);
    out = calloc(most * (size_t)size + 1, 1);
    counts = calloc(2 * (size_t)size, sizeof(int));
    /* pages that were never written are all one page of zeros, which no copy is slow from */
    memset(in, 1, most * (size_t)size);
    memset(out, 2, most * (size_t)size);
    for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ","))
        for (int i = 2; i < argc; i++) {
            double us = measure(name, atoi(argv[i]));
            if (rank == 0)
                printf("%s %s %.2f\n", name, argv[i], us);
        }
    MPI_Finalize();
    return 0;
}
