/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node KIND... [BYTES...]: two ranks inside one host, lines for each kind and size: KIND BYTES VALUE BEFORE AFTER.
 *
 *   latency  half a round trip, us          bw    windows of 64 messages one way, MB/s (10^6)
 *   rate     as bw, million messages/s      bibw  windows of 64 messages both ways at once, MB/s
 *   fresh    half a round trip of buffers that are written before they are sent and read when they have come, us
 *   vector   as latency, of blocks of 64 bytes with gaps of 64
 *
 * Sizes: every power of two from 1 B to 4 MiB unless some are given. There are BLOCKS lines of each, each for BLOCK_S
 * seconds, so a pause of the machine shows in one line. A plain MPI program: the same source is measured under every
 * MPI. All messages of a window use one buffer, as in common benchmarks.
 *
 * BEFORE and AFTER: the time of a word in memory from one rank to the other then, in ns, without any MPI. Cores with a
 * shared cache are near each other, others are not: a factor of three for short messages. A virtual machine's cores are
 * moved by its host.
 */
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW  64
#define BLOCKS  7
#define BLOCK_S .0015
#define MOST    (4 << 20)
#define HOPS    32 /* round trips of the word */
#define TRIES   6
#define SPINS   10000 /* then the other rank may be without a processor */

static int rank;
static char *out, *in;
static volatile long sum;
static MPI_Datatype blocks; /* of vector */
static atomic_int *word;    /* in memory of both */

static void round_trip(int bytes)
{
    if (rank == 0) {
        MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void use(int bytes)
{
    long s = 0;

    for (int i = 0; i < bytes; i += 8)
        s += in[i];
    sum += s;
}

static void fresh(int bytes)
{
    static char value;

    if (rank == 0) {
        memset(out, ++value, (size_t)bytes);
        MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        use(bytes);
    } else {
        MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        use(bytes);
        memset(out, ++value, (size_t)bytes);
        MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void vector(int bytes)
{
    int n = bytes / 64;

    if (rank == 0) {
        MPI_Send(out, n, blocks, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, n, blocks, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, n, blocks, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, n, blocks, 0, 1, MPI_COMM_WORLD);
    }
}

static void one_way(int bytes)
{
    MPI_Request req[WINDOW];

    for (int i = 0; i < WINDOW; i++)
        if (rank == 0)
            MPI_Isend(out, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &req[i]);
        else
            MPI_Irecv(in, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &req[i]);
    MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(in, 4, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, 4, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

static void both_ways(int bytes)
{
    MPI_Request req[2 * WINDOW];

    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(in, bytes, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &req[i]);
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(out, bytes, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &req[WINDOW + i]);
    MPI_Waitall(2 * WINDOW, req, MPI_STATUSES_IGNORE);
}

static double timed(void (*step)(int bytes), int bytes, int count)
{
    double begin;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (int i = 0; i < count; i++)
        step(bytes);
    return (MPI_Wtime() - begin) / count;
}

static void await(int value)
{
    for (int i = 1; atomic_load_explicit(word, memory_order_acquire) != value; i++)
        if (i % SPINS == 0)
            sched_yield();
}

/* The shortest of some tries: interruptions do not show. */
static double hop_ns(void)
{
    double best = 1e9;

    MPI_Barrier(MPI_COMM_WORLD);
    for (int t = 0; t < TRIES; t++) {
        double begin = MPI_Wtime(), ns;

        for (int i = 0; i < HOPS; i++) {
            int value = 2 * (t * HOPS + i) + 1;

            if (rank == 0) {
                atomic_store_explicit(word, value, memory_order_release);
                await(value + 1);
            } else {
                await(value);
                atomic_store_explicit(word, value + 1, memory_order_release);
            }
        }
        ns = (MPI_Wtime() - begin) * 1e9 / (2 * HOPS);
        best = ns < best ? ns : best;
    }
    return best;
}

/* Seconds of one step in each block, and hops before the first and after each. */
static void measure(void (*step)(int bytes), int bytes, double *second, double *hop)
{
    int count = 2;

    timed(step, bytes, 2);
    if (rank == 0) {
        double once = timed(step, bytes, 2);

        count = once > BLOCK_S / 2 ? 2 : (int)(BLOCK_S / once);
    } else {
        timed(step, bytes, 2);
    }
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    hop[0] = hop_ns();
    for (int b = 0; b < BLOCKS; b++) {
        second[b] = timed(step, bytes, count);
        hop[b + 1] = hop_ns();
    }
}

/* The meaning of a value: half a step's time in us, or data per us of a step. */
static const struct kind {
    const char *name;
    void (*step)(int bytes);
    int moves;  /* messages; 0: the time */
    bool sizes; /* their bytes */
} kinds[] = {
    {"latency", round_trip, 0, false}, {"fresh", fresh, 0, false},       {"vector", vector, 0, false},
    {"bw", one_way, WINDOW, true},     {"rate", one_way, WINDOW, false}, {"bibw", both_ways, 2 * WINDOW, true},
};
#define NUM_KINDS (sizeof kinds / sizeof kinds[0])

static void report(const char *name, int bytes)
{
    double second[BLOCKS], hop[BLOCKS + 1];
    const struct kind *k = kinds;

    while (k < kinds + NUM_KINDS && strcmp(k->name, name))
        k++;
    if (k == kinds + NUM_KINDS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    measure(k->step, bytes, second, hop);
    for (int b = 0; b < BLOCKS && rank == 0; b++) {
        double us = 1e6 * second[b], moved = (double)k->moves * (k->sizes ? bytes : 1);

        printf("%s %d %.4f %.0f %.0f\n", name, bytes, k->moves ? moved / us : us / 2, hop[b], hop[b + 1]);
    }
}

int main(int argc, char **argv)
{
    int size, sizes = 1;
    MPI_Datatype block;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (sizes < argc && (argv[sizes][0] < '0' || argv[sizes][0] > '9'))
        sizes++;
    out = aligned_alloc(4096, 2 * MOST);
    in = aligned_alloc(4096, 2 * MOST);
    if (size != 2 || !out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(out, 1, 2 * MOST);
    memset(in, 2, 2 * MOST);
    MPI_Type_contiguous(64, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, 128, &blocks);
    MPI_Type_commit(&blocks);
    MPI_Win_allocate_shared(rank == 0 ? 4096 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
    MPI_Win_shared_query(window, 0, &(MPI_Aint){0}, &(int){0}, &word);
    for (int k = 1; k < sizes; k++) {
        if (sizes == argc)
            for (int bytes = strcmp(argv[k], "vector") ? 1 : 64; bytes <= MOST; bytes *= 2)
                report(argv[k], bytes);
        for (int i = sizes; i < argc; i++)
            report(argv[k], atoi(argv[i]));
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
