/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of all sizes in both directions while commands break and mend what carries them: nothing is lost, doubled,
 * reordered or changed. failover ROUNDS COMMAND...: rank 0 runs the commands, in turn, in the middle of rounds. PEER in
 * their environment is the process that it talks to. With PAUSE_MS set all wait so long after such a round, and look at
 * the network meanwhile; with MOST_BYTES set no message is longer. FIRST is a
 * command that rank 0 runs before the first message.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PER_SIZE = 6 };
static int sizes[] = {0, 8, 200, 3000, 8000, 40000, 300000, 2000000};
enum { SIZES = sizeof sizes / sizeof *sizes, MESSAGES = SIZES * PER_SIZE };

static unsigned char *out[MESSAGES], *in[MESSAGES];
static int rank, size, errors;

static unsigned char byte_of(int from, int round, int message, int at)
{
    return (unsigned char)(from * 31 + round * 7 + message * 13 + at * 5 + (at >> 8));
}

static void check(int from, int round, int m, const MPI_Status *st)
{
    int n, bad = -1;

    MPI_Get_count(st, MPI_BYTE, &n);
    for (int i = 0; i < n && bad < 0; i++)
        if (in[m][i] != byte_of(from, round, m, i))
            bad = i;
    if (n == sizes[m % SIZES] && bad < 0)
        return;
    printf("rank %d, round %d, message %d: %d bytes of %d, the first wrong one %d\n", rank, round, m, n,
           sizes[m % SIZES], bad);
    errors++;
}

static void run_round(int round, const char *command)
{
    int peer = (rank + size / 2) % size;
    MPI_Request req[2 * MESSAGES];
    MPI_Status st[2 * MESSAGES];

    for (int m = 0; m < MESSAGES; m++) {
        for (int i = 0; i < sizes[m % SIZES]; i++)
            out[m][i] = byte_of(rank, round, m, i);
        memset(in[m], 0, (size_t)sizes[m % SIZES] + 1);
        MPI_Irecv(in[m], sizes[m % SIZES] + 1, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &req[m]);
    }
    for (int m = 0; m < MESSAGES; m++) {
        if (m == MESSAGES / 2 && command && !rank) {
            printf("before %.3f\n", MPI_Wtime() * 1e3);
            if (system(command))
                errors++;
            printf("after %.3f\n", MPI_Wtime() * 1e3);
        }
        MPI_Isend(out[m], sizes[m % SIZES], MPI_BYTE, peer, 1, MPI_COMM_WORLD, &req[MESSAGES + m]);
    }
    MPI_Waitall(2 * MESSAGES, req, st);
    for (int m = 0; m < MESSAGES; m++)
        check(peer, round, m, &st[m]);
    for (int m = 0; m < MESSAGES; m++)
        memset(out[m], 0xee, (size_t)sizes[m % SIZES] + 1); /* what is sent again is not taken from here */
}

static void rest(const char *ms)
{
    double until = MPI_Wtime() + (ms ? atoi(ms) : 0) * 1e-3;
    int flag;

    while (MPI_Wtime() < until)
        MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void learn_peer(void)
{
    int peer = (rank + size / 2) % size, mine = getpid(), its;
    char text[16];

    MPI_Sendrecv(&mine, 1, MPI_INT, peer, 0, &its, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    snprintf(text, sizeof text, "%d", its);
    setenv("PEER", text, 1);
}

int main(int argc, char **argv)
{
    int rounds, sum, all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rounds = argc > 1 ? atoi(argv[1]) : 10;
    for (int i = 0; getenv("MOST_BYTES") && i < SIZES; i++)
        if (sizes[i] > atoi(getenv("MOST_BYTES")))
            sizes[i] = atoi(getenv("MOST_BYTES"));
    if (!rank && getenv("FIRST") && system(getenv("FIRST")))
        errors++;
    learn_peer();
    for (int m = 0; m < MESSAGES; m++) {
        out[m] = malloc((size_t)sizes[m % SIZES] + 1);
        in[m] = malloc((size_t)sizes[m % SIZES] + 1);
    }
    for (int r = 0; r < rounds; r++) {
        const char *command = argc > 2 && r % 3 == 1 ? argv[2 + r / 3 % (argc - 2)] : NULL;
        double begin = MPI_Wtime();

        run_round(r, command);
        if (!rank)
            printf("round %d: %.3f ms%s%s\n", r, (MPI_Wtime() - begin) * 1e3, command ? ", " : "",
                   command ? command : "");
        if (r % 3 == 1)
            rest(getenv("PAUSE_MS"));
        sum = rank + r;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != size * (size - 1) / 2 + size * r)
            errors++;
    }
    MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank)
        printf("%d rounds, %d errors\n", rounds, all);
    MPI_Finalize();
    return all != 0;
}
