/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that wait for each other without end: hangs HOW. Each prints "waits" before its wait. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank, peer;
static char large[1 << 20];

static void say(void)
{
    printf("waits\n");
    fflush(stdout);
}

static void tags(MPI_Comm c)
{
    int x = 0;

    MPI_Send(&x, 1, MPI_INT, peer, 9, c);
    say();
    MPI_Recv(&x, 1, MPI_INT, peer, 7, c, MPI_STATUS_IGNORE);
}

static void sends(MPI_Comm c)
{
    say();
    MPI_Send(large, sizeof(large), MPI_CHAR, peer, 5, c);
}

static void missing(MPI_Comm c)
{
    int x = 0;

    say();
    if (rank)
        MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, c);
    else
        MPI_Recv(&x, 1, MPI_INT, 1, 7, c, MPI_STATUS_IGNORE);
}

static void computes(MPI_Comm c)
{
    say();
    for (volatile int i = 0; !rank; i++)
        ;
    MPI_Barrier(c);
}

static void sleeps(MPI_Comm c)
{
    say();
    if (!rank)
        pause();
    MPI_Barrier(c);
}

/* The receiver has asked for the bytes, and the sender does not look. */
static void asked(MPI_Comm c)
{
    MPI_Request q;

    if (!rank)
        MPI_Isend(large, sizeof(large), MPI_CHAR, peer, 5, c, &q);
    say();
    if (!rank)
        pause();
    MPI_Recv(large, sizeof(large), MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, c, MPI_STATUS_IGNORE);
}

static void many(MPI_Comm c)
{
    MPI_Request q[20];

    for (int i = 0; i < 20; i++)
        MPI_Irecv(large + i * 4, 1, MPI_INT, MPI_ANY_SOURCE, i ? MPI_ANY_TAG : 3, c, &q[i]);
    say();
    MPI_Waitall(20, q, MPI_STATUSES_IGNORE);
}

static void window(MPI_Comm c)
{
    MPI_Win w;

    MPI_Win_create(large, sizeof(large), 1, MPI_INFO_NULL, c, &w);
    MPI_Win_set_name(w, "halo");
    MPI_Win_fence(0, w);
    say();
    if (rank)
        MPI_Recv(large, 1, MPI_CHAR, 0, 1, c, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, w);
}

static void wait_for_message(MPI_Comm c)
{
    MPI_Request q;
    int x;

    MPI_Irecv(&x, 1, MPI_INT, peer, 7, c, &q);
    say();
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void shrink(MPI_Comm c)
{
    MPI_Comm left;
    int x;

    say();
    if (rank)
        MPIX_Comm_shrink(c, &left);
    else
        MPI_Recv(&x, 1, MPI_INT, 1, 7, c, MPI_STATUS_IGNORE);
}

static void ends(MPI_Comm c)
{
    (void)c;
    say();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*how)(MPI_Comm c);
    } ways[] = {{"tags", tags},     {"sends", sends},           {"missing", missing}, {"computes", computes},
                {"sleeps", sleeps}, {"asked", asked},           {"many", many},       {"window", window},
                {"ends", ends},     {"wait", wait_for_message}, {"threads", sends},   {"shrink", shrink}};
    MPI_Comm c = MPI_COMM_WORLD;
    int size, level = argc > 1 && !strcmp(argv[1], "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;

    MPI_Init_thread(&argc, &argv, level, &level);
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    peer = rank ? 0 : size - 1;
    for (int i = 0; i < 8; i++)
        MPI_Barrier(c);
    if (argc > 2) {
        MPI_Comm_dup(MPI_COMM_WORLD, &c);
        MPI_Comm_set_name(c, argv[2]);
    }
    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
        if (!strcmp(ways[i].name, argv[1]))
            ways[i].how(c);
    MPI_Finalize();
    return 0;
}
