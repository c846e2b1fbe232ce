/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "dies RANK STEP CODE": rank RANK of this MPI program ends at step STEP with _exit(CODE), or by signal -CODE. A step
 * is a call to the C library, by the MPI library or libpmix, between the beginning of MPI_Init and the end of
 * MPI_Finalize. The functions counted are those below: they stand in the program itself, where all libraries find them
 * first. STEP "init" and "finalize" are just behind MPI_Init and just before MPI_Finalize, "absent" is before MPI_Init,
 * "late" behind MPI_Finalize. RANK -1: all ranks do so. A rank that finds no such step ends well and prints how many
 * there are: this differs by some between runs.
 *
 * A fourth argument has the peers answer errors as programs do that check each call: they end with a code of their own.
 */
#include <dlfcn.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libmrmpi/include/mpi.h"

static atomic_long calls, last = -1;
static int code;

static void end_now(void)
{
    if (code < 0) {
        kill(getpid(), -code);
        pause();
    }
    _exit(code);
}

/* Negative until MPI_Init is called. */
static void step(void)
{
    if (calls >= 0 && atomic_fetch_add(&calls, 1) == last)
        end_now();
}

#define COUNTED(type, name, params, args)                                                                              \
    __attribute__((visibility("default"))) type name params;                                                           \
    type name params                                                                                                   \
    {                                                                                                                  \
        static type(*next) params;                                                                                     \
        if (!next)                                                                                                     \
            next = (type(*) params)dlsym(RTLD_NEXT, #name);                                                            \
        step();                                                                                                        \
        return next args;                                                                                              \
    }

COUNTED(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
COUNTED(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n))
COUNTED(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
COUNTED(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
COUNTED(ssize_t, recv, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags))
COUNTED(ssize_t, send, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags))
COUNTED(int, socket, (int family, int type, int protocol), (family, type, protocol))
COUNTED(int, close, (int fd), (fd))
COUNTED(void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t offset), (at, n, prot, flags, fd, offset))
COUNTED(int, munmap, (void *at, size_t n), (at, n))
COUNTED(int, ftruncate, (int fd, off_t n), (fd, n))
COUNTED(int, sem_wait, (sem_t * s), (s))

int main(int argc, char **argv)
{
    const char *rank = getenv("PMIX_RANK"), *when = argc > 2 ? argv[2] : "";
    int who = argc > 1 ? atoi(argv[1]) : 0, err;
    bool me = rank && (who < 0 || who == atoi(rank));
    long in_init;

    if (argc < 4)
        return 2;
    calls = -1;
    code = atoi(argv[3]);
    if (me && !strcmp(when, "absent"))
        end_now();
    if (me && *when >= '0' && *when <= '9')
        last = atol(when);
    calls = 0;
    MPI_Init(&argc, &argv);
    in_init = calls;
    if (me && !strcmp(when, "init"))
        end_now();
    if (argc > 4)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++) {
        err = MPI_Barrier(MPI_COMM_WORLD);
        if (err)
            exit(77);
    }
    if (me && !strcmp(when, "finalize"))
        end_now();
    MPI_Finalize();
    long all = calls;
    calls = -1;
    if (me && !strcmp(when, "late"))
        end_now();
    if (me)
        printf("%ld steps, %ld of MPI_Init\n", all, in_init);
    return 0;
}
