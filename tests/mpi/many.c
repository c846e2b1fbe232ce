/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many [ROUNDS [PARTNERS]]: every rank exchanges short messages with all others, or with PARTNERS of them, near and
 * far, followed by collectives and a ring. For jobs of many ranks with few connections each. Rank 0 prints the largest
 * heap of a rank, and its growth since each rank has sent a short and a long packet: the total growth divided by the
 * ranks of other hosts met since.
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

static int others(void)
{
    MPI_Comm node;
    int here;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    return size - here;
}

/*
 * Afterwards the library's pools have their first pieces, which serve all peers: also those for many messages at once,
 * as in a collective.
 */
static void warm_up(void)
{
    enum { AT_ONCE = 128 };
    static int in[256], out[256];
    int to = (rank + size / 2) % size, from = (rank - size / 2 + size) % size;
    MPI_Request req[AT_ONCE];

    for (int n = 1; n <= 256; n += 255)
        MPI_Sendrecv(out, n, MPI_INT, to, TAG, in, n, MPI_INT, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < AT_ONCE; i++)
        MPI_Isend(&out[i], 1, MPI_INT, to, TAG, MPI_COMM_WORLD, &req[i]);
    for (int i = 0; i < AT_ONCE; i++)
        MPI_Recv(&in[i], 1, MPI_INT, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(AT_ONCE, req, MPI_STATUSES_IGNORE);
}

/* The heap before, after the first one or two peers. */
static void print_heap(long long before)
{
    long long mine[2] = {(long long)heap(), (long long)heap() - before}, most[2];
    int far = others(),
        peers = far < 2 * partners ? far : 2 * partners; /* each sends to one and receives from another */

    peers = peers > 2 ? peers - 2 : 1;
    mine[1] /= peers;
    MPI_Reduce(mine, most, 2, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!rank)
        printf("%d ranks: %lld KiB at most, %lld bytes more for each of %d peers\n", size, most[0] / 1024, most[1],
               peers);
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
    long long sum, before;

    mt_begin(&argc, &argv);
    warm_up();
    before = (long long)heap();
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
    print_heap(before);
    return mt_end();
}
