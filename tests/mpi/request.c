/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion: any, some, all, null and inactive requests, persistent and generalized ones, cancel, status queries,
 * probes. */
#include "mt.h"

static int left, right;

static void is_empty(const MPI_Status *st)
{
    int n, flag;
    EQ(st->MPI_SOURCE, MPI_ANY_SOURCE);
    EQ(st->MPI_TAG, MPI_ANY_TAG);
    MPI_Get_count(st, MPI_INT, &n);
    EQ(n, 0);
    MPI_Test_cancelled(st, &flag);
    CHECK(!flag);
}

static void nulls(void)
{
    MPI_Request q[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status st, all[3];
    int i, flag, n, at[3];
    memset(&st, 7, sizeof(st));
    MPI_Wait(&q[0], &st);
    is_empty(&st);
    MPI_Test(&q[0], &flag, &st);
    CHECK(flag);
    MPI_Waitall(3, q, all);
    is_empty(&all[2]);
    MPI_Waitany(3, q, &i, &st);
    EQ(i, MPI_UNDEFINED);
    is_empty(&st);
    i = flag = 0;
    MPI_Testany(3, q, &i, &flag, &st);
    CHECK(flag && i == MPI_UNDEFINED);
    MPI_Waitsome(3, q, &n, at, all);
    EQ(n, MPI_UNDEFINED);
    MPI_Testsome(3, q, &n, at, all);
    EQ(n, MPI_UNDEFINED);
    MPI_Testall(3, q, &flag, all);
    CHECK(flag);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
}

static void any_and_some(void)
{
    enum { N = 10 };
    MPI_Request in[N], out[N];
    int x[N], y[N], seen[N] = {0};
    for (int i = 0; i < N; i++) {
        y[i] = -1;
        MPI_Irecv(&y[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &in[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = N - 1; i >= 0; i--) {
        x[i] = rank * 100 + i;
        MPI_Isend(&x[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &out[i]);
    }
    for (int k = 0; k < N / 2; k++) {
        int i;
        MPI_Status st;
        MPI_Waitany(N, in, &i, &st);
        CHECK(i >= 0 && i < N && !seen[i]);
        EQ(st.MPI_TAG, i);
        EQ(st.MPI_SOURCE, left);
        EQ(y[i], left * 100 + i);
        EQ(in[i], MPI_REQUEST_NULL);
        seen[i] = 1;
    }
    for (int done = N / 2; done < N;) {
        int n, at[N];
        MPI_Status st[N];
        MPI_Waitsome(N, in, &n, at, st);
        CHECK(n > 0);
        for (int k = 0; k < n; k++) {
            CHECK(!seen[at[k]]);
            seen[at[k]] = 1;
            EQ(st[k].MPI_TAG, at[k]);
            EQ(y[at[k]], left * 100 + at[k]);
        }
        done += n;
    }
    MPI_Waitall(N, out, MPI_STATUSES_IGNORE);
}

static void persistent(void)
{
    int x = 0, y = -1, flag;
    MPI_Request q[2];
    MPI_Status st[2];
    MPI_Datatype pair;
    MPI_Type_contiguous(1, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Send_init(&x, 1, pair, right, 3, MPI_COMM_WORLD, &q[0]);
    MPI_Recv_init(&y, 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &q[1]);
    MPI_Type_free(&pair);
    MPI_Wait(&q[0], &st[0]); /* inactive */
    is_empty(&st[0]);
    CHECK(q[0] != MPI_REQUEST_NULL);
    for (int i = 0; i < 20; i++) {
        x = rank * 1000 + i;
        if (i % 2)
            MPI_Startall(2, q);
        else {
            MPI_Start(&q[1]);
            MPI_Start(&q[0]);
        }
        if (i % 3 == 0) {
            for (flag = 0; !flag;)
                MPI_Testall(2, q, &flag, st);
        } else {
            MPI_Waitall(2, q, st);
        }
        EQ(y, left * 1000 + i);
        EQ(st[1].MPI_SOURCE, left);
        EQ(st[1].MPI_TAG, 3);
        CHECK(q[0] != MPI_REQUEST_NULL && q[1] != MPI_REQUEST_NULL);
    }
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
    EQ(q[1], MPI_REQUEST_NULL);
}

static void cancel_and_free(void)
{
    int y = -1, x = 5, flag;
    MPI_Request q;
    MPI_Status st;
    MPI_Irecv(&y, 1, MPI_INT, left, 999, MPI_COMM_WORLD, &q);
    MPI_Cancel(&q);
    MPI_Wait(&q, &st);
    MPI_Test_cancelled(&st, &flag);
    CHECK(flag && y == -1);
    MPI_Irecv(&y, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &q);
    MPI_Send(&x, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    for (flag = 0; !flag;)
        MPI_Request_get_status(q, &flag, &st);
    EQ(st.MPI_SOURCE, left);
    CHECK(q != MPI_REQUEST_NULL && y == 5);
    MPI_Request_free(&q);
    MPI_Isend(&x, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &q);
    MPI_Request_free(&q);
    MPI_Recv(&y, 1, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int queries, frees, cancels;
static int query_fn(void *extra, MPI_Status *st)
{
    queries++;
    MPI_Status_set_elements(st, MPI_INT, *(int *)extra);
    MPI_Status_set_cancelled(st, cancels);
    st->MPI_SOURCE = 3;
    st->MPI_TAG = 4;
    return MPI_SUCCESS;
}
static int free_fn(void *extra)
{
    (void)extra;
    frees++;
    return MPI_SUCCESS;
}
static int cancel_fn(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    cancels++;
    return MPI_SUCCESS;
}

static void generalized(void)
{
    MPI_Request q, copy;
    MPI_Status st;
    int n = 17, flag;
    MPI_Grequest_start(query_fn, free_fn, cancel_fn, &n, &q);
    MPI_Test(&q, &flag, &st);
    CHECK(!flag);
    MPI_Cancel(&q);
    EQ(cancels, 1);
    MPI_Grequest_complete(q);
    MPI_Wait(&q, &st);
    MPI_Get_count(&st, MPI_INT, &n);
    CHECK(n == 17 && st.MPI_SOURCE == 3 && st.MPI_TAG == 4 && queries == 1 && frees == 1);
    MPI_Test_cancelled(&st, &flag);
    CHECK(flag);
    MPI_Status_set_cancelled(&st, 0);
    MPI_Test_cancelled(&st, &flag);
    MPI_Get_count(&st, MPI_INT, &n);
    CHECK(!flag && n == 17);
    MPI_Grequest_start(query_fn, free_fn, cancel_fn, &n, &q);
    copy = q;
    MPI_Request_free(&q);
    EQ(frees, 1);
    MPI_Grequest_complete(copy);
    EQ(frees, 2);
}

static int failing_fn(void *extra)
{
    (void)extra;
    frees++;
    return MPI_ERR_INTERN;
}
static int refusing_fn(void *extra, int complete)
{
    (void)extra;
    return complete ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* An error of a function fails the operation that calls the function. */
static void generalized_errors(void)
{
    MPI_Request q;
    int n = 1, class, before = frees;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Grequest_start(query_fn, failing_fn, refusing_fn, &n, &q);
    CHECK(MPI_Cancel(&q) != MPI_SUCCESS);
    MPI_Grequest_complete(q);
    EQ(MPI_Cancel(&q), MPI_SUCCESS);
    CHECK(MPI_Wait(&q, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    EQ(frees, before + 1);
    CHECK(q == MPI_REQUEST_NULL);
    MPI_Isend(NULL, 0, MPI_INT, rank, 1, MPI_COMM_WORLD, &q);
    MPI_Error_class(MPI_Grequest_complete(q), &class);
    EQ(class, MPI_ERR_REQUEST);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Recv(NULL, 0, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void probes(void)
{
    int x[3] = {1, 2, 3}, y[3], n, flag;
    MPI_Request q, r;
    MPI_Status st;
    MPI_Message m;
    MPI_Isend(x, 3, MPI_INT, right, 8, MPI_COMM_WORLD, &q);
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_INT, &n);
    CHECK(n == 3 && st.MPI_SOURCE == left && st.MPI_TAG == 8);
    MPI_Get_count(&st, MPI_DOUBLE, &n);
    EQ(n, MPI_UNDEFINED);
    MPI_Mprobe(left, 8, MPI_COMM_WORLD, &m, &st);
    MPI_Iprobe(left, 8, MPI_COMM_WORLD, &flag, &st);
    CHECK(!flag); /* already taken out */
    MPI_Mrecv(y, 3, MPI_INT, &m, &st);
    EQ(m, MPI_MESSAGE_NULL);
    EQ(y[2], 3);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Isend(x, 2, MPI_INT, right, 9, MPI_COMM_WORLD, &q);
    for (flag = 0; !flag;)
        MPI_Improbe(left, 9, MPI_COMM_WORLD, &flag, &m, &st);
    MPI_Imrecv(y, 2, MPI_INT, &m, &r);
    MPI_Wait(&r, &st);
    EQ(st.MPI_TAG, 9);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &m, &st);
    EQ(m, MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(y, 2, MPI_INT, &m, &st);
    EQ(st.MPI_SOURCE, MPI_PROC_NULL);
    EQ(m, MPI_MESSAGE_NULL);
}

static void proc_null(void)
{
    int x = 1;
    MPI_Status st;
    MPI_Request q;
    MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &st);
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG && x == 1);
    MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, &st);
    EQ(st.MPI_SOURCE, MPI_PROC_NULL);
}

static void exchange(void)
{
    int x[4] = {rank, rank, rank, rank}, y[4];
    MPI_Status st;
    MPI_Sendrecv(x, 4, MPI_INT, right, 1, y, 4, MPI_INT, left, 1, MPI_COMM_WORLD, &st);
    EQ(y[3], left);
    EQ(st.MPI_SOURCE, left);
    MPI_Sendrecv_replace(x, 4, MPI_INT, right, 2, left, 2, MPI_COMM_WORLD, &st);
    EQ(x[3], left);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    left = (rank - 1 + size) % size;
    right = (rank + 1) % size;
    nulls();
    any_and_some();
    persistent();
    cancel_and_free();
    generalized();
    generalized_errors();
    probes();
    proc_null();
    exchange();
    return mt_end();
}
