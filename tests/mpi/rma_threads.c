/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_THREAD_MULTIPLE: threads with a window each in every synchronization, then all on the same window. */
#include "rma.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 12, SLOTS = 16 };

static MPI_Comm comms[THREADS];
static struct win own[THREADS], common;

static void in_threads(void *(*work)(void *))
{
    pthread_t th[THREADS];
    for (int t = 1; t < THREADS; t++)
        CHECK(pthread_create(&th[t], NULL, work, (void *)(long)t) == 0);
    work((void *)0L);
    for (int t = 1; t < THREADS; t++)
        pthread_join(th[t], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each thread has a window, and epochs of its own kind at any time. */
static void *apart(void *arg)
{
    int t = (int)(long)arg;
    const struct win *w = &own[t];
    int right = (w->me + 1) % w->n, left = (w->me + w->n - 1) % w->n, n = 1 << (2 * t + 4), *v = room(4 * (size_t)n);
    for (int k = 0; k < ROUNDS; k++) {
        enum way way = (enum way)((t + k) % WAYS);
        for (int i = 0; i < n; i++)
            v[i] = 1000 * w->me + 100 * t + k + i;
        way_open(way, w);
        MPI_Put(v, n, MPI_INT, right, at_of(w, right, 0), n, MPI_INT, w->w);
        way_close(way, w);
        own_open(w);
        for (int i = 0; i < n; i++)
            EQ(((int *)w->mem)[i], 1000 * left + 100 * t + k + i);
        own_close(w);
        way_open(way, w);
        MPI_Get(v, n, MPI_INT, left, at_of(w, left, 0), n, MPI_INT, w->w);
        MPI_Accumulate(&k, 1, MPI_INT, right, at_of(w, right, 4 * n), 1, MPI_INT, MPI_SUM, w->w);
        way_close(way, w);
        for (int i = 0; i < n; i++)
            EQ(v[i], 1000 * ((left + w->n - 1) % w->n) + 100 * t + k + i);
    }
    own_open(w);
    EQ(((int *)w->mem)[n], ROUNDS * (ROUNDS - 1) / 2);
    own_close(w);
    free(v);
    return NULL;
}

/* All threads of all ranks in one epoch of one window: puts, gets and requests in slots of their own, one counter. */
static void *together(void *arg)
{
    int t = (int)(long)arg;
    const struct win *w = &common;
    int64_t one = 1, last = -1, ticket, v[SLOTS], got[SLOTS];
    MPI_Request q[SLOTS];
    MPI_Aint slots = 8 + 8 * SLOTS * ((MPI_Aint)w->me * THREADS + t);
    for (int k = 0; k < ROUNDS; k++) {
        int to = (w->me + k + t) % w->n;
        for (int i = 0; i < SLOTS; i++)
            v[i] = 1000 * k + 10 * w->me + t + i;
        if (k % 2) {
            MPI_Put(v, SLOTS, MPI_INT64_T, to, at_of(w, to, slots), SLOTS, MPI_INT64_T, w->w);
            MPI_Win_flush(to, w->w);
            MPI_Get(got, SLOTS, MPI_INT64_T, to, at_of(w, to, slots), SLOTS, MPI_INT64_T, w->w);
            MPI_Win_flush_local(to, w->w);
        } else {
            for (int i = 0; i < SLOTS; i++)
                MPI_Rput(&v[i], 1, MPI_INT64_T, to, at_of(w, to, slots + 8 * i), 1, MPI_INT64_T, w->w, &q[i]);
            MPI_Waitall(SLOTS, q, MPI_STATUSES_IGNORE);
            MPI_Win_flush_all(w->w);
            for (int i = 0; i < SLOTS; i++)
                MPI_Rget(&got[i], 1, MPI_INT64_T, to, at_of(w, to, slots + 8 * i), 1, MPI_INT64_T, w->w, &q[i]);
            MPI_Waitall(SLOTS, q, MPI_STATUSES_IGNORE);
        }
        CHECK(!memcmp(v, got, sizeof(v)));
        MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, at_of(w, 0, 0), MPI_SUM, w->w);
        MPI_Win_flush(0, w->w);
        CHECK(ticket > last);
        last = ticket;
    }
    return NULL;
}

/* Windows come and go in all threads at once. */
static void *making(void *arg)
{
    int t = (int)(long)arg, me, n, *mem;
    MPI_Win w;
    MPI_Comm_rank(comms[t], &me);
    MPI_Comm_size(comms[t], &n);
    for (int k = 0; k < ROUNDS; k++) {
        int v = 100 * me + t + k;
        MPI_Win_allocate(16, 1, MPI_INFO_NULL, comms[t], &mem, &w);
        MPI_Win_fence(0, w);
        MPI_Put(&v, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, w);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
        EQ(*mem, 100 * ((me + n - 1) % n) + t + k);
        MPI_Win_free(&w);
    }
    return NULL;
}

/* Locks of different targets by different threads; messages go on at the same time. */
static void *locks(void *arg)
{
    int t = (int)(long)arg, x = rank, y = -1, right = (rank + 1) % size, left = (rank + size - 1) % size;
    const struct win *w = &common;
    MPI_Aint at = 8 + 8 * (MPI_Aint)t;
    int64_t v;
    for (int k = 0; k < ROUNDS; k++) {
        if (t == 0) {
            MPI_Sendrecv(&x, 1, MPI_INT, right, k, &y, 1, MPI_INT, left, k, comms[0], MPI_STATUS_IGNORE);
            EQ(y, left);
            continue;
        }
        for (int to = t - 1; to < w->n; to += THREADS - 1) { /* no other thread of this rank locks it */
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w->w);
            MPI_Get(&v, 1, MPI_INT64_T, to, at_of(w, to, at), 1, MPI_INT64_T, w->w);
            MPI_Win_flush(to, w->w);
            v++;
            MPI_Put(&v, 1, MPI_INT64_T, to, at_of(w, to, at), 1, MPI_INT64_T, w->w);
            MPI_Win_unlock(to, w->w);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EQ(provided, MPI_THREAD_MULTIPLE);
    for (int t = 0; t < THREADS; t++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
        win_make(&own[t], (enum flavor)(t % FLAVORS), 4 * ((1 << (2 * t + 4)) + 1));
        if (own[t].flavor != SHARED)
            own[t].comm = comms[t]; /* its barriers are among these threads */
    }
    in_threads(apart);
    in_threads(making);
    for (enum flavor f = 0; f < FLAVORS; f++) {
        if (f == SHARED)
            continue;
        win_make(&common, f, 8 + (MPI_Aint)8 * SLOTS * THREADS * size);
        MPI_Win_lock_all(0, common.w);
        in_threads(together);
        MPI_Win_unlock_all(common.w);
        own_open(&common);
        EQ(*(int64_t *)common.mem, rank == 0 ? ROUNDS * THREADS * size : 0);
        own_close(&common);
        own_set(&common, 0);
        in_threads(locks);
        own_open(&common);
        for (int t = 1; t < THREADS; t++)
            EQ(((int64_t *)common.mem)[1 + t], rank % (THREADS - 1) == t - 1 ? ROUNDS * size : 0);
        own_close(&common);
        win_free(&common);
    }
    for (int t = 0; t < THREADS; t++) {
        win_free(&own[t]);
        MPI_Comm_free(&comms[t]);
    }
    return mt_end();
}
