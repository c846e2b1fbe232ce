/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to oneself: sent first, received first, by MPI_Sendrecv, over MPI_COMM_SELF, small and large; from any
 * source, while all others have called MPI_Finalize.
 */
#include "p2p.h"

#include <unistd.h>

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

/* The others have said that they send no more. */
static void as_the_last(void)
{
    MPI_Request reqs[2];
    MPI_Status st;
    int out = 5, in = 0, flag;

    usleep(60000);
    for (int i = 0; i < 200; i++) /* takes what they say */
        MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, &st);
    MPI_Isend(&out, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &reqs[0]);
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[1]);
    MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
    CHECK(in == 5);
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
    if (!rank)
        as_the_last();
    MPI_Finalize();
    return 0;
}
