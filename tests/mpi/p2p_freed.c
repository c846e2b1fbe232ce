/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Senders that give up their part of a message: the request is freed while the message is under way, or the program
 * computes instead of calling MPI. The receiver, whose waits sleep, must not be delayed. Each rank sends to the next
 * one, and at last into MPI_Finalize.
 *
 * Arguments, for ranks of one node: the copy mode of large messages (MRMPI_SHM_COPY), and "busy": a yield takes a
 * millisecond, as on a busy machine, so waiters sleep early and long.
 */
#include <sched.h>
#include <time.h>

#include "p2p.h"

enum { ROUNDS = 6, MOST = 4 << 20, TAG = 80, AWAY_MS = 600, LATE_MS = AWAY_MS / 2, STALLED_MS = 2000 };
static const size_t lengths[] = {8, 4096, 70000, 300000, 1 << 20, MOST};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static char *out, *in;
static int left, right, busy;

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Found before the C library's. */
__attribute__((visibility("default"))) int sched_yield(void)
{
    if (busy)
        sleep_ms(1);
    return 0;
}

/* Both halves of the ranks wait for the other one until a yield of theirs has taken long. */
static void make_waits_sleep(void)
{
    for (int half = 0; busy && half < 2; half++) {
        if (rank % 2 == half)
            sleep_ms(10);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static double ms_since(double begin)
{
    return (MPI_Wtime() - begin) * 1e3;
}

static void exchange_freed(size_t len, unsigned round)
{
    MPI_Request recv, send;
    double begin;

    fill(out, len, round + (unsigned)rank);
    make_waits_sleep();
    begin = MPI_Wtime();
    MPI_Irecv(in, (int)len, MPI_BYTE, left, TAG, MPI_COMM_WORLD, &recv);
    MPI_Isend(out, (int)len, MPI_BYTE, right, TAG, MPI_COMM_WORLD, &send);
    MPI_Request_free(&send);
    MPI_Wait(&recv, MPI_STATUS_IGNORE);
    CHECK(ms_since(begin) < STALLED_MS);
    CHECK(holds(in, len, round + (unsigned)left));
    MPI_Barrier(MPI_COMM_WORLD); /* the message to the right has arrived, too: out may change */
}

/* The first tests of a send may begin to move it. */
static void send_and_compute(size_t len, int tests)
{
    MPI_Request send;
    int flag = 0;

    fill(out, len, (unsigned)tests);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out, (int)len, MPI_BYTE, right, TAG, MPI_COMM_WORLD, &send);
    for (int i = 0; i < tests && !flag; i++) {
        sleep_ms(1);
        MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
    }
    sleep_ms(AWAY_MS);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

static void receive_in_time(size_t len, int tests)
{
    double begin;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    MPI_Recv(in, (int)len, MPI_BYTE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(ms_since(begin) < LATE_MS);
    CHECK(holds(in, len, (unsigned)tests));
}

static void compute_meanwhile(size_t len, int tests)
{
    make_waits_sleep();
    if (rank % 2 == 0 && right != 0)
        send_and_compute(len, tests);
    else if (rank % 2)
        receive_in_time(len, tests);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Nobody waits for the send but MPI_Finalize. */
static void free_at_the_end(size_t len)
{
    MPI_Request send;

    fill(out, len, (unsigned)rank);
    MPI_Isend(out, (int)len, MPI_BYTE, right, TAG, MPI_COMM_WORLD, &send);
    MPI_Request_free(&send);
    MPI_Recv(in, (int)len, MPI_BYTE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(holds(in, len, (unsigned)left));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        setenv("MRMPI_SHM_COPY", argv[1], 1);
    begin(&argc, &argv);
    busy = argc > 2;
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    out = room(MOST);
    in = room(MOST);
    for (unsigned i = 0; i < LENGTHS; i++)
        for (unsigned round = 0; round < ROUNDS; round++)
            exchange_freed(lengths[i], round);
    if (busy)
        for (int tests = 0; tests < 3; tests += 2)
            compute_meanwhile(MOST, tests);
    free_at_the_end(MOST);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
