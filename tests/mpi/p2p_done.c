/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking operations complete at their call's return: every way to complete their requests, to query, free or
 * cancel them, with more of them than the library is likely to keep separately, and with used handles.
 */
#include "mt.h"

enum { TAG = 5, MANY = 3000, FEW = 5 };
static int peer;
static MPI_Request req[MANY];
static MPI_Status st[MANY];
static int in[MANY], out[MANY];

/* Rank 0 has sent n numbers before rank 1 asks for them. */
static void sent_before(int n)
{
    if (rank == 0)
        for (int i = 0; i < n; i++) {
            out[i] = i * 7 + n;
            MPI_Isend(&out[i], 1, MPI_INT, peer, TAG + i % 3, MPI_COMM_WORLD, &req[i]);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        for (int i = 0; i < n; i++) {
            in[i] = -1;
            MPI_Irecv(&in[i], 1, MPI_INT, peer, TAG + i % 3, MPI_COMM_WORLD, &req[i]);
        }
}

static void check_one(int i, int n, const MPI_Status *s)
{
    int count;

    if (rank == 0)
        return;
    CHECK(in[i] == i * 7 + n);
    CHECK(s->MPI_SOURCE == 0 && s->MPI_TAG == TAG + i % 3);
    MPI_Get_count(s, MPI_INT, &count);
    CHECK(count == 1);
}

static void by_wait(int n)
{
    for (int i = n; i--;) {
        CHECK(MPI_Wait(&req[i], &st[i]) == MPI_SUCCESS && req[i] == MPI_REQUEST_NULL);
        check_one(i, n, &st[i]);
    }
}

static void by_test(int n)
{
    for (int i = 0; i < n; i++) {
        int flag = 0, looked = 0;

        while (!looked)
            MPI_Request_get_status(req[i], &looked, &st[i]);
        check_one(i, n, &st[i]);
        CHECK(req[i] != MPI_REQUEST_NULL);
        MPI_Test(&req[i], &flag, &st[i]);
        CHECK(flag && req[i] == MPI_REQUEST_NULL);
        check_one(i, n, &st[i]);
    }
}

static void by_waitall(int n)
{
    CHECK(MPI_Waitall(n, req, st) == MPI_SUCCESS);
    for (int i = 0; i < n; i++)
        check_one(i, n, &st[i]);
}

static void by_testall(int n)
{
    int flag = 0;

    while (!flag)
        MPI_Testall(n, req, &flag, st);
    for (int i = 0; i < n; i++)
        check_one(i, n, &st[i]);
}

static void by_any(int n)
{
    for (int k = 0; k < n; k++) {
        int i = MPI_UNDEFINED, flag = 0;
        MPI_Status s;

        if (k % 2)
            MPI_Waitany(n, req, &i, &s);
        else
            while (!flag)
                MPI_Testany(n, req, &i, &flag, &s);
        CHECK(i >= 0 && i < n && req[i] == MPI_REQUEST_NULL);
        check_one(i, n, &s);
    }
}

static void by_some(int n)
{
    static int which[MANY];

    for (int done = 0, some = 0; done < n; done += some) {
        if (done % 2)
            MPI_Waitsome(n, req, &some, which, st);
        else
            MPI_Testsome(n, req, &some, which, st);
        CHECK(some >= 0 && some <= n - done);
        for (int k = 0; k < some; k++)
            check_one(which[k], n, &st[k]);
    }
}

/* Some are freed, some cancelled (without effect on requested messages), and some of both waited for. */
static void by_mix(int n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        int cancelled;

        if (i % 3 == 0) {
            MPI_Request_free(&req[i]);
            CHECK(req[i] == MPI_REQUEST_NULL);
            continue;
        }
        if (rank == 0 && i % 3 == 1)
            MPI_Cancel(&req[i]);
        MPI_Wait(&req[i], &st[i]);
        MPI_Test_cancelled(&st[i], &cancelled);
        CHECK(!cancelled);
        check_one(i, n, &st[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* freed messages are here */
}

/* A message that nobody has asked for is taken back, or comes. */
static void taken_back(void)
{
    int cancelled = 0, word = 17;
    MPI_Request copy;
    MPI_Status s;

    if (rank == 0) {
        MPI_Isend(&word, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &req[0]);
        copy = req[0];
        MPI_Cancel(&req[0]);
        CHECK(req[0] == copy);
        MPI_Wait(&copy, &s);
        MPI_Test_cancelled(&s, &cancelled);
    }
    MPI_Bcast(&cancelled, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 1 && !cancelled) {
        MPI_Recv(&word, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(word == 17);
    }
}

/* The communicator is freed before its sends are completed. */
static void comm_freed(void)
{
    MPI_Comm comm;

    for (int round = 0; round < 3; round++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < FEW; i++)
            if (rank == 0)
                MPI_Isend(&i, 1, MPI_INT, peer, TAG, comm, &req[i]);
            else
                MPI_Recv(&in[i], 1, MPI_INT, peer, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Comm_free(&comm);
        if (rank == 0)
            MPI_Waitall(FEW, req, MPI_STATUSES_IGNORE);
        for (int i = 0; rank == 1 && i < FEW; i++)
            CHECK(in[i] == i);
    }
}

/* A handle that was completed is none any more, also after the next ones. */
static void stale(void)
{
    MPI_Request copy[FEW];
    int err, class;

    for (int i = 0; i < FEW; i++) {
        if (rank == 0)
            MPI_Isend(&i, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &req[i]);
        else
            MPI_Irecv(&in[i], 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &req[i]);
        copy[i] = req[i];
        MPI_Wait(&req[i], MPI_STATUS_IGNORE);
        for (int k = 0; k <= i; k++) {
            MPI_Request again = copy[k];

            err = MPI_Wait(&again, MPI_STATUS_IGNORE);
            MPI_Error_class(err, &class);
            CHECK(class == MPI_ERR_REQUEST);
        }
    }
}

/* Lengths that differ, any tag, nothing at all, and more than fits. */
static void odd_ones(void)
{
    static const int lengths[] = {0, 1, 40, 41, 104, 105, 300, 4095, 4096, 9000};
    static char text[9000], got[9000];
    int n, err, class;

    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        if (rank == 0) {
            memset(text, 'a' + (int)k, sizeof text);
            MPI_Isend(text, lengths[k], MPI_CHAR, peer, (int)k, MPI_COMM_WORLD, &req[0]);
            MPI_Isend(text, lengths[k], MPI_CHAR, peer, (int)k + 1, MPI_COMM_WORLD, &req[1]);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
            continue;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        memset(got, 0, sizeof got);
        MPI_Irecv(got, sizeof got, MPI_CHAR, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &req[0]);
        MPI_Wait(&req[0], &st[0]);
        MPI_Get_count(&st[0], MPI_CHAR, &n);
        CHECK(n == lengths[k] && st[0].MPI_TAG == (int)k);
        CHECK(!n || (got[0] == 'a' + (int)k && got[n - 1] == got[0]));
        CHECK(n == sizeof got || !got[n]);
        err = MPI_Irecv(got, n / 2, MPI_CHAR, MPI_ANY_SOURCE, (int)k + 1, MPI_COMM_WORLD, &req[0]);
        CHECK(err == MPI_SUCCESS);
        err = MPI_Wait(&req[0], &st[0]);
        MPI_Error_class(err, &class);
        CHECK(class == (n ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    }
}

int main(int argc, char **argv)
{
    void (*const ways[])(int) = {by_wait, by_test, by_waitall, by_testall, by_any, by_some, by_mix};

    mt_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    peer = !rank;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        sent_before(FEW);
        ways[w](FEW);
        sent_before(ways[w] == by_any ? 1100 : MANY);
        ways[w](ways[w] == by_any ? 1100 : MANY);
    }
    taken_back();
    comm_freed();
    stale();
    odd_ones();
    return mt_end();
}
