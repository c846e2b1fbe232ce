/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine holds ranks on its own processor while they hand over to the engine and back, unseen by programs. Two
 * ranks exchange messages until this rank is held, according to /proc. Then rank 0 asks for, passes on or sets its
 * affinity, in one of the ways below; likewise for each way. Prints a line for each way.
 */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 32 /* between two looks */

static cpu_set_t all;
static int rank;

/* The affinity of the calling thread or of the program FROM, in the kernel's notation. */
static cpu_set_t listed(FILE *from)
{
    cpu_set_t set;
    char line[4096];

    CPU_ZERO(&set);
    while (from && fgets(line, sizeof line, from)) {
        char *at = line + strlen("Cpus_allowed_list:");

        if (strncmp(line, "Cpus_allowed_list:", strlen("Cpus_allowed_list:")))
            continue;
        do {
            long first = strtol(at, &at, 10), last = *at == '-' ? strtol(at + 1, &at, 10) : first;

            for (; first <= last && first < CPU_SETSIZE; first++)
                CPU_SET(first, &set);
        } while (*at++ == ',');
    }
    return set;
}

static cpu_set_t in_proc(void)
{
    FILE *f = fopen("/proc/thread-self/status", "r");
    cpu_set_t set = listed(f);

    if (f)
        fclose(f);
    return set;
}

static void exchange(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int got, go = rank;

        MPI_Sendrecv(&go, 1, MPI_INT, 1 - rank, 0, &got, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void until_held(void)
{
    int held;

    do {
        cpu_set_t now;

        exchange();
        now = in_proc();
        held = rank == 0 && CPU_COUNT(&now) == 1;
        MPI_Bcast(&held, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (!held);
}

/* ---- ways ------------------------------------------------------------------------------------------------------ */

static bool by_sched(void)
{
    cpu_set_t now;

    return !sched_getaffinity(0, sizeof now, &now) && CPU_EQUAL(&now, &all);
}

static bool by_pthread(void)
{
    cpu_set_t now;

    return !pthread_getaffinity_np(pthread_self(), sizeof now, &now) && CPU_EQUAL(&now, &all);
}

static bool by_syscall(void)
{
    cpu_set_t now;

    CPU_ZERO(&now);
    return syscall(SYS_sched_getaffinity, 0, sizeof now, &now) > 0 && CPU_EQUAL(&now, &all);
}

static void *in_thread(void *same)
{
    cpu_set_t now;

    *(bool *)same = !sched_getaffinity(0, sizeof now, &now) && CPU_EQUAL(&now, &all);
    return NULL;
}

static bool by_thread(void)
{
    bool same = false;
    pthread_t t;

    return !pthread_create(&t, NULL, in_thread, &same) && !pthread_join(t, NULL) && same;
}

static bool by_fork(void)
{
    pid_t child = fork();
    int status = 1;

    if (!child) {
        cpu_set_t now = in_proc();

        _exit(!CPU_EQUAL(&now, &all));
    }
    return child > 0 && waitpid(child, &status, 0) == child && !status;
}

static bool by_program(void)
{
    FILE *f = popen("cat /proc/self/status", "r");
    cpu_set_t now = listed(f);

    return f && !pclose(f) && CPU_EQUAL(&now, &all);
}

/* The last of the processors alone, while messages go on; then all again. */
static bool by_setting(void)
{
    cpu_set_t one, now, after;
    int last = CPU_SETSIZE - 1, at;

    while (!CPU_ISSET(last, &all))
        last--;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        return false;
    exchange();
    now = in_proc();
    at = sched_getcpu();
    if (sched_setaffinity(0, sizeof all, &all))
        return false;
    after = in_proc();
    return CPU_EQUAL(&now, &one) && at == last && CPU_EQUAL(&after, &all);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*ask)(void);
    } ways[] = {{"sched_getaffinity", by_sched},
                {"pthread_getaffinity_np", by_pthread},
                {"syscall", by_syscall},
                {"a thread", by_thread},
                {"fork", by_fork},
                {"a program", by_program},
                {"sched_setaffinity", by_setting}};

    if (sched_getaffinity(0, sizeof all, &all))
        return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        until_held();
        if (ways[i].ask == by_setting && rank)
            exchange();
        if (!rank)
            printf("%s: %s\n", ways[i].name, ways[i].ask() ? "the same" : "NOT the same");
    }
    MPI_Finalize();
    return 0;
}
