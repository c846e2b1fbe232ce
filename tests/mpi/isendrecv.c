/* SPDX-License-Identifier: BSD-3-Clause */
/* A send and a receive under one request: small and large, to others, to oneself, to nobody; in place; errors. */
#include "mt.h"

enum { RING = 99 }; /* a separate tag: ranks ahead already send with others */

static int left, right;

static int val(int r, int i)
{
    return r * 1000003 + i * 7 + 1;
}

static void ring(int n, int large)
{
    int *in = malloc((size_t)n * sizeof(int) + 4), *out = malloc((size_t)n * sizeof(int) + 4), got;
    MPI_Request q;
    MPI_Status st;
    for (int i = 0; i < n; i++)
        out[i] = val(rank, i);
    memset(in, 0, (size_t)n * sizeof(int));
    if (large)
        MPI_Isendrecv_c(out, n, MPI_INT, right, 3, in, n, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &q);
    else
        MPI_Isendrecv(out, n, MPI_INT, right, 3, in, n, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, &st);
    CHECK(q == MPI_REQUEST_NULL);
    EQ(st.MPI_SOURCE, left);
    EQ(st.MPI_TAG, 3);
    MPI_Get_count(&st, MPI_INT, &got);
    EQ(got, n);
    for (int i = 0; i < n; i++)
        EQ(in[i], val(left, i));
    /* the same buffer, every second int */
    MPI_Datatype t;
    MPI_Type_vector(n / 2, 1, 2, MPI_INT, &t);
    MPI_Type_commit(&t);
    if (large)
        MPI_Isendrecv_replace_c(out, 1, t, left, RING, MPI_ANY_SOURCE, RING, MPI_COMM_WORLD, &q);
    else
        MPI_Isendrecv_replace(out, 1, t, left, RING, MPI_ANY_SOURCE, RING, MPI_COMM_WORLD, &q);
    MPI_Type_free(&t);
    int flag = 0;
    while (!flag)
        MPI_Test(&q, &flag, &st);
    EQ(st.MPI_SOURCE, right);
    for (int i = 0; i < n; i++)
        EQ(out[i], val(i % 2 == 0 && i / 2 < n / 2 ? right : rank, i));
    free(in);
    free(out);
}

static void nobody(void)
{
    int x = 5, y = 6;
    MPI_Request q[2];
    MPI_Status st[2];
    MPI_Isendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, &y, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q[0]);
    MPI_Isendrecv_replace(&x, 1, MPI_INT, right, 1, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q[1]);
    MPI_Waitall(2, q, st);
    EQ(st[0].MPI_SOURCE, MPI_PROC_NULL);
    EQ(st[1].MPI_SOURCE, MPI_PROC_NULL);
    EQ(x, 5);
    EQ(y, 6);
    MPI_Recv(&y, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EQ(y, 5);
}

/* Several at a time, in the other order at the receiver. */
static void many(void)
{
    enum { N = 20 };
    MPI_Request q[N];
    int x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = val(rank, i);
        MPI_Isendrecv(&x[i], 1, MPI_INT, right, i, &y[i], 1, MPI_INT, left, N - 1 - i, MPI_COMM_WORLD, &q[i]);
    }
    MPI_Waitall(N, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++)
        EQ(y[i], val(left, N - 1 - i));
}

static void errors(void)
{
    MPI_Comm c;
    MPI_Request q;
    int x[2] = {1, 2}, y, class;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Isendrecv(x, 2, MPI_INT, right, 1, &y, 1, MPI_INT, left, 1, c, &q);
    MPI_Error_class(MPI_Wait(&q, MPI_STATUS_IGNORE), &class);
    EQ(class, MPI_ERR_TRUNCATE);
    MPI_Error_class(MPI_Isendrecv(x, 1, MPI_INT, size, 1, &y, 1, MPI_INT, left, 1, c, &q), &class);
    EQ(class, MPI_ERR_RANK);
    MPI_Error_class(MPI_Isendrecv(x, 1, MPI_INT, right, 1, &y, 1, MPI_INT, left, -7, c, &q), &class);
    EQ(class, MPI_ERR_TAG);
    MPI_Error_class(MPI_Isendrecv_replace(x, -1, MPI_INT, right, 1, left, 1, c, &q), &class);
    EQ(class, MPI_ERR_COUNT);
    MPI_Error_class(MPI_Isendrecv(x, 2, MPI_INT, right, 1, x + 1, 1, MPI_INT, left, 1, c, &q), &class);
    EQ(class, MPI_ERR_BUFFER);
    MPI_Error_class(MPI_Sendrecv(x, 1, MPI_INT, right, 1, x, 1, MPI_INT, left, 1, c, MPI_STATUS_IGNORE), &class);
    EQ(class, MPI_ERR_BUFFER);
    /* nothing is sent, or nothing received: there is no overlap */
    EQ(MPI_Sendrecv(x, 1, MPI_INT, MPI_PROC_NULL, 1, x, 1, MPI_INT, MPI_PROC_NULL, 1, c, MPI_STATUS_IGNORE),
       MPI_SUCCESS);
    EQ(MPI_Sendrecv(x, 1, MPI_INT, right, 1, x + 1, 1, MPI_INT, left, 1, c, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EQ(x[1], x[0]);
    MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 100, 5000, 300000};
    mt_begin(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    for (int k = 0; k < 10; k++)
        ring(counts[k / 2], k % 2);
    nobody();
    many();
    errors();
    return mt_end();
}
