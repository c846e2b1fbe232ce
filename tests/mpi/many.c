/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many [ROUNDS [PARTNERS]]: every rank exchanges short messages with every other one, or with so many of them, near and
 * far; then there are collectives and a ring. For jobs of many ranks, of which each may have few connections. Rank 0
 * prints the most memory that a rank's heap has.
 */
#include <malloc.h>

#include "mt.h"

enum { BATCH = 64, LAPS = 5, TAG = 7 };

static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static int val(int from, int to, int round)
{
    return from * 100003 + to * 17 + round;
}

static int partners;

/* The distance of the i-th partner: from 1 to size - 1, all different. */
static int distance(int i)
{
    return 1 + (int)((long long)i * (size - 1) / partners);
}

static void exchange_batch(int first, int n, int round)
{
    static int in[BATCH][4], out[BATCH][4];
    MPI_Request r[2 * BATCH];

    for (int i = 0; i < n; i++) {
        int d = distance(first + i), from = (rank - d + size) % size, to = (rank + d) % size;

        out[i][0] = out[i][3] = val(rank, to, round);
        MPI_Irecv(in[i], 4, MPI_INT, from, TAG, MPI_COMM_WORLD, &r[i]);
        MPI_Isend(out[i], 4, MPI_INT, to, TAG, MPI_COMM_WORLD, &r[n + i]);
    }
    MPI_Waitall(2 * n, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) {
        EQ(in[i][0], val((rank - distance(first + i) + size) % size, rank, round));
        EQ(in[i][3], in[i][0]);
    }
}

static void exchange(int round)
{
    for (int first = 0; first < partners; first += BATCH)
        exchange_batch(first, partners - first < BATCH ? partners - first : BATCH, round);
}

static void alltoall(void)
{
    int *in = malloc((size_t)size * sizeof *in), *out = malloc((size_t)size * sizeof *out);

    CHECK(in && out);
    for (int i = 0; i < size; i++)
        out[i] = val(rank, i, 0);
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        EQ(in[i], val(i, rank, 0));
    free(in);
    free(out);
}

static void ring(int lap)
{
    int got = -1, mine = val(rank, lap, 0);

    MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, TAG, &got, 1, MPI_INT, (rank - 1 + size) % size, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EQ(got, val((rank - 1 + size) % size, lap, 0));
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    long long mine, most, sum;

    mt_begin(&argc, &argv);
    partners = argc > 2 && atoi(argv[2]) < size - 1 ? atoi(argv[2]) : size - 1;
    for (int round = 0; round < rounds; round++) {
        exchange(round);
        alltoall();
    }
    for (int lap = 0; lap < LAPS; lap++) {
        sum = rank;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        EQ(sum, (long long)size * (size - 1) / 2);
        ring(lap);
    }
    mine = (long long)heap();
    MPI_Reduce(&mine, &most, 1, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!rank)
        printf("%d ranks: %lld KiB at most\n", size, most / 1024);
    return mt_end();
}
