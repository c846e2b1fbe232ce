/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * streams [-o] [-d DEPTH] WHAT...: latency and bandwidth between pairs of ranks; the lower half of the ranks is paired
 * with the upper.
 *
 *   latency:BYTES     half a round trip of every pair at once: "latency BYTES MICROSECONDS"
 *   one:BYTES         windows of messages one way, each window answered: "one BYTES MB/S MESSAGES/S" (10^6 bytes), all
 *                     pairs together. -o: odd pairs send in the other direction
 *   both:BYTES        the same in both directions at once, added up
 *   flow:BYTES        the same, but without windows that end: for each message that is done the next one is begun
 *   push:BYTES        the same in one direction
 *                     -d: DEPTH messages of a pair and direction are under way, in a window or without
 *   rest:MS           for so long each pair sends 8 bytes there and back once in a ms, and nothing else: "rest MS"
 *   time:BYTES:INTERVAL_US:INTERVALS:BEGIN_US:END_US
 *                     the first pair streams one way all the time, the others from BEGIN to END:
 *                     "time END_OF_INTERVAL_MS MB/S" of the first pair
 *
 * Contents are checked once for each WHAT. Figures are means over a fixed number of rounds: simulated time has no
 * outliers.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TAG = 1,
    ANSWER,
    WINDOW = 64,
    WINDOW_LARGE = 16,
    WINDOW_TIME = 8,
    SHORT = 4096,
    LARGE = 256 * 1024,
    WARM_UP = 3
};

static int rank, size, peer;
static bool lower, alternate; /* in the lower half of the ranks; -o */
static int fixed_depth;       /* of a window, if not 0 */
static char *in, *out;

static int pair_number(void)
{
    return lower ? rank : peer;
}

static void fail(int code, const char *why)
{
    fprintf(stderr, "streams: rank %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, code);
}

static void buffers(int bytes)
{
    in = calloc(1, (size_t)bytes + 1);
    out = malloc((size_t)bytes + 1);
    if (!in || !out)
        fail(3, "no memory");
    for (int i = 0; i < bytes; i++)
        out[i] = (char)(i * 7 + rank);
}

static void check(int bytes)
{
    for (int i = 0; i < bytes; i++)
        if (in[i] != (char)(i * 7 + peer))
            fail(1, "wrong data");
}

static void round_trip(int bytes)
{
    if (lower)
        MPI_Send(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!lower)
        MPI_Send(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

static int depth(int bytes)
{
    return fixed_depth ? fixed_depth : bytes < LARGE ? WINDOW : WINDOW_LARGE;
}

static void window(int bytes, bool sending, bool receiving)
{
    MPI_Request req[2 * WINDOW];
    int n = 0;

    for (int i = 0; receiving && i < depth(bytes); i++)
        MPI_Irecv(in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[n++]);
    for (int i = 0; sending && i < depth(bytes); i++)
        MPI_Isend(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[n++]);
    MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
    if (receiving)
        MPI_Send(NULL, 0, MPI_BYTE, peer, ANSWER, MPI_COMM_WORLD);
    if (sending)
        MPI_Recv(NULL, 0, MPI_BYTE, peer, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static bool is_sender(void)
{
    return lower != (alternate && pair_number() % 2);
}

static void one(int bytes)
{
    window(bytes, is_sender(), !is_sender());
}

static void both(int bytes)
{
    window(bytes, true, true);
}

enum { FLOW = 20, FLOW_LARGE = 8, FLOW_LEAST = 4 }; /* windows' worth of messages; at least of windows so deep */

static int flow_count(int bytes)
{
    int windows = bytes < 4 * LARGE || !fixed_depth ? FLOW : FLOW_LARGE;

    return windows * (depth(bytes) < FLOW_LEAST ? FLOW_LEAST : depth(bytes));
}

/* A window's worth under way all the time. The first requests are receives. */
static void keep_going(int bytes, bool sending, bool receiving)
{
    int n = depth(bytes), left[2] = {receiving ? flow_count(bytes) : 0, sending ? flow_count(bytes) : 0};
    int busy = 2 * n, done, which[2 * WINDOW];
    MPI_Request req[2 * WINDOW];

    for (int i = 0; i < 2 * n; i++)
        req[i] = MPI_REQUEST_NULL;
    for (done = 0; done < 2 * n; done++)
        which[done] = done;
    while (busy) {
        for (int k = 0; k < done; k++) {
            int i = which[k], sends = i >= n;

            if (!left[sends])
                busy--;
            else if (sends)
                MPI_Isend(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[i]);
            else
                MPI_Irecv(in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[i]);
            left[sends] -= left[sends] > 0;
        }
        if (busy)
            MPI_Waitsome(2 * n, req, &done, which, MPI_STATUSES_IGNORE);
    }
}

static void flow(int bytes)
{
    keep_going(bytes, true, true);
}

static void push(int bytes)
{
    keep_going(bytes, is_sender(), !is_sender());
}

static const struct kind {
    const char *name;
    void (*step)(int bytes);
    int ways; /* 0: a round trip */
    bool flows;
    int rounds[3]; /* of short messages, of others, of large ones: a figure takes some 100 us at least, and not much
                      more */
} kinds[] = {{"latency", round_trip, 0, false, {200, 200, 10}},
             {"one", one, 1, false, {60, 6, 3}},
             {"both", both, 2, false, {60, 6, 3}},
             {"flow", flow, 2, true, {1, 1, 1}},
             {"push", push, 1, true, {1, 1, 1}}};

static void measure(const struct kind *k, int bytes)
{
    int rounds = k->rounds[bytes <= SHORT ? 0 : bytes < LARGE ? 1 : 2];
    int pairs = size / 2;
    double start, mine, s, n = 1.0 * k->ways * (k->flows ? flow_count(bytes) : depth(bytes)) * pairs;

    buffers(bytes);
    k->step(bytes); /* connections, registrations */
    check(k->ways == 1 && is_sender() ? 0 : bytes);
    for (int i = 0; i < WARM_UP; i++)
        k->step(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < rounds; i++)
        k->step(bytes);
    mine = (MPI_Wtime() - start) / rounds;
    MPI_Reduce(&mine, &s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0 && n > 0)
        printf("%s %d %.3f %.0f\n", k->name, bytes, 1e-6 * n * bytes / s, n / s);
    else if (rank == 0)
        printf("%s %d %.4f\n", k->name, bytes, 1e6 * s / 2);
    fflush(stdout);
    free(in);
    free(out);
}

static void sleep_until(double then)
{
    double left = then - MPI_Wtime();

    if (left > 0)
        nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)}, NULL);
}

struct interval {
    double bytes, last; /* when its last window ended */
};

static void rest(int ms)
{
    double start;

    buffers(8);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 1; i <= ms; i++) {
        round_trip(8);
        sleep_until(start + 1e-3 * i);
    }
    if (rank == 0)
        printf("rest %d\n", ms);
    fflush(stdout);
    free(in);
    free(out);
}

/* The sender decides the last window, and marks it in the first byte of each. */
static void stream_until(double then, double start, double length, int bytes, struct interval *intervals, int n)
{
    bool more = true;

    while (more) {
        if (is_sender())
            out[0] = MPI_Wtime() < then;
        one(bytes);
        more = is_sender() ? out[0] : in[0];
        double now = MPI_Wtime();
        int at = (int)((now - start) / length);
        if (intervals && at < n) {
            intervals[at].bytes += 1.0 * bytes * depth(bytes);
            intervals[at].last = now;
        }
    }
}

/* Bytes over the time between the windows that were the last ones of two intervals, since windows do not end with them.
 */
static void print_intervals(const struct interval *intervals, int n, double start, double length)
{
    double since = start;

    for (int i = 0; i < n; i++) {
        double rate = intervals[i].bytes > 0 ? 1e-6 * intervals[i].bytes / (intervals[i].last - since) : 0;

        printf("time %g %.2f\n", 1e3 * length * (i + 1), rate);
        if (intervals[i].bytes > 0)
            since = intervals[i].last;
    }
}

static void over_time(int bytes, double length, int n, double begin, double end)
{
    struct interval *intervals = calloc((size_t)n, sizeof *intervals);
    int usual = fixed_depth;
    double start;

    if (!intervals)
        fail(3, "no memory");
    fixed_depth = WINDOW_TIME;
    buffers(bytes);
    one(bytes);
    check(is_sender() ? 0 : bytes);
    MPI_Barrier(MPI_COMM_WORLD); /* the first one opens connections, whose peers must not be asleep */
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (pair_number() == 0) {
        stream_until(start + length * n, start, length, bytes, intervals, n);
    } else {
        sleep_until(start + begin);
        stream_until(start + end, start, length, bytes, NULL, 0);
    }
    if (rank == 0)
        print_intervals(intervals, n, start, length);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    fixed_depth = usual;
    free(intervals);
    free(in);
    free(out);
}

/* Paths beyond the first are opened while messages go already: the first figure is not to show that. */
static void open_paths(void)
{
    enum { ROUNDS_AT_ONCE = 16 };
    int bytes = 4096;
    double until = MPI_Wtime() + 2e-3;
    char more = 1;

    buffers(bytes);
    while (more) {
        for (int i = 0; i < ROUNDS_AT_ONCE; i++)
            round_trip(bytes);
        more = MPI_Wtime() < until;
        MPI_Bcast(&more, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    free(in);
    free(out);
}

static void run(const char *what)
{
    char name[16];
    int bytes, intervals;
    double interval, begin, end;

    if (sscanf(what, "time:%d:%lf:%d:%lf:%lf", &bytes, &interval, &intervals, &begin, &end) == 5 && bytes > 0 &&
        intervals > 0 && interval > 0) {
        over_time(bytes, interval * 1e-6, intervals, begin * 1e-6, end * 1e-6);
        return;
    }
    if (sscanf(what, "rest:%d", &bytes) == 1 && bytes > 0) {
        rest(bytes);
        return;
    }
    if (sscanf(what, "%15[a-z]:%d", name, &bytes) == 2 && bytes >= 0)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (!strcmp(name, kinds[k].name)) {
                measure(&kinds[k], bytes);
                return;
            }
    fail(2, "cannot read its arguments");
}

int main(int argc, char **argv)
{
    int first = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size % 2)
        fail(2, "needs an even number of ranks");
    lower = rank < size / 2;
    peer = (rank + size / 2) % size;
    if (argc > first && !strcmp(argv[first], "-o")) {
        alternate = true;
        first++;
    }
    if (argc > first + 1 && !strcmp(argv[first], "-d")) {
        fixed_depth = atoi(argv[first + 1]);
        if (fixed_depth < 1 || fixed_depth > WINDOW)
            fail(2, "cannot have so many messages under way");
        first += 2;
    }
    open_paths();
    for (int i = first; i < argc; i++)
        run(argv[i]);
    MPI_Finalize();
    return 0;
}
