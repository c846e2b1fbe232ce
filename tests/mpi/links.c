/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between two ranks, for links.sh: traffic to test a kind of link. links ping [again]: the time of each of some round
 * trips, printed. links stream N: N short messages one way, then an answer. links flood N: N messages of 8000 bytes to
 * a rank that does not poll for a while. links compute SECONDS: messages to a rank that computes for this time. links
 * crowd N: rounds of N messages from all ranks to the first. links leave N: N large messages to a rank that leaves MPI
 * for a while after each.
 */
#include <unistd.h>

#include "p2p.h"

enum { PINGS = 40, COMPUTED = 40, LONG_BYTES = 8000, LARGE_BYTES = 64000, ROUNDS = 8 };

static void ping(void)
{
    static const size_t sizes[] = {0, 8, 200, 3000, 8000, 40000, 300000};
    char *buf = room(300000);

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int i = 0; i < PINGS; i++) {
            double begin = MPI_Wtime();
            int n = (int)sizes[s];

            if (rank == 0)
                MPI_Send(buf, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(buf, n, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1)
                MPI_Send(buf, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            else
                printf("%d bytes: %.3f us\n", n, (MPI_Wtime() - begin) * 1e6);
        }
    free(buf);
}

static void stream(int messages)
{
    double begin = MPI_Wtime();

    for (int i = 0, got; i < messages; i++)
        if (rank == 0) {
            MPI_Send(&i, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(got == i);
        }
    if (rank == 1)
        MPI_Send(&messages, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    else
        MPI_Recv(&messages, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("%.3f us a message\n", (MPI_Wtime() - begin) * 1e6 / messages);
}

/* Messages of LONG_BYTES, all sent before the other end, which sleeps without polling, takes one. */
static void flood(int messages, unsigned sleep_us)
{
    unsigned char *buf = room((size_t)messages * LONG_BYTES);
    MPI_Request *req = room((size_t)(messages + 1) * sizeof *req);
    double begin = MPI_Wtime();
    int answer = 0;

    if (rank == 1)
        usleep(sleep_us);
    for (int i = 0; i < messages; i++) {
        unsigned char *at = buf + (size_t)i * LONG_BYTES;

        if (rank == 0) {
            fill(at, LONG_BYTES, (unsigned)i);
            MPI_Isend(at, LONG_BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &req[i]);
        } else {
            MPI_Irecv(at, LONG_BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &req[i]);
        }
    }
    if (rank == 0)
        MPI_Irecv(&answer, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &req[messages]);
    MPI_Waitall(messages + !rank, req, MPI_STATUSES_IGNORE);
    for (int i = 0; rank == 1 && i < messages; i++)
        CHECK(holds(buf + (size_t)i * LONG_BYTES, LONG_BYTES, (unsigned)i));
    if (rank == 1)
        MPI_Send(&answer, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    else
        printf("all are there after %.3f s\n", MPI_Wtime() - begin);
    free(req);
    free(buf);
}

/* All send at once, and share the first rank's room. */
static void crowd(int messages)
{
    unsigned char *buf = room(LONG_BYTES);
    double begin = MPI_Wtime();

    for (int round = 0; round < ROUNDS; round++) {
        if (!rank)
            usleep(5000);
        for (int i = 0; i < messages && rank; i++) {
            fill(buf, LONG_BYTES, (unsigned)(rank + i));
            MPI_Send(buf, LONG_BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
        for (int from = 1; from < size && !rank; from++)
            for (int i = 0; i < messages; i++) {
                MPI_Recv(buf, LONG_BYTES, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(holds(buf, LONG_BYTES, (unsigned)(from + i)));
            }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!rank)
        printf("all are there after %.3f s\n", MPI_Wtime() - begin);
    free(buf);
}

static void leave(int messages)
{
    unsigned char *buf = room(LARGE_BYTES);
    double begin, took, most = 0;

    for (int i = 0; i < messages; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        if (rank == 0) {
            fill(buf, LARGE_BYTES, (unsigned)i);
            MPI_Send(buf, LARGE_BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            took = MPI_Wtime() - begin;
            most = took > most ? took : most;
        } else {
            MPI_Recv(buf, LARGE_BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(holds(buf, LARGE_BYTES, (unsigned)i));
            usleep(5000);
        }
    }
    if (rank == 0)
        printf("a send took %.0f us at most\n", most * 1e6);
    free(buf);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "ping";
    int n = argc > 2 ? atoi(argv[2]) : 0;

    begin(&argc, &argv);
    CHECK(size == 2 || !strcmp(what, "crowd"));
    if (size == 2)
        stream(1); /* to connect them */
    if (!strcmp(what, "crowd"))
        crowd(n);
    else if (!strcmp(what, "ping"))
        ping();
    else if (!strcmp(what, "stream"))
        stream(n);
    else if (!strcmp(what, "leave"))
        leave(n);
    else if (!strcmp(what, "flood"))
        flood(n, 200000);
    else if (!strcmp(what, "compute"))
        flood(COMPUTED, (unsigned)n * 1000000);
    else
        CHECK(!"known");
    MPI_Finalize();
    return 0;
}
