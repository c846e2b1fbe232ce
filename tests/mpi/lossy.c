/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lossy BYTES DEPTH MS: rank 0 keeps DEPTH messages of BYTES under way to rank 1 for MS milliseconds of the fabric,
 * while lossy.py has a rail lose packets. Received data is compared. Rank 0 prints the bandwidth in MB/s (10^6) and its
 * longest operation in milliseconds.
 */
#include "mt.h"

enum { DEPTH_MAX = 64, TAG = 1, ANSWER, WARM = 4 };

static int bytes, depth, turns;
static unsigned char *buffer;
static double longest, longest_at;

static unsigned char byte_of(int turn, int message)
{
    return (unsigned char)(turn * 5 + message * 3 + 1);
}

/* The first and the last byte are those of this turn: the library moves whole messages. */
static void mark(int turn)
{
    for (int m = 0; m < depth; m++) {
        unsigned char *at = buffer + (size_t)m * (size_t)bytes;

        at[0] = at[bytes - 1] = byte_of(turn, m);
    }
}

static void compare(int turn)
{
    for (int m = 0; m < depth; m++) {
        const unsigned char *at = buffer + (size_t)m * (size_t)bytes;

        EQ(at[0], byte_of(turn, m));
        EQ(at[bytes - 1], byte_of(turn, m));
    }
}

static void note(double begin)
{
    double took = MPI_Wtime() - begin;

    if (took > longest) {
        longest = took;
        longest_at = begin;
    }
}

/* A window, answered. Rank 0 says in the answer's place whether another one follows. */
static int turn(int more)
{
    MPI_Request request[DEPTH_MAX];
    double begin;

    if (!rank)
        mark(turns);
    for (int m = 0; m < depth; m++) {
        void *at = buffer + (size_t)m * (size_t)bytes;

        if (rank)
            MPI_Irecv(at, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[m]);
        else
            MPI_Isend(at, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[m]);
    }
    begin = MPI_Wtime();
    MPI_Waitall(depth, request, MPI_STATUSES_IGNORE);
    note(begin);
    if (rank)
        compare(turns);
    begin = MPI_Wtime();
    if (rank)
        MPI_Send(NULL, 0, MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    note(begin);
    turns++;
    if (turns % 16)
        return 1;
    begin = MPI_Wtime();
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    note(begin);
    return more;
}

int main(int argc, char **argv)
{
    double begin, until, took;
    int counted;

    mt_begin(&argc, &argv);
    CHECK(argc == 4 && size == 2);
    bytes = atoi(argv[1]);
    depth = atoi(argv[2]);
    CHECK(bytes > 0 && depth > 0 && depth <= DEPTH_MAX);
    buffer = calloc((size_t)bytes, (size_t)depth);
    for (int i = 0; i < WARM; i++)
        turn(1);
    MPI_Barrier(MPI_COMM_WORLD);
    longest = 0;
    counted = turns;
    begin = MPI_Wtime();
    until = begin + atof(argv[3]) / 1e3;
    while (turn(MPI_Wtime() < until))
        ;
    took = MPI_Wtime() - begin;
    printf("rank %d: %.1f MB/s, longest %.3f ms at %.1f\n", rank,
           (double)(turns - counted) * depth * bytes / took / 1e6, longest * 1e3, (longest_at - begin) * 1e3);
    free(buffer);
    return mt_end();
}
