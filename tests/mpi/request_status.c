/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at several requests without completing them: null and inactive requests, sends and receives, persistent and
 * generalized requests, collectives, a cancelled and a failed operation. Each stays complete for repeated looks.
 */
#include "mt.h"

#include <pthread.h>

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static int is_empty(const MPI_Status *st)
{
    int n = -1, cancelled = -1;
    MPI_Get_count(st, MPI_INT, &n);
    MPI_Test_cancelled(st, &cancelled);
    return st->MPI_SOURCE == MPI_ANY_SOURCE && st->MPI_TAG == MPI_ANY_TAG && n == 0 && !cancelled;
}

/* Statuses not written yet. */
static void spoil(MPI_Status *st, int n)
{
    memset(st, 0x55, (size_t)n * sizeof(*st));
}

/* None, only null handles, only inactive ones: all is complete, nothing is. */
static void nothing_active(void)
{
    int x = 0, flag = 0, index = 5, n = 5, indices[2];
    MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status st[2];
    MPI_Recv_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &q[1]);
    for (int count = 0; count <= 2; count++) {
        flag = 0, index = 5, n = 5;
        spoil(st, 2);
        EQ(MPI_Request_get_status_any(count, q, &index, &flag, st), MPI_SUCCESS);
        CHECK(flag && index == MPI_UNDEFINED && is_empty(st));
        flag = 0;
        spoil(st, 2);
        EQ(MPI_Request_get_status_all(count, q, &flag, st), MPI_SUCCESS);
        CHECK(flag);
        for (int i = 0; i < count; i++)
            CHECK(is_empty(&st[i]) && st[i].MPI_ERROR == MPI_SUCCESS);
        EQ(MPI_Request_get_status_some(count, q, &n, indices, st), MPI_SUCCESS);
        EQ(n, MPI_UNDEFINED);
    }
    MPI_Request_free(&q[1]);
}

/* Of four, the receives with tags 1 and 3 are complete after their messages have come. */
static void some_of_them(MPI_Comm c)
{
    int x[4] = {0}, me, peer, n, flag, index, at[4] = {-1, -1, -1, -1}, go;
    MPI_Request q[4], was[4];
    MPI_Status st[4];
    MPI_Comm_rank(c, &me);
    peer = me ^ 1;
    for (int i = 0; i < 4; i++)
        MPI_Irecv(&x[i], 1, MPI_INT, peer, i, c, &q[i]);
    memcpy(was, q, sizeof(q));
    MPI_Request_get_status_any(4, q, &index, &flag, st);
    CHECK(!flag && index == MPI_UNDEFINED);
    MPI_Request_get_status_all(4, q, &flag, st);
    CHECK(!flag);
    MPI_Request_get_status_some(4, q, &n, at, st);
    EQ(n, 0);
    MPI_Barrier(c);
    for (int i = 1; i < 4; i += 2) {
        go = 100 * me + i;
        MPI_Send(&go, 1, MPI_INT, peer, i, c);
    }
    /* each makes progress: no other call does */
    do
        MPI_Request_get_status_any(4, q, &index, &flag, MPI_STATUS_IGNORE);
    while (!flag);
    do
        MPI_Request_get_status_some(4, q, &n, at, MPI_STATUSES_IGNORE);
    while (n < 2);
    for (int twice = 0; twice < 2; twice++) {
        spoil(st, 4);
        MPI_Request_get_status_any(4, q, &index, &flag, st);
        CHECK(flag && index == 1 && st->MPI_TAG == 1 && st->MPI_SOURCE == peer);
        spoil(st, 4);
        MPI_Request_get_status_some(4, q, &n, at, st);
        CHECK(n == 2 && at[0] == 1 && at[1] == 3);
        for (int i = 0; i < 2; i++)
            CHECK(st[i].MPI_TAG == at[i] && st[i].MPI_SOURCE == peer && st[i].MPI_ERROR == MPI_SUCCESS);
        MPI_Request_get_status_all(4, q, &flag, st);
        CHECK(!flag);
    }
    CHECK(!memcmp(was, q, sizeof(q)) && x[1] == 100 * peer + 1 && x[3] == 100 * peer + 3);
    MPI_Barrier(c);
    for (int i = 0; i < 4; i += 2) {
        go = 100 * me + i;
        MPI_Send(&go, 1, MPI_INT, peer, i, c);
    }
    do
        MPI_Request_get_status_all(4, q, &flag, MPI_STATUSES_IGNORE);
    while (!flag);
    spoil(st, 4);
    MPI_Request_get_status_all(4, q, &flag, st);
    for (int i = 0; i < 4; i++)
        CHECK(st[i].MPI_TAG == i && st[i].MPI_SOURCE == peer && st[i].MPI_ERROR == MPI_SUCCESS &&
              x[i] == 100 * peer + i);
    CHECK(!memcmp(was, q, sizeof(q)));
    MPI_Waitall(4, q, st);
    EQ(q[2], MPI_REQUEST_NULL);
}

/* A look at an active persistent request leaves the request active. */
static void persistent(void)
{
    int x = -1, y = 7, n, flag, index, at[2];
    MPI_Request q[2];
    MPI_Status st[2];
    MPI_Recv_init(&x, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &q[0]);
    MPI_Send_init(&y, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &q[1]);
    for (int round = 0; round < 3; round++) {
        MPI_Start(&q[0]);
        MPI_Request_get_status_any(2, q, &index, &flag, st);
        CHECK(!flag);
        y = 7 + round;
        MPI_Start(&q[1]);
        do
            MPI_Request_get_status_all(2, q, &flag, st);
        while (!flag);
        CHECK(st[0].MPI_TAG == 4 && st[0].MPI_SOURCE == 0);
        MPI_Request_get_status_some(2, q, &n, at, st);
        CHECK(n == 2 && at[0] == 0 && at[1] == 1 && st[0].MPI_TAG == 4);
        CHECK(class_of(MPI_Start(&q[0])) == MPI_ERR_REQUEST); /* still active */
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        EQ(x, 7 + round);
    }
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
}

static int queries, frees;
static int query(void *extra, MPI_Status *st)
{
    queries++;
    MPI_Status_set_elements(st, MPI_INT, 3);
    MPI_Status_set_cancelled(st, 0);
    st->MPI_SOURCE = 11;
    st->MPI_TAG = 12;
    return *(int *)extra;
}
static int release(void *extra)
{
    frees++;
    return MPI_SUCCESS;
}
static int cancel(void *extra, int complete)
{
    return MPI_SUCCESS;
}

/* A generalized request's query function gives the status, each time; its free function is not called. */
static void generalized(void)
{
    int result = MPI_SUCCESS, flag, n, index, at[2];
    MPI_Request q[2] = {MPI_REQUEST_NULL};
    MPI_Status st[2];
    MPI_Grequest_start(query, release, cancel, &result, &q[1]);
    MPI_Request_get_status_some(2, q, &n, at, st);
    CHECK(n == 0 && queries == 0);
    MPI_Grequest_complete(q[1]);
    MPI_Request_get_status_any(2, q, &index, &flag, st);
    CHECK(flag && index == 1 && st->MPI_SOURCE == 11 && queries == 1 && frees == 0);
    MPI_Request_get_status_all(2, q, &flag, st);
    CHECK(flag && is_empty(&st[0]) && st[1].MPI_TAG == 12 && queries == 2 && frees == 0);
    MPI_Request_get_status_some(2, q, &n, at, st);
    MPI_Get_count(&st[0], MPI_INT, &flag);
    CHECK(n == 1 && at[0] == 1 && st[0].MPI_SOURCE == 11 && flag == 3 && queries == 3 && frees == 0);
    result = MPI_ERR_OTHER;
    EQ(class_of(MPI_Request_get_status_any(2, q, &index, &flag, st)), MPI_ERR_OTHER);
    result = MPI_SUCCESS;
    MPI_Wait(&q[1], st);
    EQ(frees, 1);
}

static void *completes(void *q)
{
    MPI_Grequest_complete(*(MPI_Request *)q);
    return NULL;
}

/* Another thread completes the request during looks. */
static void by_a_thread(void)
{
    int result = MPI_SUCCESS, flag;
    pthread_t t;
    MPI_Request q;
    MPI_Grequest_start(query, release, cancel, &result, &q);
    MPI_Request copy = q;
    pthread_create(&t, NULL, completes, &copy);
    do
        MPI_Request_get_status_all(1, &q, &flag, MPI_STATUSES_IGNORE);
    while (!flag);
    pthread_join(t, NULL);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

/* Cancelled and failed operations have their statuses among several. */
static void ends(void)
{
    int x[2], y[2] = {1, 2}, flag, n, index, at[3], cancelled;
    MPI_Request q[3];
    MPI_Status st[3];
    MPI_Irecv(x, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &q[0]);
    MPI_Irecv(x, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &q[1]);
    MPI_Ibarrier(MPI_COMM_SELF, &q[2]);
    MPI_Cancel(&q[0]);
    MPI_Send(y, 2, MPI_INT, 0, 2, MPI_COMM_SELF); /* too long */
    do
        MPI_Request_get_status_all(3, q, &flag, st);
    while (!flag);
    spoil(st, 3);
    EQ(MPI_Request_get_status_all(3, q, &flag, st), MPI_SUCCESS);
    MPI_Test_cancelled(&st[0], &cancelled);
    CHECK(cancelled && st[0].MPI_ERROR == MPI_SUCCESS);
    EQ(class_of(st[1].MPI_ERROR), MPI_ERR_TRUNCATE);
    CHECK(is_empty(&st[2]) && st[2].MPI_ERROR == MPI_SUCCESS);
    EQ(MPI_Request_get_status_some(3, q, &n, at, st), MPI_SUCCESS);
    CHECK(n == 3 && class_of(st[1].MPI_ERROR) == MPI_ERR_TRUNCATE);
    MPI_Request_get_status_any(2, q + 1, &index, &flag, st);
    CHECK(flag && index == 0);
    EQ(class_of(MPI_Waitall(3, q, st)), MPI_ERR_IN_STATUS);
}

static void errors(void)
{
    int flag, n, index, at[1];
    MPI_Status st[1];
    MPI_Request none = MPI_REQUEST_NULL, no_request = 0x12345;
    EQ(class_of(MPI_Request_get_status_any(-1, &none, &index, &flag, st)), MPI_ERR_COUNT);
    EQ(class_of(MPI_Request_get_status_all(1, NULL, &flag, st)), MPI_ERR_ARG);
    EQ(class_of(MPI_Request_get_status_some(1, &no_request, &n, at, st)), MPI_ERR_REQUEST);
    EQ(class_of(MPI_Request_get_status_any(1, &no_request, &index, &flag, st)), MPI_ERR_REQUEST);
    EQ(class_of(MPI_Request_get_status_all(1, &no_request, &flag, st)), MPI_ERR_REQUEST);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Comm pair;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    nothing_active();
    persistent();
    generalized();
    by_a_thread();
    ends();
    errors();
    /* neighbours, and distant ranks, where ranks are split between hosts */
    for (int far = 0; far < 2; far++) {
        int half = size / 2, color = far ? rank % (half ? half : 1) : rank / 2;
        MPI_Comm_split(MPI_COMM_WORLD, rank < half * 2 ? color : MPI_UNDEFINED, rank, &pair);
        if (pair == MPI_COMM_NULL)
            continue;
        int n;
        MPI_Comm_size(pair, &n);
        if (n == 2)
            some_of_them(pair);
        MPI_Comm_free(&pair);
    }
    return mt_end();
}
