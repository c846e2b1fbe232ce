/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_THREAD_MULTIPLE: threads with a communicator each do collectives, make communicators and exchange messages at
 * once. */
#include "mt.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 30 };
static MPI_Comm comms[THREADS];

static void *work(void *arg)
{
    int t = (int)(long)arg;
    MPI_Comm c = comms[t];
    for (int i = 0; i < ROUNDS; i++) {
        int x = rank + t * 10 + i, sum = -1, got = -1, all[size];
        MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c);
        EQ(sum, size * (size - 1) / 2 + size * (t * 10 + i));
        MPI_Sendrecv(&x, 1, MPI_INT, (rank + 1) % size, i, &got, 1, MPI_INT, (rank - 1 + size) % size, i, c,
                     MPI_STATUS_IGNORE);
        EQ(got, (rank - 1 + size) % size + t * 10 + i);
        MPI_Allgather(&x, 1, MPI_INT, all, 1, MPI_INT, c);
        for (int r = 0; r < size; r++)
            EQ(all[r], r + t * 10 + i);
        if (i % 10 == t) {
            MPI_Comm d;
            MPI_Comm_dup(c, &d);
            MPI_Bcast(&x, 1, MPI_INT, size - 1, d);
            EQ(x, size - 1 + t * 10 + i);
            MPI_Comm_free(&d);
        }
        MPI_Barrier(c);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t th[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EQ(provided, MPI_THREAD_MULTIPLE);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (int t = 1; t < THREADS; t++)
        CHECK(pthread_create(&th[t], NULL, work, (void *)(long)t) == 0);
    work(NULL);
    for (int t = 1; t < THREADS; t++)
        pthread_join(th[t], NULL);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&comms[t]);
    return mt_end();
}
