/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll [-q|-l] [-s|-b] [-t] COLLECTIVES BYTES...: the time of collectives, one line each: name, bytes (of a message, or
 * from each rank), least time of several rounds in microseconds. A round is many calls, each after a barrier; its time
 * is the mean at the slowest rank. NAME:i is the nonblocking form and MPI_Wait, NAME:p the persistent form (MPI_Start,
 * MPI_Wait). Before, new data is moved each time and checked; "wrong" behind the time: data was missing. -q: two rounds
 * only, since simulated time has no noise. -l: more rounds, and longer rounds of short calls, for a machine with other
 * work, and for the scheduler to find places for all ranks. -s: all begin at an agreed moment, and a time lasts until
 * the last rank is done. Without -s, a library whose barrier lets a root go before the others seems faster, though the
 * others wait in the barrier instead: for ranks with a core each. -b: the barrier counts in, for the same reason, for
 * ranks without a core each: then either of the two calls may give cores away. -t: data to send is written anew before
 * each call, as programs do and benchmarks seldom do, and received data is read.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef OPEN_MPI /* version 4 has persistent collectives as an extension */
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

static int rank, size, rounds = 5;
static bool longer, touching, together, with_barrier;
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

/* name: "NAME", "NAME:i" or "NAME:p" with its request made before. */
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

/* True if a rank has a block for each other rank, not one for all. */
static bool is_apart(const char *name)
{
    return begins(name, "alltoall") || begins(name, "scatter") || begins(name, "reduce_scatter");
}

/* Makes each cache line of this rank's data its own again, and reads the received data. */
static void touch(const char *name, size_t n)
{
    size_t room = n * (size_t)size, sent = is_apart(name) ? room : n;
    volatile char *to = in, *from = out;
    for (size_t i = 0; i < sent; i += 64)
        to[i]++;
    for (size_t i = 0; i < room; i += 64)
        (void)from[i];
}

/* ---- verification ------------------------------------------------------------------------------------------------ */

/* Doubles, small whole numbers, that a rank gives to another in a turn: sums of them are exact. */
static double given(int turn, int from, int to, int i)
{
    return turn + 3 * from + 7 * to + i % 5;
}

/* The expected value of block `from` at this rank. */
static double expected(const char *name, int turn, int from, int i)
{
    double sum = 0;

    if (begins(name, "reduce_scatter"))
        from = rank;
    else if (!begins(name, "reduce") && !begins(name, "allreduce") && !begins(name, "scan") && !begins(name, "exscan"))
        return given(turn, from, is_apart(name) ? rank : 0, i);
    for (int r = 0; r < size; r++)
        if ((!begins(name, "scan") || r <= rank) && (!begins(name, "exscan") || r < rank))
            sum += given(turn, r, begins(name, "reduce_scatter") ? rank : 0, i);
    return sum;
}

/* Blocks at this rank that come from as many ranks; 0: nothing does. */
static int blocks_of(const char *name)
{
    bool to_all = begins(name, "all") && !begins(name, "allreduce");

    if (begins(name, "exscan"))
        return rank > 0;
    if (begins(name, "reduce:") || !strcmp(name, "reduce"))
        return rank == 0;
    if (begins(name, "gather"))
        return rank == 0 ? size : 0;
    return to_all ? size : !begins(name, "barrier");
}

/* Some turns with new data in each. */
static bool is_right(const char *name, int n)
{
    int d = n / (int)sizeof(double), bad = 0, any;
    double *from = (double *)in, *to = (double *)(begins(name, "bcast") ? in : out);

    for (int turn = 1; turn <= 3; turn++) {
        for (int r = 0; r < size; r++)
            for (int i = 0; i < d; i++) {
                ((double *)out)[r * d + i] = -1;
                if (is_apart(name) || r == 0)
                    from[r * d + i] = begins(name, "bcast") && rank ? -1 : given(turn, rank, is_apart(name) ? r : 0, i);
            }
        run(name, n);
        for (int b = 0; b < blocks_of(name); b++)
            for (int i = 0; i < d; i++)
                bad |= to[b * d + i] != expected(name, turn, b, i);
    }
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !any;
}

/* ---- how long ---------------------------------------------------------------------------------------------------- */

static double clock_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t); /* the same for all processes of a host, unlike MPI_Wtime */
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* The mean at the slowest rank. */
static double after_barriers(const char *name, int n, int times)
{
    double t = 0, most;

    for (int i = 0; i < times; i++) {
        if (touching)
            touch(name, (size_t)n);
        double begin = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        if (!with_barrier)
            begin = MPI_Wtime();
        run(name, n);
        t += MPI_Wtime() - begin;
    }
    t = t / times * 1e6;
    MPI_Allreduce(&t, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

enum { TIMES_MOST = 100, MARGIN_US = 10 };
#define LATE 1e9

/* From a common moment until the last rank is done: the mean of the calls without a late rank. */
static double from_a_moment(const char *name, int n, int times)
{
    double t[TIMES_MOST], most[TIMES_MOST], sum = 0;
    int good = 0;

    for (int i = 0; i < times; i++) {
        double when = 0;

        if (touching)
            touch(name, (size_t)n);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            when = clock_us() + MARGIN_US;
        MPI_Bcast(&when, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        bool late = clock_us() > when;
        while (clock_us() < when)
            ;
        run(name, n);
        t[i] = late ? LATE : clock_us() - when;
    }
    MPI_Allreduce(t, most, times, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < times; i++)
        if (most[i] < LATE) {
            sum += most[i];
            good++;
        }
    return good ? sum / good : LATE;
}

static double measure(const char *name, int n, bool *right)
{
    double least = 1e9;
    long work = (long)n * size;
    int times = work > 1 << 22 ? 3 : work > 1 << 18 ? 10 : longer ? TIMES_MOST : 25;
    int turns = longer ? 5 * rounds : rounds;
    for (int r = 0; r < size; r++) {
        counts[r] = n;
        counts[size + r] = r * n;
    }
    if (strstr(name, ":p"))
        call(name, strcspn(name, ":"), 'p', n);
    *right = is_right(name, n); /* and there are connections */
    for (int k = 0; k < turns; k++) {
        double most = together ? from_a_moment(name, n, times) : after_barriers(name, n, times);
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
        together |= argv[1][1] == 's';
        with_barrier |= argv[1][1] == 'b';
        touching |= argv[1][1] == 't';
    }
    for (int i = 2; i < argc; i++)
        most = (size_t)atol(argv[i]) > most ? (size_t)atol(argv[i]) : most;
    in = calloc(most * (size_t)size + 1, 1);
    out = calloc(most * (size_t)size + 1, 1);
    counts = calloc(2 * (size_t)size, sizeof(int));
    /* unwritten pages are all one page of zeros: no copy is slow */
    memset(in, 1, most * (size_t)size);
    memset(out, 2, most * (size_t)size);
    for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ","))
        for (int i = 2; i < argc; i++) {
            bool right;
            double us = measure(name, atoi(argv[i]), &right);
            if (rank == 0)
                printf("%s %s %.2f%s\n", name, argv[i], us, right ? "" : " wrong");
        }
    MPI_Finalize();
    return 0;
}
