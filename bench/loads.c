/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loads KIND:BYTES:DEPTH[:COUNT[:STATE]]...: the throughput of pairs of ranks over their rails, load by load, in one
 * run, so each load starts with the weights left by the load before. The lower half of the ranks is paired with the
 * upper.
 *
 *   trip   messages there and back, one at a time: prints half a round trip in us, all others print MB/s (10^6),
 *          all pairs and directions together
 *   one    windows of DEPTH messages one way, each window answered; both: the same in both directions at once
 *   push   DEPTH messages under way one way all the time; flow: the same in both directions
 *
 * COUNT messages of a pair and direction are timed; 0, or none: as many as take some 100 us at least. STATE:
 *   warm   DEPTH buffers are used over and over, and were before the clock starts
 *   fresh  each message has a buffer that the library has not seen yet, written by the program before the clock starts
 *   land   only at the receiver, and all messages are sent from one buffer
 * Prints "KIND BYTES DEPTH STATE FIGURE". A plain MPI program.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { TAG = 1, ANSWER, DEPTH_MAX = 64, OPENING = 4096, BUFFER_ALIGN = 4096 };

struct load {
    char kind[8];
    int bytes, depth, count;
    char state[8];
    bool sends, receives;
};

static int rank, size, peer;

static void fail(const char *why)
{
    fprintf(stderr, "loads: rank %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static size_t stride_of(int bytes)
{
    return bytes < BUFFER_ALIGN ? 64 * (size_t)(bytes / 64 + 1) : BUFFER_ALIGN * (size_t)(bytes / BUFFER_ALIGN + 1);
}

/* How many. */
static int buffers(const struct load *l, bool out)
{
    if (!strcmp(l->state, "land"))
        return out ? 1 : l->count;
    return !strcmp(l->state, "fresh") ? l->count : l->depth;
}

/* Downwards from an address that is the same in each run, because libraries remember buffers by address. */
static char *map_buffers(const struct load *l, bool out, size_t *len)
{
    static const uintptr_t top = (uintptr_t)1 << 45;
    static uintptr_t lowest;
    char *at;

    *len = stride_of(l->bytes) * (size_t)buffers(l, out);
    *len = (*len + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
    lowest = (out ? lowest : top) - *len;
    at = mmap((void *)lowest, *len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        fail("no memory");
    memset(at, rank + 1, *len);
    return at;
}

/* The buffer of the i-th message. */
static char *buffer(const struct load *l, char *base, bool out, int i)
{
    return base + stride_of(l->bytes) * (size_t)(i % buffers(l, out));
}

static void begin(const struct load *l, char *base, bool sends, int i, MPI_Request *out)
{
    if (sends)
        MPI_Isend(buffer(l, base, sends, i), l->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, out);
    else
        MPI_Irecv(buffer(l, base, sends, i), l->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, out);
}

static void round_trips(const struct load *l, char *in, char *out)
{
    for (int i = 0; i < l->count; i++) {
        if (rank < peer)
            MPI_Send(buffer(l, out, true, i), l->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(buffer(l, in, false, i), l->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank > peer)
            MPI_Send(buffer(l, out, true, i), l->bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    }
}

static void windows(const struct load *l, char *in, char *out)
{
    MPI_Request req[2 * DEPTH_MAX];

    for (int from = 0; from < l->count; from += l->depth) {
        int n = 0, to = from + l->depth < l->count ? from + l->depth : l->count;

        for (int i = from; l->receives && i < to; i++)
            begin(l, in, false, i, &req[n++]);
        for (int i = from; l->sends && i < to; i++)
            begin(l, out, true, i, &req[n++]);
        MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
        if (l->receives)
            MPI_Send(NULL, 0, MPI_BYTE, peer, ANSWER, MPI_COMM_WORLD);
        if (l->sends)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Requests 0 to DEPTH - 1 receive, the others send. */
static void flows(const struct load *l, char *in, char *out)
{
    MPI_Request req[2 * DEPTH_MAX];
    int n = l->depth, next[2] = {l->receives ? 0 : l->count, l->sends ? 0 : l->count};
    int which[2 * DEPTH_MAX], done = 2 * n, busy = 2 * n;

    for (int i = 0; i < 2 * n; i++) {
        req[i] = MPI_REQUEST_NULL;
        which[i] = i;
    }
    while (busy) {
        for (int k = 0; k < done; k++) {
            int i = which[k], sends = i >= n;

            if (next[sends] == l->count)
                busy--;
            else
                begin(l, sends ? out : in, sends, next[sends]++, &req[i]);
        }
        if (busy)
            MPI_Waitsome(2 * n, req, &done, which, MPI_STATUSES_IGNORE);
    }
}

static int count_for(const struct load *l)
{
    int n = (8 << 20) / (l->bytes + 1), least = 4 * l->depth < 12 ? 12 : 4 * l->depth, most = 8 * l->depth + 100;

    return n < least ? least : n > most ? most : n;
}

static void run(const struct load *l, char *in, char *out)
{
    if (!strcmp(l->kind, "trip"))
        round_trips(l, in, out);
    else if (!strcmp(l->kind, "one") || !strcmp(l->kind, "both"))
        windows(l, in, out);
    else
        flows(l, in, out);
}

static void measure(struct load *l)
{
    bool trip = !strcmp(l->kind, "trip"), both = !strcmp(l->kind, "both") || !strcmp(l->kind, "flow");
    double start, mine, s;
    size_t in_len, out_len;
    char *in, *out;
    int pairs;

    if (!trip && !both && strcmp(l->kind, "one") && strcmp(l->kind, "push"))
        fail("no such kind of load");
    l->sends = trip || both || rank < peer;
    l->receives = trip || both || rank > peer;
    in = map_buffers(l, false, &in_len);
    out = map_buffers(l, true, &out_len);
    for (int i = 0; !strcmp(l->state, "warm") && i < 2; i++)
        run(l, in, out);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    run(l, in, out);
    mine = MPI_Wtime() - start;
    for (int i = 0; l->receives && i < l->count; i++)
        if (l->bytes && buffer(l, in, false, i)[l->bytes - 1] != peer + 1)
            fail("wrong data");
    munmap(in, in_len);
    munmap(out, out_len);
    MPI_Reduce(&mine, &s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank)
        return;
    pairs = size / 2;
    printf("%s %d %d %s ", l->kind, l->bytes, l->depth, l->state);
    if (trip)
        printf("%.4f\n", 1e6 * s / (2 * l->count));
    else
        printf("%.3f\n", 1e-6 * l->bytes * l->count * (both ? 2 : 1) * pairs / s);
    fflush(stdout);
}

/* All subchannels are opened by packets, before anything is timed. */
static void open_rails(void)
{
    double until = MPI_Wtime() + 2e-3;
    struct load l = {.kind = "trip", .bytes = OPENING, .depth = 1, .count = 16, .state = "warm"};
    size_t len;
    char more = 1, *in = map_buffers(&l, false, &len), *out = map_buffers(&l, true, &len);

    while (more) {
        round_trips(&l, in, out);
        more = MPI_Wtime() < until;
        MPI_Bcast(&more, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    munmap(in, len);
    munmap(out, len);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || size % 2)
        fail("it takes an even number of ranks");
    peer = (rank + size / 2) % size;
    open_rails();
    for (int i = 1; i < argc; i++) {
        struct load l = {.state = "warm"};

        if (sscanf(argv[i], "%7[a-z]:%d:%d:%d:%7s", l.kind, &l.bytes, &l.depth, &l.count, l.state) < 3 || l.bytes < 0 ||
            l.depth < 1 || l.depth > DEPTH_MAX || l.count < 0 ||
            (strcmp(l.state, "warm") && strcmp(l.state, "fresh") && strcmp(l.state, "land")))
            fail("KIND:BYTES:DEPTH[:COUNT[:STATE]]");
        l.count = l.count ? l.count : count_for(&l);
        measure(&l);
    }
    MPI_Finalize();
    return 0;
}
