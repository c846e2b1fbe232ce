/* SPDX-License-Identifier: BSD-3-Clause */
/* Intercommunicators: creation, messages, duplicates, parts, merging. With one rank: none can be made. */
#include "mt.h"

static MPI_Comm half; /* even ranks of the world, or odd ones */
static int mine, ours, theirs;

static MPI_Comm make(int tag)
{
    MPI_Comm inter;
    /* each group is led by its last member; others may pass anything for the peer */
    int leader = rank == (rank % 2 == (size - 1) % 2 ? size - 1 : size - 2);
    int remote = rank % 2 == (size - 1) % 2 ? size - 2 : size - 1;
    MPI_Intercomm_create(half, ours - 1, leader ? MPI_COMM_WORLD : MPI_COMM_NULL, leader ? remote : -77, tag, &inter);
    return inter;
}

static int world_of(int remote_rank)
{
    return 2 * remote_rank + (rank % 2 == 0);
}

/* Every rank of one group sends to every rank of the other, and receives from the right one. */
static void talk(MPI_Comm c, int ours_n, int theirs_n, const int *world_of_them)
{
    int r;
    MPI_Comm_rank(c, &r);
    MPI_Request q[2 * theirs_n];
    int in[theirs_n][2], out[theirs_n][2];
    MPI_Status st[2 * theirs_n];
    for (int i = 0; i < theirs_n; i++) {
        MPI_Irecv(in[i], 2, MPI_INT, i, 5, c, &q[i]);
        out[i][0] = rank;
        out[i][1] = i;
        MPI_Isend(out[i], 2, MPI_INT, i, 5, c, &q[theirs_n + i]);
    }
    MPI_Waitall(2 * theirs_n, q, st);
    for (int i = 0; i < theirs_n; i++) {
        EQ(st[i].MPI_SOURCE, i);
        EQ(in[i][0], world_of_them[i]);
        EQ(in[i][1], r);
    }
    /* whom a wildcard hears: a large message, the source a rank of the other group */
    enum { N = 100000 };
    int *big = malloc(N * sizeof(int));
    MPI_Status s;
    if (r < theirs_n && r < ours_n && rank % 2 == 0) {
        for (int i = 0; i < N; i++)
            big[i] = i + r;
        MPI_Send(big, N, MPI_INT, r, 6, c);
    } else if (r < theirs_n && rank % 2) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, c, &s);
        EQ(s.MPI_SOURCE, r);
        MPI_Recv(big, N, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &s);
        EQ(s.MPI_SOURCE, r);
        for (int i = 0; i < N; i++)
            EQ(big[i], i + r);
    }
    free(big);
}

static void talk_all(MPI_Comm c)
{
    int world[theirs];
    for (int i = 0; i < theirs; i++)
        world[i] = world_of(i);
    talk(c, ours, theirs, world);
}

static void properties(MPI_Comm c)
{
    int n, flag, cmp;
    MPI_Group g, w;
    MPI_Comm d;
    MPI_Comm_test_inter(c, &flag);
    EQ(flag, 1);
    MPI_Comm_test_inter(half, &flag);
    EQ(flag, 0);
    MPI_Comm_size(c, &n);
    EQ(n, ours);
    MPI_Comm_rank(c, &n);
    EQ(n, mine);
    MPI_Comm_remote_size(c, &n);
    EQ(n, theirs);
    MPI_Comm_remote_group(c, &g);
    MPI_Comm_group(MPI_COMM_WORLD, &w);
    int in[theirs], out[theirs];
    for (int i = 0; i < theirs; i++)
        in[i] = i;
    MPI_Group_translate_ranks(g, theirs, in, w, out);
    for (int i = 0; i < theirs; i++)
        EQ(out[i], world_of(i));
    MPI_Group_free(&g);
    MPI_Comm_group(c, &g);
    MPI_Group_size(g, &n);
    EQ(n, ours);
    MPI_Group_free(&g);
    MPI_Group_free(&w);
    MPI_Comm_compare(c, half, &cmp);
    EQ(cmp, MPI_UNEQUAL);
    MPI_Comm_compare(c, c, &cmp);
    EQ(cmp, MPI_IDENT);
    MPI_Comm_dup(c, &d);
    MPI_Comm_compare(c, d, &cmp);
    EQ(cmp, MPI_CONGRUENT);
    talk_all(d);
    MPI_Comm_free(&d);
}

/* Messages of one communicator must not be seen in the other. */
static void apart(MPI_Comm c)
{
    MPI_Comm d;
    MPI_Comm_dup(c, &d);
    if (mine < theirs && mine < ours) {
        int x = 1, y = 2, a = 0, b = 0;
        MPI_Request q[2];
        MPI_Isend(&x, 1, MPI_INT, mine, 0, c, &q[0]);
        MPI_Isend(&y, 1, MPI_INT, mine, 0, d, &q[1]);
        MPI_Recv(&b, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, d, MPI_STATUS_IGNORE);
        MPI_Recv(&a, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, MPI_STATUS_IGNORE);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        CHECK(a == 1 && b == 2);
    }
    MPI_Comm_free(&d);
}

static void merging(MPI_Comm c)
{
    MPI_Comm m;
    int r, n, x, flag;
    /* the even ones are high: the odd ones come first */
    MPI_Intercomm_merge(c, rank % 2 == 0, &m);
    MPI_Comm_test_inter(m, &flag);
    EQ(flag, 0);
    MPI_Comm_size(m, &n);
    EQ(n, size);
    MPI_Comm_rank(m, &r);
    EQ(r, rank % 2 ? mine : mine + size / 2);
    MPI_Allreduce(&rank, &x, 1, MPI_INT, MPI_SUM, m);
    EQ(x, size * (size - 1) / 2);
    MPI_Comm_free(&m);
    /* all say the same: any order of the groups, but everywhere the same, and ranks in order inside */
    MPI_Intercomm_merge(c, 1, &m);
    MPI_Comm_rank(m, &r);
    int all[size];
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, m);
    EQ(all[r], rank);
    for (int i = 1; i < size; i++)
        CHECK(all[i] == all[i - 1] + 2 || i == size / 2 || i == size - size / 2);
    MPI_Comm_free(&m);
}

static void splitting(MPI_Comm c)
{
    MPI_Comm d;
    int n, want_ours = 0, want_theirs = 0, world[size];
    /* by halves of the ranks of each group, turned round; the last of the even ones stays out */
    int color = 2 * mine >= ours, out = rank % 2 == 0 && mine == ours - 1;
    MPI_Comm_split(c, out ? MPI_UNDEFINED : color, -mine, &d);
    for (int i = ours - 1; i >= 0; i--)
        want_ours += (2 * i >= ours) == color && !(rank % 2 == 0 && i == ours - 1);
    for (int i = theirs - 1; i >= 0; i--)
        if ((2 * i >= theirs) == color && !(rank % 2 && i == theirs - 1))
            world[want_theirs++] = world_of(i);
    if (out || !want_theirs) {
        EQ(d, MPI_COMM_NULL);
    } else {
        MPI_Comm_size(d, &n);
        EQ(n, want_ours);
        MPI_Comm_remote_size(d, &n);
        EQ(n, want_theirs);
        talk(d, want_ours, want_theirs, world);
        MPI_Comm_free(&d);
    }
    /* the first of each group */
    MPI_Group g, first;
    int zero = 0;
    MPI_Comm_group(c, &g);
    MPI_Group_incl(g, 1, &zero, &first);
    MPI_Comm_create(c, first, &d);
    EQ(d == MPI_COMM_NULL, mine != 0);
    if (mine == 0) {
        MPI_Comm_remote_size(d, &n);
        EQ(n, 1);
        talk(d, 1, 1, (int[]){world_of(0)});
        MPI_Comm_free(&d);
    }
    /* one side gives no rank: no rank gets a communicator */
    MPI_Comm_create(c, rank % 2 ? MPI_GROUP_EMPTY : first, &d);
    EQ(d, MPI_COMM_NULL);
    MPI_Group_free(&g);
    MPI_Group_free(&first);
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void refusals(MPI_Comm c)
{
    MPI_Comm d = MPI_COMM_WORLD;
    int n, x = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EQ(class_of(MPI_Comm_remote_size(MPI_COMM_WORLD, &n)), MPI_ERR_COMM);
    EQ(class_of(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &d)), MPI_ERR_COMM);
    EQ(class_of(MPI_Intercomm_create(MPI_COMM_WORLD, size, MPI_COMM_WORLD, 0, 0, &d)), MPI_ERR_RANK);
    if (c == MPI_COMM_NULL)
        return;
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    EQ(class_of(MPI_Send(&x, 1, MPI_INT, theirs, 0, c)), MPI_ERR_RANK);
    EQ(class_of(MPI_Recv(&x, 1, MPI_INT, theirs, 0, c, MPI_STATUS_IGNORE)), MPI_ERR_RANK);
    EQ(class_of(MPI_Intercomm_create(c, 0, MPI_COMM_WORLD, 0, 0, &d)), MPI_ERR_COMM);
    int dim = 1, period = 0;
    EQ(class_of(MPI_Cart_create(c, 1, &dim, &period, 0, &d)), MPI_ERR_COMM);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    if (size == 1) {
        refusals(MPI_COMM_NULL);
        return mt_end();
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &mine);
    MPI_Comm_size(half, &ours);
    theirs = size - ours;
    for (int i = 0; i < 3; i++) {
        MPI_Comm c = make(i);
        talk_all(c);
        properties(c);
        apart(c);
        merging(c);
        splitting(c);
        if (i == 2)
            refusals(c);
        MPI_Comm_free(&c);
        EQ(c, MPI_COMM_NULL);
    }
    MPI_Comm_free(&half);
    return mt_end();
}
