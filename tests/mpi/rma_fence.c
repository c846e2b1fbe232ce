/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fences: the next epoch reads the writes of an epoch, over every flavor, with assertions, on several windows at once.
 */
#include "rma.h"

enum { PIECE = 40, ROUNDS = 6 };

/* Each rank writes its piece of every rank's part; then everybody looks at its own part and gets the others'. */
static void everybody(enum flavor f)
{
    struct win w;
    char out[PIECE], in[PIECE];
    win_make(&w, f, (MPI_Aint)PIECE * size);
    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < PIECE; i++)
            out[i] = byte_of(w.me, k, (size_t)i);
        MPI_Win_fence(0, w.w);
        for (int t = 0; t < w.n; t++)
            MPI_Put(out, PIECE, MPI_BYTE, t, at_of(&w, t, (MPI_Aint)PIECE * w.me), PIECE, MPI_BYTE, w.w);
        MPI_Win_fence(0, w.w);
        for (int r = 0; r < w.n; r++)
            for (int i = 0; i < PIECE; i++)
                EQ(w.mem[r * PIECE + i], byte_of(r, k, (size_t)i));
        for (int t = 0; t < w.n; t++) {
            int from = (w.me + t + k) % w.n;
            memset(in, 0, sizeof(in));
            MPI_Get(in, PIECE, MPI_BYTE, t, at_of(&w, t, (MPI_Aint)PIECE * from), PIECE, MPI_BYTE, w.w);
            MPI_Win_fence(0, w.w);
            for (int i = 0; i < PIECE; i++)
                EQ(in[i], byte_of(from, k, (size_t)i));
        }
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w.w);
    win_free(&w);
}

/* Every assertion true for its fence. */
static void assertions(enum flavor f)
{
    struct win w;
    int x, got;
    win_make(&w, f, 2 * sizeof(int));
    int *own = (int *)w.mem, right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n;
    for (int k = 0; k < ROUNDS; k++) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, w.w);
        x = 100 * w.me + k;
        MPI_Put(&x, 1, MPI_INT, right, at_of(&w, right, 0), 1, MPI_INT, w.w);
        /* no stores of its own since the last fence; nobody will put after it */
        MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT, w.w);
        EQ(own[0], 100 * left + k);
        MPI_Get(&got, 1, MPI_INT, right, at_of(&w, right, 0), 1, MPI_INT, w.w);
        MPI_Win_fence(MPI_MODE_NOSTORE, w.w);
        EQ(got, 100 * w.me + k);
        own[1] = -k; /* a store between fences, fetched by the others */
        MPI_Win_fence(MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE, w.w);
        MPI_Get(&got, 1, MPI_INT, left, at_of(&w, left, sizeof(int)), 1, MPI_INT, w.w);
        MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, w.w);
        EQ(got, -k);
    }
    win_free(&w);
}

/* A fence with operations before it is a barrier: the work of the slowest is there. */
static void order(void)
{
    struct win w;
    int one = 1, *own;
    win_make(&w, ALLOCATE, sizeof(int));
    own = (int *)w.mem;
    for (int k = 1; k <= 50; k++) {
        MPI_Win_fence(0, w.w);
        if (w.me == k % w.n)
            for (int t = 0; t < w.n; t++)
                MPI_Accumulate(&one, 1, MPI_INT, t, at_of(&w, t, 0), 1, MPI_INT, MPI_SUM, w.w);
        MPI_Win_fence(0, w.w);
        EQ(*own, k);
    }
    win_free(&w);
}

/* Three windows with overlapping epochs; one of them has a different displacement unit at each rank. */
static void several(void)
{
    struct win a, b;
    MPI_Win c;
    int64_t *units, v = rank + 1;
    int x = rank, y = -1, z = 10 * rank;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    win_make(&a, CREATE, sizeof(int));
    win_make(&b, DYNAMIC, sizeof(int));
    MPI_Win_allocate((MPI_Aint)sizeof(int64_t) * 16, 1 << rank % 4, MPI_INFO_NULL, MPI_COMM_WORLD, &units, &c);
    MPI_Win_fence(0, a.w);
    MPI_Win_fence(0, c);
    for (int i = 0; i < 16; i++)
        units[i] = 0;
    MPI_Win_fence(0, c);
    MPI_Put(&x, 1, MPI_INT, right, at_of(&a, right, 0), 1, MPI_INT, a.w);
    MPI_Win_fence(0, b.w);
    MPI_Put(&z, 1, MPI_INT, left, at_of(&b, left, 0), 1, MPI_INT, b.w);
    MPI_Put(&v, 1, MPI_INT64_T, right, 8 * 3 >> right % 4, 1, MPI_INT64_T, c);
    MPI_Win_fence(0, a.w);
    EQ(*(int *)a.mem, left);
    MPI_Get(&y, 1, MPI_INT, right, at_of(&a, right, 0), 1, MPI_INT, a.w);
    MPI_Win_fence(0, c);
    for (int i = 0; i < 16; i++)
        EQ(units[i], i == 3 ? left + 1 : 0);
    MPI_Win_fence(0, b.w);
    EQ(*(int *)b.mem, 10 * right);
    MPI_Win_fence(0, a.w);
    EQ(y, rank);
    MPI_Win_free(&c);
    win_free(&b);
    win_free(&a);
}

/* Operations on nobody do nothing, and are none. */
static void nobody(void)
{
    struct win w;
    int x = 5, y = 6, z = 7;
    MPI_Request q[3];
    win_make(&w, CREATE, sizeof(int));
    MPI_Win_fence(0, w.w);
    MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 12345, 1, MPI_INT, w.w);
    MPI_Get(&y, 1, MPI_INT, MPI_PROC_NULL, 12345, 1, MPI_INT, w.w);
    MPI_Accumulate(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, w.w);
    MPI_Get_accumulate(&x, 1, MPI_INT, &y, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, w.w);
    MPI_Fetch_and_op(&x, &z, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, w.w);
    MPI_Compare_and_swap(&x, &y, &z, MPI_INT, MPI_PROC_NULL, 0, w.w);
    MPI_Win_fence(0, w.w);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w.w);
    MPI_Win_lock_all(0, w.w);
    MPI_Rput(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.w, &q[0]);
    MPI_Rget(&y, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.w, &q[1]);
    MPI_Raccumulate(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, w.w, &q[2]);
    MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(w.w);
    CHECK(x == 5 && y == 6 && z == 7);
    EQ(*(int *)w.mem, 0);
    win_free(&w);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    for (enum flavor f = 0; f < FLAVORS; f++) {
        everybody(f);
        assertions(f);
    }
    order();
    several();
    nobody();
    return mt_end();
}
