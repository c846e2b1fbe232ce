/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OpenMP in two ranks: teams of four threads exchange messages, meet at barriers, share a critical section, hand loops
 * out, and sleep in the kernel where libgomp lets them. Rank 0 prints the end of each thread, and its part of the
 * loops. With an argument, this number of threads only compute, and one calls MPI.
 */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, REGIONS = 4, ROUNDS = 20, LOOP = 40, BYTES = 30000 };

static char in[THREADS][BYTES], out[THREADS][BYTES];
static double done_us[THREADS];
static int shares[THREADS], rank, peer;
static long order;

static void exchange(int thread, int tag, int bytes)
{
    MPI_Sendrecv(out[thread], bytes, MPI_CHAR, peer, tag, in[thread], BYTES, MPI_CHAR, peer, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void talk(double begin)
{
#pragma omp parallel num_threads(THREADS)
    {
        int me = omp_get_thread_num();

        for (int i = 0; i < ROUNDS; i++) {
            exchange(me, me, (i * 997 + me * 131) % BYTES);
            if (i % 5 == 0) {
#pragma omp barrier
            }
#pragma omp critical
            order = order * 31 % 1000003 + me;
        }
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < LOOP; i++) {
            exchange(me, THREADS + i, 0);
            shares[me]++;
        }
        done_us[me] = (MPI_Wtime() - begin) * 1e6;
    }
}

/* Threads that never call MPI disturb no other thread, however often they wait. */
static double compute(int threads)
{
    static volatile double sum[64];
    double begin = MPI_Wtime();

    for (int region = 0; region < 200; region++) {
#pragma omp parallel for num_threads(threads)
        for (int i = 0; i < threads; i++)
            sum[i] = sum[i] + i;
        exchange(0, 0, 8);
    }
    return (MPI_Wtime() - begin) * 1e6;
}

int main(int argc, char **argv)
{
    int given;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    if (argc > 1) {
        double us = compute(atoi(argv[1]));

        if (rank == 0)
            printf("200 regions: %.3f us\n", us);
    } else {
        double begin = MPI_Wtime();

        for (int i = 0; i < REGIONS; i++)
            talk(begin);
        for (int i = 0; rank == 0 && i < THREADS; i++)
            printf("thread %d: %.3f us, %d of the loops\n", i, done_us[i], shares[i]);
        if (rank == 0)
            printf("order %ld\n", order);
    }
    MPI_Finalize();
    return 0;
}
