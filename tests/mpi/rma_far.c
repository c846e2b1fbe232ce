/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of parts of windows on other hosts: rma_far WHAT ROUNDS [FLAVOR].
 *
 *   count    every rank locks the parts of all, its own among them, exclusive and shared in turn; counts by get and put
 *            under a lock lose nothing, and the holder of a shared lock sees no changes
 *   computes the last rank computes, outside of MPI, until the others have done ROUNDS epochs on its part, seen by its
 *            memory alone. Rank 0 prints the time of its longest epoch, and of the first, in which it finds out that no
 *            answer comes
 *   mixed    count, with windows of all flavors at once, and MPI_Win_lock_all among the locks
 *   lost     ROUNDS is a command: rank 0 has the last rank's part exclusively, and runs the command, which parts them
 *            for ever. The owner then gets the lock of its own part, prints so and ends the job with code 7
 *   all      every rank has MPI_Win_lock_all open for many rounds, while others lock parts alone in another window
 */
#include "mt.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 64, FLAVORS = 3 };

static int64_t v[WORDS]; /* used again and again: registered, so nothing goes in packets */

struct part {
    MPI_Win w;
    int64_t *mem;
    MPI_Aint *at; /* of a dynamic window: where each part is; NULL: all are at 0 */
};

static void make(struct part *p, int flavor)
{
    *p = (struct part){0};
    if (flavor == 0) {
        MPI_Win_allocate(WORDS * 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p->mem, &p->w);
    } else {
        p->mem = malloc(WORDS * 8);
        CHECK(p->mem);
    }
    if (flavor == 1)
        MPI_Win_create(p->mem, WORDS * 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p->w);
    memset(p->mem, 0, WORDS * 8);
    if (flavor == 2) {
        MPI_Aint here;
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &p->w);
        MPI_Win_attach(p->w, p->mem, WORDS * 8);
        MPI_Get_address(p->mem, &here);
        p->at = malloc((size_t)size * sizeof(*p->at));
        CHECK(p->at);
        MPI_Allgather(&here, 1, MPI_AINT, p->at, 1, MPI_AINT, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void drop(struct part *p)
{
    bool own = p->at;
    int *flavor, flag;
    MPI_Win_get_attr(p->w, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    own = *flavor != MPI_WIN_FLAVOR_ALLOCATE;
    MPI_Win_free(&p->w);
    if (own)
        free(p->mem);
    free(p->at);
}

static MPI_Aint at(const struct part *p, int t, int word)
{
    return (p->at ? p->at[t] : 0) + 8 * word;
}

/* All words of a part are the same but while somebody is at work. */
static int64_t get(const struct part *p, int t)
{
    MPI_Get(v, WORDS, MPI_INT64_T, t, at(p, t, 0), WORDS, MPI_INT64_T, p->w);
    MPI_Win_flush(t, p->w);
    for (int i = 1; i < WORDS; i++)
        EQ(v[i], v[0]);
    return v[0];
}

static void add(const struct part *p, int t)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, p->w);
    get(p, t);
    for (int i = 0; i < WORDS; i++)
        v[i]++;
    for (int i = 0; i < WORDS; i += WORDS / 4) /* in several writes */
        MPI_Put(&v[i], WORDS / 4, MPI_INT64_T, t, at(p, t, i), WORDS / 4, MPI_INT64_T, p->w);
    MPI_Win_unlock(t, p->w);
}

/* A shared part does not change. */
static void look(const struct part *p, int t)
{
    int64_t was;
    MPI_Win_lock(MPI_LOCK_SHARED, t, 0, p->w);
    was = get(p, t);
    EQ(get(p, t), was);
    MPI_Win_unlock(t, p->w);
}

/* Once in a while. */
static bool chance(unsigned *seed, unsigned one_in)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % one_in == 0;
}

static int count(const struct part *p, int rounds, unsigned *seed, int *added)
{
    for (int k = 0; k < rounds; k++)
        for (int i = 0; i < size; i++) {
            int t = (rank + i) % size;
            if (chance(seed, 2)) {
                add(p, t);
                added[t]++;
            } else {
                look(p, t);
            }
        }
    return rounds;
}

static void check_sum(const struct part *p, const int *added)
{
    int *all = calloc((size_t)size, sizeof(*all));
    CHECK(all);
    MPI_Allreduce(added, all, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, p->w);
    for (int i = 0; i < WORDS; i++)
        EQ(p->mem[i], all[rank]);
    MPI_Win_unlock(rank, p->w);
    free(all);
}

static void run_count(int rounds, int flavor)
{
    int *added = calloc((size_t)size, sizeof(*added));
    unsigned seed = 77u + (unsigned)rank;
    struct part p;
    CHECK(added);
    make(&p, flavor);
    count(&p, rounds, &seed, added);
    MPI_Barrier(MPI_COMM_WORLD);
    check_sum(&p, added);
    MPI_Barrier(MPI_COMM_WORLD);
    drop(&p);
    free(added);
}

static void run_mixed(int rounds)
{
    int *added[FLAVORS];
    struct part p[FLAVORS];
    unsigned seed = 5u + (unsigned)rank;
    for (int f = 0; f < FLAVORS; f++) {
        added[f] = calloc((size_t)size, sizeof(int));
        CHECK(added[f]);
        make(&p[f], f);
    }
    for (int k = 0; k < rounds; k++) {
        int f = k % FLAVORS;
        count(&p[f], 1, &seed, added[f]);
        MPI_Win_lock_all(chance(&seed, 3) ? MPI_MODE_NOCHECK : 0, p[(f + 1) % FLAVORS].w); /* without operations */
        MPI_Win_unlock_all(p[(f + 1) % FLAVORS].w);
        MPI_Win_lock_all(0, p[f].w);
        for (int t = 0; t < size; t++)
            if (chance(&seed, 2))
                EQ(get(&p[f], t), get(&p[f], t));
        MPI_Win_unlock_all(p[f].w);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int f = 0; f < FLAVORS; f++) {
        check_sum(&p[f], added[f]);
        MPI_Barrier(MPI_COMM_WORLD);
        drop(&p[f]);
        free(added[f]);
    }
}

/* Some locks of an epoch come early, others late: no rank waits for ever behind an exclusive waiter. */
static void run_all(int rounds, int flavor)
{
    int *added = calloc((size_t)size, sizeof(*added));
    struct part p, q;
    CHECK(added);
    make(&p, flavor);
    make(&q, flavor);
    for (int k = 0; k < rounds; k++) {
        MPI_Win_lock_all(0, p.w);
        for (int i = 0; i < size; i++)
            get(&p, (rank + i) % size);
        add(&q, (rank + k) % size);
        added[(rank + k) % size]++;
        for (int i = 0; i < size; i++)
            get(&p, (rank + i) % size);
        MPI_Win_unlock_all(p.w);
        add(&p, (rank + k) % size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    check_sum(&p, added);
    check_sum(&q, added);
    MPI_Barrier(MPI_COMM_WORLD);
    drop(&p);
    drop(&q);
    free(added);
}

/* No MPI function until all are done. */
static void compute(volatile int64_t *mine, int64_t until)
{
    for (int ms = 0; mine[0] < until; ms++) {
        CHECK(ms < 60000);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void run_computes(int rounds, int flavor)
{
    int to = size - 1;
    double longest = 0, first = 0;
    struct part p;
    make(&p, flavor);
    for (int k = 0; k < 3; k++) { /* keys are asked for, by all; memory is used again */
        if (rank != to)
            add(&p, to);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == to)
        compute(p.mem, (3 + rounds) * (int64_t)(size - 1));
    for (int k = 0; rank != to && k < rounds; k++) {
        double took, begun = MPI_Wtime();
        if (k % 4 == 3)
            look(&p, to);
        add(&p, to);
        took = MPI_Wtime() - begun;
        if (k == 0)
            first = took;
        else
            longest = took > longest ? took : longest;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d epochs, the longest %.1f us, the first %.1f us\n", rounds, 1e6 * longest, 1e6 * first);
    drop(&p);
}

static void run_lost(const char *command)
{
    int to = size - 1;
    struct part p;
    make(&p, 0);
    MPI_Win_set_errhandler(p.w, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        add(&p, to);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, p.w);
        get(&p, to);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        CHECK(system(command) == 0);
        MPI_Recv(NULL, 0, MPI_INT, to, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* fails */
        MPI_Win_unlock(to, p.w);
        printf("it is lost\n");
        fflush(stdout);
        sleep(100);
    }
    if (rank == to) {
        EQ(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, p.w), MPI_SUCCESS);
        EQ(p.mem[0], 1);
        printf("the lock is free\n");
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "count";
    int rounds = argc > 2 ? atoi(argv[2]) : 20, flavor = argc > 3 ? atoi(argv[3]) : 0;
    mt_begin(&argc, &argv);
    if (!strcmp(what, "count"))
        run_count(rounds, flavor);
    else if (!strcmp(what, "mixed"))
        run_mixed(rounds);
    else if (!strcmp(what, "all"))
        run_all(rounds, flavor);
    else if (!strcmp(what, "computes"))
        run_computes(rounds, flavor);
    else if (!strcmp(what, "lost") && argc > 2)
        run_lost(argv[2]);
    else
        CHECK(!"a known argument");
    return mt_end();
}
