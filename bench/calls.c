/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls KIND BYTES COUNT FILE: two ranks of a node; rank 0 makes the counted calls COUNT times, and rank 1 never:
 *
 *   isend  MPI_Isend, MPI_Wait
 *   irecv  MPI_Irecv, MPI_Wait, of a message that was sent before
 *   recv   MPI_Recv of such a message
 *
 * The ranks take turns by numbers in FILE, a new file: messages would have to be received first. An MPI program without
 * extensions: the same source is counted under every MPI.
 */
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct turns {
    uint32_t counted, other; /* rank 0, rank 1: completed turns */
};

static void wait_for(const uint32_t *done, uint32_t turn)
{
    while (__atomic_load_n(done, __ATOMIC_ACQUIRE) < turn)
        sched_yield();
}

static void end(uint32_t *done)
{
    __atomic_store_n(done, *done + 1, __ATOMIC_RELEASE);
}

static struct turns *shared(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    struct turns *t;

    if (fd < 0 || ftruncate(fd, sizeof(*t)))
        MPI_Abort(MPI_COMM_WORLD, 3);
    t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (t == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 3);
    close(fd);
    return t;
}

int main(int argc, char **argv)
{
    int rank, size, bytes, count, sends;
    char *buf;
    struct turns *turns;
    MPI_Request req;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || argc != 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    sends = !strcmp(argv[1], "isend");
    bytes = atoi(argv[2]);
    count = atoi(argv[3]);
    buf = calloc(1, (size_t)bytes + 1);
    turns = shared(argv[4]);
    if (!buf || (!sends && strcmp(argv[1], "irecv") && strcmp(argv[1], "recv")))
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        if (rank == 1 && sends) {
            wait_for(&turns->counted, i + 1);
            MPI_Recv(buf, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            end(&turns->other);
        } else if (rank == 1) {
            wait_for(&turns->counted, i);
            MPI_Send(buf, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            end(&turns->other);
        } else {
            wait_for(&turns->other, sends ? i : i + 1);
            if (sends)
                MPI_Isend(buf, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &req);
            else if (!strcmp(argv[1], "irecv"))
                MPI_Irecv(buf, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &req);
            else
                MPI_Recv(buf, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (strcmp(argv[1], "recv"))
                MPI_Wait(&req, MPI_STATUS_IGNORE);
            end(&turns->counted);
        }
    }
    free(buf);
    MPI_Finalize();
    return 0;
}
