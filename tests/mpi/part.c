/* SPDX-License-Identifier: BSD-3-Clause */
/* Partitioned communication: equal and unequal cuts at both ends, any order of readiness, many rounds, wrong use. */
#include "mt.h"

#include <malloc.h>

static int left, right;

static int val(int r, int round, int i)
{
    return r * 1000003 + round * 40009 + i * 7 + 1;
}

/* Each rank sends sp partitions of n / sp ints to the right, and receives them as rp partitions of type t from the
 * left. */
struct cut {
    int n, sp, rp;
    int element; /* ints in an element of the receiver's type; with holes if more than one */
};

static void ready(MPI_Request q, int sp, int round)
{
    switch (round % 3) {
    case 0: /* from the back */
        for (int i = sp - 1; i >= 0; i--)
            MPI_Pready(i, q);
        break;
    case 1:
        MPI_Pready_range(0, sp / 2, q);
        if (sp / 2 + 1 < sp)
            MPI_Pready_range(sp / 2 + 1, sp - 1, q);
        break;
    default: { /* the odd ones, then the even ones */
        int list[sp], k = 0;
        for (int i = 1; i < sp; i += 2)
            list[k++] = i;
        MPI_Pready_list(k, list, q);
        for (int i = k = 0; i < sp; i += 2)
            list[k++] = i;
        MPI_Pready_list(k, list, q);
    }
    }
}

static void exchange(const struct cut *c)
{
    int *out = malloc((size_t)c->n * sizeof(int) + 4), gap = c->element > 1 ? c->element + 1 : 1;
    int rows = c->n / c->element, *in = malloc((size_t)rows * (size_t)gap * sizeof(int) + 4);
    MPI_Datatype block, t;
    MPI_Type_contiguous(c->element, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, gap * (int)sizeof(int), &t);
    MPI_Type_commit(&t);
    MPI_Request q[2];
    MPI_Precv_init(in, c->rp, rows / c->rp, t, left, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
    MPI_Psend_init(out, c->sp, c->n / c->sp, MPI_INT, right, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
    MPI_Type_free(&t);
    MPI_Type_free(&block);
    for (int round = 0; round < 4; round++) {
        MPI_Status st[2];
        int got, flag;
        for (int i = 0; i < c->n; i++)
            out[i] = val(rank, round, i);
        memset(in, 0, (size_t)rows * (size_t)gap * sizeof(int));
        MPI_Startall(2, q);
        ready(q[1], c->sp, round);
        if (round % 2) /* partition by partition */
            for (int p = 0; p < c->rp; p++) {
                do
                    MPI_Parrived(q[0], p, &flag);
                while (!flag);
                for (int i = p * (c->n / c->rp); i < (p + 1) * (c->n / c->rp); i++)
                    EQ(in[i / c->element * gap + i % c->element], val(left, round, i));
            }
        MPI_Waitall(2, q, st);
        EQ(st[0].MPI_SOURCE, left);
        EQ(st[0].MPI_TAG, 9);
        MPI_Get_count(&st[0], MPI_INT, &got);
        EQ(got, c->n);
        for (int i = 0; i < c->n; i++)
            EQ(in[i / c->element * gap + i % c->element], val(left, round, i));
        for (int i = 0; i < rows && gap > 1; i++)
            EQ(in[i * gap + c->element], 0);
    }
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
    free(in);
    free(out);
}

/* Ready partitions arrive before the rest: the large first partition, while the second waits for an answer. */
static void early(void)
{
    enum { N = 50000 };
    static int out[2 * N], in[2 * N];
    MPI_Request q[2];
    int flag = 0, x = 0, y;
    MPI_Psend_init(out, 2, N, MPI_INT, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
    MPI_Precv_init(in, 2, N, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
    for (int i = 0; i < 2 * N; i++)
        out[i] = val(rank, 0, i);
    MPI_Startall(2, q);
    MPI_Pready(0, q[0]);
    while (!flag)
        MPI_Parrived(q[1], 0, &flag);
    for (int i = 0; i < N; i++)
        EQ(in[i], val(left, 0, i));
    MPI_Parrived(q[1], 1, &flag);
    CHECK(!flag);
    MPI_Test(&q[0], &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Sendrecv(&x, 1, MPI_INT, left, 2, &y, 1, MPI_INT, right, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Pready(1, q[0]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    for (int i = N; i < 2 * N; i++)
        EQ(in[i], val(left, 0, i));
    MPI_Parrived(q[1], 1, &flag); /* inactive */
    CHECK(flag);
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
}

/* Two with the same tag match in the order of creation; ordinary messages with this tag do not match. */
static void two(void)
{
    int a[2], b[2], x[2] = {1, 2}, y = -1;
    MPI_Request s[2], r[2], w;
    MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &w);
    for (int i = 0; i < 2; i++) {
        MPI_Psend_init(&a[i], 1, 1, MPI_INT, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &s[i]);
        MPI_Precv_init(&b[i], 1, 1, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++)
            a[i] = val(rank, round, x[i]);
        MPI_Startall(2, s);
        MPI_Pready(0, s[1]);
        MPI_Pready(0, s[0]);
        MPI_Startall(2, r);
        MPI_Waitall(2, s, MPI_STATUSES_IGNORE);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2; i++)
            EQ(b[i], val(left, round, x[i]));
    }
    EQ(y, -1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&x[1], 1, MPI_INT, right, 5, MPI_COMM_WORLD);
    MPI_Wait(&w, MPI_STATUS_IGNORE);
    EQ(y, 2);
    for (int i = 0; i < 2; i++) {
        MPI_Request_free(&s[i]);
        MPI_Request_free(&r[i]);
    }
}

static void nobody(void)
{
    int x = 3, flag;
    MPI_Request q[2];
    MPI_Status st[2];
    MPI_Psend_init(&x, 1, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
    MPI_Precv_init(&x, 1, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
    MPI_Startall(2, q);
    MPI_Parrived(q[1], 0, &flag);
    CHECK(flag);
    MPI_Pready(0, q[0]);
    MPI_Waitall(2, q, st);
    EQ(st[1].MPI_SOURCE, MPI_PROC_NULL);
    EQ(x, 3);
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
}

#define REFUSED(call, want)                                                                                            \
    MPI_Error_class(call, &class);                                                                                     \
    EQ(class, want)

static void errors(void)
{
    MPI_Comm c;
    MPI_Request s, r, q;
    int x[4] = {0}, y[4], class, flag;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    REFUSED(MPI_Psend_init(x, -1, 1, MPI_INT, right, 1, c, MPI_INFO_NULL, &s), MPI_ERR_ARG);
    REFUSED(MPI_Psend_init(x, 2, -1, MPI_INT, right, 1, c, MPI_INFO_NULL, &s), MPI_ERR_COUNT);
    REFUSED(MPI_Precv_init(x, 2, 1, MPI_INT, MPI_ANY_SOURCE, 1, c, MPI_INFO_NULL, &s), MPI_ERR_RANK);
    REFUSED(MPI_Precv_init(x, 2, 1, MPI_INT, left, MPI_ANY_TAG, c, MPI_INFO_NULL, &s), MPI_ERR_TAG);
    MPI_Psend_init(x, 4, 1, MPI_INT, right, 1, c, MPI_INFO_NULL, &s);
    MPI_Precv_init(y, 2, 2, MPI_INT, left, 1, c, MPI_INFO_NULL, &r);
    REFUSED(MPI_Pready(0, s), MPI_ERR_ARG);
    MPI_Start(&s);
    MPI_Start(&r);
    REFUSED(MPI_Pready(4, s), MPI_ERR_ARG);
    REFUSED(MPI_Pready(-1, s), MPI_ERR_ARG);
    REFUSED(MPI_Pready(0, r), MPI_ERR_REQUEST);
    REFUSED(MPI_Parrived(s, 0, &flag), MPI_ERR_REQUEST);
    REFUSED(MPI_Parrived(r, 2, &flag), MPI_ERR_ARG);
    REFUSED(MPI_Pready_range(2, 1, s), MPI_ERR_ARG);
    MPI_Pready_range(0, 2, s);
    REFUSED(MPI_Pready(1, s), MPI_ERR_ARG);
    q = s;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    REFUSED(MPI_Request_free(&q), MPI_ERR_REQUEST);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Pready(3, s);
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    EQ(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    /* more than there is room for: an error, and both ends come to an end */
    MPI_Psend_init(x, 4, 1, MPI_INT, right, 1, c, MPI_INFO_NULL, &s);
    MPI_Precv_init(y, 1, 2, MPI_INT, left, 1, c, MPI_INFO_NULL, &r);
    MPI_Start(&s);
    MPI_Start(&r);
    MPI_Pready_range(0, 3, s);
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    REFUSED(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
    MPI_Comm_free(&c);
}

/* Pairs given up by both ends before they have begun keep their places: the last of each end meet. */
static void given_up(void)
{
    enum { PAIRS = 40 };
    MPI_Request q[PAIRS], s, r;
    int out = rank, in = -1;
    for (int i = 0; i < PAIRS; i++)
        MPI_Psend_init(&out, 1, 1, MPI_INT, right, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &q[i]);
    for (int i = 0; i < PAIRS; i++)
        MPI_Request_free(&q[i]);
    MPI_Psend_init(&out, 1, 1, MPI_INT, right, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
    MPI_Start(&s);
    MPI_Pready(0, s);
    for (int i = 0; i < PAIRS; i++) {
        MPI_Precv_init(&in, 1, 1, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &q[i]);
        MPI_Request_free(&q[i]);
    }
    MPI_Precv_init(&in, 1, 1, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Wait(&s, MPI_STATUS_IGNORE);
    EQ(in, left);
    MPI_Request_free(&s);
    MPI_Request_free(&r);
}

/* Pairs given up one after the other leave no memory behind, and take the same time, however many they are. */
static void given_up_for_long(void)
{
    enum { PAIRS = 6000, FIRST = 500, TOGETHER = 100, LEFT_BEHIND = 64 };
    size_t before = 0;
    int x = 0, y = 0;
    for (int i = 0; i < PAIRS; i++) {
        MPI_Request s, r;
        MPI_Precv_init(&x, 1, 1, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Psend_init(&y, 1, 1, MPI_INT, right, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &s);
        MPI_Request_free(&r);
        MPI_Request_free(&s);
        if (i % TOGETHER == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        if (i == FIRST)
            before = mallinfo2().uordblks;
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the messages of the last pairs have arrived */
    CHECK(mallinfo2().uordblks < before + (PAIRS - FIRST) * LEFT_BEHIND);
}

int main(int argc, char **argv)
{
    static const struct cut cuts[] =
        {
            {0, 3, 2, 1},       {1, 1, 1, 1},       {12, 12, 1, 1},    {12, 3, 4, 1},
            {12, 4, 1, 3},      {6000, 6, 4, 1},    {6000, 6, 5, 4},   {300000, 10, 3, 1},
            {300000, 3, 10, 5}, {1 << 20, 4, 8, 2}, {42000, 21, 6, 7}, /* pieces that end inside an element */
        };
    mt_begin(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    for (unsigned k = 0; k < sizeof(cuts) / sizeof(cuts[0]); k++)
        exchange(&cuts[k]);
    early();
    two();
    given_up();
    given_up_for_long();
    nobody();
    errors();
    return mt_end();
}
