/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last rank sends to all others in turn, and gets an error when one of them cannot connect. Prints the error, with
 * its time, and ends the job with code 7.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, n, err;
    char text[MPI_MAX_ERROR_STRING];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank < size - 1) {
        err = MPI_Recv(&n, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!err)
            err = MPI_Recv(&n, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* never comes */
        printf("rank %d is told too: %d\n", rank, err);
        fflush(stdout);
        MPI_Recv(&n, 1, MPI_INT, (rank + 1) % (size - 1), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int r = 0; r < size - 1; r++) {
        double begin = MPI_Wtime();

        err = MPI_Ssend(&rank, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
        if (!err)
            continue;
        MPI_Error_string(err, text, &n);
        printf("rank %d after %.0f ms: %s\n", r, (MPI_Wtime() - begin) * 1e3, text);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    return 1;
}
