/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passive targets with MRMPI_ASYNC_PROGRESS=yes: the last rank is in no MPI function while the others lock its part,
 * add to it and fetch from it, and sees their end by its memory alone. "no" as argument: without, where the window
 * reports so.
 */
#include "mt.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { TIMES = 50 };

static void check_info(MPI_Win w, const char *want)
{
    char value[8];
    int flag;
    MPI_Info info;
    MPI_Win_get_info(w, &info);
    MPI_Info_get(info, "mrmpi_async_progress", sizeof(value) - 1, value, &flag);
    CHECK(flag && !strcmp(value, want));
    MPI_Info_free(&info);
}

static void use(MPI_Win w, int to)
{
    int64_t one = 1, old, block[512];
    for (int i = 0; i < 512; i++)
        block[i] = i;
    for (int k = 0; k < TIMES; k++) {
        MPI_Win_lock(k % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, w);
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, to, 1, MPI_SUM, w);
        MPI_Accumulate(block, 512, MPI_INT64_T, to, 2, 512, MPI_INT64_T, MPI_SUM, w);
        MPI_Win_unlock(to, w);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w);
    MPI_Accumulate(&one, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, MPI_SUM, w); /* done */
    MPI_Win_unlock(to, w);
}

/* No MPI function until all are done. */
static void compute(volatile int64_t *mine)
{
    for (int ms = 0; mine[0] < size - 1; ms++) {
        CHECK(ms < 60000);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

int main(int argc, char **argv)
{
    int64_t *mine = calloc(514, sizeof(*mine));
    bool async = argc < 2 || strcmp(argv[1], "no");
    MPI_Win w;
    mt_begin(&argc, &argv);
    CHECK(mine);
    MPI_Win_create(mine, 514 * sizeof(*mine), sizeof(*mine), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    check_info(w, async ? "true" : "false");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < size - 1)
        use(w, size - 1);
    else if (async)
        compute(mine);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        EQ(mine[0], size - 1);
        EQ(mine[1], (size - 1) * TIMES);
        for (int i = 0; i < 512; i++)
            EQ(mine[2 + i], (int64_t)i * (size - 1) * TIMES);
    }
    MPI_Win_free(&w);
    free(mine);
    return mt_end();
}
