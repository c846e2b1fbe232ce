/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passive targets compute, or are blocked in another MPI call. Operations on a target inside MPI, in any call, end
 * while the target is there. Operations on a computing target end at the latest at its next MPI call. Nothing here
 * depends on durations.
 *
 *     rma_passive [TIMES]    only ranks that watch their memory, TIMES times
 */
#include "rma.h"

#include <stdbool.h>
#include <unistd.h>

enum { INTS = 5000, TAG = 5 };

static int *out, *in;

/* Everything that an origin can do with a target, to the end. */
static void operate(const struct win *w, int t, int k)
{
    int one = 1, old, x = -1, none = -5;
    MPI_Request q;
    for (int i = 0; i < INTS; i++)
        out[i] = 100 * k + w->me + i;
    MPI_Win_lock(k % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, t, 0, w->w);
    MPI_Put(out, INTS, MPI_INT, t, at_of(w, t, 0), INTS, MPI_INT, w->w);
    MPI_Win_flush(t, w->w);
    memset(in, 0, INTS * sizeof(int));
    MPI_Get(in, INTS, MPI_INT, t, at_of(w, t, 0), INTS, MPI_INT, w->w);
    MPI_Win_flush_local(t, w->w);
    CHECK(!memcmp(in, out, INTS * sizeof(int)));
    MPI_Accumulate(out, INTS, MPI_INT, t, at_of(w, t, 0), INTS, MPI_INT, MPI_SUM, w->w);
    MPI_Win_flush_all(w->w);
    MPI_Fetch_and_op(&one, &old, MPI_INT, t, at_of(w, t, 4), MPI_SUM, w->w);
    MPI_Win_flush(t, w->w);
    EQ(old, 2 * out[1]);
    MPI_Compare_and_swap(&none, &none, &x, MPI_INT, t, at_of(w, t, 4), w->w);
    MPI_Win_flush(t, w->w);
    EQ(x, 2 * out[1] + 1);
    MPI_Rget(in, INTS, MPI_INT, t, at_of(w, t, 0), INTS, MPI_INT, w->w, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    for (int i = 0; i < INTS; i++)
        EQ(in[i], 2 * out[i] + (i == 1));
    MPI_Win_unlock(t, w->w);
}

/* ---- the target's activity; the origin ends it when all its operations are complete ---- */

enum meanwhile { RECEIVES, WAITS, TESTS, PROBES, POLLS, SYNCS, FENCES, EXPOSES, LOCKS, COLLECTIVE, MEANWHILES };

struct also {
    struct win other; /* for waiting in it */
    MPI_Comm pair;    /* origin 0, target 1 */
};

static void target(enum meanwhile m, struct also *a)
{
    MPI_Request q;
    MPI_Group g, all;
    int flag = 0, zero = 0;
    switch (m) {
    case RECEIVES:
        MPI_Recv(NULL, 0, MPI_INT, 0, TAG, a->pair, MPI_STATUS_IGNORE);
        break;
    case WAITS:
        MPI_Irecv(NULL, 0, MPI_INT, 0, TAG, a->pair, &q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        break;
    case TESTS:
        MPI_Irecv(NULL, 0, MPI_INT, 0, TAG, a->pair, &q);
        while (!flag)
            MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
        break;
    case PROBES:
        MPI_Probe(0, TAG, a->pair, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_INT, 0, TAG, a->pair, MPI_STATUS_IGNORE);
        break;
    case POLLS:
        while (!flag)
            MPI_Iprobe(0, TAG, a->pair, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_INT, 0, TAG, a->pair, MPI_STATUS_IGNORE);
        break;
    case SYNCS: /* a synchronous send ends when received */
        MPI_Ssend(NULL, 0, MPI_INT, 0, TAG, a->pair);
        break;
    case FENCES:
        MPI_Win_fence(0, a->other.w);
        MPI_Win_fence(0, a->other.w);
        break;
    case EXPOSES:
        MPI_Win_get_group(a->other.w, &all);
        MPI_Group_incl(all, 1, &zero, &g);
        MPI_Win_post(g, 0, a->other.w);
        MPI_Win_wait(a->other.w);
        MPI_Group_free(&all);
        MPI_Group_free(&g);
        break;
    case LOCKS: /* rank 0 of the pair holds its own lock */
        MPI_Barrier(a->pair);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, a->other.w);
        MPI_Get(&flag, 1, MPI_INT, 0, at_of(&a->other, 0, 0), 1, MPI_INT, a->other.w);
        MPI_Win_unlock(0, a->other.w);
        EQ(flag, 77);
        break;
    default:
        MPI_Barrier(a->pair);
    }
}

static void origin(enum meanwhile m, struct also *a, const struct win *w, int t, int k)
{
    MPI_Group g, all;
    int one = 1, x = 77;
    if (m == FENCES)
        MPI_Win_fence(0, a->other.w);
    if (m == LOCKS) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, a->other.w);
        MPI_Put(&x, 1, MPI_INT, 0, at_of(&a->other, 0, 0), 1, MPI_INT, a->other.w);
        MPI_Win_flush(0, a->other.w);
        MPI_Barrier(a->pair);
    }
    operate(w, t, k);
    switch (m) {
    case SYNCS:
        MPI_Recv(NULL, 0, MPI_INT, 1, TAG, a->pair, MPI_STATUS_IGNORE);
        break;
    case FENCES:
        MPI_Win_fence(0, a->other.w);
        break;
    case EXPOSES:
        MPI_Win_get_group(a->other.w, &all);
        MPI_Group_incl(all, 1, &one, &g);
        MPI_Win_start(g, 0, a->other.w);
        MPI_Win_complete(a->other.w);
        MPI_Group_free(&all);
        MPI_Group_free(&g);
        break;
    case LOCKS:
        MPI_Win_unlock(0, a->other.w);
        break;
    case COLLECTIVE:
        MPI_Barrier(a->pair);
        break;
    default:
        MPI_Send(NULL, 0, MPI_INT, 1, TAG, a->pair);
    }
}

/* Pairs of ranks: 0 with 1, 2 with 3; a rank that is left over has itself. */
static void blocked(enum flavor f)
{
    struct win w;
    struct also a;
    win_make(&w, f, INTS * sizeof(int));
    int alone = w.me % 2 == 0 && w.me == w.n - 1, first = w.me / 2 * 2;
    MPI_Comm_split(w.comm, w.me / 2, w.me, &a.pair);
    for (int k = 0; k < 2 && !alone; k++) {
        a.other = (struct win){.comm = a.pair, .me = w.me % 2, .n = 2, .bytes = 16};
        MPI_Aint zeros[2] = {0, 0};
        a.other.at = zeros;
        MPI_Win_allocate(16, 1, MPI_INFO_NULL, a.pair, &a.other.mem, &a.other.w);
        for (enum meanwhile m = 0; m < MEANWHILES; m++) {
            if (w.me % 2)
                target(m, &a);
            else
                origin(m, &a, &w, first + 1, (int)m + k);
        }
        MPI_Win_free(&a.other.w);
    }
    if (alone)
        operate(&w, w.me, 1);
    MPI_Comm_free(&a.pair);
    MPI_Barrier(w.comm);
    win_free(&w);
}

/* Everybody operates on a rank that computes or sleeps, and then takes no more part than a barrier is. */
static void busy(enum flavor f)
{
    struct win w;
    win_make(&w, f, INTS * sizeof(int));
    for (int k = 0; k < 6; k++) {
        int t = k % w.n;
        if (w.me != t || w.n == 1) {
            for (int turn = 0; turn < w.n; turn++) {
                int x = 1;
                MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w.w);
                MPI_Accumulate(&x, 1, MPI_INT, t, at_of(&w, t, 8), 1, MPI_INT, MPI_SUM, w.w);
                MPI_Win_unlock(t, w.w);
            }
        } else if (k % 2) {
            usleep(20000);
        } else {
            for (volatile int i = 0; i < 3000000; i++)
                ;
        }
        MPI_Barrier(w.comm);
        own_open(&w);
        EQ(((int *)w.mem)[2], w.me == t ? (w.n > 1 ? w.n - 1 : 1) * w.n : 0);
        ((int *)w.mem)[2] = 0;
        own_close(&w);
        MPI_Barrier(w.comm);
    }
    win_free(&w);
}

/* ---- a target that does nothing but look at its memory ---- */

/* Functions used for looking. Each is the only MPI call until the change is seen. */
enum look {
    BY_SYNC,
    BY_LOCK,
    BY_LOCK_ALL,
    BY_FLUSH,
    BY_FLUSH_ALL,
    BY_FLUSH_LOCAL,
    BY_FLUSH_LOCAL_ALL,
    BY_REQUEST,
    LOOKS
};

static bool has_epoch(enum look by)
{
    return by != BY_LOCK && by != BY_LOCK_ALL;
}

static int look(const struct win *w, enum look by)
{
    int seen = 0;
    MPI_Request q;
    if (by == BY_SYNC) {
        MPI_Win_sync(w->w);
        return *(volatile int *)w->mem;
    }
    if (by == BY_LOCK)
        MPI_Win_lock(MPI_LOCK_SHARED, w->me, 0, w->w);
    if (by == BY_LOCK_ALL)
        MPI_Win_lock_all(0, w->w);
    if (by == BY_REQUEST) {
        MPI_Rget_accumulate(NULL, 0, MPI_INT, &seen, 1, MPI_INT, w->me, at_of(w, w->me, 0), 1, MPI_INT, MPI_NO_OP, w->w,
                            &q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        return seen;
    }
    MPI_Fetch_and_op(NULL, &seen, MPI_INT, w->me, at_of(w, w->me, 0), MPI_NO_OP, w->w);
    switch (by) {
    case BY_LOCK:
        MPI_Win_unlock(w->me, w->w);
        break;
    case BY_LOCK_ALL:
        MPI_Win_unlock_all(w->w);
        break;
    case BY_FLUSH_ALL:
        MPI_Win_flush_all(w->w);
        break;
    case BY_FLUSH_LOCAL:
        MPI_Win_flush_local(w->me, w->w);
        break;
    case BY_FLUSH_LOCAL_ALL:
        MPI_Win_flush_local_all(w->w);
        break;
    default:
        MPI_Win_flush(w->me, w->w);
    }
    return seen;
}

/*
 * Each rank writes to the next, which writes to the one after it as soon as it has seen the change: an unseen change
 * hangs.
 */
static void watches(enum flavor f, int times)
{
    struct win w;
    int *model, flag, one = 1;
    win_make(&w, f, sizeof(int));
    MPI_Win_get_attr(w.w, MPI_WIN_MODEL, &model, &flag);
    CHECK(flag);
    for (int first = *model == MPI_WIN_UNIFIED ? 0 : BY_LOCK * times, i = first; i < LOOKS * times && w.n > 1; i++) {
        enum look by = (enum look)(i / times);
        int next = (w.me + 1) % w.n, round = i - first + 1;
        if (has_epoch(by))
            MPI_Win_lock_all(0, w.w);
        while (w.me && look(&w, by) < round)
            ;
        if (!has_epoch(by))
            MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w.w);
        MPI_Accumulate(&one, 1, MPI_INT, next, at_of(&w, next, 0), 1, MPI_INT, MPI_SUM, w.w);
        MPI_Win_flush(next, w.w);
        if (!has_epoch(by))
            MPI_Win_unlock(next, w.w);
        while (!w.me && look(&w, by) < round)
            ;
        if (has_epoch(by))
            MPI_Win_unlock_all(w.w);
    }
    win_free(&w);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    if (argc > 1) {
        watches(CREATE, atoi(argv[1]));
        return mt_end();
    }
    out = room(INTS * sizeof(int));
    in = room(INTS * sizeof(int));
    for (enum flavor f = 0; f < FLAVORS; f++) {
        blocked(f);
        busy(f);
        watches(f, 1);
    }
    free(out);
    free(in);
    return mt_end();
}
