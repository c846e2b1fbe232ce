/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of two ranks wait for each other in all the ways with a time-out. At first, one rank works on new memory
 * while the other sleeps, which takes no time. Then no thread comes, and each wait takes exactly its time-out. Then the
 * awaited event comes after a message from the other rank. Then threads read and write under a lock between messages,
 * and meet at barriers. Rank 0 prints the result and time of each, in full.
 */
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>

enum { KINDS = 9, THREADS = 4, ROUNDS = 25 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem, end;
static mtx_t mtx, cnd_mtx;
static cnd_t cnd;
static pthread_t ender;
static int rank, served;
static bool told;

static uint64_t now_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct timespec in_us(clockid_t id, uint64_t us)
{
    uint64_t ns = now_ns(id) + us * 1000;

    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

/* ---- waits that may end at a time: 0, ETIMEDOUT, or another error ------------------------------------------------ */

static int in_posix(int c11)
{
    return c11 == thrd_success ? 0 : c11 == thrd_timedout ? ETIMEDOUT : EINVAL;
}

static int wait_cond(clockid_t id, uint64_t us)
{
    struct timespec until = in_us(id, us);
    int err = 0;

    pthread_mutex_lock(&cond_mutex);
    while (!told && !err)
        err = id == CLOCK_REALTIME ? pthread_cond_timedwait(&cond, &cond_mutex, &until)
                                   : pthread_cond_clockwait(&cond, &cond_mutex, id, &until);
    pthread_mutex_unlock(&cond_mutex);
    return err;
}

static int wait_cnd(uint64_t us)
{
    struct timespec until = in_us(CLOCK_REALTIME, us);
    int err = 0;

    mtx_lock(&cnd_mtx);
    while (!told && !err)
        err = in_posix(cnd_timedwait(&cnd, &cnd_mtx, &until));
    mtx_unlock(&cnd_mtx);
    return err;
}

static int wait_for(int kind, uint64_t us)
{
    struct timespec real = in_us(CLOCK_REALTIME, us), mono = in_us(CLOCK_MONOTONIC, us);
    int err;

    switch (kind) {
    case 0:
        if (!(err = pthread_mutex_timedlock(&mutex, &real)))
            pthread_mutex_unlock(&mutex);
        return err;
    case 1:
        return wait_cond(CLOCK_REALTIME, us);
    case 2:
        return wait_cond(CLOCK_MONOTONIC, us);
    case 3:
        return sem_timedwait(&sem, &real) ? errno : 0;
    case 4:
        if (!(err = pthread_rwlock_timedrdlock(&rwlock, &real)))
            pthread_rwlock_unlock(&rwlock);
        return err;
    case 5:
        if (!(err = pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &mono)))
            pthread_rwlock_unlock(&rwlock);
        return err;
    case 6:
        return pthread_clockjoin_np(ender, NULL, CLOCK_MONOTONIC, &mono);
    case 7:
        if (!(err = in_posix(mtx_timedlock(&mtx, &real))))
            mtx_unlock(&mtx);
        return err;
    default:
        return wait_cnd(us);
    }
}

static const char *const kind_names[KINDS] = {"mutex",  "cond", "clock cond", "sem", "rdlock",
                                              "wrlock", "join", "mtx",        "cnd"};

static struct result {
    int err, place;
    uint64_t us, waited_ns;
} results[KINDS];

static void *wait_one(void *arg)
{
    struct result *r = arg;
    uint64_t start = now_ns(CLOCK_MONOTONIC);

    r->err = wait_for((int)(r - results), r->us);
    r->waited_ns = now_ns(CLOCK_MONOTONIC) - start;
    r->place = __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void *ends_later(void *arg)
{
    sem_wait(&end);
    return arg;
}

static void hold_all(void)
{
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    mtx_lock(&mtx);
}

static void let_all_go(void)
{
    pthread_mutex_lock(&cond_mutex);
    mtx_lock(&cnd_mtx);
    told = true;
    pthread_cond_broadcast(&cond);
    cnd_broadcast(&cnd);
    mtx_unlock(&cnd_mtx);
    pthread_mutex_unlock(&cond_mutex);
    sem_post(&sem);
    sem_post(&end);
    pthread_rwlock_unlock(&rwlock);
    mtx_unlock(&mtx);
    pthread_mutex_unlock(&mutex);
}

static void print_results(void)
{
    for (int i = 0; rank == 0 && i < KINDS; i++)
        if (results[i].err == ETIMEDOUT)
            printf("%s: not in %d us\n", kind_names[i], (int)(results[i].waited_ns / 1000));
        else
            printf("%s: %s, came %d, %.3f us\n", kind_names[i], results[i].err ? strerror(results[i].err) : "in time",
                   results[i].place, (double)results[i].waited_ns / 1000);
}

/* All kinds at once, each for us microseconds and more_us more than the one before. */
static void all_wait(uint64_t us, uint64_t more_us, void (*meanwhile)(void))
{
    pthread_t thread[KINDS];

    served = 0;
    for (int i = 0; i < KINDS; i++) {
        results[i] = (struct result){.us = us + more_us * (uint64_t)(KINDS - i)};
        if (pthread_create(&thread[i], NULL, wait_one, &results[i]))
            exit(1);
    }
    if (meanwhile)
        meanwhile();
    for (int i = 0; i < KINDS; i++)
        pthread_join(thread[i], NULL);
    print_results();
}

static void talk_then_let_go(void)
{
    char byte = 0;

    for (int i = 0; i < 20; i++) {
        MPI_Sendrecv_replace(&byte, 1, MPI_CHAR, 1 - rank, 100, 1 - rank, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        thrd_sleep(&(struct timespec){.tv_nsec = 1000 * (rank + 1)}, NULL);
    }
    let_all_go();
}

/* ---- at work ----------------------------------------------------------------------------------------------------- */

/* For longer than the limit of a spinner. */
static void work_on_memory(void)
{
    enum { CHUNKS = 12, BYTES = 64 << 20, TIMES = 3 };
    uint64_t start = now_ns(CLOCK_MONOTONIC);

    for (int i = 0; i < CHUNKS; i++) {
        char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
            exit(1);
        for (int at = 0; at < BYTES; at += BYTES / 64) /* new and old by turns */
            for (int t = 0; t < TIMES; t++)
                memset(p + at, i + t, BYTES / 64);
        munmap(p, BYTES);
    }
    printf("work: %.3f us\n", (double)(now_ns(CLOCK_MONOTONIC) - start) / 1000);
}

static void one_works(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        work_on_memory();
    for (int i = 0; rank == 1 && i < 100; i++)
        thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- reading, writing, and meeting ------------------------------------------------------------------------------- */

static struct {
    double us;
    int served;
    unsigned seen;
} done[THREADS];
static unsigned written;

static void take_round(int me, int i)
{
    char byte = (char)i;

    if (i % 4 == me || i == 0) /* the first sleeper is left out */
        MPI_Sendrecv_replace(&byte, 1, MPI_CHAR, 1 - rank, me, 1 - rank, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if ((i + me) % 3 == 0) {
        pthread_rwlock_wrlock(&rwlock);
        written = written * 31 + (unsigned)me;
    } else {
        pthread_rwlock_rdlock(&rwlock);
        done[me].seen = done[me].seen * 31 + written;
    }
    thrd_sleep(&(struct timespec){.tv_nsec = 300 + 100 * me}, NULL); /* the others come meanwhile */
    pthread_rwlock_unlock(&rwlock);
    if (i % 5 == 0)
        /* NOLINTNEXTLINE(bugprone-posix-return): one thread is told -1 */
        done[me].served += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
}

static int take_part(void *arg)
{
    int me = (int)(intptr_t)arg;
    double start = MPI_Wtime();

    for (int i = 0; i < ROUNDS; i++)
        take_round(me, i);
    done[me].us = (MPI_Wtime() - start) * 1e6;
    return me + 1;
}

static void all_take_part(void)
{
    thrd_t thread[THREADS];
    int result;

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (thrd_create(&thread[i], take_part, (void *)(intptr_t)i) != thrd_success)
            exit(1);
    for (int i = 0; i < THREADS; i++)
        if (thrd_join(thread[i], &result) != thrd_success || result != i + 1)
            exit(1);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; rank == 0 && i < THREADS; i++)
        printf("thread %d: %.9f us, last at %d, saw %u\n", i, done[i].us, done[i].served, done[i].seen);
}

int main(int argc, char **argv)
{
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sem_init(&sem, 0, 0);
    sem_init(&end, 0, 0);
    mtx_init(&mtx, mtx_timed);
    mtx_init(&cnd_mtx, mtx_plain);
    cnd_init(&cnd);
    if (pthread_create(&ender, NULL, ends_later, NULL))
        return 1;
    one_works();
    hold_all();
    all_wait(100, 10, NULL);
    all_wait(1000000, 1, talk_then_let_go);
    all_take_part();
    MPI_Finalize();
    return 0;
}
