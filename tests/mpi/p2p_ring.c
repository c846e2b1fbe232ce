/* SPDX-License-Identifier: BSD-3-Clause */
/* Many ranks: a token round the ring, and everybody with everybody at once. */
#include "p2p.h"

int main(int argc, char **argv)
{
    enum { LAPS = 20, N = 3000 };
    int right, left, token = 0;
    char *out, *in;
    MPI_Request *reqs;

    begin(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank - 1 + size) % size;
    for (int i = 0; i < LAPS && size > 1; i++) {
        if (rank == 0) {
            token++;
            MPI_Send(&token, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(token == (i + 1) * size);
        } else {
            MPI_Recv(&token, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            token++;
            MPI_Send(&token, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
        }
    }
    out = room((size_t)N * size);
    in = room((size_t)N * size);
    reqs = room(2 * size * sizeof(MPI_Request));
    for (int n = 8; n <= N; n *= 19) {
        for (int r = 0; r < size; r++) {
            fill(out + (size_t)r * N, n, rank + r);
            MPI_Irecv(in + (size_t)r * N, n, MPI_CHAR, r, 2, MPI_COMM_WORLD, &reqs[r]);
        }
        for (int r = 0; r < size; r++)
            MPI_Isend(out + (size_t)r * N, n, MPI_CHAR, r, 2, MPI_COMM_WORLD, &reqs[size + r]);
        MPI_Waitall(2 * size, reqs, MPI_STATUSES_IGNORE);
        for (int r = 0; r < size; r++)
            CHECK(holds(in + (size_t)r * N, n, r + rank));
    }
    free(out);
    free(in);
    free(reqs);
    MPI_Finalize();
    return 0;
}
