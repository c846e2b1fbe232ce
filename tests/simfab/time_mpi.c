/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks pass messages of several sizes to and fro; rank 0 prints what a passage takes by the clock, in full. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double passage_us(int rank, char *buf, int bytes)
{
    enum { TIMES = 20 };
    double start = MPI_Wtime();

    for (int i = 0; i < TIMES; i++) {
        if (rank == 0)
            MPI_Send(buf, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buf, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(buf, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) * 1e6 / TIMES / 2;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 1, 1000, 8192, 100000, 1048576};
    char *buf = calloc(1, 1048576);
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double us = passage_us(rank, buf, sizes[i]);

        if (rank == 0)
            printf("%d bytes %.9f us (simulated)\n", sizes[i], us);
    }
    MPI_Finalize();
    free(buf);
    return 0;
}
