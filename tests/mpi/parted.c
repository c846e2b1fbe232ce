/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parted WHAT: ranks of odd number do not take part in an operation that the others wait for, and the others get an
 * error.
 *
 * ends: the odd ones call MPI_Finalize at once. The others wait for them in messages and in collective operations.
 * late: likewise; rank 2 begins an operation long after rank 0 got its error, and does not write into the memory that
 * rank 0 had announced for it. lost, stays: pairs of odd ranks exchange messages until the network between the halves
 * of the job has gone, and then call MPI_Finalize, or compute for 20 s. The others wait in collective operations all
 * the time.
 */
#include <time.h>

#include "mt.h"

#define LARGE (1 << 20)
#define MOST  4     /* ranks */
#define INTS  65536 /* of each, in a collective operation, at most */

static int large[2][MOST * INTS];
static char *memory;
static MPI_Win window;
static int ints[3][MOST], counts[MOST], displs[MOST];
static int told; /* operations with the error */

static int failed(int code)
{
    int class;

    MPI_Error_class(code, &class);
    CHECK(!code || class == MPIX_ERR_PROC_FAILED);
    return code != MPI_SUCCESS;
}

/* ---- collective operations: n ints of each rank ------------------------------------------------------------------ */

static int barrier(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Ibarrier(c, q) : MPI_Barrier(c);
}

static int bcast(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Ibcast(large[0], n, MPI_INT, 1, c, q) : MPI_Bcast(large[0], n, MPI_INT, 1, c);
}

static int allreduce(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Iallreduce(large[0], large[1], n, MPI_INT, MPI_SUM, c, q)
             : MPI_Allreduce(large[0], large[1], n, MPI_INT, MPI_SUM, c);
}

/* Each even rank is a root. */
static int reduce(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Ireduce(large[0], large[1], n, MPI_INT, MPI_SUM, 0, c, q)
             : MPI_Reduce(large[0], large[1], n, MPI_INT, MPI_SUM, 0, c);
}

static int gather(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Igather(large[0], n, MPI_INT, large[1], n, MPI_INT, 0, c, q)
             : MPI_Gather(large[0], n, MPI_INT, large[1], n, MPI_INT, 0, c);
}

static int scatter(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Iscatter(large[0], n, MPI_INT, large[1], n, MPI_INT, 1, c, q)
             : MPI_Scatter(large[0], n, MPI_INT, large[1], n, MPI_INT, 1, c);
}

static int allgather(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Iallgather(large[0], n, MPI_INT, large[1], n, MPI_INT, c, q)
             : MPI_Allgather(large[0], n, MPI_INT, large[1], n, MPI_INT, c);
}

static int alltoall(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Ialltoall(large[0], n, MPI_INT, large[1], n, MPI_INT, c, q)
             : MPI_Alltoall(large[0], n, MPI_INT, large[1], n, MPI_INT, c);
}

static int alltoallv(int n, MPI_Comm c, MPI_Request *q)
{
    for (int i = 0; i < size; i++) {
        counts[i] = n;
        displs[i] = i * n;
    }
    return q ? MPI_Ialltoallv(large[0], counts, displs, MPI_INT, large[1], counts, displs, MPI_INT, c, q)
             : MPI_Alltoallv(large[0], counts, displs, MPI_INT, large[1], counts, displs, MPI_INT, c);
}

static int reduce_scatter(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Ireduce_scatter_block(large[0], large[1], n, MPI_INT, MPI_SUM, c, q)
             : MPI_Reduce_scatter_block(large[0], large[1], n, MPI_INT, MPI_SUM, c);
}

static int neighbors(int n, MPI_Comm c, MPI_Request *q)
{
    return q ? MPI_Ineighbor_alltoall(large[0], n, MPI_INT, large[1], n, MPI_INT, c, q)
             : MPI_Neighbor_alltoall(large[0], n, MPI_INT, large[1], n, MPI_INT, c);
}

static int persistent(int n, MPI_Comm c, MPI_Request *q)
{
    MPI_Request p;
    int err;

    MPI_Allreduce_init(large[0], large[1], n, MPI_INT, MPI_SUM, c, MPI_INFO_NULL, &p);
    err = MPI_Start(&p);
    if (q)
        *q = p;
    else if (!err)
        err = MPI_Wait(&p, MPI_STATUS_IGNORE);
    return err;
}

typedef int operation(int n, MPI_Comm c, MPI_Request *q);
static const struct collective {
    const char *name;
    operation *run;
    int always; /* no rank can have a result without all others */
} collectives[] = {
    {"barrier", barrier, 1},     {"bcast", bcast, 0},
    {"allreduce", allreduce, 1}, {"reduce", reduce, 0},
    {"gather", gather, 0},       {"scatter", scatter, 0},
    {"allgather", allgather, 1}, {"alltoall", alltoall, 1},
    {"alltoallv", alltoallv, 1}, {"reduce_scatter", reduce_scatter, 1},
    {"neighbors", neighbors, 1}, {"persistent", persistent, 1},
};
enum { COLLECTIVES = sizeof collectives / sizeof *collectives, SIZES = 3, WARM = 6 };
static const int sizes[SIZES] = {2, 4096, INTS};
static int num_sizes = SIZES; /* the largest are offered: a computing rank does not give them back */
static MPI_Comm comms[COLLECTIVES][SIZES], ring;
static MPI_Request requests[COLLECTIVES][SIZES];

/* Communicators for all; where operations go through memory of the node, that is made. */
static void make_comms(void)
{
    int around = 1;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &around, 0, &ring);
    for (int k = 0; k < COLLECTIVES; k++)
        for (int i = 0; i < SIZES; i++)
            MPI_Comm_dup(ring, &comms[k][i]);
    MPI_Win_create(memory, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    for (int i = 0; i < WARM; i++)
        MPI_Allreduce(ints[0], ints[1], 1, MPI_INT, MPI_SUM, ring);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void start_all(void)
{
    for (int k = 0; k < COLLECTIVES; k++)
        for (int i = 0; i < num_sizes; i++)
            EQ(collectives[k].run(sizes[i], comms[k][i], &requests[k][i]), MPI_SUCCESS);
}

static void note(const char *name, int err, int always)
{
    int bad = failed(err);

    if (always && !bad)
        fprintf(stderr, "rank %d: %s did not fail\n", rank, name);
    CHECK(bad || !always);
    told += bad;
}

static void await_all(void)
{
    for (int k = 0; k < COLLECTIVES; k++)
        for (int i = 0; i < num_sizes; i++)
            note(collectives[k].name, MPI_Wait(&requests[k][i], MPI_STATUS_IGNORE), collectives[k].always);
}

static void run_all(void)
{
    for (int k = 0; k < COLLECTIVES; k++)
        for (int i = 0; i < num_sizes; i++)
            note(collectives[k].name, collectives[k].run(sizes[i], ring, NULL), collectives[k].always);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void messages(int peer)
{
    MPI_Request q[6];
    MPI_Status status[6];
    MPI_Message m;
    int any[2] = {0, 0}, err;

    MPI_Irecv(ints[0], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(memory, LARGE, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &q[1]);
    MPI_Isend(memory, LARGE, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &q[2]);
    MPI_Issend(ints[1], 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &q[3]);
    MPI_Isend(ints[1], 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &q[4]); /* need not be received */
    MPI_Irecv(any, 1, MPI_INT, size == 2 ? MPI_ANY_SOURCE : peer, 3, MPI_COMM_WORLD, &q[5]);
    err = MPI_Waitall(6, q, status);
    EQ(err, MPI_ERR_IN_STATUS);
    for (int i = 0; i < 6; i++)
        note("a message", status[i].MPI_ERROR, i != 4);
    note("probe", MPI_Probe(peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 1);
    note("mprobe", MPI_Mprobe(peer, 1, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE), 1);
    note("recv", MPI_Recv(ints[0], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), 1);
    note("send", MPI_Send(memory, LARGE, MPI_BYTE, peer, 2, MPI_COMM_WORLD), 1);
    note("ssend", MPI_Ssend(ints[0], 1, MPI_INT, peer, 2, MPI_COMM_WORLD), 1);
    err = MPI_Sendrecv(ints[0], 1, MPI_INT, peer, 2, ints[1], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    note("sendrecv", err, 1);
}

/* The window was not freed by any. */
static void epochs(int peer)
{
    MPI_Group all, other;
    int there = 0, err = MPI_SUCCESS;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &peer, &other);
    note("start", MPI_Win_start(other, 0, window), 1);
    failed(MPI_Win_complete(window));
    EQ(MPI_Win_post(other, 0, window), MPI_SUCCESS);
    note("wait", MPI_Win_wait(window), 1);
    EQ(MPI_Win_post(other, 0, window), MPI_SUCCESS);
    while (!err && !there)
        err = MPI_Win_test(window, &there);
    note("test", err, 1);
    note("fence", MPI_Win_fence(0, window), 1);
    MPI_Group_free(&all);
    MPI_Group_free(&other);
}

static void exchange_until_lost(int peer)
{
    int err = MPI_SUCCESS;

    while (!err)
        err =
            MPI_Sendrecv(ints[0], 1, MPI_INT, peer, 4, ints[1], 1, MPI_INT, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(failed(err));
}

static int exchange_large(void)
{
    return MPI_Alltoall(large[0], INTS, MPI_INT, large[1], INTS, MPI_INT, MPI_COMM_WORLD);
}

static void be_late(void)
{
    struct timespec moment = {0, 100000};
    double until = MPI_Wtime() + 0.1;
    int there;

    while (MPI_Wtime() < until) {
        MPI_Iprobe(0, 5, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        nanosleep(&moment, NULL);
    }
}

static void come_late(void)
{
    double begin = MPI_Wtime();

    if (rank == 2)
        be_late();
    note("alltoall", exchange_large(), 1);
    CHECK(rank == 2 || MPI_Wtime() - begin < 0.09);
    memset(large[1], 1, sizeof large[1]);
    if (rank == 2)
        EQ(MPI_Send(ints[0], 1, MPI_INT, 0, 6, MPI_COMM_WORLD), MPI_SUCCESS);
    else
        EQ(MPI_Recv(ints[0], 1, MPI_INT, 2, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
    for (int i = 0; i < MOST * INTS; i++)
        EQ(large[1][i], 0x1010101);
}

/* For 20 s. In steps: simulated time goes from one event to the next, and waiting by the clock is none. */
static void compute(void)
{
    struct timespec step = {0, 10000000};

    for (int i = 0; i < 2000; i++)
        nanosleep(&step, NULL);
}

int main(int argc, char **argv)
{
    double begin;
    int lost, late;

    mt_begin(&argc, &argv);
    CHECK(argc == 2 && size % 2 == 0 && size <= MOST);
    memory = calloc(1, LARGE);
    late = !strcmp(argv[1], "late");
    lost = !late && strcmp(argv[1], "ends") != 0;
    num_sizes -= !strcmp(argv[1], "stays");
    make_comms();
    for (int i = 0; i < WARM && late; i++)
        exchange_large();
    begin = MPI_Wtime();
    if (rank % 2) {
        if (lost)
            exchange_until_lost((rank + size / 2) % size);
        if (!strcmp(argv[1], "stays"))
            compute();
        return mt_end();
    }
    if (late) {
        come_late();
    } else {
        start_all();
        if (!lost)
            messages(rank + 1);
        await_all();
        if (!lost)
            epochs(rank + 1);
        run_all();
    }
    printf("rank %d: %d errors within %.0f s\n", rank, told, MPI_Wtime() - begin + 0.5);
    fflush(stdout);
    free(memory);
    return mt_end();
}
