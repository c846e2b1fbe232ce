/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages to and from memory that comes and goes: unmapped and mapped again at the same place, shared with a
 * child of fork, read-only, on the stack, and in more buffers than stay registered. Every byte is looked at.
 */
#include "p2p.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 300000, BUFFERS = 50, BUFFER = 40000, ROUNDS = 3 };

static void *map(void *at)
{
    void *p = mmap(at, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

/* From rank 0 to rank 1 and back. The sender's copy is left as it is. */
static void bounce(void *p, int n, unsigned seed)
{
    MPI_Status st;
    int got;

    for (int from = 0; from < 2; from++) {
        if (rank == from) {
            fill(p, (size_t)n, seed + (unsigned)from);
            MPI_Send(p, n, MPI_CHAR, !from, 1, MPI_COMM_WORLD);
            CHECK(holds(p, (size_t)n, seed + (unsigned)from));
        } else {
            MPI_Recv(p, n, MPI_CHAR, from, 1, MPI_COMM_WORLD, &st);
            MPI_Get_count(&st, MPI_CHAR, &got);
            CHECK(got == n && holds(p, (size_t)n, seed + (unsigned)from));
        }
    }
}

static void mapped_again(void)
{
    char *p = map(NULL);

    for (unsigned i = 0; i < ROUNDS; i++) {
        bounce(p, LEN, 10 * i);
        bounce(p, LEN, 10 * i + 5);
        CHECK(!munmap(p, LEN));
        CHECK(map(p) == p); /* nothing came between */
        CHECK(!p[0] && !p[LEN - 1]);
    }
    bounce(p, LEN, 100);
    CHECK(!munmap(p, LEN));
}

/* Parent and child each get pages of their own when they write; messages are the parent's. */
static void beside_a_child(void)
{
    char *p = map(NULL);
    int pipe_fd[2], status;
    char byte;
    pid_t child;

    bounce(p, LEN, 1);
    fill(p, LEN, 40 + (unsigned)rank);
    CHECK(!pipe(pipe_fd));
    child = fork();
    CHECK(child >= 0);
    if (!child) {
        close(pipe_fd[1]);
        if (read(pipe_fd[0], &byte, 1) != 0)
            _exit(2);
        /* where the parent's registered pages are withheld from children there is nothing to look at */
        _exit(0);
    }
    close(pipe_fd[0]);
    bounce(p, LEN, 2); /* while the child has the pages, too */
    close(pipe_fd[1]);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    bounce(p, LEN, 3);
    CHECK(!munmap(p, LEN));
}

static void constants(void)
{
    char *p = map(NULL);

    fill(p, LEN, 7);
    CHECK(!mprotect(p, LEN, PROT_READ));
    if (!rank) {
        MPI_Send(p, LEN, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    } else {
        CHECK(!mprotect(p, LEN, PROT_READ | PROT_WRITE));
        memset(p, 0, LEN);
        MPI_Recv(p, LEN, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(p, LEN, 7));
    }
    CHECK(!munmap(p, LEN));
}

/* Deep enough that the stack has to grow, by whoever writes there first. */
static void on_the_stack(int deep)
{
    char here[LEN];

    if (deep)
        on_the_stack(deep - 1);
    bounce(here, LEN, (unsigned)deep);
}

/* The first message is longer than the second rank's receive. */
static void cut_off(void)
{
    char *p = map(NULL);
    int err, class;

    fill(p, LEN, 9);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!rank) {
        MPI_Send(p, LEN, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    } else {
        memset(p, 0, LEN);
        err = MPI_Recv(p, LEN / 2, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Error_class(err, &class);
        CHECK(class == MPI_ERR_TRUNCATE);
        for (int i = LEN / 2; i < LEN; i++)
            CHECK(!p[i]);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    bounce(p, LEN, 4);
    CHECK(!munmap(p, LEN));
}

static void many(void)
{
    char *p[BUFFERS];

    for (int i = 0; i < BUFFERS; i++)
        p[i] = room(BUFFER + 2 * 4096);
    for (unsigned r = 0; r < ROUNDS; r++)
        for (int i = 0; i < BUFFERS; i++)
            bounce(p[i] + 4096, BUFFER, r + (unsigned)i);
    for (int i = 0; i < BUFFERS; i++)
        free(p[i]);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == 2);
    mapped_again();
    beside_a_child();
    constants();
    on_the_stack(3);
    cut_off();
    many();
    MPI_Finalize();
    return 0;
}
