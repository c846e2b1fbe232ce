/* SPDX-License-Identifier: BSD-3-Clause */
/* "crash HOW": rank 1 of this MPI program dies of a signal, within deepest(); rank 0 waits for it. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int zero;
static int *volatile nowhere;

#define SEEN __attribute__((noinline, visibility("default")))

SEEN int overflow(int depth);
SEEN void deepest(const char *how);

int overflow(int depth)
{
    volatile char room[4096];

    room[depth % sizeof(room)] = 1;
    return overflow(depth + 1) + room[0];
}

static void *touch(void *arg)
{
    pthread_barrier_wait(arg);
    *nowhere = 1;
    return NULL;
}

/* Both threads fault at the same time. */
static void touch_twice(void)
{
    pthread_barrier_t both;
    pthread_t thread;

    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, touch, &both);
    touch(&both);
}

/* The allocator finds out, and aborts with its lock held. */
static void spoil_heap(void)
{
    static char *volatile block;

    for (int i = 0; i < 64; i++) {
        block = malloc(100000);
        memset(block, 0x5a, 100000 + 64);
    }
}

static void own_handler(int sig)
{
    static const char text[] = "the program's own handler\n";

    _exit(write(2, text, sizeof(text) - 1) < 0 ? 1 : 9);
}

static void die_in_child(void)
{
    pid_t pid = fork();
    int status = 0;

    if (!pid)
        *nowhere = 1;
    waitpid(pid, &status, 0);
    printf("the child: signal %d\n", WTERMSIG(status));
}

void deepest(const char *how)
{
    if (!strcmp(how, "null"))
        *nowhere = 1;
    else if (!strcmp(how, "divide"))
        zero = 7 / zero;
    else if (!strcmp(how, "abort"))
        abort();
    else if (!strcmp(how, "overflow"))
        zero = overflow(0);
    else if (!strcmp(how, "heap"))
        spoil_heap();
    else if (!strcmp(how, "threads"))
        touch_twice();
    else if (!strcmp(how, "child"))
        die_in_child();
    else if (!strcmp(how, "sent"))
        kill(getppid(), SIGUSR1), pause();
    else if (!strcmp(how, "jump"))
        ((void (*)(void))(size_t)zero)();
    else
        *nowhere = 2;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "none";
    int rank;

    if (!strcmp(how, "before"))
        signal(SIGSEGV, own_handler);
    MPI_Init(&argc, &argv);
    if (!strcmp(how, "later"))
        signal(SIGSEGV, own_handler);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1 && strcmp(how, "after"))
        deepest(how);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 1 && !strcmp(how, "after"))
        deepest(how);
    return 0;
}
