/* SPDX-License-Identifier: BSD-3-Clause */
/* Generalized requests that are polled or waited for by functions of the program, with classes. */
#include "mt.h"

struct job {
    MPI_Request q;
    int looks, needed, waits, queries, frees;
    MPI_Request inner; /* completed by the poll function */
};

static int query_fn(void *extra, MPI_Status *st)
{
    struct job *j = extra;
    j->queries++;
    MPI_Status_set_elements(st, MPI_INT, j->needed);
    MPI_Status_set_cancelled(st, 0);
    st->MPI_SOURCE = 11;
    st->MPI_TAG = 12;
    return MPI_SUCCESS;
}

static int free_fn(void *extra)
{
    struct job *j = extra;
    j->frees++;
    return MPI_SUCCESS;
}

static int cancel_fn(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static int poll_fn(void *extra, MPI_Status *st)
{
    struct job *j = extra;
    int flag = 1;
    (void)st;
    if (j->inner != MPI_REQUEST_NULL)
        MPI_Test(&j->inner, &flag, MPI_STATUS_IGNORE);
    if (flag && ++j->looks == j->needed)
        MPI_Grequest_complete(j->q);
    return MPI_SUCCESS;
}

static int wait_fn(int count, void **extras, double timeout, MPI_Status *st)
{
    (void)timeout;
    (void)st;
    for (int i = 0; i < count; i++) {
        struct job *j = extras[i];
        j->waits++;
        MPI_Grequest_complete(j->q);
    }
    return MPI_SUCCESS;
}

static void ended(struct job *j, const MPI_Status *st)
{
    int n;
    MPI_Get_count(st, MPI_INT, &n);
    EQ(n, j->needed);
    EQ(st->MPI_SOURCE, 11);
    EQ(st->MPI_TAG, 12);
    EQ(j->looks, j->needed);
    EQ(j->frees, 1);
    CHECK(j->q == MPI_REQUEST_NULL);
}

static void start(struct job *j, int needed)
{
    *j = (struct job){.needed = needed, .inner = MPI_REQUEST_NULL};
    MPIX_Grequest_start(query_fn, free_fn, cancel_fn, poll_fn, NULL, j, &j->q);
}

/* Every way to complete calls the poll function. */
static void polled(void)
{
    struct job a, b;
    MPI_Status st, two[2];
    MPI_Request q[2];
    int flag, i, n, at[2];
    start(&a, 5);
    MPI_Wait(&a.q, &st);
    ended(&a, &st);
    start(&a, 3);
    for (flag = 0; !flag;)
        MPI_Test(&a.q, &flag, &st);
    ended(&a, &st);
    start(&a, 4);
    for (flag = 0; !flag;)
        MPI_Request_get_status(a.q, &flag, &st);
    EQ(st.MPI_TAG, 12);
    EQ(a.frees, 0);
    MPI_Wait(&a.q, &st);
    ended(&a, &st);
    EQ(a.queries, 2);
    /* poll completes by the handle in the job: the arrays hold copies */
    start(&a, 9);
    start(&b, 2);
    q[0] = a.q;
    q[1] = b.q;
    MPI_Waitany(2, q, &i, &st);
    EQ(i, 1);
    EQ(b.looks, 2);
    MPI_Waitall(2, q, two);
    EQ(a.looks, 9);
    EQ(two[0].MPI_TAG, 12);
    start(&a, 6);
    q[0] = a.q;
    for (n = 0; n == 0;)
        MPI_Testsome(1, q, &n, at, two);
    EQ(a.looks, 6);
    start(&a, 6);
    q[0] = a.q;
    for (flag = 0; !flag;)
        MPI_Testall(1, q, &flag, two);
    EQ(a.looks, 6);
    EQ(a.frees, 1);
}

/* A request that stands for a message; its poll function tests for the arrival. */
static void around_a_message(void)
{
    struct job j;
    MPI_Status st;
    int x = rank, y = -1;
    start(&j, 2);
    MPI_Irecv(&y, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &j.inner);
    MPI_Send(&x, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Wait(&j.q, &st);
    ended(&j, &st);
    EQ(y, (rank + size - 1) % size);
}

static void waited(void)
{
    MPIX_Grequest_class class[20];
    struct job j = {.inner = MPI_REQUEST_NULL};
    MPI_Status st;
    for (int i = 0; i < 20; i++)
        MPIX_Grequest_class_create(query_fn, free_fn, cancel_fn, poll_fn, i == 17 ? wait_fn : NULL, &class[i]);
    CHECK(class[3] != class[17]);
    MPIX_Grequest_class_allocate(class[17], &j, &j.q);
    MPI_Wait(&j.q, &st);
    EQ(j.waits, 1);
    EQ(j.frees, 1);
    EQ(st.MPI_SOURCE, 11);
    j = (struct job){.needed = 3, .inner = MPI_REQUEST_NULL};
    MPIX_Grequest_class_allocate(class[3], &j, &j.q);
    MPI_Wait(&j.q, &st);
    ended(&j, &st);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    polled();
    around_a_message();
    waited();
    return mt_end();
}
