/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that compute before their first communication: late MILLISECONDS. All others send to rank 0, which sleeps this
 * long before its first poll; then all send to all. Rank 0 prints the time of each phase.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, sum = 0, one = 1;
    double came = 0, begin;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int ms = 0; !rank && ms < atoi(argv[1]); ms++)
        usleep(1000); /* in steps: on a simulated fabric the others look at their clocks in between */
    begin = MPI_Wtime();
    for (int r = 1; r < size; r++) {
        if (!rank) {
            int got;

            MPI_Recv(&got, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sum += got;
        } else if (r == rank) {
            MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
    }
    came = MPI_Wtime() - begin;
    if (!rank)
        printf("%d of %d in %.1f ms\n", sum, size - 1, came * 1e3);
    begin = MPI_Wtime();
    for (int shift = 1; shift < size; shift++) {
        int got, to = (rank + shift) % size, from = (rank + size - shift) % size;

        MPI_Sendrecv(&rank, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (got != from)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank)
        printf("all to all in %.1f ms\n", (MPI_Wtime() - begin) * 1e3);
    MPI_Finalize();
    return !rank && sum != size - 1;
}
