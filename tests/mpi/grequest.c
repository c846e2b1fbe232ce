/* SPDX-License-Identifier: BSD-3-Clause */
/* Generalized requests: polled or waited for by functions of the program, with classes; callbacks that fail. */
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

/* Error codes of callbacks: MPI-4.1 section 13.2. */
struct failing {
    int query, free, cancel, queries, frees; /* codes, and calls */
};

static int failing_query(void *extra, MPI_Status *st)
{
    struct failing *f = extra;
    f->queries++;
    MPI_Status_set_elements(st, MPI_INT, 0);
    MPI_Status_set_cancelled(st, 0);
    return f->query;
}

static int failing_free(void *extra)
{
    struct failing *f = extra;
    f->frees++;
    return f->free;
}

static int failing_cancel(void *extra, int complete)
{
    (void)complete;
    return ((struct failing *)extra)->cancel;
}

static MPI_Request complete_one(struct failing *f)
{
    MPI_Request q;
    f->queries = f->frees = 0;
    MPI_Grequest_start(failing_query, failing_free, failing_cancel, f, &q);
    EQ(MPI_Cancel(&q), f->cancel);
    EQ(MPI_Grequest_complete(q), MPI_SUCCESS);
    return q;
}

static void errors_of(int query, int free)
{
    struct failing f = {.query = query, .free = free}, good = {0};
    int last = free ? free : query, flag = 0, index, num, at[2];
    MPI_Request q = complete_one(&f), two[2];
    MPI_Status st[2];

    EQ(MPI_Request_get_status(q, &flag, &st[0]), query);
    EQ(f.frees, 0);
    EQ(MPI_Wait(&q, MPI_STATUS_IGNORE), last);
    EQ(f.frees, 1);
    CHECK(q == MPI_REQUEST_NULL);
    q = complete_one(&f);
    EQ(MPI_Test(&q, &flag, &st[0]), last);
    q = complete_one(&f);
    EQ(MPI_Waitany(1, &q, &index, &st[0]), last);
    q = complete_one(&f);
    EQ(MPI_Testany(1, &q, &index, &flag, &st[0]), last);
    two[0] = complete_one(&good);
    two[1] = complete_one(&f);
    EQ(MPI_Waitall(2, two, st), last ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
    EQ(st[0].MPI_ERROR, MPI_SUCCESS);
    EQ(st[1].MPI_ERROR, last);
    two[0] = complete_one(&f);
    two[1] = complete_one(&good);
    EQ(MPI_Waitsome(2, two, &num, at, st), last ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
    EQ(num, 2);
    EQ(st[0].MPI_ERROR, last);
    EQ(st[1].MPI_ERROR, MPI_SUCCESS);
    two[0] = complete_one(&f);
    two[1] = MPI_REQUEST_NULL;
    EQ(MPI_Testall(2, two, &flag, MPI_STATUSES_IGNORE), last ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
    q = complete_one(&good); /* no code of before is left */
    EQ(MPI_Wait(&q, &st[0]), MPI_SUCCESS);
    EQ(MPI_Comm_rank(MPI_COMM_NULL, &flag), MPI_ERR_COMM);
    q = complete_one(&f); /* no status is asked for */
    EQ(MPI_Request_free(&q), free);
    EQ(f.queries, 0);
    EQ(f.frees, 1);
    MPI_Grequest_start(failing_query, failing_free, failing_cancel, &f, &q);
    two[0] = q;
    EQ(MPI_Request_free(&q), MPI_SUCCESS);
    EQ(MPI_Grequest_complete(two[0]), free);
    EQ(f.frees, 2);
}

static void errors(void)
{
    struct failing f = {0};
    MPI_Request q;
    int class, code;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    errors_of(0, 0);
    errors_of(code, 0);
    errors_of(0, code);
    errors_of(class, code);
    errors_of(MPI_ERR_TRUNCATE, MPI_ERR_TAG);
    f.cancel = code;
    q = complete_one(&f);
    EQ(MPI_Wait(&q, MPI_STATUS_IGNORE), MPI_SUCCESS);
    f = (struct failing){.free = -17}; /* no error code */
    q = complete_one(&f);
    EQ(MPI_Wait(&q, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    polled();
    around_a_message();
    waited();
    errors();
    return mt_end();
}
