/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiling interface: a program's own MPI_Send and MPI_Allreduce are called instead, and reach the library's by
 * PMPI. */
#include "mt.h"

static int sends, reduces;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    reduces++;
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int main(int argc, char **argv)
{
    int x, y = -1, sum;
    MPI_Request q;
    MPI_Comm c;
    mt_begin(&argc, &argv);
    x = rank;
    MPI_Irecv(&y, 1, MPI_INT, (rank - 1 + size) % size, 0, MPI_COMM_WORLD, &q);
    MPI_Send(&x, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    EQ(y, (rank - 1 + size) % size);
    EQ(sends, 1);
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EQ(sum, size * (size - 1) / 2);
    /* the library's own use of collectives does not come by */
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_free(&c);
    EQ(reduces, 1);
    return mt_end();
}
