/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of all sizes in both directions while commands break and mend their connections: nothing is lost, doubled,
 * reordered or changed. failover ROUNDS COMMAND...: rank 0 runs the commands, in turn, in the middle of every third
 * round, or of one in EVERY. PEER in their environment is the process of its peer. With PAUSE_MS set, all wait this
 * long after such a round, or after the first PAUSES of them, and poll the network meanwhile; with MOST_BYTES set no
 * message is longer, with PER_SIZE there are so many of each size, with ALL each talks to every other one, and with NEW
 * all buffers are new in each round. FIRST is a command that rank 0 runs before the first message.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int sizes[] = {0, 8, 200, 3000, 8000, 40000, 300000, 2000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static unsigned char **out, **in; /* of each peer, one after the other */
static int rank, size, errors, peers, messages = 6 * SIZES, every = 3, pauses = 1000000;

static int peer_of(int message)
{
    return (rank + (peers > 1 ? 1 + message / messages : size / 2)) % size;
}

static int size_of(int message)
{
    return sizes[message % messages % SIZES];
}

/* The bytes of a message, in rows of 256, which a compiler turns into few instructions. */
static void make_bytes(unsigned char *to, int n, int from, int round, int message)
{
    unsigned char row[256], first = (unsigned char)(from * 31 + round * 7 + message * 13);

    for (int at = 0; at < n; at += 256) {
        for (int i = 0; i < 256; i++)
            row[i] = (unsigned char)(first + i * 5 + (at >> 8));
        memcpy(to + at, row, (size_t)(n - at < 256 ? n - at : 256));
    }
}

static void check(int round, int m, const MPI_Status *st)
{
    static unsigned char *wanted;
    static int room;
    int n, bad = 0;

    MPI_Get_count(st, MPI_BYTE, &n);
    if (n >= room && !(wanted = realloc(wanted, (size_t)(room = n + 1))))
        MPI_Abort(MPI_COMM_WORLD, 2);
    make_bytes(wanted, n, peer_of(m), round, m % messages);
    if (n == size_of(m) && !memcmp(in[m], wanted, (size_t)n))
        return;
    while (bad < n && in[m][bad] == wanted[bad])
        bad++;
    printf("rank %d, round %d, message %d from %d: %d bytes of %d, the first wrong one %d\n", rank, round, m % messages,
           peer_of(m), n, size_of(m), bad < n ? bad : -1);
    errors++;
}

/* Returns the command's seconds, which vary, because others need time meanwhile. */
static double run(const char *command)
{
    double begin = MPI_Wtime(), end;

    printf("before %.3f\n", begin * 1e3);
    if (system(command))
        errors++;
    end = MPI_Wtime();
    printf("after %.3f\n", end * 1e3);
    return end - begin;
}

/* The seconds of the round without the command. */
static double run_round(int round, const char *command)
{
    int all = peers * messages;
    MPI_Request *req = malloc(2 * (size_t)all * sizeof *req);
    MPI_Status *st = malloc(2 * (size_t)all * sizeof *st);
    double begin = MPI_Wtime(), command_s = 0, end;

    for (int m = 0; m < all; m++) {
        make_bytes(out[m], size_of(m), rank, round, m % messages);
        memset(in[m], 0, (size_t)size_of(m) + 1);
        MPI_Irecv(in[m], size_of(m) + 1, MPI_BYTE, peer_of(m), 1, MPI_COMM_WORLD, &req[m]);
    }
    for (int m = 0; m < all; m++) {
        if (m == all / 2 && command && !rank)
            command_s = run(command);
        MPI_Isend(out[m], size_of(m), MPI_BYTE, peer_of(m), 1, MPI_COMM_WORLD, &req[all + m]);
    }
    MPI_Waitall(2 * all, req, st);
    for (int m = 0; m < all; m++)
        check(round, m, &st[m]);
    for (int m = 0; m < all; m++)
        memset(out[m], 0xee, (size_t)size_of(m) + 1); /* data to be sent again is not taken from here */
    end = MPI_Wtime();
    free(req);
    free(st);
    return end - begin - command_s;
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

static void read_settings(void)
{
    const char *most = getenv("MOST_BYTES"), *per_size = getenv("PER_SIZE");

    for (int i = 0; most && i < SIZES; i++)
        if (sizes[i] > atoi(most))
            sizes[i] = atoi(most);
    if (per_size)
        messages = atoi(per_size) * SIZES;
    if (getenv("EVERY"))
        every = atoi(getenv("EVERY"));
    if (getenv("PAUSES"))
        pauses = atoi(getenv("PAUSES"));
    peers = getenv("ALL") ? size - 1 : 1;
}

static unsigned char *new_buffer(int m)
{
    void *at = mmap(NULL, (size_t)size_of(m) + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return at;
}

static void fill_lists(void)
{
    for (int m = 0; m < peers * messages; m++) {
        out[m] = new_buffer(m);
        in[m] = new_buffer(m);
    }
}

static void make_buffers(void)
{
    out = malloc((size_t)peers * (size_t)messages * sizeof *out);
    in = malloc((size_t)peers * (size_t)messages * sizeof *in);
    fill_lists();
}

static void renew_buffers(void)
{
    for (int m = 0; m < peers * messages; m++) {
        munmap(out[m], (size_t)size_of(m) + 1);
        munmap(in[m], (size_t)size_of(m) + 1);
    }
    fill_lists();
}

int main(int argc, char **argv)
{
    int rounds, sum, all = 0;

    setvbuf(stdout, NULL, _IOLBF, 0); /* shows the progress */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rounds = argc > 1 ? atoi(argv[1]) : 10;
    read_settings();
    if (!rank && getenv("FIRST") && system(getenv("FIRST")))
        errors++;
    learn_peer();
    make_buffers();
    for (int r = 0; r < rounds; r++) {
        const char *command = argc > 2 && r % every == 1 % every ? argv[2 + r / every % (argc - 2)] : NULL;
        double took = run_round(r, command);

        if (!rank)
            printf("round %d: %.3f ms%s%s\n", r, took * 1e3, command ? ", " : "", command ? command : "");
        if (r % every == 1 % every && pauses-- > 0)
            rest(getenv("PAUSE_MS"));
        if (getenv("NEW"))
            renew_buffers();
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
