/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that overlap: rma_overlap ROUNDS. Rank 1 puts long blocks into the memory of rank 0, and all others put words of
 * the same blocks at the same time, with equal contents. These words have one or the other value, which are the same;
 * all other words are rank 1's (MPI-4.1 section 12.7).
 */
#include "mt.h"

#include <stdbool.h>
#include <stdint.h>

enum { BLOCK = 256 << 10, BLOCKS = 4, WORDS = BLOCK * BLOCKS / 8, APART = 64 };

static int64_t data[WORDS], *mine;

static void put(int round, MPI_Win w)
{
    for (int i = 0; i < WORDS; i++)
        data[i] = ((int64_t)round << 32) + i;
    if (rank == 1)
        for (int b = 0; b < BLOCKS; b++)
            MPI_Put(data + b * (WORDS / BLOCKS), BLOCK, MPI_BYTE, 0, (MPI_Aint)b * BLOCK, BLOCK, MPI_BYTE, w);
    if (rank > 1)
        for (int i = APART * (rank - 2); i < WORDS; i += APART * (size - 2))
            MPI_Put(data + i, 8, MPI_BYTE, 0, (MPI_Aint)i * 8, 8, MPI_BYTE, w);
    MPI_Win_flush(0, w);
}

int main(int argc, char **argv)
{
    MPI_Win w;
    mt_begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    MPI_Win_allocate((MPI_Aint)sizeof(data), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
    MPI_Win_lock_all(0, w);
    for (int round = 1; round <= rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        put(round, w);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(w);
        for (int i = 0; rank == 0 && i < WORDS; i++)
            EQ(mine[i], ((int64_t)round << 32) + i);
    }
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
    if (rank == 0)
        printf("%d rounds\n", rounds);
    return mt_end();
}
