/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to oneself: sent first, received first, by MPI_Sendrecv, over MPI_COMM_SELF, small and large. */
#include "p2p.h"

/* Nothing, of no type. */
static void untyped(void)
{
    MPI_Request q;
    MPI_Status st;
    int n;

    MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, rank, 6, MPI_COMM_WORLD, &q);
    MPI_Send(NULL, 0, MPI_DATATYPE_NULL, rank, 6, MPI_COMM_WORLD);
    MPI_Wait(&q, &st);
    MPI_Get_count(&st, MPI_INT, &n);
    CHECK(n == 0 && st.MPI_TAG == 6);
}

int main(int argc, char **argv)
{
    enum { MAX = 8 << 20 };
    char *out, *in;

    begin(&argc, &argv);
    out = room(MAX);
    in = room(MAX);
    for (int n = 0; n <= MAX; n = n ? n * 4 : 1) {
        MPI_Request reqs[2];
        MPI_Status st;
        int got;

        fill(out, n, n);
        memset(in, 0, n);
        MPI_Isend(out, n, MPI_CHAR, rank, 1, MPI_COMM_WORLD, &reqs[0]);
        MPI_Irecv(in, MAX, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[1]);
        MPI_Wait(&reqs[1], &st);
        MPI_Wait(&reqs[0], MPI_STATUS_IGNORE);
        MPI_Get_count(&st, MPI_CHAR, &got);
        CHECK(got == n && st.MPI_SOURCE == rank && holds(in, n, n));
        memset(in, 0, n);
        MPI_Irecv(in, n, MPI_CHAR, 0, 2, MPI_COMM_SELF, &reqs[1]);
        MPI_Ssend(out, n, MPI_CHAR, 0, 2, MPI_COMM_SELF);
        MPI_Wait(&reqs[1], &st);
        CHECK(holds(in, n, n));
        memset(in, 0, n);
        MPI_Sendrecv(out, n, MPI_CHAR, rank, 3, in, MAX, MPI_CHAR, rank, 3, MPI_COMM_WORLD, &st);
        CHECK(holds(in, n, n));
    }
    free(out);
    free(in);
    untyped();
    MPI_Finalize();
    return 0;
}
