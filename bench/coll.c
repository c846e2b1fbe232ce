/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll [-q|-l] [-t] COLLECTIVES BYTES...: the time of collectives, one line each: name, bytes (of a message, or from
 * each rank), least time of several rounds in microseconds. A round is many, each after a barrier; its time is the mean
 * at the slowest rank. -q: two rounds only, since simulated time has no noise. -l: more rounds, and longer ones of
 * what is short: for a machine that others use, too, and for the scheduler to find places for all ranks. -t: what is
 * sent is written anew before each, as programs do and benchmarks seldom, and what was received is read.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, rounds = 5;
static bool longer, touching;
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

/* Each cache line of what this rank sends is its own again, and it has seen what came. */
static void touch(const char *name, size_t n)
{
    bool all = !strcmp(name, "alltoall") || !strcmp(name, "scatter") || !strcmp(name, "reduce_scatter");
    size_t room = n * (size_t)size, sent = all ? room : n;
    volatile char *to = in, *from = out;
    for (size_t i = 0; i < sent; i += 64)
        to[i]++;
    for (size_t i = 0; i < room; i += 64)
        (void)from[i];
}

static double measure(const char *name, int n)
{
    double least = 1e9;
    long work = (long)n * size;
    int times = work > 1 << 22 ? 3 : work > 1 << 18 ? 10 : longer ? 100 : 25;
    int turns = longer ? 5 * rounds : rounds;
    for (int r = 0; r < size; r++) {
        counts[r] = n;
        counts[size + r] = r * n;
    }
    run(name, n); /* connections */
    for (int k = 0; k < turns; k++) {
        double t = 0, most;
        for (int i = 0; i < times; i++) {
            if (touching)
                touch(name, (size_t)n);
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
    for (; argc > 2 && argv[1][0] == '-'; argc--, argv++) {
        rounds = argv[1][1] == 'q' ? 2 : rounds;
        longer |= argv[1][1] == 'l';
        touching |= argv[1][1] == 't';
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
