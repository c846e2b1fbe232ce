/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: threads of all ranks talk at once, thread i of a rank with thread i of the others, in blocking
 * and non-blocking ways, with small and large messages, while one thread waits all the time for the last message.
 */
#include <pthread.h>

#include "p2p.h"

enum { THREADS = 4, ROUNDS = 80, BIG = 100000 };

static void *talk(void *arg)
{
    int me = (int)(long)arg, right = (rank + 1) % size, left = (rank - 1 + size) % size;
    char *out = room(BIG), *in = room(BIG);

    for (int i = 0; i < ROUNDS; i++) {
        int n = i % 4 == 3 ? BIG - i : i * 13 % 300, got, flag = 0;
        MPI_Request reqs[2];
        MPI_Status st;

        fill(out, n, rank + i + me);
        if (i % 2) {
            MPI_Irecv(in, BIG, MPI_CHAR, left, me, MPI_COMM_WORLD, &reqs[0]);
            MPI_Isend(out, n, MPI_CHAR, right, me, MPI_COMM_WORLD, &reqs[1]);
            while (!flag)
                MPI_Test(&reqs[0], &flag, &st);
            MPI_Wait(&reqs[1], MPI_STATUS_IGNORE);
        } else {
            MPI_Isend(out, n, MPI_CHAR, right, me, MPI_COMM_WORLD, &reqs[1]);
            MPI_Recv(in, BIG, MPI_CHAR, left, me, MPI_COMM_WORLD, &st);
            MPI_Wait(&reqs[1], MPI_STATUS_IGNORE);
        }
        MPI_Get_count(&st, MPI_CHAR, &got);
        CHECK(got == n && st.MPI_TAG == me && st.MPI_SOURCE == left && holds(in, n, left + i + me));
    }
    free(out);
    free(in);
    return NULL;
}

static void *wait_long(void *arg)
{
    int value = 0;

    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == 4711);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS], waiter;
    int level, value = 4711;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(level == MPI_THREAD_MULTIPLE);
    CHECK(!pthread_create(&waiter, NULL, wait_long, NULL));
    for (long i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, talk, (void *)i));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 1000, MPI_COMM_WORLD);
    pthread_join(waiter, NULL);
    MPI_Finalize();
    return 0;
}
