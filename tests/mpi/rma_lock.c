/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks and flushes: mutual exclusion, shared locks, several targets and windows at once, all ranks with lock_all. */
#include "rma.h"

#include <stdbool.h>

/* A counter that is read and written under an exclusive lock loses nothing. The lock is the only order there is. */
static void exclusion(enum flavor f)
{
    struct win w;
    int rounds = size > 4 ? 20 : 60;
    int64_t v[3], sum = 0;
    win_make(&w, f, sizeof(v));
    for (int k = 0; k < rounds; k++)
        for (int i = 0; i < w.n; i++) {
            int t = (w.me + i) % w.n;
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, w.w);
            MPI_Get(v, 3, MPI_INT64_T, t, at_of(&w, t, 0), 3, MPI_INT64_T, w.w);
            MPI_Win_flush(t, w.w);
            CHECK(v[1] == 3 * v[0] && v[2] == -v[0]); /* no rank is in the middle of an update */
            v[0]++;
            v[1] = 3 * v[0];
            v[2] = -v[0];
            MPI_Put(&v[0], 1, MPI_INT64_T, t, at_of(&w, t, 0), 1, MPI_INT64_T, w.w);
            MPI_Put(&v[1], 2, MPI_INT64_T, t, at_of(&w, t, 8), 2, MPI_INT64_T, w.w);
            MPI_Win_unlock(t, w.w);
        }
    MPI_Barrier(w.comm);
    own_open(&w);
    EQ(((int64_t *)w.mem)[0], rounds * w.n);
    own_close(&w);
    MPI_Barrier(w.comm);
    if (w.me == 0) /* the others do not call MPI for windows now */
        for (int t = 0; t < w.n; t++) {
            MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w.w);
            MPI_Get(v, 1, MPI_INT64_T, t, at_of(&w, t, 0), 1, MPI_INT64_T, w.w);
            MPI_Win_unlock(t, w.w);
            sum += v[0];
        }
    EQ(sum, w.me == 0 ? (int64_t)rounds * w.n * w.n : 0);
    win_free(&w);
}

/* The owner's loads and stores under a lock of its own part are as exclusive. */
static void own_part(enum flavor f)
{
    struct win w;
    int rounds = size > 4 ? 20 : 60, v;
    win_make(&w, f, sizeof(int));
    for (int k = 0; k < rounds; k++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.w);
        if (w.me == 0) {
            *(int *)w.mem += 1;
        } else {
            MPI_Get(&v, 1, MPI_INT, 0, at_of(&w, 0, 0), 1, MPI_INT, w.w);
            MPI_Win_flush_local(0, w.w);
            v++;
            MPI_Put(&v, 1, MPI_INT, 0, at_of(&w, 0, 0), 1, MPI_INT, w.w);
        }
        MPI_Win_unlock(0, w.w);
    }
    MPI_Barrier(w.comm);
    own_open(&w);
    EQ(*(int *)w.mem, w.me == 0 ? rounds * w.n : 0);
    own_close(&w);
    win_free(&w);
}

/* All hold the shared lock of rank 0 at the same time, as a barrier proves. An exclusive lock comes after them. */
static void shared_locks(void)
{
    struct win w;
    int x, y = -1;
    win_make(&w, ALLOCATE, (MPI_Aint)sizeof(int) * (size + 1));
    for (int k = 0; k < 10; k++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.w);
        x = 10 * w.me + k;
        MPI_Put(&x, 1, MPI_INT, 0, at_of(&w, 0, (MPI_Aint)sizeof(int) * w.me), 1, MPI_INT, w.w);
        MPI_Win_flush(0, w.w);
        MPI_Barrier(w.comm);
        int next = (w.me + 1) % w.n;
        MPI_Get(&y, 1, MPI_INT, 0, at_of(&w, 0, (MPI_Aint)sizeof(int) * next), 1, MPI_INT, w.w);
        MPI_Win_flush_local(0, w.w);
        EQ(y, 10 * next + k);
        MPI_Barrier(w.comm);
        MPI_Win_unlock(0, w.w);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.w);
        MPI_Get(&x, 1, MPI_INT, 0, at_of(&w, 0, (MPI_Aint)sizeof(int) * w.n), 1, MPI_INT, w.w);
        MPI_Win_flush(0, w.w);
        x++;
        MPI_Put(&x, 1, MPI_INT, 0, at_of(&w, 0, (MPI_Aint)sizeof(int) * w.n), 1, MPI_INT, w.w);
        MPI_Win_unlock(0, w.w);
        MPI_Barrier(w.comm);
    }
    own_open(&w);
    EQ(((int *)w.mem)[w.n], w.me == 0 ? 10 * w.n : 0);
    own_close(&w);
    win_free(&w);
}

enum flush { ONE, ONE_LOCAL, ALL, ALL_LOCAL, FLUSHES };

static void do_flush(enum flush f, int t, MPI_Win w)
{
    switch (f) {
    case ONE:
        MPI_Win_flush(t, w);
        break;
    case ONE_LOCAL:
        MPI_Win_flush_local(t, w);
        break;
    case ALL:
        MPI_Win_flush_all(w);
        break;
    default:
        MPI_Win_flush_local_all(w);
    }
}

/* After a flush the operations have ended at the target; after a local one the origin's buffers are its own again. */
static void flushes(enum flavor f, bool lock_all)
{
    enum { N = 3000 };
    struct win w;
    int *out = room(N * sizeof(int)), *in = room(N * sizeof(int)), *seen = room(sizeof(int) * (size_t)size);
    win_make(&w, f, (MPI_Aint)(N * sizeof(int)));
    way_open(lock_all ? LOCK_ALL : LOCK, &w);
    for (int k = 0; k < 8; k++) {
        enum flush how = (enum flush)(k % FLUSHES);
        int right = (w.me + 1 + k) % w.n, left = (w.me + (k + 1) * (w.n - 1)) % w.n;
        for (int i = 0; i < N; i++)
            out[i] = w.me * N + i + k;
        MPI_Put(out, N, MPI_INT, right, at_of(&w, right, 0), N, MPI_INT, w.w);
        do_flush(how, right, w.w);
        memset(out, -1, N * sizeof(int)); /* no longer needed, after any flush */
        if (how == ONE_LOCAL || how == ALL_LOCAL)
            MPI_Win_flush(right, w.w);
        MPI_Barrier(w.comm);
        memset(in, 0, N * sizeof(int));
        MPI_Get(in, N, MPI_INT, right, at_of(&w, right, 0), N, MPI_INT, w.w);
        do_flush(how, right, w.w);
        for (int i = 0; i < N; i++)
            EQ(in[i], w.me * N + i + k);
        MPI_Win_sync(w.w);
        EQ(*(volatile int *)w.mem, left * N + k); /* the flush's target sees the data, without another call */
        for (int t = 0; t < w.n; t++)
            MPI_Get(&seen[t], 1, MPI_INT, t, at_of(&w, t, (N - 1) * sizeof(int)), 1, MPI_INT, w.w);
        do_flush(how > ONE_LOCAL ? how : ALL, 0, w.w);
        for (int t = 0; t < w.n; t++)
            EQ(seen[t], (t + (k + 1) * (w.n - 1)) % w.n * N + N - 1 + k);
        MPI_Barrier(w.comm);
    }
    way_close(lock_all ? LOCK_ALL : LOCK, &w);
    win_free(&w);
    free(out);
    free(in);
    free(seen);
}

/* Locks of several windows are held at once, and given back in another order. */
static void several(void)
{
    enum { WINDOWS = 5 };
    struct win w[WINDOWS];
    int x[WINDOWS], right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < WINDOWS; i++)
        win_make(&w[i], (enum flavor)(i % 2 ? DYNAMIC : CREATE), sizeof(int));
    for (int k = 0; k < 10; k++) {
        for (int i = 0; i < WINDOWS; i++) /* nobody else locks this part of this window */
            MPI_Win_lock(k % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, right, k % 3 ? 0 : MPI_MODE_NOCHECK, w[i].w);
        for (int i = 0; i < WINDOWS; i++) {
            x[i] = 100 * rank + 10 * i + k;
            MPI_Put(&x[i], 1, MPI_INT, right, at_of(&w[i], right, 0), 1, MPI_INT, w[i].w);
        }
        for (int i = 0; i < WINDOWS; i++)
            MPI_Win_unlock(right, w[(3 * i + k) % WINDOWS].w);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < WINDOWS; i++) {
            own_open(&w[i]);
            EQ(*(int *)w[i].mem, 100 * left + 10 * i + k);
            own_close(&w[i]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = WINDOWS - 1; i >= 0; i--)
        win_free(&w[i]);
}

/* lock_all is a shared lock of every rank: it ends before any rank has an exclusive lock. */
static void all_or_one(void)
{
    struct win w;
    int one = 1, v, before, after;
    win_make(&w, CREATE, 2 * sizeof(int));
    for (int k = 0; k < 20; k++)
        if ((w.me + k) % 3) {
            MPI_Win_lock_all(k % 2 ? MPI_MODE_NOCHECK * (w.n == 1) : 0, w.w);
            for (int t = 0; t < w.n; t++)
                MPI_Accumulate(&one, 1, MPI_INT, t, at_of(&w, t, 0), 1, MPI_INT, MPI_SUM, w.w);
            MPI_Win_unlock_all(w.w);
        } else {
            int t = k % w.n;
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, w.w);
            MPI_Get(&before, 1, MPI_INT, t, at_of(&w, t, 0), 1, MPI_INT, w.w);
            MPI_Get(&v, 1, MPI_INT, t, at_of(&w, t, sizeof(int)), 1, MPI_INT, w.w);
            MPI_Win_flush(t, w.w);
            v++;
            MPI_Put(&v, 1, MPI_INT, t, at_of(&w, t, sizeof(int)), 1, MPI_INT, w.w);
            MPI_Get(&after, 1, MPI_INT, t, at_of(&w, t, 0), 1, MPI_INT, w.w);
            MPI_Win_unlock(t, w.w);
            EQ(after, before);
        }
    MPI_Barrier(w.comm);
    int shared = 0, alone = 0;
    for (int k = 0; k < 20; k++)
        for (int r = 0; r < w.n; r++) {
            shared += (r + k) % 3 != 0;
            alone += (r + k) % 3 == 0 && k % w.n == w.me;
        }
    own_open(&w);
    EQ(((int *)w.mem)[0], shared);
    EQ(((int *)w.mem)[1], alone);
    own_close(&w);
    win_free(&w);
}

/* A lock in a window says nothing about another: rank 0's of the one is held while the other's goes round. */
static void apart(void)
{
    struct win a, b;
    int x = 1, y;
    win_make(&a, ALLOCATE, sizeof(int));
    win_make(&b, ALLOCATE, sizeof(int));
    if (a.me == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, a.w);
        MPI_Put(&x, 1, MPI_INT, 0, at_of(&a, 0, 0), 1, MPI_INT, a.w);
        MPI_Win_flush(0, a.w);
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, b.w);
    MPI_Get(&y, 1, MPI_INT, 0, at_of(&b, 0, 0), 1, MPI_INT, b.w);
    MPI_Win_flush(0, b.w);
    y += 2;
    MPI_Put(&y, 1, MPI_INT, 0, at_of(&b, 0, 0), 1, MPI_INT, b.w);
    MPI_Win_unlock(0, b.w);
    MPI_Barrier(a.comm); /* all have had b's lock: a's is still held */
    if (a.me == 0)
        MPI_Win_unlock(0, a.w);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, a.w);
    MPI_Get(&x, 1, MPI_INT, 0, at_of(&a, 0, 0), 1, MPI_INT, a.w);
    MPI_Get(&y, 1, MPI_INT, 0, at_of(&a, 0, 0), 1, MPI_INT, a.w);
    MPI_Win_unlock(0, a.w);
    CHECK(x == 1 && y == 1);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, b.w);
    MPI_Get(&y, 1, MPI_INT, 0, at_of(&b, 0, 0), 1, MPI_INT, b.w);
    MPI_Win_unlock(0, b.w);
    EQ(y, 2 * b.n);
    win_free(&b);
    win_free(&a);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    for (enum flavor f = 0; f < FLAVORS; f++) {
        exclusion(f);
        own_part(f);
        flushes(f, false);
        flushes(f, true);
    }
    shared_locks();
    several();
    all_or_one();
    apart();
    return mt_end();
}
