/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run by bench/reliability.sh under mrrun, and by nothing else; times are by MPI_Wtime.
 *
 *   pair KIND:BYTES:COUNT...            two ranks; each figure is the median over up to BLOCKS parts of COUNT
 *       latency    half a round trip: "latency BYTES MICROSECONDS"
 *       one        windows of WINDOW messages one way (WINDOW_LARGE from 256 KiB), each window answered:
 *                  "one BYTES MB/S MESSAGES/S" (10^6 bytes)
 *       both       the same in both directions at once, added up
 *   steps HOST PEERS EACH RATE[,RATE]... STEPS away|poll SMALL LARGE PERCENT
 *       In each step every rank sends EACH messages and receives as many, then leaves MPI (away), or looks in every
 *       50 us (poll), until it has sent RATE messages a second on average; 0: the next step comes at once. HOST: ranks
 * of a host, without messages among each other. PEERS 0: a step's peers are drawn from all others, as receivers and as
 *       senders different ones; otherwise the number of neighbours for exchanges in turn. PERCENT of the messages
 * are LARGE bytes long, the others SMALL. Contents are checked. For each rate, one after the other, rank 0 prints "run
 * RATE" and then, each "NAME MEAN MOST" over the ranks: rate (messages a second), mbytes (10^6 a second), wait
 * (microseconds of a step in MPI), seconds, and the growth of each counter of the library in that time; of counters
 * named most the largest values since the start.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOW       64
#define WINDOW_LARGE 16
#define BLOCKS       9
#define COUNTERS     128
#define LOOK_S       50e-6 /* interval of a computing rank's looks at MPI, with "poll" */

enum { TAG = 1, ANSWER, OTHER };

static int rank, size;
static char *in, *out;

static void *memory(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);

    if (!p)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return p;
}

/* ---- two ranks -----------------------------------------------------------------------------------------------------
 */

static void round_trip(int bytes)
{
    if (rank == 0)
        MPI_Send(out, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(out, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static int depth(int bytes)
{
    return bytes < 256 * 1024 ? WINDOW : WINDOW_LARGE;
}

static void window(int bytes, bool sending, bool receiving)
{
    MPI_Request req[2 * WINDOW];
    int n = 0;

    for (int i = 0; receiving && i < depth(bytes); i++)
        MPI_Irecv(in, bytes, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &req[n++]);
    for (int i = 0; sending && i < depth(bytes); i++)
        MPI_Isend(out, bytes, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &req[n++]);
    MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
    if (receiving)
        MPI_Send(NULL, 0, MPI_BYTE, 1 - rank, ANSWER, MPI_COMM_WORLD);
    if (sending)
        MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void one(int bytes)
{
    window(bytes, rank == 0, rank == 1);
}

static void both(int bytes)
{
    window(bytes, true, true);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_seconds(void (*step)(int bytes), int bytes, int count)
{
    int blocks = count < BLOCKS ? count : BLOCKS, each = count / blocks;
    double second[BLOCKS];

    step(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int b = 0; b < blocks; b++) {
        double start = MPI_Wtime();

        for (int i = 0; i < each; i++)
            step(bytes);
        second[b] = (MPI_Wtime() - start) / each;
    }
    qsort(second, (size_t)blocks, sizeof second[0], ascending);
    return (second[(blocks - 1) / 2] + second[blocks / 2]) / 2;
}

static const struct {
    const char *name;
    void (*step)(int bytes);
    int windows; /* of a step; 0: a round trip */
} kinds[] = {{"latency", round_trip, 0}, {"one", one, 1}, {"both", both, 2}};

static void pair(const char *what)
{
    char name[16];
    int bytes, count;

    if (sscanf(what, "%15[a-z]:%d:%d", name, &bytes, &count) != 3 || bytes < 0 || count < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    in = memory((size_t)bytes);
    out = memory((size_t)bytes);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double s, n = kinds[k].windows * depth(bytes);

        if (strcmp(name, kinds[k].name))
            continue;
        s = median_seconds(kinds[k].step, bytes, count);
        if (rank == 0 && n > 0)
            printf("%s %d %.2f %.0f\n", name, bytes, 1e-6 * n * bytes / s, n / s);
        else if (rank == 0)
            printf("%s %d %.4f\n", name, bytes, 1e6 * s / 2);
    }
    fflush(stdout);
    free(in);
    free(out);
}

/* ---- counters ------------------------------------------------------------------------------------------------------
 */

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle[COUNTERS];
static char counter[COUNTERS][64];
static int counters;

/* Before MPI_Init: a counter that holds a largest value then shows this value, starting from zero. */
static void counters_open(void)
{
    int provided, all, n;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&all);
    for (int i = 0; i < all && i < COUNTERS; i++) {
        int name = sizeof counter[0], verbosity, class, bind, readonly, continuous, atomic;

        MPI_T_pvar_get_info(i, counter[i], &name, &verbosity, &class, NULL, NULL, NULL, NULL, &bind, &readonly,
                            &continuous, &atomic);
        MPI_T_pvar_handle_alloc(session, i, NULL, &handle[i], &n);
        MPI_T_pvar_start(session, handle[i]);
        counters++;
    }
}

static void counters_read(unsigned long long *v)
{
    for (int i = 0; i < counters; i++)
        MPI_T_pvar_read(session, handle[i], &v[i]);
}

static void tell(const char *name, double mine)
{
    double sum, most;

    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s %.6g %.6g\n", name, sum / size, most);
}

/* ---- steps ---------------------------------------------------------------------------------------------------------
 */

static struct {
    int host, peers, each, steps, small, large, percent;
    double rate;
    bool away;
} plan;

static uint32_t hash(uint32_t a, uint32_t b) /* the same on all ranks */
{
    uint32_t x = a * 0x9e3779b9u + b * 0x85ebca6bu + 1;

    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* How far away, in ranks, the receiver of a message is; its sender is as far in the other direction. */
static int distance(int step, int i)
{
    if (!plan.peers)
        return plan.host + (int)(hash((uint32_t)step, (uint32_t)i) % (uint32_t)(size - 2 * plan.host + 1));
    i = (step * plan.each + i) % plan.peers; /* right across: size / 2 and its neighbours, each with its opposite */
    if (plan.peers % 2)
        return size / 2 - plan.peers / 2 + i;
    return size / 2 + (i < plan.peers / 2 ? -1 - i : 1 + i - plan.peers / 2);
}

static int length(int step, int i)
{
    return (int)(hash((uint32_t)step, (uint32_t)(i + 1000)) % 100) < plan.percent ? plan.large : plan.small;
}

static void step_exchange(int step, MPI_Request *req)
{
    for (int i = 0; i < plan.each; i++)
        MPI_Irecv(in + (size_t)i * (size_t)plan.large, plan.large, MPI_BYTE, (rank - distance(step, i) + size) % size,
                  TAG + i, MPI_COMM_WORLD, &req[i]);
    for (int i = 0; i < plan.each; i++) {
        char *at = out + (size_t)i * (size_t)plan.large;

        memcpy(at, &(int[]){step * size + rank}, sizeof(int));
        MPI_Isend(at, length(step, i), MPI_BYTE, (rank + distance(step, i)) % size, TAG + i, MPI_COMM_WORLD,
                  &req[plan.each + i]);
    }
    MPI_Waitall(2 * plan.each, req, MPI_STATUSES_IGNORE);
    for (int i = 0; i < plan.each; i++) {
        int got, wanted = step * size + (rank - distance(step, i) + size) % size;

        memcpy(&got, in + (size_t)i * (size_t)plan.large, sizeof got);
        if (got != wanted) {
            fprintf(stderr, "rank %d, step %d: message %d instead of %d\n", rank, step, got, wanted);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static void compute_until(double then)
{
    double left = then - MPI_Wtime();
    int found;

    while (left > 0) {
        double nap = plan.away || left < LOOK_S ? left : LOOK_S;

        nanosleep(&(struct timespec){(time_t)nap, (long)((nap - (double)(time_t)nap) * 1e9)}, NULL);
        if (!plan.away)
            MPI_Iprobe(MPI_ANY_SOURCE, OTHER + plan.each + TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        left = then - MPI_Wtime();
    }
}

static void connect_all(MPI_Request *req) /* and all contexts used, before anything is measured */
{
    for (int s = 0; plan.peers && s < plan.peers / plan.each + 1; s++)
        step_exchange(s, req);
    for (int d = plan.host; !plan.peers && d <= size - plan.host; d++)
        MPI_Sendrecv(out, 4, MPI_BYTE, (rank + d) % size, TAG, in, 4, MPI_BYTE, (rank - d + size) % size, TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void steps(MPI_Request *req)
{
    unsigned long long before[COUNTERS], after[COUNTERS];
    double start, wait = 0, bytes = 0, seconds;

    MPI_Barrier(MPI_COMM_WORLD);
    counters_read(before);
    start = MPI_Wtime();
    for (int s = 0; s < plan.steps; s++) {
        double from = MPI_Wtime();

        step_exchange(s, req);
        wait += MPI_Wtime() - from;
        for (int i = 0; i < plan.each; i++)
            bytes += length(s, i);
        if (plan.rate > 0)
            compute_until(start + (s + 1) * plan.each / plan.rate);
    }
    seconds = MPI_Wtime() - start;
    counters_read(after);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("run %g\n", plan.rate);
    tell("rate", plan.steps * plan.each / seconds);
    tell("mbytes", 1e-6 * bytes / seconds);
    tell("wait", 1e6 * wait / plan.steps);
    tell("seconds", seconds);
    for (int i = 0; i < counters; i++)
        tell(counter[i], (double)(after[i] - (strstr(counter[i], "_most") ? 0 : before[i])));
}

static void each_rate(const char *rates)
{
    MPI_Request *req = memory(sizeof *req * 2 * (size_t)plan.each);
    double start;
    char *end;

    in = memory((size_t)plan.each * (size_t)plan.large);
    out = memory((size_t)plan.each * (size_t)plan.large);
    start = MPI_Wtime();
    connect_all(req);
    tell("connect", MPI_Wtime() - start);
    do {
        plan.rate = strtod(rates, &end);
        if (end == rates)
            MPI_Abort(MPI_COMM_WORLD, 2);
        steps(req);
        rates = end + (*end == ',');
    } while (*rates);
    free(req);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    counters_open();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && !strcmp(argv[1], "pair") && size == 2) {
        for (int i = 2; i < argc; i++)
            pair(argv[i]);
    } else if (argc == 11 && !strcmp(argv[1], "steps")) {
        plan.host = atoi(argv[2]);
        plan.peers = atoi(argv[3]);
        plan.each = atoi(argv[4]);
        plan.steps = atoi(argv[6]);
        plan.away = !strcmp(argv[7], "away");
        plan.small = atoi(argv[8]);
        plan.large = atoi(argv[9]);
        plan.percent = atoi(argv[10]);
        if (plan.host < 1 || size < 2 * plan.host || plan.peers < 0 || plan.peers / 2 > size / 2 - plan.host ||
            plan.each < 1 || plan.steps < 1 || plan.small < (int)sizeof(int) || plan.large < plan.small)
            MPI_Abort(MPI_COMM_WORLD, 2);
        each_rate(argv[5]);
    } else {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return 0;
}
