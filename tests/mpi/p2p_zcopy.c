/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy sends: the program's memory is changed as soon as the send is complete, whether the receiver waits,
 * answers, or is late; sends are cancelled, or freed, while under way. Each rank of the lower half sends to one of the
 * upper half, and back. The argument: number of times, default 120.
 */
#include <unistd.h>

#include "p2p.h"

enum { WINDOW = 12, MOST = 16384, TAG = 1, WORD };

static const int lengths[] = {2048, 3000, 4096, 8192, 9000, MOST};
static char *out[WINDOW], *in;
static int peer;
static unsigned rounds = 120;

static void send_changed(int len, unsigned seed)
{
    fill(out[0], (size_t)len, seed);
    MPI_Send(out[0], len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    memset(out[0], 0xee, (size_t)len);
}

static void receive(int len, unsigned seed)
{
    MPI_Status st;
    int n;

    MPI_Recv(in, MOST, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_BYTE, &n);
    CHECK(n == len && holds(in, (size_t)len, seed));
}

static void answers(int len)
{
    for (unsigned round = 0; round < rounds; round++) {
        if (rank < peer)
            send_changed(len, round);
        receive(len, round);
        if (rank > peer)
            send_changed(len, round);
    }
    if (rank < peer)
        send_changed(len, rounds);
    else
        receive(len, rounds);
    if (rank > peer)
        send_changed(len, rounds);
    else
        receive(len, rounds);
}

/* late: nobody receives before all have been sent, and changed. */
static void windows(int len, int late)
{
    MPI_Request req[WINDOW];

    for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < WINDOW; i++) {
            fill(out[i], (size_t)len, round + (unsigned)i);
            MPI_Isend(out[i], len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[i]);
        }
        for (int i = 0; i < WINDOW; i++) {
            MPI_Wait(&req[i], MPI_STATUS_IGNORE);
            memset(out[i], 0xee, (size_t)len);
        }
        if (late)
            MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < WINDOW; i++)
            receive(len, round + (unsigned)i);
    }
}

/* Whoever is told that a send is cancelled gets no message, and others do. */
static void cancelled(int len)
{
    for (unsigned round = 0; round < rounds; round++) {
        MPI_Request req;
        MPI_Status st;
        int flag, theirs;

        fill(out[0], (size_t)len, round);
        MPI_Isend(out[0], len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req);
        MPI_Cancel(&req);
        MPI_Wait(&req, &st);
        MPI_Test_cancelled(&st, &flag);
        MPI_Sendrecv(&flag, 1, MPI_INT, peer, WORD, &theirs, 1, MPI_INT, peer, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(flag); /* nobody has received anything since */
        if (!theirs)
            receive(len, round);
    }
}

/* The same for buffered sends, complete for the program at once. */
static void cancelled_buffered(int len)
{
    int space = 4 * (len + MPI_BSEND_OVERHEAD);
    void *buffer = room((size_t)space);

    MPI_Buffer_attach(buffer, space);
    for (unsigned round = 0; round < rounds; round++) {
        MPI_Request req;
        MPI_Status st;
        int flag, theirs;

        fill(out[0], (size_t)len, round);
        MPI_Ibsend(out[0], len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req);
        if (round % 2)
            MPI_Cancel(&req);
        MPI_Wait(&req, &st);
        MPI_Test_cancelled(&st, &flag);
        MPI_Sendrecv(&flag, 1, MPI_INT, peer, WORD, &theirs, 1, MPI_INT, peer, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(flag == (int)(round % 2));
        if (!theirs)
            receive(len, round);
    }
    MPI_Buffer_detach(&buffer, &space);
    free(buffer);
}

static void freed(int len)
{
    for (unsigned round = 0; round < rounds; round++) {
        MPI_Request req;

        fill(out[0], (size_t)len, round);
        MPI_Isend(out[0], len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req);
        MPI_Request_free(&req);
        receive(len, round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size % 2 == 0);
    peer = (rank + size / 2) % size;
    if (argc > 1)
        rounds = (unsigned)atoi(argv[1]);
    for (int i = 0; i < WINDOW; i++)
        out[i] = room(MOST);
    in = room(MOST);
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        answers(lengths[i]);
        windows(lengths[i], 0);
        windows(lengths[i], 1);
        cancelled(lengths[i]);
        cancelled_buffered(lengths[i]);
        freed(lengths[i]);
    }
    MPI_Finalize();
    return 0;
}
