/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages of blocking collectives, whose receives are announced to their senders (p2p/rndv/ready.c): with either
 * side early, on several communicators, with other collectives under way, with receives of a user's wildcards posted
 * beside them, with data not in one piece, with amounts that differ, and after errors. coll_ready LENGTH: only those,
 * again and again, until their memory is worth registering.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 200000, ROUNDS = 3 };

static int rank, size, bad;
static unsigned char *in, *out;
static int *counts, *at, *less;

static unsigned char byte_of(int from, int to, int number, int i)
{
    return (unsigned char)(from * 31 + to * 17 + number * 13 + i * 5 + (i >> 8) * 3 + 1);
}

static void wrong(const char *what, int number, int from, int i)
{
    printf("rank %d: %s, number %d: byte %d from rank %d is wrong\n", rank, what, number, i, from);
    bad = 1;
}

static void fill(int n, int number)
{
    for (int to = 0; to < size; to++)
        for (int i = 0; i < n; i++)
            out[(size_t)to * n + i] = byte_of(rank, to, number, i);
    memset(in, 0xa5, (size_t)n * size);
}

/* Without an early end, so the compiler compares many bytes at a time. */
static bool is_block(const unsigned char *p, int n, int from, int number)
{
    unsigned char differ = 0;
    for (int i = 0; i < n; i++)
        differ |= p[i] ^ byte_of(from, rank, number, i);
    return !differ;
}

/* room: from one block to the next, of which n bytes are the message and the rest is untouched. */
static void check(const char *what, int n, int room, int number)
{
    for (int from = 0; from < size; from++)
        for (int i = is_block(in + (size_t)from * room, n, from, number) ? n : 0; i < room; i++)
            if (in[(size_t)from * room + i] != (i < n ? byte_of(from, rank, number, i) : 0xa5)) {
                wrong(what, number, from, i);
                return;
            }
}

static void compute(double us)
{
    double end = MPI_Wtime() + us / 1e6;
    while (MPI_Wtime() < end)
        ;
}

/* late: so late is a rank, by its number: some have announced long before others begin, and others are asked first. */
static void alltoalls(MPI_Comm c, int n, double late)
{
    for (int k = 0; k < ROUNDS; k++) {
        fill(n, k);
        compute(late * ((rank + k) % size));
        MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, c);
        check("alltoall", n, n, k);
    }
}

/* Blocks with gaps here, in one piece at the peers', by turns. */
static void with_holes(int n)
{
    MPI_Datatype runs, holes;
    unsigned char *wide = malloc((size_t)n * 2 * size);
    MPI_Type_vector(n / 8, 8, 16, MPI_BYTE, &runs);
    MPI_Type_create_resized(runs, 0, 2 * n, &holes);
    MPI_Type_free(&runs);
    MPI_Type_commit(&holes);
    for (int k = 0; k < 2 * ROUNDS; k++) {
        bool gives = (rank + k) % 2;
        n -= n % 8;
        fill(n, k);
        for (size_t i = 0; i < (size_t)n * size; i++)
            wide[i / 8 * 16 + i % 8] = gives ? out[i] : 0;
        if (gives)
            MPI_Alltoall(wide, 1, holes, in, n, MPI_BYTE, MPI_COMM_WORLD);
        else
            MPI_Alltoall(out, n, MPI_BYTE, wide, 1, holes, MPI_COMM_WORLD);
        for (size_t i = 0; !gives && i < (size_t)n * size; i++)
            in[i] = wide[i / 8 * 16 + i % 8];
        check("alltoall with holes", n, n, k);
    }
    MPI_Type_free(&holes);
    free(wide);
}

/* Receives have more room than the message, some of which are small enough for eager. */
static void with_room(int n)
{
    for (int k = 0; k < ROUNDS; k++) {
        int gives = k == 1 ? 100 : n / 2;
        fill(gives, k);
        memset(in, 0xa5, (size_t)n * size);
        for (int r = 0; r < size; r++) {
            counts[r] = n;
            at[r] = r * n;
            less[r] = gives;
            less[size + r] = r * gives;
        }
        counts[rank] = gives;
        MPI_Alltoallv(out, less, less + size, MPI_BYTE, in, counts, at, MPI_BYTE, MPI_COMM_WORLD);
        check("alltoallv into more room", gives, n, k);
    }
}

/* Several messages between the same two in an operation, and of several operations at a time. */
static void at_a_time(MPI_Comm other, int n)
{
    unsigned char *more = malloc((size_t)n * 2), *got = more + n;
    int any[1];
    MPI_Request request[2];
    for (int k = 0; k < ROUNDS; k++) {
        memset(more, rank ? 0 : 7 + k, (size_t)n);
        memset(got, 0, (size_t)n);
        MPI_Irecv(any, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request[0]);
        MPI_Ibcast(more, n, MPI_BYTE, 0, other, &request[1]);
        fill(n, k);
        MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
        check("alltoall beside others", n, n, k);
        memcpy(got, out + (size_t)(size - 1) * n, (size_t)n);
        MPI_Bcast(got, n, MPI_BYTE, size - 1, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            if (got[i] != byte_of(size - 1, size - 1, k, i)) {
                wrong("bcast beside others", k, size - 1, i);
                break;
            }
        MPI_Send(&k, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++)
            if (more[i] != 7 + k) {
                wrong("ibcast", k, 0, i);
                break;
            }
    }
    free(more);
}

static void sums(MPI_Comm c, int n)
{
    int d = n / (int)sizeof(int), *mine = (int *)(void *)out, *sum = (int *)(void *)in;
    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < d; i++)
            mine[i] = rank * 1000 + i + k;
        MPI_Allreduce(mine, sum, d, MPI_INT, MPI_SUM, c);
        for (int i = 0; i < d; i++)
            if (sum[i] != size * (size - 1) / 2 * 1000 + size * (i + k)) {
                wrong("allreduce", k, -1, i);
                break;
            }
        MPI_Scan(mine, sum, d, MPI_INT, MPI_SUM, c);
        for (int i = 0; i < d; i++)
            if (sum[i] != rank * (rank + 1) / 2 * 1000 + (rank + 1) * (i + k)) {
                wrong("scan", k, -1, i);
                break;
            }
    }
}

/* One rank gives less than the others expect. Later operations succeed. */
static void errors(MPI_Comm c, int n)
{
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    for (int k = 0; k < ROUNDS; k++) {
        int gives = k == 1 ? 64 : n / 2;
        fill(n, k);
        MPI_Bcast(out, rank ? n : n - 8, MPI_BYTE, 0, c); /* passed on as an error */
        MPI_Allgather(out, rank == size - 1 ? gives : n, MPI_BYTE, in, n, MPI_BYTE, c);
        alltoalls(c, n, 1);
    }
}

int main(int argc, char **argv)
{
    static const int lengths[] = {10000, 30000, 65536, MOST};
    MPI_Comm other, node;
    int here;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    in = malloc((size_t)MOST * size);
    out = malloc((size_t)MOST * size);
    counts = malloc(sizeof(int) * 2 * size);
    less = malloc(sizeof(int) * 2 * size);
    at = counts + size;
    for (int i = 0; i < (argc > 1 ? 12 : 4); i++) {
        int n = argc > 1 ? atoi(argv[1]) : lengths[i];
        alltoalls(MPI_COMM_WORLD, n, 0);
        alltoalls(other, n, 5);
        with_holes(n);
        with_room(n);
        at_a_time(other, n);
        sums(other, n);
        if (here < size) /* on one node this ends a communicator's operations (node/) */
            errors(other, n);
    }
    MPI_Comm_free(&other);
    MPI_Finalize();
    free(in);
    free(out);
    free(counts);
    free(less);
    return bad;
}
