/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to oneself: sent first, received first, by MPI_Sendrecv, over MPI_COMM_SELF, small and large; from any
 * source, while all others have called MPI_Finalize.
 */
#include "p2p.h"

#include <unistd.h>

/* Nothing, of no type. */
static void untyped(void)
{
    MPI_Request q;
    MPI_Status st;
    int n;

    MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, rank, 6, MPI_COMM_WORLD, &q);
    MPI_Send(NULL, 0, MPI_DATATYPE_NULL, rank, 6, MPI_COMM_WORLD);
    MPI_Wait(&q, &st);
    MPI_Get_count(&st, MPI_INT, &n);
    CHECK(n == 0 && st.MPI_TAG == 6);
}

static void receive(int *in, MPI_Request *req)
{
    MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, req);
}

static void send(int what, MPI_Request *req)
{
    static int out;

    out = what;
    MPI_Isend(&out, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, req);
}

/* Takes what the others say, by which no receive from any source ends. */
static void test_often(MPI_Request *req)
{
    MPI_Status st;
    int flag;

    for (int i = 0; i < 200; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, &st);
        CHECK(!flag);
        MPI_Test(req, &flag, &st);
        CHECK(!flag);
    }
}

static void failed(int err)
{
    int class;

    MPI_Error_class(err, &class);
    CHECK(class == MPIX_ERR_PROC_FAILED);
}

/* Each way to wait for nothing but messages from itself, of which none is under way, ends with an error. */
static void nobody_sends(void)
{
    MPI_Request reqs[2];
    MPI_Status st[2];
    MPI_Message m;
    int in[2] = {0, 0}, i, n, at[2];

    failed(MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, st));
    failed(MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, st));
    failed(MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &m, st));
    failed(MPI_Sendrecv(in, 1, MPI_INT, MPI_PROC_NULL, 1, in + 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, st));
    MPI_Isendrecv(in, 1, MPI_INT, rank, 2, in + 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &reqs[0]);
    failed(MPI_Wait(&reqs[0], st));
    MPI_Recv(in, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, st);
    receive(in, &reqs[0]);
    failed(MPI_Wait(&reqs[0], st));
    receive(in, &reqs[0]);
    receive(in + 1, &reqs[1]);
    CHECK(MPI_Waitall(2, reqs, st) == MPI_ERR_IN_STATUS);
    failed(st[0].MPI_ERROR);
    failed(st[1].MPI_ERROR);
    receive(in, &reqs[0]);
    receive(in + 1, &reqs[1]);
    failed(MPI_Waitany(2, reqs, &i, st)); /* the other one may still meet a message */
    CHECK(reqs[i] == MPI_REQUEST_NULL && reqs[!i] != MPI_REQUEST_NULL);
    send(7, &reqs[i]);
    MPI_Waitall(2, reqs, st);
    CHECK(in[!i] == 7);
    receive(in, &reqs[0]);
    receive(in + 1, &reqs[1]);
    CHECK(MPI_Waitsome(2, reqs, &n, at, st) == MPI_ERR_IN_STATUS && n == 1);
    failed(st[0].MPI_ERROR);
    send(8, &reqs[at[0]]);
    MPI_Waitall(2, reqs, st);
    CHECK(in[!at[0]] == 8);
}

/* The others have said that they send no more. */
static void as_the_last(int alone)
{
    MPI_Request reqs[2], early;
    MPI_Status st;
    int in = 0, first = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    receive(&first, &early); /* before the others say so, */
    usleep(60000);
    test_often(&early);
    send(4, &reqs[0]);
    CHECK(MPI_Wait(&early, &st) == MPI_SUCCESS && first == 4);
    MPI_Wait(&reqs[0], &st);
    send(5, &reqs[0]);
    receive(&in, &reqs[1]); /* and after that */
    CHECK(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE) == MPI_SUCCESS && in == 5);
    receive(&in, &reqs[1]);
    test_often(&reqs[1]);
    send(6, &reqs[0]);
    CHECK(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE) == MPI_SUCCESS && in == 6);
    if (!alone)
        nobody_sends();
}

int main(int argc, char **argv)
{
    enum { MAX = 8 << 20 };
    char *out, *in;

    begin(&argc, &argv);
    out = room(MAX);
    in = room(MAX);
    for (int n = 0; n <= MAX; n = n ? n * 4 : 1) {
        MPI_Request reqs[2];
        MPI_Status st;
        int got;

        fill(out, n, n);
        memset(in, 0, n);
        MPI_Isend(out, n, MPI_CHAR, rank, 1, MPI_COMM_WORLD, &reqs[0]);
        MPI_Irecv(in, MAX, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[1]);
        MPI_Wait(&reqs[1], &st);
        MPI_Wait(&reqs[0], MPI_STATUS_IGNORE);
        MPI_Get_count(&st, MPI_CHAR, &got);
        CHECK(got == n && st.MPI_SOURCE == rank && holds(in, n, n));
        memset(in, 0, n);
        MPI_Irecv(in, n, MPI_CHAR, 0, 2, MPI_COMM_SELF, &reqs[1]);
        MPI_Ssend(out, n, MPI_CHAR, 0, 2, MPI_COMM_SELF);
        MPI_Wait(&reqs[1], &st);
        CHECK(holds(in, n, n));
        memset(in, 0, n);
        MPI_Sendrecv(out, n, MPI_CHAR, rank, 3, in, MAX, MPI_CHAR, rank, 3, MPI_COMM_WORLD, &st);
        CHECK(holds(in, n, n));
    }
    free(out);
    free(in);
    untyped();
    if (!rank)
        as_the_last(size == 1);
    MPI_Finalize();
    return 0;
}
