/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress of a large message: rank 0 starts a send and stays away from MPI for a while. If the receiver reads, its
 * receive is over before the sender is back. With the argument "write" the opposite must hold: the receiver has to
 * wait. Lengths around those that are cut, a receive for less than is sent, and data with holes at one end, are checked
 * byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#define AWAY_US 200000
#define LARGE   (1 << 20)

static int rank, errors;
static unsigned char *data;

static unsigned char byte_at(int i, int turn)
{
    return (unsigned char)(i * 7 + (i >> 9) + turn * 13);
}

static void expect(int ok, const char *what, int len)
{
    if (ok)
        return;
    printf("rank %d: %s, %d bytes\n", rank, what, len);
    errors++;
}

/* step bytes lie apart in the receiver's memory */
static void check(int len, int step, int turn)
{
    int wrong = 0;

    for (int i = 0; i < len; i++)
        wrong += data[i * step] != byte_at(i, turn);
    expect(!wrong, "wrong data", len);
    expect(data[len * step] == 0xEE, "data beyond the end", len);
}

static void one(int len, int holes, int turn)
{
    MPI_Datatype type = MPI_BYTE, spread;
    MPI_Status status;
    int got;

    MPI_Type_vector(len, 1, 2, MPI_BYTE, &spread);
    MPI_Type_commit(&spread);
    if (!rank) {
        for (int i = 0; i < len; i++)
            data[i] = byte_at(i, turn);
        MPI_Send(data, len, MPI_BYTE, 1, turn, MPI_COMM_WORLD);
    } else {
        memset(data, 0xEE, 2 * (size_t)LARGE + 64);
        MPI_Recv(data, holes ? 1 : len, holes ? spread : type, 0, turn, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        expect(got == len, "wrong count", len);
        check(len, holes ? 2 : 1, turn);
    }
    MPI_Type_free(&spread);
}

static void truncated(int len)
{
    MPI_Status status;
    int err, class = 0;

    if (!rank) {
        for (int i = 0; i < len; i++)
            data[i] = byte_at(i, 1);
        MPI_Send(data, len, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        return;
    }
    memset(data, 0xEE, 2 * (size_t)LARGE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    err = MPI_Recv(data, len - 5, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
    MPI_Error_class(err, &class);
    expect(class == MPI_ERR_TRUNCATE, "not truncated", len);
    check(len - 5, 1, 1);
}

/* Seconds of a receive whose sender was away. */
static double while_away(void)
{
    MPI_Request req;
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (!rank) {
        MPI_Isend(data, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &req);
        usleep(AWAY_US);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(data, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    static const int lengths[] = {8193, 16383, 16384, 16385, 65536, 100001, LARGE};
    int writes = argc > 1 && !strcmp(argv[1], "write");
    double took;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    data = malloc(2 * (size_t)LARGE + 64);
    if (!data)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int turn = 0; turn < 4; turn++)
            one(lengths[i], turn == 3, turn);
    truncated(65536);
    took = while_away();
    if (rank && writes)
        expect(took >= AWAY_US * 1e-6, "the receiver was not waiting", LARGE);
    else if (rank)
        expect(took < AWAY_US * 0.5e-6, "the receiver waited for the sender", LARGE);
    free(data);
    MPI_Finalize();
    return errors != 0;
}
