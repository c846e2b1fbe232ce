/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contend WHAT...: jobs over the same cable. All begin at the gate (gate.h); the lower half of the ranks is paired with
 * the upper.
 *
 *   load:SHAPE:BYTES:DEPTH the load: streams of messages, DEPTH of each under way, until the measured job is done
 *       SHAPE: pairs, from the lower half to the upper; both, both ways; one, all to the last rank; all, each to each
 *   latency:BYTES half a round trip of each pair: "latency BYTES MEAN_US WORST_US", of all pairs
 *   later:US the next items are measured from US after the load's beginning
 *   series:BYTES:INTERVAL_US:INTERVALS:CHANGE_US the same, by intervals, from the beginning: "series END_MS WORST_US
 *       MEAN_US". At CHANGE_US and at twice that the first and the second rank start FIGURES_CHANGE, a command, and go
 *       on
 *
 * At the end: "resent N", "broken N", "changed N", these counters of all of its ranks together.
 *
 * With several latencies the job measures one after the other beside the same load. Simulated time has no outliers but
 * those of the load, so means and the largest are both of use.
 */
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "gate.h"

enum { TAG = 1, DEPTH_MOST = 64, STREAMS_MOST = 128, SHORT = 4096, LARGE = 256 * 1024 };
static const double SETTLE = 300e-6; /* until the load has filled all buffers */

static int rank, size, peer;
static bool lower;

static void fail(int code, const char *why)
{
    fprintf(stderr, "contend: rank %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, code);
    exit(code);
}

static void *memory(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes ? bytes : 1);

    if (!p)
        fail(3, "no memory");
    return p;
}

/* ---- the load ---------------------------------------------------------------------------------------------------- */

/*
 * Two windows of a stream are under way, in turn, or one of a single message. The first byte of a window says whether
 * its place will be used again, so the receiver knows whether to post.
 */
struct stream {
    int peer, windows, turn, left; /* left: windows under way */
    bool sends, more[2];
    char *buf[2];
    MPI_Request req[2][DEPTH_MOST];
};

static struct stream streams[STREAMS_MOST];
static int num_streams, windows = 2;

static void add_stream(int other, bool out, int bytes, int depth)
{
    struct stream *s = &streams[num_streams];

    if (num_streams++ == STREAMS_MOST)
        fail(2, "too many streams");
    *s = (struct stream){.peer = other, .sends = out, .windows = windows};
    for (int w = 0; w < 2; w++)
        s->buf[w] = memory((size_t)depth, (size_t)bytes);
}

static void post_window(struct stream *s, int w, int bytes, int depth)
{
    s->left++;
    if (s->sends)
        s->buf[w][0] = (char)(s->more[w] = !gate_stopped());
    for (int i = 0; i < depth; i++) {
        char *at = s->buf[w] + (size_t)i * (size_t)bytes;

        if (s->sends)
            MPI_Isend(at, bytes, MPI_BYTE, s->peer, TAG, MPI_COMM_WORLD, &s->req[w][i]);
        else
            MPI_Irecv(at, bytes, MPI_BYTE, s->peer, TAG, MPI_COMM_WORLD, &s->req[w][i]);
    }
}

static void advance(struct stream *s, int bytes, int depth)
{
    int w = s->turn, done;

    MPI_Testall(depth, s->req[w], &done, MPI_STATUSES_IGNORE);
    if (!done)
        return;
    s->left--;
    s->turn = s->windows == 2 ? !w : w;
    if (s->sends ? s->more[w] : s->buf[w][0])
        post_window(s, w, bytes, depth);
}

static void run_streams(int bytes, int depth)
{
    bool busy = true;

    for (int i = 0; i < num_streams; i++) {
        streams[i].turn = 0;
        post_window(&streams[i], 0, bytes, depth);
        if (windows == 2)
            post_window(&streams[i], 1, bytes, depth);
    }
    while (busy) {
        busy = false;
        for (int i = 0; i < num_streams; i++)
            if (streams[i].left) {
                advance(&streams[i], bytes, depth);
                busy = true;
            }
    }
}

/* Does the first of two ranks send to the other? */
static bool sends(const char *shape, int from, int to)
{
    if (!strcmp(shape, "one"))
        return to == size - 1;
    if (!strcmp(shape, "all"))
        return true;
    return (from + size / 2) % size == to && (!strcmp(shape, "both") || from < to);
}

/* Before the gate two windows are sent, which opens connections and registers memory. */
static void load(const char *shape, int bytes, int depth)
{
    int half = (depth + 1) / 2;

    if (bytes < 1 || half < 1 || half > DEPTH_MOST)
        fail(2, "cannot have such a load");
    if (strcmp(shape, "one") && strcmp(shape, "all") && strcmp(shape, "both") && strcmp(shape, "pairs"))
        fail(2, "no such load");
    windows = depth == 1 ? 1 : 2;
    for (int other = 0; other < size; other++) {
        if (other != rank && sends(shape, rank, other))
            add_stream(other, true, bytes, half);
        if (other != rank && sends(shape, other, rank))
            add_stream(other, false, bytes, half);
    }
    run_streams(bytes, half);
    gate_wait();
    run_streams(bytes, half);
}

/* ---- counters of the library, of all ranks ---------------------------------------------------------------------- */

enum { COUNTERS = 3 };
static const char *const counter_names[COUNTERS] = {"resent", "broken", "changed"};
static MPI_T_pvar_session session;
static MPI_T_pvar_handle counters[COUNTERS];

static void open_counters(void)
{
    int provided, all;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&all);
    for (int i = 0; i < all; i++) {
        char name[64];
        int length = sizeof name, verbosity, class, bind, readonly, continuous, atomic, n;

        MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, NULL, NULL, NULL, NULL, &bind, &readonly, &continuous,
                            &atomic);
        for (int c = 0; c < COUNTERS; c++)
            if (!strcmp(name, counter_names[c]))
                MPI_T_pvar_handle_alloc(session, i, NULL, &counters[c], &n);
    }
    for (int c = 0; c < COUNTERS; c++) {
        if (!counters[c])
            fail(3, "the library lacks a counter");
        MPI_T_pvar_start(session, counters[c]);
    }
}

static void print_counters(void)
{
    unsigned long long mine[COUNTERS], sum[COUNTERS];

    for (int c = 0; c < COUNTERS; c++)
        MPI_T_pvar_read(session, counters[c], &mine[c]);
    MPI_Reduce(mine, sum, COUNTERS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int c = 0; rank == 0 && c < COUNTERS; c++)
        printf("%s %llu\n", counter_names[c], sum[c]);
}

/* ---- measurements ------------------------------------------------------------------------------------------------ */

static void round_trip(char *buf, int bytes)
{
    if (lower)
        MPI_Send(buf, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    MPI_Recv(buf, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!lower)
        MPI_Send(buf, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

static int rounds_of(int bytes)
{
    return bytes <= SHORT ? 400 : bytes < LARGE ? 1000 : 12;
}

static void latency(int bytes)
{
    char *buf = memory((size_t)bytes, 1);
    int rounds = rounds_of(bytes);
    double start, mine[2] = {0, 0}, most[2], before;

    round_trip(buf, bytes);
    start = before = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        double now;

        round_trip(buf, bytes);
        now = MPI_Wtime();
        mine[1] = now - before > mine[1] ? now - before : mine[1];
        before = now;
    }
    mine[0] = (before - start) / rounds;
    MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("latency %d %.4f %.4f\n", bytes, 0.5e6 * most[0], 0.5e6 * most[1]);
    free(buf);
}

static pid_t start_change(void)
{
    extern char **environ;
    char *argv[] = {"sh", "-c", getenv("FIGURES_CHANGE"), NULL};
    pid_t pid = 0;

    if (argv[2] && posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
        fail(3, "cannot start FIGURES_CHANGE");
    return pid;
}

/* Waits until both ends have heard of the change: on a busy machine, that may be after all measurements. */
static void await_change(pid_t pid)
{
    enum { CHANGED = 2, TRIES = 20000 };
    int status = 0, waits, any = 1;

    if (pid > 0 && (waitpid(pid, &status, 0) != pid || status))
        fail(1, "the change failed");
    for (int i = 0; any && i < TRIES; i++) {
        unsigned long long seen;

        MPI_T_pvar_read(session, counters[CHANGED], &seen);
        waits = pid > 0 && !seen;
        MPI_Allreduce(&waits, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
}

struct interval {
    double sum, worst;
    int n;
};

/* Rank 0 says in the first byte whether there is one more. */
static void series(int bytes, double length, int n, double change, double start)
{
    struct interval *all = memory((size_t)n, sizeof *all);
    char *buf = memory((size_t)bytes, 1);
    double now = MPI_Wtime();
    pid_t pid = 0;

    do {
        double before = now;
        int at;

        if (lower)
            buf[0] = before < start + length * n;
        round_trip(buf, bytes);
        now = MPI_Wtime();
        at = (int)((before - start) / length);
        if (at < n) {
            all[at].sum += now - before;
            all[at].n++;
            all[at].worst = now - before > all[at].worst ? now - before : all[at].worst;
        }
        if (!pid && change > 0 && rank < 2 && now >= start + change * (rank + 1))
            pid = start_change();
    } while (buf[0]);
    if (change > 0)
        await_change(pid);
    for (int i = 0; rank == 0 && i < n; i++)
        if (all[i].n)
            printf("series %g %.4f %.4f\n", 1e3 * length * (i + 1), 0.5e6 * all[i].worst,
                   0.5e6 * all[i].sum / all[i].n);
    free(buf);
    free(all);
}

static void begin(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int bytes = 8;
        char *buf;

        sscanf(argv[i], "%*[a-z]:%d", &bytes);
        buf = memory((size_t)bytes, 1);
        round_trip(buf, bytes);
        round_trip(buf, bytes);
        free(buf);
    }
}

int main(int argc, char **argv)
{
    char shape[16];
    int bytes, depth, intervals;
    double start, length, change, later;

    open_counters();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size % 2 && argc == 2 && strncmp(argv[1], "load:one", 8))
        fail(2, "needs an even number of ranks");
    lower = rank < size / 2;
    peer = (rank + size / 2) % size;
    if (argc == 2 && sscanf(argv[1], "load:%15[a-z]:%d:%d", shape, &bytes, &depth) == 3) {
        load(shape, bytes, depth);
        MPI_Finalize();
        return 0;
    }
    begin(argc, argv);
    start = gate_wait();
    sleep_until(start + SETTLE);
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "series:%d:%lf:%d:%lf", &bytes, &length, &intervals, &change) == 4 && bytes > 0 &&
            intervals > 0)
            series(bytes, length * 1e-6, intervals, change * 1e-6, MPI_Wtime());
        else if (sscanf(argv[i], "latency:%d", &bytes) == 1 && bytes >= 0)
            latency(bytes);
        else if (sscanf(argv[i], "later:%lf", &later) == 1)
            sleep_until(start + later * 1e-6);
        else
            fail(2, "cannot read its arguments");
    }
    if (rank == 0)
        gate_stop();
    print_counters();
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
