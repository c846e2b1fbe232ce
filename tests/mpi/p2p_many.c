/* SPDX-License-Identifier: BSD-3-Clause */
/* A hundred thousand outstanding requests: half posted in reverse order of tags, half unexpected. */
#include "p2p.h"

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 100000, left, right;
    int *out, *in;
    MPI_Request *reqs;

    begin(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    out = room(n * sizeof(int));
    in = room(n * sizeof(int));
    reqs = room(2 * n * sizeof(MPI_Request));
    for (int i = n - 1; i >= n / 2; i--)
        MPI_Irecv(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &reqs[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        out[i] = i ^ right;
        MPI_Isend(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &reqs[n + i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < n / 2; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &reqs[i]);
    MPI_Waitall(2 * n, reqs, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        CHECK(in[i] == (i ^ rank));
    free(out);
    free(in);
    free(reqs);
    MPI_Finalize();
    return 0;
}
