/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of waiting: all ranks but the last wait in one call, while the last sleeps outside MPI for SECONDS. Rank 0
 * prints the largest share of a processor used by a waiting rank, the time from the last rank's call to the latest end
 * of a wait (clocks are those of one machine), and the time of MPI_Finalize.
 *
 * waiting CALL SECONDS
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "p2p.h"

enum { THREADS = 4, LONG = 1 << 20 };

static bool last;
static double came; /* when the last rank called */
static MPI_Win win;
static char *large;

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void to_all(int tag)
{
    for (int r = 0; r < size - 1; r++)
        MPI_Send(NULL, 0, MPI_CHAR, r, tag, MPI_COMM_WORLD);
}

static void receive(int tag)
{
    MPI_Recv(NULL, 0, MPI_CHAR, size - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void do_recv(void)
{
    last ? to_all(0) : receive(0);
}

static void do_probe(void)
{
    if (last) {
        to_all(0);
        return;
    }
    MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    receive(0);
}

static void do_waitany(void)
{
    MPI_Request req[2];
    int which;

    if (last) {
        to_all(0);
        to_all(1);
        return;
    }
    for (int i = 0; i < 2; i++)
        MPI_Irecv(NULL, 0, MPI_CHAR, size - 1, i, MPI_COMM_WORLD, &req[i]);
    MPI_Waitany(2, req, &which, MPI_STATUS_IGNORE);
    MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
}

/* The receiver is late. */
static void do_send(void)
{
    if (!last) {
        MPI_Send(large, LONG, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
        return;
    }
    for (int r = 0; r < size - 1; r++)
        MPI_Recv(large, LONG, MPI_CHAR, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void do_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void do_ibarrier(void)
{
    MPI_Request req;

    MPI_Ibarrier(MPI_COMM_WORLD, &req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static void do_bcast(void)
{
    MPI_Bcast(large, LONG, MPI_CHAR, size - 1, MPI_COMM_WORLD);
}

static void do_allreduce(void)
{
    int in = 1, out;

    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out == size);
}

static void do_fence(void)
{
    MPI_Win_fence(0, win);
}

/* The last rank has the lock. */
static void do_lock(void)
{
    if (!last)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win);
    MPI_Win_unlock(size - 1, win);
}

static void *wait_in_thread(void *tag)
{
    receive((int)(long)tag);
    return NULL;
}

static void do_threads(void)
{
    pthread_t t[THREADS];

    if (last) {
        for (int i = 0; i < THREADS; i++)
            to_all(i);
        return;
    }
    for (long i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&t[i], NULL, wait_in_thread, (void *)i));
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

static const struct call {
    const char *name;
    void (*run)(void);
} calls[] = {
    {"recv", do_recv},       {"probe", do_probe},       {"waitany", do_waitany}, {"send", do_send},
    {"barrier", do_barrier}, {"ibarrier", do_ibarrier}, {"bcast", do_bcast},     {"allreduce", do_allreduce},
    {"fence", do_fence},     {"lock", do_lock},         {"threads", do_threads},
};

static const struct call *call_named(const char *name)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        if (!strcmp(calls[i].name, name))
            return &calls[i];
    fprintf(stderr, "waiting: no call is named %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
}

static void take_lock(const struct call *c)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (c->run == do_lock && last)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The call is made once before, so the wait is only for the last rank. */
static void prepare(const struct call *c, void *memory)
{
    MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    take_lock(c);
    c->run();
    take_lock(c);
}

int main(int argc, char **argv)
{
    const struct call *c;
    double cpu, wall, went_on, mine[2], most[2];
    char memory[8];
    int level;

    MPI_Init_thread(&argc, &argv, argc > 1 && !strcmp(argv[1], "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 3 && size > 1);
    c = call_named(argv[1]);
    last = rank == size - 1;
    large = room(LONG);
    prepare(c, memory);
    cpu = cpu_seconds();
    wall = seconds();
    if (last)
        usleep((useconds_t)(atof(argv[2]) * 1e6));
    came = seconds();
    c->run();
    went_on = seconds();
    cpu = cpu_seconds() - cpu;
    wall = went_on - wall;
    MPI_Bcast(&came, 1, MPI_DOUBLE, size - 1, MPI_COMM_WORLD);
    mine[0] = last ? 0 : cpu / wall;
    mine[1] = last ? 0 : went_on - came;
    MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: cpu %.4f wake %.1f us\n", c->name, most[0], most[1] * 1e6);
    MPI_Win_free(&win);
    MPI_Barrier(MPI_COMM_WORLD);
    came = seconds();
    MPI_Finalize();
    if (rank == 0)
        printf("MPI_Finalize: %.1f ms\n", (seconds() - came) * 1e3);
    return 0;
}
