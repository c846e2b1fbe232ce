/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes on one simulated host share a file of 64 bytes. One kills itself. The other sleeps a millisecond at a
 * time until their parent, which calls no verbs, has seen the end, has computed for a while, and has said so in memory.
 * Prints how many milliseconds of virtual time the other has seen pass since the death.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAP_US = 1000, WORK_MS = 20 };

struct shared {
    double died_ms;
    int sleeps, told; /* by now */
};

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* A completion queue, which the thread has polled: from then on time waits for the thread. */
static struct ibv_cq *join_fabric(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 1, NULL, NULL, 0) : NULL;
    struct ibv_wc wc;

    if (!cq || ibv_poll_cq(cq, 1, &wc)) {
        fprintf(stderr, "no adapter\n");
        exit(1);
    }
    return cq;
}

static void die(struct shared *m)
{
    join_fabric();
    while (!__atomic_load_n(&m->sleeps, __ATOMIC_ACQUIRE))
        usleep(NAP_US);
    m->died_ms = now_ms();
    raise(SIGKILL);
}

static void wait_for_word(struct shared *m)
{
    struct ibv_cq *cq = join_fabric();
    struct ibv_wc wc;

    __atomic_store_n(&m->sleeps, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&m->told, __ATOMIC_ACQUIRE)) {
        ibv_poll_cq(cq, 1, &wc);
        usleep(NAP_US);
    }
    printf("%.0f ms\n", now_ms() - m->died_ms);
}

static void compute(void)
{
    clock_t end = clock() + WORK_MS * (CLOCKS_PER_SEC / 1000);

    while (clock() < end)
        ;
}

/* Becomes this program on a simulated host, in its part. */
static pid_t start(char *self, char *file, char *part)
{
    pid_t pid = fork();

    if (!pid) {
        execlp("simfab", "simfab", "exec", "h1", "--", self, file, part, (char *)NULL);
        _exit(127);
    }
    return pid;
}

int main(int argc, char **argv)
{
    int fd = argc > 1 ? open(argv[1], O_RDWR) : -1, status;
    struct shared *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pid_t dies, waits;

    if (m == MAP_FAILED)
        return 1;
    if (argc > 2) {
        if (argv[2][0] == 'd')
            die(m);
        wait_for_word(m);
        return 0;
    }
    dies = start(argv[0], argv[1], "dies");
    waits = start(argv[0], argv[1], "waits");
    if (waitpid(dies, &status, 0) != dies || !WIFSIGNALED(status))
        return 1;
    compute();
    __atomic_store_n(&m->told, 1, __ATOMIC_RELEASE);
    return waitpid(waits, &status, 0) != waits || status;
}
