/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Duplicating without waiting: several at once, among other collectives, of intercommunicators, with attributes and
 * hints. With "threads": creations on several communicators in a different order in each process.
 */
#include "mt.h"

#include <pthread.h>
#include <unistd.h>

static int total(MPI_Comm c, int x)
{
    int s = -1;
    MPI_Allreduce(&x, &s, 1, MPI_INT, MPI_SUM, c);
    return s;
}

/* All members differ in when they make progress: some compute, some do other collectives, some wait. */
static void several(void)
{
    enum { N = 12 };
    MPI_Comm c[N], blocking;
    MPI_Request r[N];
    int cmp;
    for (int i = 0; i < N; i++) {
        MPI_Comm_idup(i % 3 ? MPI_COMM_WORLD : MPI_COMM_SELF, &c[i], &r[i]);
        if (i % 4 == rank % 4)
            MPI_Testsome(0, NULL, &cmp, NULL, NULL);
        if (i % 5 == 1)
            EQ(total(MPI_COMM_WORLD, i), i * size); /* collectives of the parent meanwhile */
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &blocking); /* and a waiting creation */
    EQ(total(blocking, 1), size);
    if (rank % 2)
        for (int i = N - 1; i >= 0; i--)
            MPI_Wait(&r[i], MPI_STATUS_IGNORE);
    MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++) {
        EQ(total(c[i], i + 1), i % 3 ? (i + 1) * size : i + 1);
        MPI_Comm_compare(c[i], i % 3 ? MPI_COMM_WORLD : MPI_COMM_SELF, &cmp);
        EQ(cmp, MPI_CONGRUENT);
    }
    /* their messages do not mix */
    int in[N], out[N];
    for (int i = 0; i < N; i++) {
        out[i] = 100 * i + rank;
        MPI_Isend(&out[i], 1, MPI_INT, i % 3 ? (rank + 1) % size : 0, 0, c[i], &r[i]);
    }
    for (int i = N - 1; i >= 0; i--) {
        MPI_Recv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c[i], MPI_STATUS_IGNORE);
        EQ(in[i], 100 * i + (i % 3 ? (rank + size - 1) % size : rank));
    }
    MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++)
        MPI_Comm_free(&c[i]);
    MPI_Comm_free(&blocking);
}

/* The parent is freed while its duplicate is being made. */
static void orphan(void)
{
    MPI_Comm parent, child;
    MPI_Request r;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_idup(parent, &child, &r);
    MPI_Comm_free(&parent);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EQ(total(child, 3), 3 * size);
    MPI_Comm_free(&child);
}

static int copies, deletes;

static int copy_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
    (void)c, (void)key, (void)extra;
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_fn(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}

static void what_is_inherited(void)
{
    MPI_Comm c, d, e;
    MPI_Info i, j;
    MPI_Request r[2];
    int key, flag, dims = size, period = 1, kind;
    char base[2], *p, value[16];
    MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &period, 0, &c);
    MPI_Comm_create_keyval(copy_fn, delete_fn, &key, NULL);
    MPI_Comm_set_attr(c, key, base);
    MPI_Info_create(&i);
    MPI_Info_set(i, "mpi_assert_no_any_tag", "true");
    MPI_Comm_set_info(c, i);
    MPI_Info_set(i, "mpi_assert_no_any_source", "true");
    MPI_Info_set(i, "mpi_assert_no_any_tag", "false");
    MPI_Comm_idup(c, &d, &r[0]);
    MPI_Comm_idup_with_info(c, i, &e, &r[1]);
    EQ(copies, 2); /* when idup was called, not later */
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Comm_get_attr(d, key, &p, &flag);
    CHECK(flag && p == base + 1);
    MPI_Topo_test(e, &kind);
    EQ(kind, MPI_CART);
    MPI_Comm_get_info(e, &j);
    MPI_Info_get(j, "mpi_assert_no_any_source", 15, value, &flag);
    CHECK(flag && !strcmp(value, "true"));
    MPI_Info_get(j, "mpi_assert_no_any_tag", 15, value, &flag);
    CHECK(flag && !strcmp(value, "false"));
    MPI_Info_free(&j);
    MPI_Comm_get_info(d, &j); /* the original's are not inherited */
    MPI_Info_get(j, "mpi_assert_no_any_tag", 15, value, &flag);
    CHECK(flag && !strcmp(value, "false"));
    MPI_Info_free(&i);
    MPI_Info_free(&j);
    MPI_Comm_free(&c);
    MPI_Comm_free(&d);
    MPI_Comm_free(&e);
    EQ(deletes, 3);
    MPI_Comm_free_keyval(&key);
}

static void between_groups(void)
{
    MPI_Comm half, inter, a, b, m;
    MPI_Request r[2];
    int n, x = rank, y = -1;
    if (size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 3, &inter);
    MPI_Comm_idup(inter, &a, &r[0]);
    MPI_Comm_idup(inter, &b, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Comm_remote_size(b, &n);
    EQ(n, rank < size / 2 ? size - size / 2 : size / 2);
    MPI_Comm_rank(a, &n);
    if (n == 0) {
        MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &y, 1, MPI_INT, 0, 0, a, MPI_STATUS_IGNORE);
        EQ(y, rank ? 0 : size / 2);
    }
    MPI_Intercomm_merge(b, rank < size / 2, &m);
    EQ(total(m, 1), size);
    MPI_Comm_free(&m);
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* By shared node. */
static void by_hardware(void)
{
    MPI_Comm c, d, e;
    MPI_Info i;
    int n, m, flag;
    char value[32];
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &c);
    MPI_Comm_size(c, &n);
    MPI_Info_create(&i);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, i, &d);
    EQ(d, MPI_COMM_NULL);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &d);
    EQ(d, MPI_COMM_NULL);
    MPI_Info_set(i, "mpi_hw_resource_type", "mpi_shared_memory");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, i, &d);
    MPI_Comm_size(d, &m);
    EQ(m, n);
    MPI_Comm_free(&d);
    MPI_Info_delete(i, "mpi_hw_resource_type");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, i, &d);
    EQ(d == MPI_COMM_NULL, n == size); /* a part must be smaller than the whole */
    MPI_Info_get(i, "mpi_hw_resource_type", 31, value, &flag);
    EQ(flag, n != size);
    if (d != MPI_COMM_NULL) {
        MPI_Comm_size(d, &m);
        EQ(m, n);
        MPI_Comm_split_type(d, MPI_COMM_TYPE_HW_UNGUIDED, 0, i, &e);
        EQ(e, MPI_COMM_NULL);
        MPI_Comm_free(&d);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &d);
    EQ(d == MPI_COMM_NULL, rank % 2);
    if (d != MPI_COMM_NULL)
        MPI_Comm_free(&d);
    MPI_Info_free(&i);
    MPI_Comm_free(&c);
}

#ifdef MPIX_COMM_TYPE_NEIGHBORHOOD
enum { RESOURCE_GUIDED = MPIX_COMM_TYPE_NEIGHBORHOOD }; /* MPICH's number since version 4.2 */
#else
enum { RESOURCE_GUIDED = MPI_COMM_TYPE_RESOURCE_GUIDED };
#endif

/*
 * By resources named by MPI, and by process sets. A rank bound to one processor is alone there, or with others bound
 * there.
 */
static void by_resource(void)
{
    MPI_Comm c, d, node;
    MPI_Info resources, i;
    int n, m, nkeys, flag, bound;
    char kind[MPI_MAX_INFO_KEY + 1], value[32];
    MPI_Get_hw_resource_info(&resources);
    MPI_Info_get_nkeys(resources, &nkeys);
    CHECK(nkeys >= 1);
    MPI_Info_create(&i);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    for (int k = 0; k < nkeys; k++) {
        MPI_Info_get_nthkey(resources, k, kind);
        MPI_Info_get(resources, kind, 31, value, &flag);
        CHECK(flag && strstr(kind, "://") && (!strcmp(value, "true") || !strcmp(value, "false")));
        bound = !strcmp(value, "true");
        MPI_Info_set(i, "mpi_hw_resource_type", kind);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, -rank, i, &c);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, -rank, i, &d);
        EQ(c == MPI_COMM_NULL, !bound);
        EQ(d == MPI_COMM_NULL, !bound);
        if (!bound)
            continue;
        MPI_Comm_size(c, &n);
        MPI_Comm_size(node, &m);
        CHECK(n <= m && (n == m || strcmp(kind, "mrmpi://node")));
        MPI_Comm_compare(c, d, &flag);
        EQ(flag, MPI_CONGRUENT);
        MPI_Comm_free(&c);
        MPI_Comm_free(&d);
    }
    MPI_Info_free(&resources);
    MPI_Comm_free(&node);
    MPI_Info_set(i, "mpi_hw_resource_type", "mrmpi://nothing");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, i, &c);
    EQ(c, MPI_COMM_NULL);
    MPI_Info_delete(i, "mpi_hw_resource_type");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, i, &c);
    EQ(c, MPI_COMM_NULL);
    MPI_Info_set(i, "mpi_pset_name", "mpi://WORLD");
    MPI_Comm_split_type(MPI_COMM_WORLD, rank ? MPI_COMM_TYPE_RESOURCE_GUIDED : MPI_UNDEFINED, -rank, i, &c);
    EQ(c == MPI_COMM_NULL, rank == 0);
    if (rank) {
        MPI_Comm_size(c, &n);
        MPI_Comm_rank(c, &m);
        CHECK(n == size - 1 && m == size - 1 - rank);
        MPI_Comm_free(&c);
    }
    MPI_Info_set(i, "mpi_pset_name", "mpi://SELF");
    MPI_Comm_split_type(MPI_COMM_WORLD, RESOURCE_GUIDED, 0, i, &c);
    MPI_Comm_size(c, &n);
    EQ(n, 1);
    MPI_Comm_free(&c);
    MPI_Info_set(i, "mpi_pset_name", "mpi://NOTHING");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, i, &c);
    EQ(c, MPI_COMM_NULL);
    MPI_Info_free(&i);
}

/* Ranks on their first allowed processor share all of it. */
static void bound(void)
{
    cpu_set_t was, one;
    MPI_Comm c, node;
    MPI_Info i;
    int first = 0, n, m;
    CHECK(sched_getaffinity(0, sizeof(was), &was) == 0);
    while (!CPU_ISSET(first, &was))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &m);
    MPI_Info_create(&i);
    MPI_Info_set(i, "mpi_hw_resource_type", "mrmpi://hwthread");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, i, &c);
    CHECK(c != MPI_COMM_NULL);
    MPI_Comm_size(c, &n);
    EQ(n, m);
    MPI_Comm_free(&c);
    by_resource();
    MPI_Comm_free(&node);
    MPI_Info_free(&i);
    CHECK(sched_setaffinity(0, sizeof(was), &was) == 0);
}

#ifdef MPIX_COMM_TYPE_NEIGHBORHOOD
/* By a shared directory: MPICH's neighbourhood. The standard's binary interface has none. */
static void by_directory(void)
{
    MPI_Comm c;
    MPI_Info i;
    int n, order;
    char mine[32];
    MPI_Info_create(&i);
    MPI_Info_set(i, "nbhd_common_dirname", ".");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPIX_COMM_TYPE_NEIGHBORHOOD, -rank, i, &c);
    MPI_Comm_size(c, &n);
    EQ(n, size); /* of simulated hosts too */
    MPI_Comm_rank(c, &order);
    EQ(order, size - 1 - rank);
    MPI_Comm_free(&c);
    MPI_Comm_split_type(MPI_COMM_WORLD, rank ? MPIX_COMM_TYPE_NEIGHBORHOOD : MPI_UNDEFINED, 0, i, &c);
    EQ(c == MPI_COMM_NULL, rank == 0);
    if (rank) {
        MPI_Comm_size(c, &n);
        EQ(n, size - 1);
        MPI_Comm_free(&c);
    }
    snprintf(mine, sizeof(mine), "/proc/%d", (int)getpid()); /* others */
    MPI_Info_set(i, "nbhd_common_dirname", mine);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPIX_COMM_TYPE_NEIGHBORHOOD, 0, i, &c);
    EQ(c == MPI_COMM_NULL, size > 1);
    if (c != MPI_COMM_NULL)
        MPI_Comm_free(&c);
    MPI_Info_set(i, "nbhd_common_dirname", "/proc/self"); /* no file can be made there: the node is left */
    MPI_Comm_split_type(MPI_COMM_WORLD, MPIX_COMM_TYPE_NEIGHBORHOOD, 0, i, &c);
    MPI_Comm_size(c, &n);
    MPI_Comm_free(&c);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, i, &c);
    MPI_Comm_size(c, &order);
    EQ(n, order);
    MPI_Comm_free(&c);
    MPI_Info_delete(i, "nbhd_common_dirname");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPIX_COMM_TYPE_NEIGHBORHOOD, 0, i, &c);
    EQ(c, MPI_COMM_NULL);
    MPI_Info_free(&i);
}
#else
static void by_directory(void)
{
}
#endif

/* ---- threads ---- */

enum { COMMS = 3, ROUNDS = 15 };
static MPI_Comm base[COMMS];

static void create_on(int i, int round)
{
    MPI_Comm c;
    MPI_Request r;
    if ((round + i) % 3 == 0) {
        MPI_Comm_idup(base[i], &c, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else if ((round + i) % 3 == 1) {
        MPI_Comm_dup(base[i], &c);
    } else {
        MPI_Comm_split(base[i], 0, rank, &c);
    }
    EQ(total(c, 1), size);
    MPI_Comm_free(&c);
}

static void *one_thread(void *arg)
{
    for (int round = 0; round < ROUNDS; round++)
        create_on((int)(long)arg, round);
    return NULL;
}

/* Rank 0 creates on all communicators at once, each in its thread; the others one after the other, each in its order.
 */
static void threads(void)
{
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &base[i]);
    if (rank == 0) {
        pthread_t t[COMMS];
        for (int i = 0; i < COMMS; i++)
            pthread_create(&t[i], NULL, one_thread, (void *)(long)i);
        for (int i = 0; i < COMMS; i++)
            pthread_join(t[i], NULL);
    } else {
        for (int round = 0; round < ROUNDS; round++)
            for (int i = COMMS - 1; i >= 0; i--)
                create_on(i, round);
    }
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&base[i]);
}

int main(int argc, char **argv)
{
    int provided;
    if (argc > 1) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
        EQ(provided, MPI_THREAD_MULTIPLE);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        threads();
        return mt_end();
    }
    mt_begin(&argc, &argv);
    several();
    orphan();
    what_is_inherited();
    between_groups();
    by_hardware();
    by_resource();
    bound();
    by_directory();
    return mt_end();
}
