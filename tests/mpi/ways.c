/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ways BYTES MS: all ranks of different hosts exchange messages for MS milliseconds, while ways.py has ways fail.
 * Received data is checked. Rank 0 prints the duration and beginning of the longest exchange, and the beginning of its
 * last exchange of more than a millisecond, in milliseconds of the fabric. A rank that gets an error about a failed
 * process prints the time; with "ways wait" rank 0 and the last rank only wait for this error, and with "ways feed" the
 * last rank sends meanwhile. ways BYTES ROUNDS FIRST incast: all ranks from FIRST on send to rank 0. ways BYTES ROUNDS
 * MS computes [FIRST [COMMAND]]: half of the ranks compute for MS in each round; before that rank 0 runs a command, and
 * all wait for each other for FIRST ms. ways BYTES MS PAUSE begins: a pause of PAUSE before the first exchange, which
 * counts, too. ways BYTES MESSAGES MS ends: a pause of MS before the job ends.
 */
#include <limits.h>
#include <time.h>

#include "mt.h"

enum { MESSAGES = 4 };

static int bytes, peers;
static unsigned pauses; /* state of this rank's next pauses; 0: no pauses */
static unsigned char *out, *in;

/* last: the number of the last round; rank 0 decides, and all pass on the value they know. */
struct stamp {
    int round, last;
};

static unsigned char *block(unsigned char *of, int peer, int m)
{
    return of + ((size_t)peer * MESSAGES + (size_t)m) * (size_t)bytes;
}

static void told(int class)
{
    printf("rank %d was told at %.6f class %d\n", rank, MPI_Wtime() * 1e3, class);
    fflush(stdout);
}

/* Up to 100 ms; every second one is short. */
static void maybe_pause(void)
{
    struct timespec t = {0, 0};

    if (!pauses)
        return;
    t.tv_nsec = (long)rand_r(&pauses) % 100000000;
    t.tv_nsec >>= rand_r(&pauses) % 2 ? 0 : 13;
    nanosleep(&t, NULL);
}

/* 0, or the class of an error. */
static int exchange(int round, int *known)
{
    MPI_Request req[64 * 2 * MESSAGES];
    struct stamp mine = {round, *known};
    int n = 0, err, class = 0;

    for (int p = 0; p < size; p++)
        for (int m = 0; m < MESSAGES && p / peers != rank / peers; m++)
            MPI_Irecv(block(in, p, m), bytes, MPI_BYTE, p, m, MPI_COMM_WORLD, &req[n++]);
    for (int p = 0; p < size; p++)
        for (int m = 0; m < MESSAGES && p / peers != rank / peers; m++) {
            memset(block(out, p, m), round + m + rank, (size_t)bytes);
            memcpy(block(out, p, m), &mine, sizeof mine);
            MPI_Isend(block(out, p, m), bytes, MPI_BYTE, p, m, MPI_COMM_WORLD, &req[n++]);
        }
    maybe_pause();
    err = MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
    if (err)
        return MPI_Error_class(err, &class), class;
    for (int p = 0; p < size; p++)
        for (int m = 0; m < MESSAGES && p / peers != rank / peers; m++) {
            const unsigned char *got = block(in, p, m);
            struct stamp s;

            memcpy(&s, got, sizeof s);
            EQ(s.round, round);
            for (int i = (int)sizeof s; i < bytes; i += 61)
                EQ(got[i], (unsigned char)(round + m + p));
            if (bytes > (int)sizeof s)
                EQ(got[bytes - 1], (unsigned char)(round + m + p));
            if (s.last < *known)
                *known = s.last;
        }
    return 0;
}

static int run(double ms)
{
    double most = 0, at = 0, slow = 0, until = MPI_Wtime() + ms / 1e3;
    int round, class = 0, last = INT_MAX;

    for (round = 0; round <= last && !class; round++) {
        double begin = MPI_Wtime(), took;

        if (!rank && begin > until && last == INT_MAX)
            last = round + 2; /* ranks of its own host get it in the next round */
        class = exchange(round, &last);
        took = MPI_Wtime() - begin;
        if (took > 1e-3)
            slow = begin;
        if (took > most) {
            most = took;
            at = begin;
        }
    }
    if (class)
        told(class);
    else if (!rank)
        printf("longest %.6f at %.6f slow %.6f rounds %d\n", most * 1e3, at * 1e3, slow * 1e3, round);
    return class;
}

static int wait_for_peer(int feeds)
{
    int peer = (rank + size / 2) % size, x, class = 0, err = 0;

    if (rank && rank != size - 1)
        peer = rank;
    while (!err && feeds && rank == size - 1)
        err = MPI_Send(&rank, 1, MPI_INT, peer, 3, MPI_COMM_WORLD);
    while (!err)
        err = MPI_Recv(&x, 1, MPI_INT, peer, feeds ? 3 : 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(err, &class);
    told(class);
    return class;
}

/* All ranks but those of the first host send to rank 0 at once, again and again. */
static int incast(int rounds, int first)
{
    MPI_Request *req = malloc((size_t)size * sizeof *req);
    double begin = MPI_Wtime();
    int sender = rank >= first, all = size - first;

    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < all && !rank; i++)
            MPI_Irecv(in + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, first + i, 1, MPI_COMM_WORLD, &req[i]);
        memset(out, rank + round, (size_t)bytes);
        if (sender)
            EQ(MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD), 0);
        for (int i = 0; i < all && !rank; i++) {
            EQ(MPI_Wait(&req[i], MPI_STATUS_IGNORE), 0);
            EQ(in[(size_t)(i + 1) * (size_t)bytes - 1], (unsigned char)(first + i + round));
        }
    }
    if (!rank)
        printf("longest %.6f at %.6f slow 0 rounds %d\n", (MPI_Wtime() - begin) * 1e3, begin * 1e3, rounds);
    free(req);
    return 0;
}

static int exchange_with_pauses(int rounds, unsigned seed)
{
    int most = bytes, last = INT_MAX, class = 0;
    unsigned sizes = seed;
    double begin = MPI_Wtime();

    pauses = seed + 1000003u * (unsigned)(rank + 1);
    for (int round = 0; round < rounds && !class; round++) {
        bytes = rand_r(&sizes) % (most + 1) >> rand_r(&sizes) % 20;
        bytes = bytes < (int)sizeof(struct stamp) ? (int)sizeof(struct stamp) : bytes;
        maybe_pause();
        class = exchange(round, &last);
    }
    bytes = most;
    if (class)
        told(class);
    else if (!rank)
        printf("longest %.6f at %.6f slow 0 rounds %d\n", (MPI_Wtime() - begin) * 1e3, begin * 1e3, rounds);
    return class;
}

/* Pairs of ranks wait for each other for so long, and nothing is sent meanwhile. */
static void wait_idly(double ms)
{
    double end = MPI_Wtime() + ms / 1e3;
    int peer = (rank + peers) % size, x, done;
    MPI_Request req;

    EQ(MPI_Irecv(&x, 1, MPI_INT, peer, MESSAGES, MPI_COMM_WORLD, &req), 0);
    do
        EQ(MPI_Test(&req, &done, MPI_STATUS_IGNORE), 0);
    while (!done && MPI_Wtime() < end);
    EQ(MPI_Send(&rank, 1, MPI_INT, peer, MESSAGES, MPI_COMM_WORLD), 0);
    EQ(MPI_Wait(&req, MPI_STATUS_IGNORE), 0);
    EQ(x, peer);
}

/* After an exchange the second half of the ranks computes, ms milliseconds in each round, while the others wait. */
static int wait_for_computing(int rounds, int ms, int first, const char *command)
{
    int last = INT_MAX, class = 0;
    struct timespec t = {0, 10000000};
    double begin = MPI_Wtime();

    for (int round = 0; round < rounds && !class; round++) {
        class = exchange(round, &last);
        if (command && !rank && !round)
            EQ(system(command), 0);
        if (!class && !round && first)
            wait_idly(first);
        for (int done = 0; done < ms && rank >= peers; done += 10)
            nanosleep(
                &t,
                NULL); /* a rank waiting on a simulated fabric polls at the ends of these naps, and hardly between */
    }
    if (!class)
        class = exchange(rounds, &last);
    if (class)
        told(class);
    else if (!rank)
        printf("longest %.6f at %.6f slow 0 rounds %d\n", (MPI_Wtime() - begin) * 1e3, begin * 1e3, rounds);
    return class;
}

/*
 * All are busy elsewhere for a while, and then end the job: before, the last rank sends rank 0 this number of messages.
 */
static int end_after(int messages, int ms)
{
    struct timespec t = {0, ms * 1000000L};
    int last = INT_MAX, x;

    EQ(exchange(0, &last), 0);
    for (int i = 0; i < messages; i++)
        if (rank == size - 1)
            EQ(MPI_Send(&i, 1, MPI_INT, 0, 1, MPI_COMM_WORLD), 0);
        else if (!rank)
            EQ(MPI_Recv(&x, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 0);
    nanosleep(&t, NULL);
    if (!rank)
        printf("longest 0 at 0 slow 0 rounds 1\n");
    return 0;
}

static int run_after(double ms, int pause)
{
    struct timespec t = {0, pause * 1000000L};

    nanosleep(&t, NULL);
    return run(ms);
}

int main(int argc, char **argv)
{
    int class, last = INT_MAX;

    mt_begin(&argc, &argv);
    CHECK(argc > 1 && size % 2 == 0 && size <= 64);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    peers = size / 2;
    bytes = argc > 2 ? atoi(argv[1]) : (int)sizeof(struct stamp);
    CHECK(bytes >= (int)sizeof(struct stamp));
    out = calloc((size_t)size * MESSAGES, (size_t)bytes);
    in = calloc((size_t)size * MESSAGES, (size_t)bytes);
    if (argc < 5)
        EQ(exchange(-1, &last), 0);
    if (argc > 4 && !strcmp(argv[4], "pauses"))
        class = exchange_with_pauses(atoi(argv[2]), (unsigned)atoi(argv[3]));
    else if (argc > 4 && !strcmp(argv[4], "computes"))
        class = wait_for_computing(atoi(argv[2]), atoi(argv[3]), argv[5] ? atoi(argv[5]) : 0, argv[5] ? argv[6] : NULL);
    else if (argc > 4 && !strcmp(argv[4], "begins"))
        class = run_after(atof(argv[2]), atoi(argv[3]));
    else if (argc > 4 && !strcmp(argv[4], "ends"))
        class = end_after(atoi(argv[2]), atoi(argv[3]));
    else if (argc > 4)
        class = incast(atoi(argv[2]), atoi(argv[3]));
    else if (argc > 2)
        class = run(atof(argv[2]));
    else
        class = wait_for_peer(!strcmp(argv[1], "feed"));
    free(out);
    free(in);
    if (class)
        return 0; /* the launcher waits for the others, which get the error as well */
    return mt_end();
}
