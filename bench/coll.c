/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll [-q|-l] [-t] COLLECTIVES BYTES...: the time of collectives, one line each: name, bytes (of a message, or from
 * each rank), least time of several rounds in microseconds. A round is many, each after a barrier; its time is the mean
 * at the slowest rank. NAME:i is the nonblocking form and MPI_Wait, NAME:p the persistent one (MPI_Start, MPI_Wait).
 * -q: two rounds only, since simulated time has no noise. -l: more rounds, and longer ones of what is short: for a
 * machine that others use, too, and for the scheduler to find places for all ranks. -t: what is sent is written anew
 * before each, as programs do and benchmarks seldom, and what was received is read.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef OPEN_MPI /* version 4 has persistent collectives as an extension */
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

static int rank, size, rounds = 5;
static bool longer, touching;
static char *in, *out;
static int *counts;
static MPI_Request request;

/* The call of that name in its blocking, nonblocking and persistent form. */
#define FORMS(TEXT, NAME, INAME, ...)                                                                                  \
    if (is(name, len, TEXT)) {                                                                                         \
        if (form == 'i')                                                                                               \
            MPI_##INAME(__VA_ARGS__, MPI_COMM_WORLD, &request);                                                        \
        else if (form == 'p')                                                                                          \
            PERSISTENT(NAME)(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request);                                    \
        else                                                                                                           \
            MPI_##NAME(__VA_ARGS__, MPI_COMM_WORLD);                                                                   \
        return;                                                                                                        \
    }

static bool is(const char *name, size_t len, const char *of)
{
    return strlen(of) == len && !strncmp(name, of, len);
}

static void call(const char *name, size_t len, char form, int n)
{
    int d = n / (int)sizeof(double), *at = counts + size;
    if (is(name, len, "barrier")) {
        if (form == 'i')
            MPI_Ibarrier(MPI_COMM_WORLD, &request);
        else if (form == 'p')
            PERSISTENT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        else
            MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    FORMS("bcast", Bcast, Ibcast, in, n, MPI_BYTE, 0)
    FORMS("reduce", Reduce, Ireduce, in, out, d, MPI_DOUBLE, MPI_SUM, 0)
    FORMS("allreduce", Allreduce, Iallreduce, in, out, d, MPI_DOUBLE, MPI_SUM)
    FORMS("scan", Scan, Iscan, in, out, d, MPI_DOUBLE, MPI_SUM)
    FORMS("exscan", Exscan, Iexscan, in, out, d, MPI_DOUBLE, MPI_SUM)
    FORMS("gather", Gather, Igather, in, n, MPI_BYTE, out, n, MPI_BYTE, 0)
    FORMS("gatherv", Gatherv, Igatherv, in, n, MPI_BYTE, out, counts, at, MPI_BYTE, 0)
    FORMS("scatter", Scatter, Iscatter, in, n, MPI_BYTE, out, n, MPI_BYTE, 0)
    FORMS("scatterv", Scatterv, Iscatterv, in, counts, at, MPI_BYTE, out, n, MPI_BYTE, 0)
    FORMS("allgather", Allgather, Iallgather, in, n, MPI_BYTE, out, n, MPI_BYTE)
    FORMS("allgatherv", Allgatherv, Iallgatherv, in, n, MPI_BYTE, out, counts, at, MPI_BYTE)
    FORMS("alltoall", Alltoall, Ialltoall, in, n, MPI_BYTE, out, n, MPI_BYTE)
    FORMS("alltoallv", Alltoallv, Ialltoallv, in, counts, at, MPI_BYTE, out, counts, at, MPI_BYTE)
    FORMS("reduce_scatter", Reduce_scatter_block, Ireduce_scatter_block, in, out, d, MPI_DOUBLE, MPI_SUM)
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* name: "NAME", "NAME:i" or "NAME:p", of which the request is made before. */
static void run(const char *name, int n)
{
    size_t len = strcspn(name, ":");
    char form = name[len] ? name[len + 1] : 0;
    if (form == 'p')
        MPI_Start(&request);
    else
        call(name, len, form, n);
    if (form)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static bool begins(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

/* Each cache line of what this rank sends is its own again, and it has seen what came. */
static void touch(const char *name, size_t n)
{
    bool all = begins(name, "alltoall") || begins(name, "scatter") || begins(name, "reduce_scatter");
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
    if (strstr(name, ":p"))
        call(name, strcspn(name, ":"), 'p', n);
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
    if (strstr(name, ":p"))
        MPI_Request_free(&request);
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
