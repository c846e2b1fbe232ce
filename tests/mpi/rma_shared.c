/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of shared memory: parts of any size behind one another or apart, queries, loads and stores beside operations.
 */
#include "rma.h"

#include <stdatomic.h>
#include <stdbool.h>

static MPI_Comm node;
static int me, n;

static MPI_Aint all_zero(int r)
{
    return 0;
}
static MPI_Aint some_zero(int r)
{
    return r % 3 * 24;
}
static MPI_Aint odd(int r)
{
    return 2 * r + 5;
}
static MPI_Aint pages(int r)
{
    return r % 2 ? 4096 : 12288 + 8;
}
static MPI_Aint last_only(int r)
{
    return r == n - 1 ? 100 : 0;
}

static MPI_Aint (*const sizes[])(int) = {all_zero, some_zero, odd, pages, last_only};

/* The part of a rank, as this process sees it. */
static char *part(MPI_Win w, int r, MPI_Aint want)
{
    MPI_Aint bytes = -1;
    int unit = -1;
    char *p = NULL;
    MPI_Win_shared_query(w, r, &bytes, &unit, &p);
    EQ(bytes, want);
    if (r != MPI_PROC_NULL && want)
        EQ(unit, 1 + r % 5);
    CHECK(p || !want);
    return p;
}

static void barrier(MPI_Win w)
{
    MPI_Win_sync(w);
    MPI_Barrier(node);
    MPI_Win_sync(w);
}

static void queries(MPI_Aint (*size_of)(int), bool apart)
{
    MPI_Win w;
    MPI_Info info;
    char *mine, **parts = room(sizeof(char *) * (size_t)n);
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false");
    MPI_Win_allocate_shared(size_of(me), 1 + me % 5, info, node, &mine, &w);
    MPI_Info_free(&info);
    int first = MPI_PROC_NULL;
    for (int r = n - 1; r >= 0; r--) {
        parts[r] = part(w, r, size_of(r));
        first = size_of(r) ? r : first;
    }
    CHECK(!size_of(me) || parts[me] == mine);
    for (int r = 1; r < n && !apart; r++) /* one behind the other */
        CHECK(!size_of(r) || !size_of(r - 1) || parts[r] == parts[r - 1] + size_of(r - 1));
    for (int a = 0; a < n; a++) /* none inside another */
        for (int b = 0; b < n; b++)
            CHECK(a == b || !size_of(a) || !size_of(b) || parts[a] + size_of(a) <= parts[b] ||
                  parts[b] + size_of(b) <= parts[a]);
    if (first != MPI_PROC_NULL)
        CHECK(part(w, MPI_PROC_NULL, size_of(first)) == parts[first]);
    else
        part(w, MPI_PROC_NULL, 0);
    MPI_Win_lock_all(0, w);
    for (int k = 0; k < 3; k++) { /* each rank fills the part of another one by stores */
        int to = (me + k) % n;
        for (MPI_Aint i = 0; i < size_of(to); i++)
            parts[to][i] = byte_of(me, k, (size_t)i);
        barrier(w);
        for (int r = 0; r < n; r++)
            for (MPI_Aint i = 0; i < size_of(r); i++)
                EQ(parts[r][i], byte_of((r + n - k % n) % n, k, (size_t)i));
        barrier(w);
    }
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
    free(parts);
}

/* Stores are seen by gets, puts by loads, and atomic operations of both kinds add up when they do not overlap in time.
 */
static void both(void)
{
    MPI_Win w;
    long *mine, *next, v, got = -1, one = 1;
    int right = (me + 1) % n, left = (me + n - 1) % n, unit;
    MPI_Aint bytes;
    MPI_Win_allocate_shared(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, node, &mine, &w);
    MPI_Win_shared_query(w, right, &bytes, &unit, &next);
    MPI_Win_lock_all(0, w);
    for (int i = 0; i < 4; i++)
        mine[i] = 0;
    barrier(w);
    for (int k = 1; k < 20; k++) {
        next[0] = 100 * me + k;
        v = -100 * me - k;
        MPI_Put(&v, 1, MPI_LONG, right, 1, 1, MPI_LONG, w);
        MPI_Win_flush(right, w);
        barrier(w);
        EQ(mine[0], 100 * left + k);
        EQ(mine[1], -100 * left - k);
        MPI_Get(&got, 1, MPI_LONG, right, 0, 1, MPI_LONG, w);
        MPI_Win_flush(right, w);
        EQ(got, 100 * me + k);
        MPI_Accumulate(&one, 1, MPI_LONG, 0, 2, 1, MPI_LONG, MPI_SUM, w);
        MPI_Win_flush(0, w);
        barrier(w);
        if (me == 0)
            EQ(mine[2], 2 * n * k - n);
        barrier(w);
        long *first;
        MPI_Win_shared_query(w, 0, &bytes, &unit, &first);
        atomic_fetch_add((_Atomic long *)&first[2], 1);
        barrier(w);
    }
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
}

/* A flag that is stored, and looked at without a call of MPI. */
static void flags(void)
{
    MPI_Win w;
    _Atomic int *mine, *next;
    int unit;
    MPI_Aint bytes;
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, node, &mine, &w);
    MPI_Win_shared_query(w, (me + 1) % n, &bytes, &unit, &next);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w);
    atomic_store(mine, 0);
    barrier(w);
    for (int k = 1; k <= 5; k++) {
        if (me == 0) /* once around */
            atomic_store(next, k);
        while (atomic_load(mine) != k)
            MPI_Win_sync(w);
        if (me)
            atomic_store(next, k);
    }
    barrier(w);
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
}

/*
 * Windows not made for sharing: the part of a rank has its size and its address here, or neither; memory allocated by
 * the library inside a node is there, and so is each process's own.
 */
static void not_shared(bool allocated)
{
    MPI_Win w;
    MPI_Aint bytes;
    int unit, first = -1, *node_rank = room(sizeof(int) * (size_t)size), *world = room(sizeof(int) * (size_t)size);
    MPI_Group all, near;
    char *mine, *p;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(node, &near);
    for (int r = 0; r < size; r++)
        world[r] = r;
    MPI_Group_translate_ranks(all, size, world, near, node_rank);
    const MPI_Aint my_size = rank ? 64 + 8 * rank : 0; /* the first has nothing */
    if (allocated) {
        MPI_Win_allocate(my_size, 1 + rank % 5, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
    } else {
        mine = room(my_size);
        MPI_Win_create(mine, my_size, 1 + rank % 5, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    }
    MPI_Win_lock_all(0, w);
    memset(mine, rank, (size_t)my_size);
    MPI_Win_sync(w);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(w);
    for (int r = 0; r < size; r++) {
        const MPI_Aint want = r ? 64 + 8 * r : 0;
        const bool here = r == rank || (allocated && node_rank[r] != MPI_UNDEFINED);
        bytes = unit = -1;
        p = mine;
        EQ(MPI_Win_shared_query(w, r, &bytes, &unit, &p), MPI_SUCCESS);
        EQ(bytes, here ? want : 0);
        EQ(unit, 1 + r % 5);
        CHECK(r == rank && want ? p == mine : true);
        CHECK(here || !p);
        for (MPI_Aint i = 0; i < bytes; i++)
            EQ(p[i], (char)r);
        if (bytes && first < 0)
            first = r;
    }
    bytes = -1;
    EQ(MPI_Win_shared_query(w, MPI_PROC_NULL, &bytes, &unit, &p), MPI_SUCCESS);
    EQ(bytes, first < 0 ? 0 : 64 + 8 * first);
    CHECK(first < 0 || p[0] == (char)first);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
    if (!allocated)
        free(mine);
    free(node_rank);
    free(world);
    MPI_Group_free(&all);
    MPI_Group_free(&near);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &n);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        queries(sizes[i], false);
        queries(sizes[i], true);
    }
    both();
    flags();
    not_shared(true);
    not_shared(false);
    MPI_Comm_free(&node);
    return mt_end();
}
