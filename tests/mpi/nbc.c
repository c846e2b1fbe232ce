/* SPDX-License-Identifier: BSD-3-Clause */
/* Nonblocking collectives: many at once on one communicator and on two, completed in another order than started. */
#include "mt.h"

enum { MANY = 24 };

static void all_kinds(int n)
{
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    size_t all = (size_t)n * (size_t)size;
    int *one = malloc((size_t)n * sizeof(int)), *b[12];
    int *counts = malloc((size_t)size * sizeof(int)), *disps = malloc((size_t)size * sizeof(int));
    MPI_Datatype *types = malloc((size_t)size * sizeof(*types));
    for (int k = 0; k < 12; k++)
        b[k] = calloc(all + 1, sizeof(int));
    int *in = malloc(all * sizeof(int));
    for (size_t i = 0; i < all; i++)
        in[i] = rank + 1;
    for (int i = 0; i < n; i++)
        one[i] = rank + 1;
    for (int r = 0; r < size; r++) {
        counts[r] = n;
        disps[r] = r * n;
        types[r] = MPI_INT;
    }
    int bytes[size], root = size / 2, sum = size * (size + 1) / 2;
    for (int r = 0; r < size; r++)
        bytes[r] = disps[r] * (int)sizeof(int);
    for (int i = 0; i < n; i++)
        b[0][i] = rank == root ? 99 : 0;
    MPI_Request q[16];
    int k = 0;
    MPI_Ibarrier(c, &q[k++]);
    MPI_Ibcast(b[0], n, MPI_INT, root, c, &q[k++]);
    MPI_Ireduce(one, b[1], n, MPI_INT, MPI_SUM, root, c, &q[k++]);
    MPI_Iallreduce(one, b[2], n, MPI_INT, MPI_SUM, c, &q[k++]);
    MPI_Igather(one, n, MPI_INT, b[3], n, MPI_INT, root, c, &q[k++]);
    MPI_Igatherv(one, n, MPI_INT, b[4], counts, disps, MPI_INT, root, c, &q[k++]);
    MPI_Iallgather(one, n, MPI_INT, b[5], n, MPI_INT, c, &q[k++]);
    MPI_Iallgatherv(one, n, MPI_INT, b[6], counts, disps, MPI_INT, c, &q[k++]);
    MPI_Ialltoall(in, n, MPI_INT, b[7], n, MPI_INT, c, &q[k++]);
    MPI_Ialltoallv(in, counts, disps, MPI_INT, b[8], counts, disps, MPI_INT, c, &q[k++]);
    MPI_Ialltoallw(in, counts, bytes, types, b[9], counts, bytes, types, c, &q[k++]);
    MPI_Iscan(one, b[10], n, MPI_INT, MPI_SUM, c, &q[k++]);
    MPI_Ireduce_scatter_block(in, b[11], n, MPI_INT, MPI_SUM, c, &q[k++]);
    MPI_Comm_free(&c); /* started operations go on */
    MPI_Waitall(k, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) {
        EQ(b[0][i], 99);
        EQ(b[1][i], rank == root ? sum : 0);
        EQ(b[2][i], sum);
        EQ(b[10][i], (rank + 1) * (rank + 2) / 2);
        EQ(b[11][i], sum);
    }
    for (size_t i = 0; i < all; i++) {
        int r = (int)(i / (size_t)n) + 1;
        EQ(b[3][i], rank == root ? r : 0);
        EQ(b[4][i], rank == root ? r : 0);
        for (int j = 5; j < 10; j++)
            EQ(b[j][i], r);
    }
    for (int j = 0; j < 12; j++)
        free(b[j]);
    free(one);
    free(in);
    free(counts);
    free(disps);
    free(types);
}

static void user_max(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *len; i++)
        if (((int *)in)[i] > ((int *)inout)[i])
            ((int *)inout)[i] = ((int *)in)[i];
}

/* Out of order completion, and an operation freed in use. */
static void many(void)
{
    MPI_Request q[2 * MANY];
    int in[2 * MANY], out[2 * MANY];
    MPI_Comm d;
    MPI_Op op;
    MPI_Comm_dup(MPI_COMM_WORLD, &d);
    MPI_Op_create(user_max, 1, &op);
    for (int i = 0; i < 2 * MANY; i++) {
        in[i] = rank * 100 + i;
        out[i] = -1;
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, op, i % 2 ? d : MPI_COMM_WORLD, &q[i]);
    }
    MPI_Op_free(&op);
    for (int i = 2 * MANY - 1; i >= 0; i--) {
        MPI_Status st;
        MPI_Wait(&q[i], &st);
        EQ(st.MPI_SOURCE, MPI_ANY_SOURCE);
        EQ(q[i], MPI_REQUEST_NULL);
        EQ(out[i], (size - 1) * 100 + i);
    }
    MPI_Comm_free(&d);
}

/* Test makes progress; a collective and point-to-point messages of the same communicator do not meet. */
static void beside_messages(void)
{
    int x = rank, y = -1, sum = -1, flag = 0;
    MPI_Request q[3];
    MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &q[1]);
    MPI_Isend(&x, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, &q[2]);
    while (!flag)
        MPI_Testall(3, q, &flag, MPI_STATUSES_IGNORE);
    EQ(sum, size * (size - 1) / 2);
    EQ(y, (rank - 1 + size) % size);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    all_kinds(1);
    all_kinds(700);
    all_kinds(20000);
    many();
    beside_messages();
    return mt_end();
}
