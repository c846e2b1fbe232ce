/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of error classes, and of errors after the death of a process (mrrun --recover, 2 ranks): rank 0 prints all of
 * them, for texts.sh, which looks for the names in the header.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void print_text(int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;

    MPI_Error_string(code, text, &len);
    printf("%s\n", text);
}

int main(int argc, char **argv)
{
    int rank, code, x = 0, flag;
    MPI_Request q;
    MPI_Status st;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank) {
        MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        _exit(3);
    }
    MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    code = MPI_Recv(&x, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("lost: ");
    print_text(code);
    MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &q);
    code = MPI_Wait(&q, &st);
    printf("wait: ");
    print_text(code);
    MPI_Cancel(&q);
    MPI_Wait(&q, &st);
    MPI_Test_cancelled(&st, &flag);
    printf("cancelled: %d\n", flag);
    code = MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &st);
    printf("probe: ");
    print_text(code);
#ifdef MPIX_ERR_REVOKED
    MPIX_Comm_revoke(MPI_COMM_WORLD);
    code = MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    printf("revoked: ");
    print_text(code);
#endif
    for (code = 0; code <= MPI_ERR_LASTCODE; code++) {
        int class = -1;

        if (MPI_Error_class(code, &class) == MPI_SUCCESS && class == code)
            print_text(code);
    }
    fflush(stdout);
    _exit(0);
}
