/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective between two groups, equal ones and unequal ones, each way round, with counts from none to many. */
#include "mt.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef FORM
#include "coll_forms.h"
#endif

static MPI_Comm inter;
static int side, me, ours, theirs; /* group, rank there, sizes */

/* The value of rank r of group g at i. */
static int val(int g, int r, int i)
{
    return (g + 1) * 1000003 + r * 7919 + i * 7 + 1;
}

static int *ints(long n)
{
    int *p = malloc(((size_t)n + 1) * sizeof(int));
    CHECK(p);
    for (long i = 0; i <= n; i++)
        p[i] = -77;
    return p;
}

static int *mine(int n)
{
    int *p = ints(n);
    for (int i = 0; i < n; i++)
        p[i] = val(side, me, i);
    return p;
}

/* The sum over group g; unsigned, as it may overflow. */
static int sum(int g, int n, int i)
{
    unsigned s = 0;
    for (int r = 0; r < n; r++)
        s += (unsigned)val(g, r, i);
    return (int)s;
}

/* This rank's argument for the root: rank `root` of group `group`. */
static int say(int group, int root)
{
    return side != group ? root : me == root ? MPI_ROOT : MPI_PROC_NULL;
}

static int is(int group, int root)
{
    return side == group && me == root;
}

/* Ignored arguments are garbage. */
#define JUNK      ((void *)8)
#define JUNK_TYPE MPI_DATATYPE_NULL

static void rooted(int n, int group, int root)
{
    int from = side != group, at = is(group, root), *in = mine(n), k = theirs * n, r = say(group, root);
    MPI_Datatype gt = from ? MPI_INT : JUNK_TYPE, rt = at ? MPI_INT : JUNK_TYPE;
    /* bcast */
    int *b = from ? ints(n) : mine(n);
    if (from || at)
        MPI_Bcast(b, n, MPI_INT, r, inter);
    else
        MPI_Bcast(JUNK, -5, JUNK_TYPE, r, inter);
    for (int i = 0; i < n; i++)
        EQ(b[i], from ? val(group, root, i) : val(side, me, i));
    EQ(b[n], -77);
    free(b);
    /* reduce */
    b = ints(n);
    if (from || at)
        MPI_Reduce(from ? in : JUNK, at ? b : JUNK, n, MPI_INT, MPI_SUM, r, inter);
    else
        MPI_Reduce(JUNK, JUNK, -5, JUNK_TYPE, MPI_OP_NULL, r, inter);
    for (int i = 0; i < n; i++)
        EQ(b[i], at ? sum(!side, theirs, i) : -77);
    free(b);
    /* gather and scatter, with equal parts, then with parts of r % 3 + n elements, in order of falling ranks */
    b = ints(k);
    MPI_Gather(from ? in : JUNK, from ? n : -5, gt, at ? b : JUNK, at ? n : -5, rt, r, inter);
    for (int i = 0; i < k; i++)
        EQ(b[i], at ? val(!side, i / n, i % n) : -77);
    EQ(b[k], -77);
    int *back = ints(n);
    MPI_Scatter(at ? b : JUNK, at ? n : -5, rt, from ? back : JUNK, from ? n : -5, gt, r, inter);
    for (int i = 0; i < n; i++)
        EQ(back[i], from ? in[i] : -77);
    EQ(back[n], -77);
    free(b);
    free(back);
    free(in);
    int own = n + me % 3, counts[size], disps[size], all = 0;
    for (int i = theirs - 1; i >= 0; i--) {
        counts[i] = n + i % 3;
        disps[i] = all;
        all += counts[i];
    }
    in = mine(own);
    b = ints(all);
    back = ints(own);
    MPI_Gatherv(from ? in : JUNK, from ? own : -5, gt, at ? b : JUNK, at ? counts : NULL, at ? disps : NULL, rt, r,
                inter);
    for (int p = 0; p < theirs && at; p++)
        for (int i = 0; i < counts[p]; i++)
            EQ(b[disps[p] + i], val(!side, p, i));
    EQ(b[all], -77);
    MPI_Scatterv(at ? b : JUNK, at ? counts : NULL, at ? disps : NULL, rt, from ? back : JUNK, from ? own : -5, gt, r,
                 inter);
    for (int i = 0; i < own; i++)
        EQ(back[i], from ? in[i] : -77);
    EQ(back[own], -77);
    free(in);
    free(b);
    free(back);
}

/* Reductions over the other group. */
static void reductions(int n)
{
    int *in = mine(n), *b = ints(n);
    MPI_Allreduce(in, b, n, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < n; i++)
        EQ(b[i], sum(!side, theirs, i));
    EQ(b[n], -77);
    free(in);
    free(b);
    /* both groups reduce n * ours * theirs elements */
    int total = n * ours * theirs, block = n * theirs;
    in = mine(total);
    b = ints(block);
    MPI_Reduce_scatter_block(in, b, block, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < block; i++)
        EQ(b[i], sum(!side, theirs, me * block + i));
    EQ(b[block], -77);
    free(b);
    /* the first has all but one element for each of the others */
    int counts[size];
    for (int i = 0; i < ours; i++)
        counts[i] = i && n ? 1 : 0;
    counts[0] = total - (n ? ours - 1 : 0);
    b = ints(counts[me]);
    MPI_Reduce_scatter(in, b, counts, MPI_INT, MPI_SUM, inter);
    for (int i = 0, at = me ? counts[0] + me - 1 : 0; i < counts[me]; i++)
        EQ(b[i], sum(!side, theirs, at + i));
    EQ(b[counts[me]], -77);
    free(in);
    free(b);
}

static void gather_all(int n)
{
    /* the groups give different amounts: n and 2 n */
    int give = n * (1 + side), take = n * (2 - side), *in = mine(give), *b = ints((long)take * theirs);
    MPI_Allgather(in, give, MPI_INT, b, take, MPI_INT, inter);
    for (int i = 0; i < take * theirs; i++)
        EQ(b[i], val(!side, i / take, i % take));
    EQ(b[take * theirs], -77);
    free(b);
    free(in);
    int own = n + me % 3, counts[size], disps[size], all = 1;
    for (int i = theirs - 1; i >= 0; i--) {
        counts[i] = n + i % 3;
        disps[i] = all;
        all += counts[i] + 1;
    }
    in = mine(own);
    b = ints(all);
    MPI_Allgatherv(in, own, MPI_INT, b, counts, disps, MPI_INT, inter);
    for (int p = 0; p < theirs; p++) {
        EQ(b[disps[p] - 1], -77);
        for (int i = 0; i < counts[p]; i++)
            EQ(b[disps[p] + i], val(!side, p, i));
    }
    free(b);
    free(in);
}

static void all_to_all(int n)
{
    int *in = mine(n * theirs), *b = ints((long)n * theirs);
    MPI_Alltoall(in, n, MPI_INT, b, n, MPI_INT, inter);
    for (int i = 0; i < n * theirs; i++)
        EQ(b[i], val(!side, i / n, me * n + i % n));
    free(b);
    /* rank a of group 0 and b of group 1 exchange (a + 2 b) % 3 * n elements */
    int counts[size], disps[size], bytes[size], all = 0;
    MPI_Datatype types[size];
    for (int p = 0; p < theirs; p++) {
        counts[p] = (side ? p + 2 * me : me + 2 * p) % 3 * n;
        disps[p] = all;
        bytes[p] = 4 * all;
        types[p] = MPI_INT;
        all += counts[p];
    }
    free(in);
    in = ints(all);
    for (int p = 0; p < theirs; p++)
        for (int i = 0; i < counts[p]; i++)
            in[disps[p] + i] = val(side, me, 10 * p + i);
    for (int w = 0; w < 2; w++) {
        b = ints(all);
        if (w)
            MPI_Alltoallw(in, counts, bytes, types, b, counts, bytes, types, inter);
        else
            MPI_Alltoallv(in, counts, disps, MPI_INT, b, counts, disps, MPI_INT, inter);
        for (int p = 0; p < theirs; p++)
            for (int i = 0; i < counts[p]; i++)
                EQ(b[disps[p] + i], val(!side, p, 10 * me + i));
        EQ(b[all], -77);
        free(b);
    }
    free(in);
}

/*
 * No rank passes before every rank of the other group is there: a late rank makes a file first. Not by the clock, which
 * under a simulator differs between hosts.
 */
static void barrier(void)
{
    for (int late = 0; late < size && late < 3; late++) {
        int pid = (int)getpid(), their_side = side;
        char name[64];
        MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Bcast(&their_side, 1, MPI_INT, late, MPI_COMM_WORLD);
        snprintf(name, sizeof(name), "/tmp/mrmpi-barrier.%d.%d", pid, late);
        if (rank == late) {
            usleep(20000);
            close(open(name, O_CREAT | O_WRONLY, 0600));
        }
        MPI_Barrier(inter);
        if (their_side != side)
            CHECK(access(name, F_OK) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        unlink(name);
    }
}

#ifndef FORM
/* Errors; the communicator is used again afterwards. */
static void errors(void)
{
    int x = 0, y = 0, class;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
#define REFUSED(call, want)                                                                                            \
    MPI_Error_class(call, &class);                                                                                     \
    EQ(class, want)
    REFUSED(MPI_Scan(&x, &y, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
    REFUSED(MPI_Exscan(&x, &y, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
    REFUSED(MPI_Bcast(&x, 1, MPI_INT, theirs, inter), MPI_ERR_ROOT);
    REFUSED(MPI_Bcast(&x, 1, MPI_INT, -7, inter), MPI_ERR_ROOT);
    REFUSED(MPI_Allreduce(MPI_IN_PLACE, &y, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER);
    REFUSED(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, &y, 1, MPI_INT, inter), MPI_ERR_BUFFER);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
}
#endif

static void groups(int second) /* ranks from this one on are the second group; 0: odd ones are */
{
    MPI_Comm half;
    side = second ? rank >= second : rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Comm_size(half, &ours);
    MPI_Comm_rank(half, &me);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : second ? second : 1, 3, &inter);
    theirs = size - ours;
    static const int counts[] = {0, 1, 5, 700, 9000};
    for (unsigned k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        int n = counts[k];
        for (int g = 0; g < 2; g++) {
            rooted(n, g, 0);
            rooted(n, g, (g == side ? ours : theirs) - 1);
        }
        if (n <= 700) {
            reductions(n);
            all_to_all(n);
        }
        gather_all(n);
    }
    barrier();
#ifndef FORM
    errors();
#endif
    all_to_all(3);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    if (size > 1) {
        groups(0);
        groups(1);
    }
    if (size > 3)
        groups(size - 2);
    return mt_end();
}
