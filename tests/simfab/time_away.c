/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 leaves for the world outside (running the given commands, one after the other) while all others wait for its
 * message, reading the clock. Before and after each command, rank 0 exchanges a message with every other rank. Prints,
 * in us, the time of an exchange with all before, the time away by the clock, and the times of the next two exchanges.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM = 20 };

static int rank, size;

static double exchange(void)
{
    double t = MPI_Wtime();
    char byte = 0;

    for (int peer = 1; peer < size; peer++) {
        if (rank == 0) {
            MPI_Send(&byte, 1, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
            MPI_Recv(&byte, 1, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == peer) {
            MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    return 1e6 * (MPI_Wtime() - t);
}

int main(int argc, char **argv)
{
    double before = 0, left, away, first, second;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        for (int w = 0; w < WARM; w++)
            before = exchange();
        left = MPI_Wtime();
        if (rank == 0 && system(argv[i]))
            MPI_Abort(MPI_COMM_WORLD, 1);
        away = 1e6 * (MPI_Wtime() - left);
        first = exchange();
        second = exchange();
        if (rank == 0)
            printf("before %.2f away %.0f then %.2f and %.2f\n", before, away, first, second);
    }
    MPI_Finalize();
    return 0;
}
