/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last rank loses its own port (taken down by a command, given as argument) while waiting for a message, with
 * nothing to send: the receive returns an error, also with MPI_ANY_SOURCE.
 */
#include <unistd.h>

#include "mt.h"

int main(int argc, char **argv)
{
    int x = 0, class;
    mt_begin(&argc, &argv);
    CHECK(argc > 1 && size == 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EQ(MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 1, &x, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
       MPI_SUCCESS);
    EQ(x, 1 - rank);
    EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    if (rank == 1) {
        usleep(10000); /* nothing is under way any more */
        CHECK(system(argv[1]) == 0);
        MPI_Error_class(MPI_Recv(&x, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
        EQ(class, MPIX_ERR_PROC_FAILED);
        MPI_Error_class(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
        CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING);
        printf("rank 1 was told\n");
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    for (;;)
        sleep(1);
}
