/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of operations on windows: rma KIND:BYTES:COUNT...
 *
 *   put get acc:BYTES:COUNT   the operation and a flush, COUNT times: "put BYTES MICROSECONDS BEST"
 *   fadd cas:8:COUNT          fetch and add, compare and swap, and a flush
 *   lock share:BYTES:COUNT    an exclusive lock, or a shared one, a put, the unlock
 *   rate:BYTES:COUNT          COUNT times WINDOW puts, one behind the other, and a flush: "rate BYTES MILLIONS/S BEST"
 *   apart:BYTES:COUNT         the same with a gap of BYTES behind each
 *   putbw getbw:BYTES:COUNT   COUNT times several operations and a flush: "putbw BYTES MB/S BEST" (10^6)
 *   fence:BYTES:COUNT         two fences, between them a put to the next rank by every rank
 *   away-KIND:BYTES:COUNT     KIND, among those with one operation each, while the target is outside MPI
 *
 * "away": COUNT times the target sleeps for a millisecond, and the origin begins a tenth of one later: the wait of a
 * program for a part of a computing one. Asleep, since on simulated hosts computing takes no time.
 *
 * Rank 0 is the origin, rank 1 the target and waits in a barrier; the others take part in fences only. Every figure
 * is the median over up to BLOCKS equal parts of COUNT, and beside it the best of them. A plain MPI program: the same
 * source is measured under every MPI.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOW 64
#define BLOCKS 9
#define WARMUP 3
#define DEEP   (64 << 20) /* bytes in flight at most, for bandwidths */
#define AWAY   1000000    /* ns, */
#define SLICES 100        /* in so many parts: a simulated clock goes on with each */

static int rank, size, deep;
static char *buf, *base;
static MPI_Win win;
static long one = 1, old, now;

static void put(int bytes)
{
    MPI_Put(buf, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void get(int bytes)
{
    MPI_Get(buf, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void acc(int bytes)
{
    MPI_Accumulate(buf, bytes / 8, MPI_LONG, 1, 0, bytes / 8, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush(1, win);
}

static void fadd(int bytes)
{
    MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, win);
    MPI_Win_flush(1, win);
}

static void cas(int bytes)
{
    MPI_Compare_and_swap(&one, &old, &now, MPI_LONG, 1, 0, win);
    MPI_Win_flush(1, win);
}

static void lock(int bytes)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Put(buf, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
    MPI_Win_unlock(1, win);
}

static void share(int bytes)
{
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    MPI_Put(buf, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
    MPI_Win_unlock(1, win);
}

static void puts_of(int bytes)
{
    for (int i = 0; i < deep; i++)
        MPI_Put(buf + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 1, (MPI_Aint)i * bytes, bytes, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void puts_apart(int bytes)
{
    for (int i = 0; i < deep; i++)
        MPI_Put(buf + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 1, (MPI_Aint)i * 2 * bytes, bytes, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void gets_of(int bytes)
{
    for (int i = 0; i < deep; i++)
        MPI_Get(buf + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 1, (MPI_Aint)i * bytes, bytes, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

static void fence(int bytes)
{
    MPI_Win_fence(0, win);
    MPI_Put(buf, bytes, MPI_BYTE, (rank + 1) % size, 0, bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
}

enum unit { EACH_US, MILLIONS, MBYTES };

static const struct kind {
    const char *name;
    void (*step)(int bytes);
    enum unit unit;
    int epoch; /* in lock_all */
} kinds[] = {
    {"put", put, EACH_US, 1},      {"get", get, EACH_US, 1},       {"acc", acc, EACH_US, 1},
    {"fadd", fadd, EACH_US, 1},    {"cas", cas, EACH_US, 1},       {"lock", lock, EACH_US, 0},
    {"share", share, EACH_US, 0},  {"rate", puts_of, MILLIONS, 1}, {"apart", puts_apart, MILLIONS, 1},
    {"putbw", puts_of, MBYTES, 1}, {"getbw", gets_of, MBYTES, 1},  {"fence", fence, EACH_US, 0},
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Seconds for one step: the median over the blocks, and the best. */
static double measure(const struct kind *k, int bytes, int count, double *best)
{
    int blocks = count < BLOCKS ? count : BLOCKS, each = count / blocks;
    double second[BLOCKS];

    for (int i = 0; i < WARMUP; i++)
        k->step(bytes);
    for (int b = 0; b < blocks; b++) {
        double start = MPI_Wtime();

        for (int i = 0; i < each; i++)
            k->step(bytes);
        second[b] = (MPI_Wtime() - start) / each;
    }
    qsort(second, (size_t)blocks, sizeof second[0], ascending);
    *best = second[0];
    return (second[(blocks - 1) / 2] + second[blocks / 2]) / 2;
}

static void sleep_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Seconds for a step with a target outside MPI. Called by both. */
static double measure_away(const struct kind *k, int bytes, int count, double *best)
{
    double *second = calloc((size_t)count, sizeof *second), median, start;

    if (!second)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int i = -WARMUP; i < count && rank == 1; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int slice = 0; i >= 0 && slice < SLICES; slice++)
            sleep_ns(AWAY / SLICES);
    }
    for (int i = -WARMUP; i < count && rank == 0; i++) {
        MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        sleep_ns(AWAY / 10);
        start = MPI_Wtime();
        k->step(bytes);
        if (i >= 0)
            second[i] = MPI_Wtime() - start;
        sleep_ns(AWAY); /* the target is back */
    }
    qsort(second, (size_t)count, sizeof second[0], ascending);
    *best = second[0];
    median = (second[(count - 1) / 2] + second[count / 2]) / 2;
    free(second);
    return median;
}

static double figure(const struct kind *k, int bytes, double seconds)
{
    if (k->unit == EACH_US)
        return 1e6 * seconds;
    return 1e-6 * deep * (k->unit == MBYTES ? bytes : 1) / seconds;
}

static void run(const struct kind *k, int away, int bytes, int count)
{
    double s, best;
    size_t room;

    deep = k->unit == EACH_US ? 1 : WINDOW;
    while (deep > 2 && (size_t)deep * (size_t)bytes > DEEP)
        deep /= 2;
    room = (size_t)deep * (size_t)(bytes < 32 ? 64 : 2 * bytes);
    buf = malloc(room);
    if (!buf)
        MPI_Abort(MPI_COMM_WORLD, 3);
    memset(buf, 1, room); /* unwritten pages are all one page of zeros: no copy is slow */
    MPI_Win_allocate((MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    memset(base, 0, room);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 || k->step == fence || away) {
        if (k->epoch && rank == 0)
            MPI_Win_lock_all(0, win);
        s = away ? measure_away(k, bytes, count, &best) : measure(k, bytes, count, &best);
        if (k->epoch && rank == 0)
            MPI_Win_unlock_all(win);
        if (rank == 0)
            printf("%s%s %d %.4f %.4f\n", away ? "away-" : "", k->name, bytes, figure(k, bytes, s),
                   figure(k, bytes, best));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    free(buf);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        int away = !strncmp(argv[i], "away-", 5), bytes, count;
        char name[16];
        size_t k = 0;

        if (sscanf(argv[i] + 5 * away, "%15[a-z]:%d:%d", name, &bytes, &count) != 3 || bytes < 1 || count < 1)
            MPI_Abort(MPI_COMM_WORLD, 2);
        while (k < sizeof kinds / sizeof kinds[0] && strcmp(kinds[k].name, name))
            k++;
        if (k == sizeof kinds / sizeof kinds[0] || (size < 2 && kinds[k].step != fence) ||
            (away && (kinds[k].unit != EACH_US || kinds[k].step == fence)))
            MPI_Abort(MPI_COMM_WORLD, 2);
        run(&kinds[k], away, bytes, count);
    }
    MPI_Finalize();
    return 0;
}
