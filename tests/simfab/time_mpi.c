/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first and the last rank pass messages of several sizes to and fro, then all meet; rank 0 prints each time by the
 * clock, in full.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 20 };

static double passage_us(int rank, int last, char *buf, int bytes)
{
    double start = MPI_Wtime();

    for (int i = 0; i < TIMES; i++) {
        if (rank == 0)
            MPI_Send(buf, bytes, MPI_CHAR, last, 0, MPI_COMM_WORLD);
        if (rank == 0 || rank == last)
            MPI_Recv(buf, bytes, MPI_CHAR, last - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == last)
            MPI_Send(buf, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) * 1e6 / TIMES / 2;
}

static double barrier_us(void)
{
    double start = MPI_Wtime();

    for (int i = 0; i < TIMES; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - start) * 1e6 / TIMES;
}

static double allreduce_us(void)
{
    double start = MPI_Wtime(), mine = 1, sum;

    for (int i = 0; i < TIMES; i++)
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - start) * 1e6 / TIMES;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 1, 1000, 8192, 100000, 1048576};
    char *buf = calloc(1, 1048576);
    double barrier, allreduce;
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double us = passage_us(rank, ranks - 1, buf, sizes[i]);

        if (rank == 0)
            printf("%d bytes %.9f us (simulated)\n", sizes[i], us);
    }
    barrier = barrier_us();
    allreduce = allreduce_us();
    if (rank == 0)
        printf("barrier %.9f us (simulated)\nallreduce %.9f us (simulated)\n", barrier, allreduce);
    MPI_Finalize();
    free(buf);
    return 0;
}
