/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of two ranks talk at once, thread i of one with thread i of the other, in ways that let threads wait for each
 * other in the library and in the program: for locks, semaphores, a condition, a barrier, the end of a thread, and by
 * repeated checks. Rank 0 prints the end of each thread and the order of arrival, by the clock, in full.
 */
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 30, BIG = 60000, PAGES = 61440 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t places;
static int rank, here, came, asking, told;
static struct {
    double us;
    int place;
    unsigned order;
} done[THREADS];
static unsigned order;

static void meet(void)
{
    pthread_mutex_lock(&mutex);
    if (++here == THREADS)
        pthread_cond_broadcast(&all_here);
    while (here < THREADS)
        pthread_cond_wait(&all_here, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* Like programs without a condition variable: takes the lock again and again, to check. */
static void ask_until(const int *what, int value)
{
    for (int seen = 0; seen < value;) {
        pthread_mutex_lock(&mutex);
        seen = *what;
        pthread_mutex_unlock(&mutex);
    }
}

static void add(int *what)
{
    pthread_mutex_lock(&mutex);
    ++*what;
    pthread_mutex_unlock(&mutex);
}

/* Many threads check; one of the awaited threads begins later, another gets a message first. */
static void meet_asking(int me, char *out, char *in)
{
    add(&asking);
    ask_until(&asking, THREADS);
    if (me == 1) {
        MPI_Sendrecv(out, BIG, MPI_CHAR, 1 - rank, THREADS, in, BIG, MPI_CHAR, 1 - rank, THREADS, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        add(&told);
    }
    ask_until(&told, 1);
}

/* With a lock of the program's held while the library waits, and at most two threads at once. */
static void turn_round(int me, int i, char *out, char *in)
{
    int bytes = i % 5 == 4 ? BIG : 100 * me + i;
    MPI_Request reqs[2];

    sem_wait(&places);
    MPI_Irecv(in, BIG, MPI_CHAR, 1 - rank, me, MPI_COMM_WORLD, &reqs[0]);
    MPI_Isend(out, bytes, MPI_CHAR, 1 - rank, me, MPI_COMM_WORLD, &reqs[1]);
    sem_post(&places);
    MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
    if (me < 2)
        pthread_spin_lock(&spin);
    order = order * 31 + (unsigned)me;
    if (me < 2)
        pthread_spin_unlock(&spin);
}

/*
 * Whole pages: registering takes time for each page touched. The offset of a chunk of the heap within its page depends
 * on what threads of the launcher's library have allocated, in the machine's order.
 */
static char *get_pages(void)
{
    char *pages = aligned_alloc(4096, PAGES);

    if (!pages)
        abort();
    return memset(pages, 0, PAGES);
}

static void *talk(void *arg)
{
    int me = (int)(long)arg;
    char *out = get_pages(), *in = get_pages();
    double start;

    meet();
    start = MPI_Wtime();
    for (int i = 0; i < ROUNDS; i++)
        turn_round(me, i, out, in);
    meet_asking(me, out, in);
    pthread_mutex_lock(&mutex);
    done[me].us = (MPI_Wtime() - start) * 1e6;
    done[me].place = came++;
    done[me].order = order;
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&barrier);
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&places, 0, 2);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, talk, (void *)i))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; rank == 0 && i < THREADS; i++)
        printf("thread %d: %.9f us, came %d (%u)\n", i, done[i].us, done[i].place, done[i].order);
    MPI_Finalize();
    return 0;
}
