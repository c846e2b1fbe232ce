/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_lost COMMAND DIRECTORY: the second half of the ranks loses its network (by the command) while collectives go on:
 * the first half gets an error in each of them, and can continue alone; so can the second, whose own ports are down.
 */
#include <unistd.h>

#include "mt.h"

static int lost(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class == MPIX_ERR_PROC_FAILED;
}

/* All have come here: told by files of their names in dir, for there is no other way from one half to the other. */
static void meet(const char *dir)
{
    char path[512];
    FILE *f;
    snprintf(path, sizeof(path), "%s/%d", dir, rank);
    CHECK((f = fopen(path, "w")) && fclose(f) == 0);
    for (int i = 0; i < size; i++) {
        snprintf(path, sizeof(path), "%s/%d", dir, i);
        while (access(path, F_OK))
            usleep(1000);
    }
}

int main(int argc, char **argv)
{
    int x = 1, sum, errors = 0, all[64];
    MPI_Comm half;
    MPI_Request q;
    mt_begin(&argc, &argv);
    CHECK(argc > 2 && size <= 64);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_split(MPI_COMM_WORLD, rank >= size / 2, 0, &half);
    EQ(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    EQ(sum, size);
    /* the second half has had its answer, too, before its network goes: rank 0 hears so */
    MPI_Reduce(&x, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Barrier(half);
    if (rank == 0)
        CHECK(system(argv[1]) == 0);
    MPI_Bcast(&x, 1, MPI_INT, 0, half);
    /* data sent by the others before the loss may complete one operation here, but no more */
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    errors += lost(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    errors += lost(MPI_Allgather(&x, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    errors += lost(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q);
    errors += lost(MPI_Wait(&q, MPI_STATUS_IGNORE));
    EQ(errors, 4);
    EQ(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, half), MPI_SUCCESS);
    EQ(sum, size / 2);
    printf("%d errors\n", errors);
    fflush(stdout);
    meet(argv[2]);
    MPI_Abort(MPI_COMM_WORLD, 7);
    return 0;
}
