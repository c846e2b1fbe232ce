/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of one of several programs: "part NAME". All ranks meet, and each prints NAME, its rank and MPI_APPNUM, given
 * by the launcher.
 */
#include <stdio.h>

#include "libmrmpi/include/mpi.h"

int main(int argc, char **argv)
{
    int rank, size, sum, flag, *appnum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (2 * sum != size * (size - 1))
        MPI_Abort(MPI_COMM_WORLD, 1);
    printf("%s: rank %d/%d appnum %d\n", argc > 1 ? argv[1] : "", rank, size, flag ? *appnum : -1);
    return MPI_Finalize();
}
