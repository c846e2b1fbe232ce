/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations with requests: each ends by itself, in any order, by waiting and by testing; beside messages' requests. */
#include "rma.h"

enum { EACH = 24, COUNTS = 5 };

static const int counts[COUNTS] = {0, 1, 7, 600, 40000};

/* Gets have brought their data when their request is complete; puts and accumulates have left their buffers. */
static void kinds(enum flavor f, int n)
{
    struct win w;
    int *a = room(sizeof(int) * (size_t)(n + 1)), *b = room(sizeof(int) * (size_t)(n + 1));
    MPI_Request q;
    MPI_Status st;
    win_make(&w, f, (MPI_Aint)sizeof(int) * n);
    int right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n, flag = 0;
    for (int i = 0; i < n; i++)
        a[i] = w.me * 1000 + i;
    way_open(LOCK_ALL, &w);

    MPI_Rput(a, n, MPI_INT, right, at_of(&w, right, 0), n, MPI_INT, w.w, &q);
    CHECK(q != MPI_REQUEST_NULL);
    MPI_Wait(&q, &st);
    EQ(q, MPI_REQUEST_NULL);
    for (int i = 0; i < n; i++)
        a[i] = -1;
    MPI_Win_flush(right, w.w);
    MPI_Barrier(w.comm);

    b[n] = 77;
    MPI_Rget(b, n, MPI_INT, right, at_of(&w, right, 0), n, MPI_INT, w.w, &q);
    while (!flag)
        MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
    EQ(q, MPI_REQUEST_NULL);
    for (int i = 0; i < n; i++)
        EQ(b[i], w.me * 1000 + i);
    EQ(b[n], 77);

    for (int i = 0; i < n; i++)
        a[i] = i + 5;
    MPI_Raccumulate(a, n, MPI_INT, right, at_of(&w, right, 0), n, MPI_INT, MPI_SUM, w.w, &q);
    MPI_Waitall(1, &q, &st);
    for (int i = 0; i < n; i++)
        a[i] = 3;
    MPI_Rget_accumulate(a, n, MPI_INT, b, n, MPI_INT, right, at_of(&w, right, 0), n, MPI_INT, MPI_PROD, w.w, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        EQ(b[i], w.me * 1000 + 2 * i + 5);
    EQ(b[n], 77);
    MPI_Win_flush_all(w.w);
    MPI_Barrier(w.comm);
    MPI_Rget(b, n, MPI_INT, w.me, at_of(&w, w.me, 0), n, MPI_INT, w.w, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        EQ(b[i], 3 * (left * 1000 + 2 * i + 5));
    way_close(LOCK_ALL, &w);
    win_free(&w);
    free(a);
    free(b);
}

/* Many at once, completed out of order, mixed with messages in one array. */
static void many(enum flavor f)
{
    struct win w;
    int got[EACH], put[EACH], from[EACH], left, right, index, done = 0;
    MPI_Request q[2 * EACH + 2];
    win_make(&w, f, (MPI_Aint)sizeof(int) * EACH * 2);
    right = (w.me + 1) % w.n;
    left = (w.me + w.n - 1) % w.n;
    own_open(&w);
    for (int i = 0; i < EACH; i++)
        ((int *)w.mem)[EACH + i] = w.me * EACH + i;
    own_close(&w);
    for (int k = 0; k < 5; k++) {
        way_open(k % 2 ? LOCK : LOCK_ALL, &w);
        int x = w.me, y = -1;
        for (int i = 0; i < EACH; i++) {
            int t = (w.me + i) % w.n;
            put[i] = 1000 * k + w.me * EACH + i;
            from[i] = t;
            MPI_Rput(&put[i], 1, MPI_INT, right, at_of(&w, right, (MPI_Aint)sizeof(int) * i), 1, MPI_INT, w.w, &q[i]);
            MPI_Rget(&got[i], 1, MPI_INT, t, at_of(&w, t, (MPI_Aint)sizeof(int) * (EACH + i)), 1, MPI_INT, w.w,
                     &q[EACH + i]);
        }
        MPI_Irecv(&y, 1, MPI_INT, left, k, w.comm, &q[2 * EACH]);
        MPI_Isend(&x, 1, MPI_INT, right, k, w.comm, &q[2 * EACH + 1]);
        done = 0;
        if (k % 3 == 0)
            MPI_Waitall(2 * EACH + 2, q, MPI_STATUSES_IGNORE);
        else if (k % 3 == 1)
            while (!done)
                MPI_Testall(2 * EACH + 2, q, &done, MPI_STATUSES_IGNORE);
        else
            for (index = 0; index != MPI_UNDEFINED; done++)
                MPI_Waitany(2 * EACH + 2, q, &index, MPI_STATUS_IGNORE);
        EQ(done, k % 3 == 0 ? 0 : k % 3 == 1 ? 1 : 2 * EACH + 3);
        EQ(y, left);
        for (int i = 0; i < EACH; i++)
            EQ(got[i], from[i] * EACH + i);
        way_close(k % 2 ? LOCK : LOCK_ALL, &w);
        own_open(&w);
        for (int i = 0; i < EACH; i++)
            EQ(((int *)w.mem)[i], 1000 * k + left * EACH + i);
        own_close(&w);
    }
    win_free(&w);
}

/* A flush, or the end of the epoch, completes operations; their requests are still there to be waited for. */
static void after_flush(void)
{
    struct win w;
    int x = rank + 1, y = -1, z = 2, flag = 0;
    MPI_Request q[3];
    win_make(&w, ALLOCATE, sizeof(int));
    int right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n;
    way_open(LOCK_ALL, &w);
    MPI_Rput(&x, 1, MPI_INT, right, at_of(&w, right, 0), 1, MPI_INT, w.w, &q[0]);
    MPI_Win_flush(right, w.w);
    MPI_Barrier(w.comm);
    MPI_Rget(&y, 1, MPI_INT, w.me, at_of(&w, w.me, 0), 1, MPI_INT, w.w, &q[1]);
    MPI_Win_flush_local_all(w.w);
    EQ(y, left + 1);
    MPI_Barrier(w.comm);
    MPI_Raccumulate(&z, 1, MPI_INT, right, at_of(&w, right, 0), 1, MPI_INT, MPI_SUM, w.w, &q[2]);
    MPI_Win_unlock_all(w.w);
    MPI_Request_get_status(q[0], &flag, MPI_STATUS_IGNORE);
    CHECK(flag);
    MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++)
        EQ(q[i], MPI_REQUEST_NULL);
    MPI_Barrier(w.comm);
    own_open(&w);
    EQ(*(int *)w.mem, left + 3);
    own_close(&w);
    win_free(&w);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    for (enum flavor f = 0; f < FLAVORS; f++) {
        for (int i = 0; i < COUNTS; i++)
            kinds(f, counts[i]);
        many(f);
    }
    after_flush();
    return mt_end();
}
