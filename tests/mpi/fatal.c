/* SPDX-License-Identifier: BSD-3-Clause */
/* Run by fatal.sh: ends the job in the way that its argument names. Rank 1 errs, the others wait. */
#include "mt.h"

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int x = 0;
    if (!strcmp(way, "early"))
        MPI_Comm_rank(MPI_COMM_WORLD, &x);
    mt_begin(&argc, &argv);
    if (!strcmp(way, "late")) {
        MPI_Finalize();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1 && !strcmp(way, "rank"))
        MPI_Send(&x, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
    if (rank == 1 && !strcmp(way, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 9);
    if (!strcmp(way, "truncate")) {
        int y[2] = {0};
        if (rank == 0)
            MPI_Send(y, 2, MPI_INT, 1, 0, MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return mt_end();
}
