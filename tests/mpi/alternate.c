/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alternate TURNS US: two ranks compute in turns, for US microseconds of processor time each, while the other waits for
 * its turn. Rank 0 prints the processor time of the waits, as a part of that of computing.
 */
#include <time.h>

#include "p2p.h"

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void compute(double seconds)
{
    double end = cpu_seconds() + seconds;

    while (cpu_seconds() < end) {
    }
}

static void take_turn(double seconds)
{
    int other = !rank;

    if (rank)
        MPI_Recv(NULL, 0, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(seconds);
    MPI_Send(NULL, 0, MPI_CHAR, other, 0, MPI_COMM_WORLD);
    if (!rank)
        MPI_Recv(NULL, 0, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    double seconds, used, all;
    int turns;

    begin(&argc, &argv);
    CHECK(size == 2 && argc == 3);
    turns = atoi(argv[1]);
    seconds = atof(argv[2]) * 1e-6;
    used = cpu_seconds();
    for (int i = 0; i < turns; i++)
        take_turn(seconds);
    used = cpu_seconds() - used;
    MPI_Reduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("waiting: %.3f of computing\n", all / (2 * turns * seconds) - 1);
    MPI_Finalize();
    return 0;
}
