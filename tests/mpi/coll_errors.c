/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives that go wrong: what is refused before it begins, and messages that do not fit. Nobody waits for ever,
 * who depends on the wrong data hears of it, and the communicator can be used afterwards.
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

/* The root sends more than rank `small` has room for: it and those it would pass the data on to are told. */
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

/* One rank has more than the others expect: in an allreduce nobody's result is right, so everybody is told. */
static void odd_one_out(void)
{
    static int x[100], y[100];
    for (int odd = 0; odd < size && size > 1; odd++) {
        int code = MPI_Allreduce(x, y, rank == odd ? 60 : 30, MPI_INT, MPI_SUM, comm), class = class_of(code), bad;
        /* the odd one itself got short messages, which are not errors by themselves */
        if (rank != odd && size == 2)
            EQ(class, MPI_ERR_TRUNCATE);
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

/* An error of the data's own, found in the middle: a persistent one that failed can be started again. */
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
    short_bcast();
    odd_one_out();
    again();
    MPI_Comm_free(&comm);
    return mt_end();
}
