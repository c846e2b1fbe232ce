/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lead of ranks in short collectives with fewer cores than ranks, where each wait hands a core over: a root that
 * gives, or all that give to a root, have AHEAD operations behind them when the others begin the first, which they do
 * only when told. Without such a lead the program hangs.
 */
#include <stdbool.h>

#include "mt.h"

enum { AHEAD = 64, MOST = 2048 };

static unsigned char *all;

static unsigned char byte_of(int from, int to, int k, int i)
{
    return (unsigned char)(from * 17 + to * 5 + k + i);
}

static void fill(unsigned char *at, int n, int from, int to, int k)
{
    for (int i = 0; i < n; i++)
        at[i] = byte_of(from, to, k, i);
}

static void check(const unsigned char *at, int n, int from, int to, int k)
{
    for (int i = 0; i < n; i++)
        EQ(at[i], byte_of(from, to, k, i));
}

static void bcast(int n, int k)
{
    if (rank == 0)
        fill(all, n, 0, 0, k);
    MPI_Bcast(all, n, MPI_BYTE, 0, MPI_COMM_WORLD);
    check(all, n, 0, 0, k);
}

static void scatter(int n, int k)
{
    unsigned char one[MOST];
    for (int i = 0; i < size; i++)
        fill(all + i * n, n, 0, i, k);
    MPI_Scatter(all, n, MPI_BYTE, one, n, MPI_BYTE, 0, MPI_COMM_WORLD);
    check(one, n, 0, rank, k);
}

static void gather(int n, int k)
{
    unsigned char one[MOST];
    fill(one, n, rank, 0, k);
    MPI_Gather(one, n, MPI_BYTE, all, n, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < size && rank == 0; i++)
        check(all + i * n, n, i, 0, k);
}

static void reduce(int n, int k)
{
    int d = n / (int)sizeof(int), in[MOST / sizeof(int)] = {0}, *out = (int *)all;
    for (int i = 0; i < d; i++)
        in[i] = rank * 3 + k + i;
    MPI_Reduce(in, out, d, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; i < d && rank == 0; i++)
        EQ(out[i], size * (size - 1) / 2 * 3 + size * (k + i));
}

/* Longest: several of these fit in memory at a time. */
static void run(void (*operation)(int n, int k), bool root_is_ahead, int longest)
{
    for (int n = 8; n <= longest; n = n < longest && n * 6 > longest ? longest : n * 6) {
        int from = root_is_ahead ? 0 : 1, until = root_is_ahead ? 1 : size;
        bool ahead = rank >= from && rank < until;
        for (int i = 0; i < 6; i++)
            MPI_Barrier(MPI_COMM_WORLD);
        for (int i = from; i < until && !ahead; i++)
            MPI_Recv(NULL, 0, MPI_BYTE, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < AHEAD; k++)
            operation(n, k);
        for (int i = 0; i < size && ahead; i++)
            if (i < from || i >= until)
                MPI_Send(NULL, 0, MPI_BYTE, i, 1, MPI_COMM_WORLD);
        if (n == longest)
            break;
    }
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    all = calloc((size_t)size, MOST);
    CHECK(all);
    run(bcast, true, MOST);
    run(scatter, true, MOST / (size > 1 ? size - 1 : 1) / 8 * 8);
    run(gather, false, MOST);
    run(reduce, false, MOST);
    free(all);
    return mt_end();
}
