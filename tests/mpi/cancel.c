/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancelling sends: before a receive a send can be taken back, and then no receive gets the message. A send to oneself
 * is cancelled at the first look at its request, of any kind; a send to a peer while the peer is inside any MPI
 * function.
 */
#include "mt.h"

enum { LARGE = 300000 };
static int left, right;

static int cancelled(MPI_Request *q)
{
    MPI_Status st;
    int flag;
    MPI_Wait(q, &st);
    MPI_Test_cancelled(&st, &flag);
    return flag;
}

/*
 * True if a message with this tag has come from the left. Earlier messages have arrived before the left's next message.
 */
static int there(int tag)
{
    int x = 0, y, flag;
    MPI_Sendrecv(&x, 1, MPI_INT, right, 99, &y, 1, MPI_INT, left, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iprobe(left, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD); /* no send is taken back before all have looked */
    return flag;
}

/*
 * A persistent send to the right outlives its cancel: one round is taken back, the next one arrives. Frees the request.
 */
static void lives_on(MPI_Request *p, int *out, int n, int tag)
{
    int *back = malloc((size_t)n * sizeof(int));
    MPI_Start(p);
    CHECK(there(tag));
    MPI_Cancel(p);
    CHECK(cancelled(p));
    CHECK(!there(tag));
    for (int i = 0; i < n; i++) {
        out[i] = rank + i;
        back[i] = -1;
    }
    MPI_Start(p);
    MPI_Recv(back, n, MPI_INT, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Cancel(p); /* too late */
    CHECK(!cancelled(p));
    for (int i = 0; i < n; i++)
        EQ(back[i], left + i);
    MPI_Request_free(p);
    free(back);
}

static void taken_back(int n, int synchronous)
{
    int *out = calloc((size_t)n, sizeof(int)), in = 0;
    MPI_Request q, p;
    MPI_Status st;
    if (synchronous)
        MPI_Issend(out, n, MPI_INT, right, 1, MPI_COMM_WORLD, &q);
    else
        MPI_Isend(out, n, MPI_INT, right, 1, MPI_COMM_WORLD, &q);
    CHECK(there(1));
    MPI_Cancel(&q);
    MPI_Cancel(&q); /* asking twice is no harm */
    CHECK(cancelled(&q));
    CHECK(!there(1));
    MPI_Ssend_init(out, n, MPI_INT, right, 2, MPI_COMM_WORLD, &p);
    lives_on(&p, out, n, 2);
    int *back = malloc((size_t)n * sizeof(int));
    /* a message taken by a matched probe is received, despite a later cancel */
    MPI_Message m;
    MPI_Issend(out, n, MPI_INT, right, 3, MPI_COMM_WORLD, &q);
    MPI_Mprobe(left, 3, MPI_COMM_WORLD, &m, &st);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Cancel(&q);
    MPI_Barrier(MPI_COMM_WORLD);
    back[n - 1] = -1;
    MPI_Mrecv(back, n, MPI_INT, &m, &st);
    CHECK(!cancelled(&q));
    EQ(back[n - 1], left + n - 1);
    /* one of two is taken back; the other keeps its place */
    MPI_Request two[2];
    for (int i = 0; i < 2; i++) {
        out[0] = 10 + i;
        int *each = malloc((size_t)n * sizeof(int));
        memcpy(each, out, (size_t)n * sizeof(int));
        MPI_Issend(each, n, MPI_INT, right, 4, MPI_COMM_WORLD, &two[i]);
        if (i == 0) {
            CHECK(there(4));
            MPI_Cancel(&two[0]);
            CHECK(cancelled(&two[0]));
            MPI_Barrier(MPI_COMM_WORLD); /* the first is not received before it is taken back */
            free(each);
        } else {
            MPI_Recv(back, n, MPI_INT, left, 4, MPI_COMM_WORLD, &st);
            MPI_Barrier(MPI_COMM_WORLD);
            in = back[0];
            CHECK(!cancelled(&two[1]));
            free(each);
        }
    }
    EQ(in, 11);
    free(back);
    free(out);
}

/* A message without waiting: the send is complete before the cancel. */
static void short_ones(void)
{
    int x = 7, y = 0, alike[2] = {20, 21};
    MPI_Request q, two[2];
    MPI_Isend(&x, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &q);
    CHECK(there(5));
    MPI_Cancel(&q);
    MPI_Cancel(&q);
    CHECK(cancelled(&q));
    CHECK(!there(5));
    /* one of two equal messages is taken back: the requested one */
    for (int i = 0; i < 2; i++)
        MPI_Isend(&alike[i], 1, MPI_INT, right, 5, MPI_COMM_WORLD, &two[i]);
    MPI_Cancel(&two[1]);
    CHECK(cancelled(&two[1]));
    MPI_Recv(&y, 1, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EQ(y, 20);
    CHECK(!there(5));
    MPI_Cancel(&two[0]); /* too late */
    CHECK(!cancelled(&two[0]));
    /* asked for and not waited for */
    MPI_Isend(&x, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &q);
    MPI_Cancel(&q);
    MPI_Request_free(&q);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void buffered(int n)
{
    int *out = calloc((size_t)n, sizeof(int)), bytes;
    int room = n * (int)sizeof(int) + MPI_BSEND_OVERHEAD;
    void *buf = malloc((size_t)room);
    MPI_Request q, p;
    MPI_Buffer_attach(buf, room);
    MPI_Ibsend(out, n, MPI_INT, right, 7, MPI_COMM_WORLD, &q);
    CHECK(there(7));
    MPI_Cancel(&q);
    CHECK(cancelled(&q));
    CHECK(!there(7));
    /* its room in the buffer is free again */
    MPI_Bsend_init(out, n, MPI_INT, right, 8, MPI_COMM_WORLD, &p);
    lives_on(&p, out, n, 8);
    MPI_Buffer_detach(&buf, &bytes);
    free(buf);
    free(out);
}

/* ---- to oneself ---- */

enum { WAYS = 7 };

/* A look at a request just cancelled. Returns whether it is cancelled. */
static int seen_at_once(MPI_Request *q, int way)
{
    MPI_Status st;
    int flag = 0, n = 0, index = -1, was = 0;
    switch (way) {
    case 0:
        MPI_Request_get_status(*q, &flag, &st);
        break;
    case 1:
        MPI_Test(q, &flag, &st);
        break;
    case 2:
        MPI_Testall(1, q, &flag, &st);
        break;
    case 3:
        MPI_Testany(1, q, &index, &flag, &st);
        EQ(index, 0);
        break;
    case 4:
        MPI_Testsome(1, q, &n, &index, &st);
        flag = n == 1 && index == 0;
        break;
    case 5: /* a look at anything */
        MPI_Iprobe(0, 98, MPI_COMM_SELF, &flag, &st);
        CHECK(!flag);
        MPI_Request_get_status(*q, &flag, &st);
        break;
    default:
        MPI_Wait(q, &st);
        flag = 1;
    }
    CHECK(flag);
    MPI_Test_cancelled(&st, &was);
    return was;
}

typedef int start_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static int start_persistent(const void *buf, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *q)
{
    MPI_Ssend_init(buf, n, t, to, tag, c, q);
    return MPI_Start(q);
}

/* The first is taken back; a later message with the same tag is received. */
static void to_self(start_fn *start, int n, int way)
{
    int *a = calloc((size_t)n, sizeof(int)), *b = calloc((size_t)n, sizeof(int)), flag;
    MPI_Request q, next;
    MPI_Status st;
    b[n - 1] = 2;
    start(a, n, MPI_INT, 0, 11, MPI_COMM_SELF, &q);
    MPI_Cancel(&q);
    CHECK(seen_at_once(&q, way));
    if (q != MPI_REQUEST_NULL) {
        int persistent = start == start_persistent;
        MPI_Wait(&q, &st);
        MPI_Test_cancelled(&st, &flag);
        CHECK(flag || (persistent && way)); /* an inactive request has an empty status */
        if (persistent)
            MPI_Request_free(&q);
    }
    MPI_Iprobe(0, 11, MPI_COMM_SELF, &flag, &st);
    CHECK(!flag);
    start(b, n, MPI_INT, 0, 11, MPI_COMM_SELF, &next);
    MPI_Recv(a, n, MPI_INT, 0, 11, MPI_COMM_SELF, &st);
    EQ(a[n - 1], 2);
    MPI_Cancel(&next); /* too late */
    CHECK(!seen_at_once(&next, way));
    if (next != MPI_REQUEST_NULL) {
        MPI_Wait(&next, &st);
        if (start == start_persistent)
            MPI_Request_free(&next);
    }
    free(b);
    free(a);
}

static void all_to_self(void)
{
    start_fn *const starts[] = {MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend, start_persistent};
    int bytes, room = 2 * (LARGE * (int)sizeof(int) + MPI_BSEND_OVERHEAD);
    void *buf = malloc((size_t)room);
    MPI_Buffer_attach(buf, room);
    for (int s = 0; s < 5; s++)
        for (int way = 0; way < WAYS; way++) {
            to_self(starts[s], 1, way);
            to_self(starts[s], LARGE, way);
        }
    MPI_Buffer_detach(&buf, &bytes);
    free(buf);
}

/* ---- to busy peers ---- */

/* Odd ranks wait for the last message only; all others wait for the cancels of their left neighbours' sends. */
static void meanwhile(start_fn *start, int n)
{
    int *out = calloc((size_t)n, sizeof(int)), x = rank, flag = 0, was;
    MPI_Request q[2];
    MPI_Status st;
    if (rank % 2 == 0 && rank + 1 < size) {
        for (int i = 0; i < 2; i++)
            start(out, n, MPI_INT, right, 21, MPI_COMM_WORLD, &q[i]);
        MPI_Cancel(&q[0]);
        while (!flag)
            MPI_Request_get_status(q[0], &flag, &st);
        MPI_Test_cancelled(&st, &was);
        CHECK(was);
        MPI_Wait(&q[0], &st);
        MPI_Cancel(&q[1]);
        for (flag = 0; !flag;)
            MPI_Test(&q[1], &flag, &st);
        MPI_Test_cancelled(&st, &was);
        CHECK(was);
        MPI_Send(&x, 1, MPI_INT, right, 22, MPI_COMM_WORLD);
    } else if (rank % 2) {
        MPI_Recv(&x, 1, MPI_INT, left, 22, MPI_COMM_WORLD, &st);
        EQ(x, left);
        MPI_Iprobe(left, 21, MPI_COMM_WORLD, &flag, &st);
        CHECK(!flag);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(out);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    for (int i = 0; i < 3; i++) {
        taken_back(1, 1);
        taken_back(LARGE, 0);
        taken_back(LARGE, 1);
        short_ones();
        buffered(1);
        buffered(LARGE);
    }
    all_to_self();
    meanwhile(MPI_Isend, 1);
    meanwhile(MPI_Isend, LARGE);
    meanwhile(MPI_Issend, 1);
    return mt_end();
}
