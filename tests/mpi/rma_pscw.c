/* SPDX-License-Identifier: BSD-3-Clause */
/* Post, start, complete, wait: rings, pairs, one to all, all to one, rounds of random groups, MPI_Win_test. */
#include "rma.h"

#include <stdbool.h>

static MPI_Group of(const struct win *w, const int *ranks, int n)
{
    MPI_Group all, g;
    MPI_Win_get_group(w->w, &all);
    MPI_Group_incl(all, n, ranks, &g);
    MPI_Group_free(&all);
    return g;
}

static void post(const struct win *w, const int *ranks, int n, int assert)
{
    MPI_Group g = of(w, ranks, n);
    MPI_Win_post(g, assert, w->w);
    MPI_Group_free(&g);
}

static void start(const struct win *w, const int *ranks, int n, int assert)
{
    MPI_Group g = of(w, ranks, n);
    MPI_Win_start(g, assert, w->w);
    MPI_Group_free(&g);
}

/* Ends the exposure: by waiting, or by asking until it is over. */
static void finish(const struct win *w, bool ask)
{
    int flag = 0;
    if (!ask)
        MPI_Win_wait(w->w);
    while (ask && !flag)
        MPI_Win_test(w->w, &flag);
}

/* Around the ring: everyone is origin of the one side and target of the other. */
static void ring(enum flavor f)
{
    struct win w;
    win_make(&w, f, 4 * sizeof(int));
    int right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n, x[2], got[2], *own = (int *)w.mem;
    for (int k = 0; k < 20; k++) {
        x[0] = 1000 * w.me + k;
        x[1] = -x[0];
        own_open(&w);
        own[3] = 7 * w.me + k;
        own_close(&w);
        post(&w, &left, 1, 0);
        start(&w, &right, 1, 0);
        MPI_Put(x, 2, MPI_INT, right, at_of(&w, right, 0), 2, MPI_INT, w.w);
        MPI_Get(got, 1, MPI_INT, right, at_of(&w, right, 3 * sizeof(int)), 1, MPI_INT, w.w);
        MPI_Win_complete(w.w);
        EQ(got[0], 7 * right + k);
        finish(&w, k % 2);
        CHECK(own[0] == 1000 * left + k && own[1] == -own[0]);
        MPI_Barrier(w.comm); /* own[3] is stored to next */
    }
    win_free(&w);
}

/* The even ranks write to all odd ones; these do nothing but expose. Then the other way round. */
static void sides(enum flavor f)
{
    struct win w;
    int *ranks = room(sizeof(int) * (size_t)size), n;
    win_make(&w, f, (MPI_Aint)sizeof(int) * size);
    for (int k = 0; k < 6; k++) {
        bool origin = w.me % 2 == k % 2;
        n = 0;
        for (int r = 0; r < w.n; r++)
            if (r % 2 == (origin ? k + 1 : k) % 2)
                ranks[n++] = r;
        if (origin) {
            int x = 100 * k + w.me;
            start(&w, ranks, n, 0);
            for (int i = 0; i < n; i++)
                MPI_Put(&x, 1, MPI_INT, ranks[i], at_of(&w, ranks[i], (MPI_Aint)sizeof(int) * w.me), 1, MPI_INT, w.w);
            MPI_Win_complete(w.w);
        } else {
            post(&w, ranks, n, k % 3 ? 0 : MPI_MODE_NOSTORE);
            finish(&w, k % 3 == 1);
            for (int i = 0; i < n; i++)
                EQ(((int *)w.mem)[ranks[i]], 100 * k + ranks[i]);
        }
    }
    free(ranks);
    win_free(&w);
}

/* MPI_Win_test says no as long as an origin has not completed, and yes once. */
static void test(void)
{
    struct win w;
    int flag = 1, zero = 0, x = 42;
    win_make(&w, ALLOCATE, sizeof(int));
    if (w.n > 1 && w.me == 0) {
        int one = 1;
        post(&w, &one, 1, 0);
        MPI_Win_test(w.w, &flag); /* rank 1 waits for a message before it completes */
        EQ(flag, 0);
        MPI_Send(NULL, 0, MPI_INT, 1, 0, w.comm);
        finish(&w, true);
        EQ(*(int *)w.mem, 42);
        post(&w, &one, 0, 0); /* nobody: over at once */
        MPI_Win_wait(w.w);
    } else if (w.me == 1) {
        start(&w, &zero, 1, 0);
        MPI_Put(&x, 1, MPI_INT, 0, at_of(&w, 0, 0), 1, MPI_INT, w.w);
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, w.comm, MPI_STATUS_IGNORE);
        MPI_Win_complete(w.w);
        start(&w, &zero, 0, 0);
        MPI_Win_complete(w.w);
    }
    win_free(&w);
}

/* With MPI_MODE_NOCHECK the posts are known to have come. */
static void no_check(void)
{
    struct win w;
    win_make(&w, CREATE, sizeof(int));
    int right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n;
    for (int k = 0; k < 10; k++) {
        int x = w.me + k;
        post(&w, &left, 1, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE);
        MPI_Barrier(w.comm);
        start(&w, &right, 1, MPI_MODE_NOCHECK);
        MPI_Accumulate(&x, 1, MPI_INT, right, at_of(&w, right, 0), 1, MPI_INT, MPI_REPLACE, w.w);
        MPI_Win_complete(w.w);
        MPI_Win_wait(w.w);
        EQ(*(int *)w.mem, left + k);
    }
    post(&w, &left, 1, MPI_MODE_NOPUT); /* an exposure for gets may say so */
    start(&w, &right, 1, 0);
    int got = -1;
    MPI_Get(&got, 1, MPI_INT, right, at_of(&w, right, 0), 1, MPI_INT, w.w);
    MPI_Win_complete(w.w);
    MPI_Win_wait(w.w);
    EQ(got, w.me + 9);
    win_free(&w);
}

/* Each round has other groups, known to all ranks from the same seed; two windows' epochs are open at once. */
static void random_groups(enum flavor f)
{
    struct win w[2];
    uint64_t seed = 7 + (unsigned)f;
    int *to = room(sizeof(int) * (size_t)size), *from = room(sizeof(int) * (size_t)size);
    int *sum[2] = {calloc((size_t)size, sizeof(int)), calloc((size_t)size, sizeof(int))};
    CHECK(sum[0] && sum[1]);
    win_make(&w[0], f, (MPI_Aint)sizeof(int) * size);
    win_make(&w[1], f, (MPI_Aint)sizeof(int) * size);
    int me = w[0].me, n = w[0].n;
    for (int k = 0; k < 30; k++) {
        int tos[2] = {0}, froms[2] = {0}, x = me + k;
        for (int v = 0; v < 2; v++) {
            for (int o = 0; o < n; o++)
                for (int t = 0; t < n; t++) {
                    bool edge = next_of(&seed) % 3 == 0;
                    if (edge && o == me)
                        to[tos[v]++] = t;
                    if (edge && t == me)
                        from[froms[v]++] = o;
                }
            if (froms[v])
                post(&w[v], from, froms[v], 0);
            for (int i = 0; i < froms[v]; i++)
                sum[v][from[i]] += from[i] + k;
            if (tos[v])
                start(&w[v], to, tos[v], 0);
            for (int i = 0; i < tos[v]; i++)
                MPI_Accumulate(&x, 1, MPI_INT, to[i], at_of(&w[v], to[i], (MPI_Aint)sizeof(int) * me), 1, MPI_INT,
                               MPI_SUM, w[v].w);
        }
        for (int v = 1; v >= 0; v--)
            if (tos[v])
                MPI_Win_complete(w[v].w);
        for (int v = 0; v < 2; v++)
            if (froms[v])
                finish(&w[v], k % 2);
    }
    for (int v = 0; v < 2; v++) {
        for (int r = 0; r < n; r++)
            EQ(((int *)w[v].mem)[r], sum[v][r]);
        free(sum[v]);
    }
    win_free(&w[1]);
    win_free(&w[0]);
    free(to);
    free(from);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    for (enum flavor f = 0; f < FLAVORS; f++) {
        ring(f);
        sides(f);
        random_groups(f);
    }
    test();
    no_check();
    return mt_end();
}
