/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators of some processes only, MPI_Comm_create_group, MPI_Comm_create_from_group and
 * MPI_Intercomm_create_from_groups: random sequences of overlapping groups, of all sizes and in any order, with one
 * tag. All ranks draw the same sequence, and each takes part in its own groups, sometimes late. With "threads": several
 * such sequences at once, with different tags or parents; with "session": without MPI_COMM_WORLD.
 */
#include "mt.h"

#include <pthread.h>
#include <unistd.h>

enum { STEPS = 50, KEPT = 4, THREADS = 3 };

struct sequence {
    unsigned same, own; /* random numbers: alike at all ranks, and not */
    const char *name;   /* string tag */
    MPI_Comm parent;    /* of MPI_Comm_create_group; null: there is none */
    int tag;
    MPI_Group world;
    MPI_Comm kept[KEPT]; /* so that ranks have different free ids */
    int next;
};

static int draw(unsigned *state, int below)
{
    *state = *state * 1103515245u + 12345u;
    return (int)((*state >> 8) % (unsigned)below);
}

static void shuffle(struct sequence *q, int *all)
{
    for (int i = 0; i < size; i++)
        all[i] = i;
    for (int i = size - 1; i > 0; i--) {
        int j = draw(&q->same, i + 1), x = all[i];
        all[i] = all[j];
        all[j] = x;
    }
}

static int place_of(const int *members, int n)
{
    for (int i = 0; i < n; i++)
        if (members[i] == rank)
            return i;
    return -1;
}

static void keep(struct sequence *q, MPI_Comm c)
{
    MPI_Comm *at = &q->kept[q->next++ % KEPT];
    if (*at != MPI_COMM_NULL)
        MPI_Comm_free(at);
    *at = c;
}

/* The members, in this order; whether they use the communicator is drawn: the next creation may follow at once. */
static void check(struct sequence *q, MPI_Comm c, const int *members, int n, int use)
{
    int r, m, got;
    MPI_Comm_rank(c, &r);
    MPI_Comm_size(c, &m);
    EQ(m, n);
    EQ(r, place_of(members, n));
    int *all = malloc((size_t)n * sizeof(*all));
    if (use) {
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, c);
        CHECK(!memcmp(all, members, (size_t)n * sizeof(*all)));
    }
    free(all);
    MPI_Sendrecv(&rank, 1, MPI_INT, r, 1, &got, 1, MPI_INT, r, 1, c, MPI_STATUS_IGNORE);
    EQ(got, rank);
    keep(q, c);
}

static void check_inter(struct sequence *q, MPI_Comm c, const int *theirs, int m, int r)
{
    int n, got = -1;
    MPI_Comm_remote_size(c, &n);
    EQ(n, m);
    if (r < m) { /* each with its counterpart */
        MPI_Sendrecv(&rank, 1, MPI_INT, r, 1, &got, 1, MPI_INT, r, 1, c, MPI_STATUS_IGNORE);
        EQ(got, theirs[r]);
    }
    keep(q, c);
}

/* The first n of all, as one group; the processes behind them do something else. */
static void one_group(struct sequence *q, const int *all, int n, int from_parent, int use)
{
    MPI_Group g;
    MPI_Comm c;
    if (place_of(all, n) < 0)
        return;
    MPI_Group_incl(q->world, n, all, &g);
    if (from_parent && q->parent != MPI_COMM_NULL)
        MPI_Comm_create_group(q->parent, g, q->tag, &c);
    else
        MPI_Comm_create_from_group(g, q->name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c);
    check(q, c, all, n, use);
    MPI_Group_free(&g);
}

/* The first n of all, and the m behind them. */
static void two_groups(struct sequence *q, const int *all, int n, int m, int leaders)
{
    int count[2] = {n, m}, lead[2] = {leaders % n, leaders % m};
    const int *members[2] = {all, all + n};
    for (int side = 0; side < 2; side++) {
        int r = place_of(members[side], count[side]);
        if (r < 0)
            continue;
        MPI_Group ours, theirs;
        MPI_Comm c;
        MPI_Group_incl(q->world, count[side], members[side], &ours);
        MPI_Group_incl(q->world, count[!side], members[!side], &theirs);
        MPI_Intercomm_create_from_groups(ours, lead[side], theirs, lead[!side], q->name, MPI_INFO_NULL,
                                         MPI_ERRORS_ARE_FATAL, &c);
        check_inter(q, c, members[!side], count[!side], r);
        MPI_Group_free(&ours);
        MPI_Group_free(&theirs);
    }
}

static void *run(void *arg)
{
    struct sequence *q = arg;
    int *all = malloc((size_t)size * sizeof(*all));
    q->own = q->same + 7919u * (unsigned)rank;
    for (int i = 0; i < KEPT; i++)
        q->kept[i] = MPI_COMM_NULL;
    for (int step = 0; step < STEPS; step++) {
        shuffle(q, all);
        int n = 1 + draw(&q->same, size), what = draw(&q->same, 3), more = draw(&q->same, 1000);
        if (draw(&q->own, 16) == 0)
            usleep((useconds_t)draw(&q->own, 1000));
        if (what == 2 && n < size)
            two_groups(q, all, n, 1 + more % (size - n), more);
        else
            one_group(q, all, n, what, more % 3 == 0);
    }
    for (int i = 0; i < KEPT; i++)
        if (q->kept[i] != MPI_COMM_NULL)
            MPI_Comm_free(&q->kept[i]);
    free(all);
    return NULL;
}

/* Blocks of four, and then the first ranks of all blocks, which come late to the first or to the second. */
static void blocks(struct sequence *q)
{
    int members[4], firsts[4], n = 0, m = 0;
    for (int i = rank / 4 * 4; i < size && n < 4; i++)
        members[n++] = i;
    for (int i = 0; i < size && m < 4; i += 4)
        firsts[m++] = i;
    for (int i = 0; i < KEPT; i++)
        q->kept[i] = MPI_COMM_NULL;
    for (int late = 0; late < size && late < 4; late++) {
        if (rank == late)
            usleep(20000);
        one_group(q, members, n, late % 2, 0);
        one_group(q, firsts, m, late % 2, 0);
    }
    for (int i = 0; i < KEPT; i++)
        if (q->kept[i] != MPI_COMM_NULL)
            MPI_Comm_free(&q->kept[i]);
}

/* In sequence; then several at once: other names and tags (different in the highest bits only) or other parents. */
static void at_once(struct sequence q)
{
    pthread_t t[THREADS];
    struct sequence each[THREADS];
    char name[THREADS][16];
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    for (int k = 0; k < THREADS; k++) {
        snprintf(name[k], sizeof(name[k]), "tag%d", k);
        each[k] = q;
        each[k].same += 100u * (unsigned)k;
        each[k].name = name[k];
        each[k].tag = k == 1 ? 1 << 29 : 1;
        each[k].parent = k == 2 ? dup : MPI_COMM_WORLD;
        pthread_create(&t[k], NULL, run, &each[k]);
    }
    for (int k = 0; k < THREADS; k++)
        pthread_join(t[k], NULL);
    MPI_Comm_free(&dup);
}

int main(int argc, char **argv)
{
    struct sequence q = {.same = 1, .name = "tag", .tag = 1, .parent = MPI_COMM_WORLD};
    int threads = argc > 1 && !strcmp(argv[1], "threads"), session = argc > 1 && !strcmp(argv[1], "session"), got;
    MPI_Session s;
    if (session) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
        MPI_Group_from_session_pset(s, "mpi://WORLD", &q.world);
        MPI_Group_rank(q.world, &rank);
        MPI_Group_size(q.world, &size);
        q.parent = MPI_COMM_NULL;
    } else {
        MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &got);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Comm_group(MPI_COMM_WORLD, &q.world);
    }
    if (threads) {
        at_once(q);
    } else {
        blocks(&q);
        run(&q);
    }
    MPI_Group_free(&q.world);
    if (session)
        MPI_Session_finalize(&s);
    else
        MPI_Finalize();
    return 0;
}
