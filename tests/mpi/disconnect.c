/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_disconnect waits for operations under way, whether the program still has a request or has freed the request,
 * and for nothing else: inactive or complete requests may outlive the communicator. MPI_Comm_free waits for nothing,
 * and operations under way go on. MPI_Finalize waits for freed operations, and leaves inactive requests alone.
 */
#include "mt.h"

#include <unistd.h>

enum { LARGE = 300000, KINDS = 8 };
static int left, right;

typedef int end_fn(MPI_Comm *);

static MPI_Comm dup_world(void)
{
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    return c;
}

static void end(end_fn *how, MPI_Comm *c)
{
    how(c);
    EQ(*c, MPI_COMM_NULL);
}

static int *filled(int n, int first)
{
    int *a = malloc((size_t)n * sizeof(*a));
    for (int i = 0; i < n; i++)
        a[i] = first + i;
    return a;
}

static void holds(const int *a, int n, int first)
{
    for (int i = 0; i < n; i++)
        EQ(a[i], first + i);
}

/* ---- persistent requests ---- */

/* One of each kind, between neighbours; the sends and the receives match. */
static void make_all(MPI_Comm c, const int *out, int *in, int *sum, int n, MPI_Request *q)
{
    MPI_Recv_init(in, n, MPI_INT, left, 1, c, &q[0]);
    MPI_Recv_init(in + n, n, MPI_INT, left, 2, c, &q[1]);
    MPI_Precv_init(in + 2 * n, 1, n, MPI_INT, left, 3, c, MPI_INFO_NULL, &q[2]);
    MPI_Send_init(out, n, MPI_INT, right, 1, c, &q[3]);
    MPI_Ssend_init(out, n, MPI_INT, right, 2, c, &q[4]);
    MPI_Psend_init(out, 1, n, MPI_INT, right, 3, c, MPI_INFO_NULL, &q[5]);
    MPI_Barrier_init(c, MPI_INFO_NULL, &q[6]);
    MPI_Allreduce_init(&rank, sum, 1, MPI_INT, MPI_SUM, c, MPI_INFO_NULL, &q[7]);
}

enum when { NEVER_STARTED, COMPLETE, FREED_BEFORE, ACTIVE };

static void persistent(enum when when, int n, end_fn *how)
{
    MPI_Comm c = dup_world();
    MPI_Request q[KINDS];
    int *out = filled(n, rank), *in = malloc(3 * (size_t)n * sizeof(int)), sum = -1, flag;
    MPI_Status st[KINDS];
    make_all(c, out, in, &sum, n, q);
    if (when != NEVER_STARTED) {
        MPI_Startall(KINDS, q);
        MPI_Pready(0, q[5]);
    }
    if (when == COMPLETE || when == FREED_BEFORE)
        MPI_Waitall(KINDS, q, st);
    for (int i = 0; when == FREED_BEFORE && i < KINDS; i++)
        MPI_Request_free(&q[i]);
    end(how, &c);
    if (when == ACTIVE) {
        if (how == MPI_Comm_free)
            MPI_Waitall(KINDS, q, st);
        EQ(sum, size * (size - 1) / 2);
        for (int i = 0; i < 3; i++)
            holds(in + i * n, n, left);
        for (int i = 0; i < KINDS; i++) {
            MPI_Test(&q[i], &flag, &st[i]); /* complete, or inactive already */
            CHECK(flag);
        }
        if (how != MPI_Comm_free)
            EQ(st[0].MPI_SOURCE, left);
    }
    for (int i = 0; when != FREED_BEFORE && i < KINDS; i++)
        MPI_Request_free(&q[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    free(in);
    free(out);
}

/* Its sender does not exist. */
static void lonely(end_fn *how)
{
    MPI_Comm c = dup_world();
    MPI_Request q[2];
    int in[2];
    MPI_Precv_init(in, 2, 1, MPI_INT, left, 1, c, MPI_INFO_NULL, &q[0]);
    MPI_Precv_init(in, 2, 1, MPI_INT, left, 1, c, MPI_INFO_NULL, &q[1]);
    MPI_Request_free(&q[0]);
    end(how, &c);
    MPI_Request_free(&q[1]);
}

/* ---- operations under way ---- */

/* Freed requests: the data is where it belongs, and the buffers are the program's again. */
static void freed(int n)
{
    MPI_Comm c = dup_world();
    MPI_Request q[2];
    int *out = filled(n, rank), *in = calloc((size_t)n, sizeof(int));
    if (rank % 2)
        usleep(10000); /* the others wait for these */
    MPI_Irecv(in, n, MPI_INT, left, 1, c, &q[0]);
    MPI_Issend(out, n, MPI_INT, right, 1, c, &q[1]);
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
    MPI_Comm_disconnect(&c);
    memset(out, 0, (size_t)n * sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD);
    holds(in, n, left);
    free(in);
    free(out);
}

/* Requests that the program completes afterwards. */
static void held(int n, end_fn *how)
{
    MPI_Comm c = dup_world();
    MPI_Request q[5];
    MPI_Status st[5];
    int *out = filled(n, rank), *in = calloc(2 * (size_t)n, sizeof(int)), sum = 0, got;
    MPI_Irecv(in, n, MPI_INT, left, 1, c, &q[0]);
    MPI_Isendrecv(out, n, MPI_INT, right, 2, in + n, n, MPI_INT, left, 2, c, &q[1]);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c, &q[2]);
    MPI_Isend(out, n, MPI_INT, right, 1, c, &q[3]);
    MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 1, c, &q[4]);
    end(how, &c);
    if (how == MPI_Comm_disconnect) {
        memset(out, 0, (size_t)n * sizeof(int));
        holds(in, n, left);
        holds(in + n, n, left);
        EQ(sum, size * (size - 1) / 2);
    }
    MPI_Waitall(5, q, st);
    EQ(st[0].MPI_SOURCE, left);
    MPI_Get_count(&st[1], MPI_INT, &got);
    EQ(got, n);
    holds(in + n, n, left);
    MPI_Barrier(MPI_COMM_WORLD);
    free(in);
    free(out);
}

/* On two groups, with local operations of one group. */
static void between(void)
{
    MPI_Comm half, c;
    MPI_Request q[2];
    int side = rank % 2, sum = 0, r, n;
    if (size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, 1, &c);
    MPI_Barrier_init(c, MPI_INFO_NULL, &q[0]);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c, &q[1]);
    MPI_Comm_remote_size(c, &n);
    r = rank / 2;
    MPI_Comm_disconnect(&c);
    EQ(sum, side ? n * (n - 1) : n * n); /* the even ranks, or the odd ones */
    MPI_Wait(&q[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&q[0]);
    MPI_Comm_rank(half, &n);
    EQ(n, r);
    MPI_Comm_disconnect(&half);
}

/*
 * Left behind at the end: freed sends and receives, short, large and with holes, which arrive before any MPI_Finalize
 * returns.
 */
static int *last_in, last_out[LARGE];

static void leave(void)
{
    const int count[] = {1, LARGE, 1};
    MPI_Datatype t[] = {MPI_INT, MPI_INT, MPI_DATATYPE_NULL};
    MPI_Request q;
    MPI_Type_vector(LARGE / 2, 1, 2, MPI_INT, &t[2]);
    MPI_Type_commit(&t[2]);
    last_in = calloc(3 * LARGE, sizeof(int));
    for (int i = 0; i < LARGE; i++)
        last_out[i] = rank + i;
    for (int k = 0; k < 3; k++) {
        MPI_Issend(last_out, count[k], t[k], right, k, MPI_COMM_WORLD, &q);
        MPI_Request_free(&q);
    }
    if (rank % 2)
        usleep(10000);
    for (int k = 0; k < 3; k++) {
        MPI_Irecv(last_in + k * LARGE, count[k], t[k], k == 1 ? MPI_ANY_SOURCE : left, k, MPI_COMM_WORLD, &q);
        MPI_Request_free(&q);
    }
    MPI_Type_free(&t[2]);
}

static void arrived(void)
{
    holds(last_in, 1, left);
    holds(last_in + LARGE, LARGE, left);
    for (int i = 0; i < LARGE; i++)
        EQ(last_in[2 * LARGE + i], i % 2 ? 0 : left + i);
    free(last_in);
}

int main(int argc, char **argv)
{
    end_fn *const ends[] = {MPI_Comm_disconnect, MPI_Comm_free};
    mt_begin(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    for (int e = 0; e < 2; e++) {
        for (enum when w = NEVER_STARTED; w <= ACTIVE; w++) {
            persistent(w, 1, ends[e]);
            persistent(w, LARGE, ends[e]);
        }
        lonely(ends[e]);
        held(1, ends[e]);
        held(LARGE, ends[e]);
    }
    freed(1);
    freed(LARGE);
    between();
    leave();
    MPI_Finalize();
    arrived();
    return 0;
}
