/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows over rails that die, or with changing levels: rma_rails ROUNDS [COMMAND...]. Rank 0 runs the commands, in
 * turn, in the middle of every third round's puts. In each round every rank puts blocks of many lengths into the part
 * of the next one, many at a time, counts up by fetching, adds, and takes a lock; then it gets all back. The contents
 * are the last puts, and each count was fetched once. Rank 0 prints the time of the longest synchronization.
 */
#include "mt.h"

#include <stdbool.h>
#include <stdint.h>

enum { BLOCKS = 24, LEAST = 8, ROOM = 4 << 20 };

static double longest;
static int64_t *out, *in, *mine;
static MPI_Win w;

static int length(int block)
{
    return LEAST << (block % 18); /* 8 bytes to 1 MiB */
}

static void fill(int round, int to)
{
    for (int i = 0; i < ROOM / 8; i++)
        out[i] = ((int64_t)round << 40) + ((int64_t)to << 32) + i;
}

static void timed(int (*f)(int, MPI_Win), int to)
{
    double took, begun = MPI_Wtime();
    f(to, w);
    took = MPI_Wtime() - begun;
    longest = took > longest ? took : longest;
}

/* All of the part but its first two words, in blocks; more than once in places, always the same. */
static void put_all(int round, int to, const char *command)
{
    fill(round, to);
    for (int block = 0, at = 16; block < BLOCKS && at + length(block) <= ROOM; at += length(block), block++)
        MPI_Put((char *)out + at, length(block), MPI_BYTE, to, at, length(block), MPI_BYTE, w);
    CHECK(!command || system(command) == 0);
    for (int at = ROOM / 2; at < ROOM; at += ROOM / 8)
        MPI_Put((char *)out + at, ROOM / 8, MPI_BYTE, to, at, ROOM / 8, MPI_BYTE, w);
    timed(MPI_Win_flush, to);
}

static void get_all(int round, int to)
{
    memset(in, 0, ROOM);
    for (int at = ROOM / 2; at < ROOM; at += ROOM / 8)
        MPI_Get((char *)in + at, ROOM / 8, MPI_BYTE, to, at, ROOM / 8, MPI_BYTE, w);
    timed(MPI_Win_flush, to); /* the target memory of gets belongs to no other rank */
    for (int block = 0, at = 16; block < BLOCKS && at + length(block) <= ROOM; at += length(block), block++)
        MPI_Get((char *)in + at, length(block), MPI_BYTE, to, at, length(block), MPI_BYTE, w);
    timed(MPI_Win_flush, to);
    for (int i = ROOM / 16; i < ROOM / 8; i++)
        EQ(in[i], out[i]);
    for (int block = 0, at = 16; block < BLOCKS && at + length(block) <= ROOM; at += length(block), block++)
        CHECK(!memcmp((char *)in + at, (char *)out + at, (size_t)length(block)));
}

/* Rank 0 counts for all: nobody gets a number twice, and none is left out. */
static void count(int round, int64_t *last)
{
    int64_t one = 1, got = -1;
    MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, w);
    timed(MPI_Win_flush, 0);
    CHECK(got > *last);
    *last = got;
    MPI_Accumulate(&got, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, MPI_SUM, w);
    timed(MPI_Win_flush, 0);
}

int main(int argc, char **argv)
{
    int64_t last = -1, n;
    mt_begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 10, to = (rank + 1) % size;
    double all;
    out = malloc(ROOM);
    in = malloc(ROOM);
    CHECK(out && in);
    MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
    memset(mine, 0, ROOM);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w);
    for (int round = 0; round < rounds; round++) {
        bool now = rank == 0 && argc > 2 && round % 3 == 1;

        put_all(round, to, now ? argv[2 + round / 3 % (argc - 2)] : NULL);
        count(round, &last);
        get_all(round, to);
    }
    MPI_Win_unlock_all(w);
    MPI_Barrier(MPI_COMM_WORLD);
    n = (int64_t)rounds * size;
    if (rank == 0) {
        EQ(mine[0], n);
        EQ(mine[1], n * (n - 1) / 2); /* each number once */
    }
    MPI_Reduce(&longest, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d rounds, the longest wait %.3f ms\n", rounds, 1e3 * all);
    MPI_Win_free(&w);
    free(out);
    free(in);
    return mt_end();
}
