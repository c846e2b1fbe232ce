/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Alltoall of eight bytes among all ranks, twice: the first makes the connections. Every byte is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double once(long *out, long *in, int rank, int size)
{
    double start;
    int bad = 0;

    for (int i = 0; i < size; i++)
        out[i] = rank * 10000L + i;
    start = MPI_Wtime();
    MPI_Alltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, MPI_COMM_WORLD);
    start = MPI_Wtime() - start;
    for (int i = 0; i < size; i++)
        bad += in[i] != i * 10000L + rank;
    if (bad) {
        fprintf(stderr, "rank %d: %d wrong\n", rank, bad);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return start * 1e6;
}

int main(int argc, char **argv)
{
    int rank, size;
    double first, second;
    long *in, *out;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    in = calloc((size_t)size, sizeof *in);
    out = calloc((size_t)size, sizeof *out);
    first = once(out, in, rank, size);
    second = once(out, in, rank, size);
    if (rank == 0)
        printf("%d ranks: %.3f us, then %.3f us (simulated)\n", size, first, second);
    MPI_Finalize();
    free(in);
    free(out);
    return 0;
}
