/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cold KIND:BYTES...: each load in turn, by two ranks: KIND BYTES FIRST LATER, microseconds an operation, of the first
 * operations and of those after them. Two operations before open connections and register memory.
 *
 *   trip  a round trip               one     eight messages, and an answer
 *   both  four messages each way     allgather, alltoall, allreduce
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 60, LATER = 120, WINDOW = 8, MOST = 1 << 20 };
static int rank, peer;
static char *in, *out;

static void trip(int bytes)
{
    if (!rank)
        MPI_Send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank)
        MPI_Send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

static void window(int bytes, int num, int receives, int sends)
{
    MPI_Request q[2 * WINDOW];
    int n = 0;

    for (int i = 0; i < num; i++) {
        if (receives)
            MPI_Irecv(in + (size_t)i * bytes, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &q[n++]);
        if (sends)
            MPI_Isend(out + (size_t)i * bytes, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &q[n++]);
    }
    MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
}

static void one(int bytes)
{
    char x = 0;

    window(bytes, WINDOW, rank, !rank);
    if (rank)
        MPI_Send(&x, 1, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
    else
        MPI_Recv(&x, 1, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void both(int bytes)
{
    window(bytes, WINDOW / 2, 1, 1);
}

static void allgather(int bytes)
{
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static double timed(void (*op)(int), int bytes, int times)
{
    double begin = MPI_Wtime();

    for (int i = 0; i < times; i++)
        op(bytes);
    return (MPI_Wtime() - begin) / times * 1e6;
}

static int measure(const char *load)
{
    static const struct {
        const char *name;
        void (*op)(int bytes);
    } kinds[] = {{"trip", trip},           {"one", one},           {"both", both},
                 {"allgather", allgather}, {"alltoall", alltoall}, {"allreduce", allreduce}};
    char kind[16];
    int bytes;

    if (sscanf(load, "%15[a-z]:%d", kind, &bytes) != 2 || bytes < 8 || bytes > MOST)
        return 1;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        double first, later;

        if (strcmp(kinds[i].name, kind))
            continue;
        timed(kinds[i].op, bytes, 2);
        MPI_Barrier(MPI_COMM_WORLD);
        first = timed(kinds[i].op, bytes, FIRST);
        later = timed(kinds[i].op, bytes, LATER);
        if (!rank)
            printf("%s:%d %.4f %.4f\n", kind, bytes, first, later);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    int bad = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = !rank;
    in = malloc((size_t)WINDOW * MOST);
    out = malloc((size_t)WINDOW * MOST);
    memset(in, 0, (size_t)WINDOW * MOST);
    memset(out, 0, (size_t)WINDOW * MOST);
    for (int i = 1; i < argc; i++)
        bad |= measure(argv[i]);
    free(in);
    free(out);
    MPI_Finalize();
    return bad;
}
