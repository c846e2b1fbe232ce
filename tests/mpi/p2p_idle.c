/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank waits for a message that never comes; rank 0 prints "ready" first. For tests of the cost of a waiting or
 * killed job. With an argument the program ends: rank 0 sleeps this number of seconds outside MPI, then wakes all and
 * prints the processor time of the others.
 */
#include <sys/resource.h>
#include <unistd.h>

#include "p2p.h"

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char **argv)
{
    double before, used, total = 0;

    begin(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    before = cpu_seconds();
    if (rank == 0) {
        printf("ready\n");
        fflush(stdout);
    }
    if (argc > 1 && rank == 0) {
        sleep(atoi(argv[1]));
        for (int r = 1; r < size; r++)
            MPI_Send(NULL, 0, MPI_CHAR, r, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    used = cpu_seconds() - before;
    MPI_Reduce(&used, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("cpu %.3f\n", total);
    MPI_Finalize();
    return 0;
}
