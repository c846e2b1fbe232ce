/* SPDX-License-Identifier: BSD-3-Clause */
/* turns N: the last rank has N round trips with each of the others, one after the other: for rings.sh. */
#include "p2p.h"

static int last;

static void talk(int partner, int n)
{
    for (int i = 0, got; i < n; i++) {
        int to = rank == last ? partner : last;

        if (rank == last)
            MPI_Send(&i, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got == i);
        if (rank != last)
            MPI_Send(&i, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    last = size - 1;
    for (int partner = 0; partner < last; partner++)
        if (rank == last || rank == partner)
            talk(partner, atoi(argv[1]));
    MPI_Finalize();
    return 0;
}
