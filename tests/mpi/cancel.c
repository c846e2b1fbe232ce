/* SPDX-License-Identifier: BSD-3-Clause */
/* Cancelling sends: those that wait for a receive can be taken back, and then nobody can receive them; others cannot. */
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

/* Is there a message with this tag from the left? What was sent to us before is here when that comes. */
static int there(int tag)
{
    int x = 0, flag;
    MPI_Sendrecv(&x, 1, MPI_INT, right, 99, &x, 1, MPI_INT, left, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iprobe(left, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody takes it back before all have looked */
    return flag;
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
    /* a persistent one lives on: one round is cancelled, the next is not */
    MPI_Ssend_init(out, n, MPI_INT, right, 2, MPI_COMM_WORLD, &p);
    MPI_Start(&p);
    CHECK(there(2));
    MPI_Cancel(&p);
    CHECK(cancelled(&p));
    CHECK(!there(2));
    int *back = malloc((size_t)n * sizeof(int));
    for (int i = 0; i < n; i++) {
        out[i] = rank + i;
        back[i] = -1;
    }
    MPI_Start(&p);
    MPI_Recv(back, n, MPI_INT, left, 2, MPI_COMM_WORLD, &st);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Cancel(&p); /* too late */
    CHECK(!cancelled(&p));
    for (int i = 0; i < n; i++)
        EQ(back[i], left + i);
    MPI_Request_free(&p);
    /* what a matched probe has taken out is received, whatever its sender asks for then */
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
    /* one of two is taken back; the other one keeps its place */
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
            MPI_Barrier(MPI_COMM_WORLD); /* nobody receives the first before it is taken back */
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

/* A short message is on its way at once: cancelled or not, what the status says is true. */
static void eager(void)
{
    int x = 7, y = 0;
    MPI_Request q;
    MPI_Isend(&x, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &q);
    MPI_Cancel(&q);
    int gone = cancelled(&q), theirs = 0;
    MPI_Sendrecv(&gone, 1, MPI_INT, right, 6, &theirs, 1, MPI_INT, left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EQ(there(5), !theirs);
    if (!theirs) {
        MPI_Recv(&y, 1, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EQ(y, 7);
    }
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
        eager();
    }
    return mt_end();
}
