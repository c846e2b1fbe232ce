/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failing collectives: operations refused before they begin, and messages that do not fit. No rank waits for ever,
 * ranks that depend on wrong data get an error, and the communicator stays usable.
 */
#include "mt.h"

static MPI_Comm comm;

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

#define REFUSED(call, want) EQ(class_of(call), want)

static void still_well(void)
{
    int x = rank + 1, sum;
    EQ(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    EQ(sum, size * (size + 1) / 2);
}

static void refused(void)
{
    int x = 0, y[64] = {0}, counts[64] = {0}, disps[64] = {0};
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request q = MPI_REQUEST_NULL;
    REFUSED(MPI_Bcast(&x, 1, MPI_INT, size, comm), MPI_ERR_ROOT);
    int code = MPI_Bcast(&x, 1, MPI_INT, -1, comm), n;
    MPI_Error_string(code, text, &n);
    CHECK(strstr(text, "root is -1"));
    REFUSED(MPI_Bcast(&x, 1, MPI_INT, MPI_ROOT, comm), MPI_ERR_ROOT);
    REFUSED(MPI_Bcast(&x, -1, MPI_INT, 0, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Bcast(&x, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE);
    REFUSED(MPI_Bcast(NULL, 1, MPI_INT, 0, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Ibcast(&x, 1, MPI_INT, size, comm, &q), MPI_ERR_ROOT);
    REFUSED(MPI_Bcast_init(&x, 1, MPI_INT, size, comm, MPI_INFO_NULL, &q), MPI_ERR_ROOT);
    REFUSED(MPI_Bcast_init(&x, 1, MPI_INT, 0, comm, (MPI_Info)0x12345678, &q), MPI_ERR_INFO);
    REFUSED(MPI_Reduce(&x, y, 1, MPI_INT, MPI_OP_NULL, 0, comm), MPI_ERR_OP);
    REFUSED(MPI_Reduce(&x, y, 1, MPI_FLOAT, MPI_BAND, 0, comm), MPI_ERR_OP);
    REFUSED(MPI_Allreduce(y, y, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Reduce(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, rank ? 0 : size - 1, comm),
            size > 1 ? MPI_ERR_BUFFER : MPI_SUCCESS);
    counts[size - 1] = -1;
    REFUSED(MPI_Gatherv(&x, 1, MPI_INT, y, counts, disps, MPI_INT, rank, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Alltoallv(y, counts, disps, MPI_INT, y, counts, disps, MPI_INT, comm), MPI_ERR_COUNT);
    REFUSED(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    MPI_Ibarrier(comm, &q);
    MPI_Request copy = q;
    int freed = MPI_Request_free(&copy), gone = MPI_Cancel(&q);
    CHECK(class_of(freed) == MPI_ERR_REQUEST && class_of(gone) == MPI_ERR_REQUEST);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    REFUSED(MPI_Start(&q), MPI_ERR_REQUEST);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &q);
    MPI_Start(&q);
    copy = q;
    REFUSED(MPI_Start(&copy), MPI_ERR_REQUEST);
    REFUSED(MPI_Request_free(&copy), MPI_ERR_REQUEST);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Request_free(&q);
    still_well();
}

/* Send and receive buffer that share bytes: refused by every operation, before anything is sent. */
static void overlapping(void)
{
    enum { MAX = 64 };
    int b[4 * MAX] = {0}, n[MAX], d[MAX], bytes[MAX], *own = b + rank;
    MPI_Datatype types[MAX];
    MPI_Request q = MPI_REQUEST_NULL;
    for (int i = 0; i < size; i++) {
        n[i] = 1;
        d[i] = i;
        bytes[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    REFUSED(MPI_Reduce(b, b, 1, MPI_INT, MPI_SUM, rank, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Reduce(b, b + 1, 2, MPI_INT, MPI_SUM, rank, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Allreduce(b + 1, b, 2, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Scan(b, b + 1, 2, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Iexscan(b, b + 1, 2, MPI_INT, MPI_SUM, comm, &q), MPI_ERR_BUFFER);
    REFUSED(MPI_Reduce_scatter(b, b + size - 1, n, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Reduce_scatter_block(b, b + size - 1, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Gather(own, 1, MPI_INT, b, 1, MPI_INT, rank, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Gather(b + size - 1, 2, MPI_INT, b, 2, MPI_INT, rank, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Igatherv(b + size - 1, 1, MPI_INT, b, n, d, MPI_INT, rank, comm, &q), MPI_ERR_BUFFER);
    REFUSED(MPI_Scatter(b, 1, MPI_INT, own, 1, MPI_INT, rank, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Scatterv(b, n, d, MPI_INT, b + size - 1, 1, MPI_INT, rank, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Allgather(own, 1, MPI_INT, b, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Allgatherv(own, 1, MPI_INT, b, n, d, MPI_INT, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Alltoall(b, 1, MPI_INT, b + size - 1, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Alltoallv(b, n, d, MPI_INT, b, n, d, MPI_INT, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Alltoallw(b, n, bytes, types, b, n, bytes, types, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Alltoallw(b, n, NULL, types, b + MAX, n, bytes, types, comm), MPI_ERR_ARG);
    REFUSED(MPI_Allreduce_init(b, b, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &q), MPI_ERR_BUFFER);
    still_well();
}

static void overlapping_neighbors(void)
{
    int b[8] = {0}, n[2] = {1, 1}, d[2] = {0, 1}, period = 1;
    MPI_Aint bytes[2] = {0, sizeof(int)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Comm world = comm;
    MPI_Cart_create(world, 1, &size, &period, 0, &comm);
    REFUSED(MPI_Neighbor_allgather(b + 1, 1, MPI_INT, b, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_allgatherv(b + 1, 1, MPI_INT, b, n, d, MPI_INT, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_alltoall(b + 1, 1, MPI_INT, b, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_alltoallv(b, n, d, MPI_INT, b, n, d, MPI_INT, comm), MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_alltoallw(b, n, bytes, types, b, n, bytes, types, comm), MPI_ERR_BUFFER);
    still_well();
    MPI_Comm_free(&comm);
    comm = world;
}

/* Apparent overlaps: adjacent buffers, empty buffers, and data in the gaps of the other's. */
static void apart(void)
{
    enum { MAX = 64 };
    int b[4 * MAX];
    MPI_Datatype column;
    for (int i = 0; i < 4 * MAX; i++)
        b[i] = rank + 1;
    EQ(MPI_Alltoall(b, 1, MPI_INT, b + size, 1, MPI_INT, comm), MPI_SUCCESS);
    EQ(b[2 * size - 1], size);
    EQ(MPI_Allreduce(b, b, 0, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    EQ(MPI_Allgather(b, 0, MPI_INT, b, 0, MPI_INT, comm), MPI_SUCCESS);
    /* the send buffer is one column of a matrix, the receive buffer the other: element i of it comes from rank i */
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < size; i++)
        b[2 * i] = rank + 1;
    EQ(MPI_Alltoall(b, 1, column, b + 1, 1, column, comm), MPI_SUCCESS);
    for (int i = 0; i < size; i++)
        EQ(b[2 * i + 1], i + 1);
    MPI_Type_free(&column);
    b[1] = rank ? 5 : 0;
    EQ(MPI_Reduce(b + 1, rank ? b + 1 : b, 1, MPI_INT, MPI_SUM, 0, comm), MPI_SUCCESS);
    EQ(b[0], rank ? rank + 1 : 5 * (size - 1));
    still_well();
}

/* The root sends more than rank `small` has room for: this rank and the ranks behind it get an error. */
static void short_bcast(void)
{
    int b[20] = {0}, class;
    for (int small = 1; small < size; small++) {
        class = class_of(MPI_Bcast(b, rank == small ? 10 : 20, MPI_INT, 0, comm));
        if (rank == small)
            EQ(class, MPI_ERR_TRUNCATE);
        if (rank == 0)
            EQ(class, MPI_SUCCESS);
        still_well();
    }
}

/* The root sends less than the others expect, or receives less: ranks without the expected data get an error. */
static void too_little(void)
{
    int b[20] = {0}, all[20 * 64];
    const MPI_Datatype pair = MPI_2INT;
    int class = class_of(MPI_Bcast(b, rank ? 10 : 1, MPI_INT, 0, comm));
    EQ(class, rank ? MPI_ERR_COUNT : MPI_SUCCESS);
    class = class_of(MPI_Scatter(all, 1, MPI_INT, b, rank ? 2 : 1, MPI_INT, 0, comm));
    EQ(class, rank ? MPI_ERR_COUNT : MPI_SUCCESS);
    class = class_of(MPI_Gather(b, rank ? 3 : 4, MPI_INT, all, 4, MPI_INT, 0, comm));
    if (rank == 0)
        EQ(class, size > 1 ? MPI_ERR_COUNT : MPI_SUCCESS);
    still_well();
    /* where each rank has a count of its own there may be room for more: nothing comes to lie in a wrong place */
    static int counts[64], room[64], disps[64];
    int from[2] = {rank, 100 + rank};
    for (int i = 0; i < size; i++) {
        counts[i] = 2;
        room[i] = 4;
        disps[i] = 4 * i;
    }
    memset(all, 0xff, sizeof(all));
    EQ(MPI_Gatherv(from, 2, MPI_INT, all, room, disps, MPI_INT, 0, comm), MPI_SUCCESS);
    for (int i = 0; i < size && rank == 0; i++)
        CHECK(all[4 * i] == i && all[4 * i + 1] == 100 + i && all[4 * i + 2] == -1);
    memset(b, 0xff, sizeof(b));
    EQ(MPI_Scatterv(all, counts, disps, MPI_INT, b, 20, MPI_INT, 0, comm), MPI_SUCCESS);
    CHECK(b[0] == rank && b[1] == 100 + rank && b[2] == -1);
    int to[64 * 2];
    for (int i = 0; i < 2 * size; i++)
        to[i] = rank;
    EQ(MPI_Alltoallv(to, counts, (int[64]){0}, MPI_INT, all, room, disps, MPI_INT, comm), MPI_SUCCESS);
    for (int i = 0; i < size; i++)
        CHECK(all[4 * i] == i && all[4 * i + 1] == i);
    still_well();
    /* the same amount in other words is none */
    EQ(MPI_Bcast(b, rank ? 10 : 5, rank ? MPI_INT : pair, 0, comm), MPI_SUCCESS);
    still_well();
}

/* One rank has more than the others expect: no result of an allreduce is right, so all ranks get an error. */
static void odd_one_out(void)
{
    static int x[100], y[100];
    for (int odd = 0; odd < size && size > 1; odd++) {
        int code = MPI_Allreduce(x, y, rank == odd ? 60 : 30, MPI_INT, MPI_SUM, comm), class = class_of(code), bad;
        /* too much at one rank, too little at the other: the first to see the error tells its peer */
        if (size == 2)
            CHECK(class == MPI_ERR_COUNT || class == MPI_ERR_TRUNCATE);
        int mine = class != MPI_SUCCESS;
        MPI_Allreduce(&mine, &bad, 1, MPI_INT, MPI_SUM, comm);
        CHECK(bad >= size - 1);
        /* a gather to the next rank */
        code = MPI_Gather(x, rank == odd ? 3 : 1, MPI_INT, y, 1, MPI_INT, (odd + 1) % size, comm);
        if (rank == (odd + 1) % size)
            EQ(class_of(code), MPI_ERR_TRUNCATE);
        still_well();
        MPI_Request q;
        MPI_Iallgather(x, rank == odd ? 2 : 1, MPI_INT, y, rank == odd ? 2 : 1, MPI_INT, comm, &q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        still_well();
    }
}

/* An error of the data, found during the operation: a failed persistent operation can be started again. */
static void again(void)
{
    int b[20], room = rank == size - 1 ? 10 : 20;
    MPI_Request q;
    MPI_Bcast_init(b, room, MPI_INT, 0, comm, MPI_INFO_NULL, &q);
    for (int k = 0; k < 3; k++) {
        MPI_Start(&q);
        EQ(class_of(MPI_Wait(&q, MPI_STATUS_IGNORE)), size > 1 && rank == size - 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    }
    MPI_Request_free(&q);
    still_well();
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    refused();
    overlapping();
    overlapping_neighbors();
    apart();
    short_bcast();
    too_little();
    odd_one_out();
    again();
    MPI_Comm_free(&comm);
    return mt_end();
}
