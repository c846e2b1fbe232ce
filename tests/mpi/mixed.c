/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed MS [KIND]: operations of all kinds, or of one, are repeated for MS milliseconds while mixed.py has ways fail.
 * Received data is compared. Each rank prints the duration of its longest operation, its beginning, in milliseconds of
 * the fabric, and its kind; or the time of an error about a failed process.
 */
#include <time.h>

#include "mt.h"

#define LARGE (1 << 20)

static unsigned char *out, *in, *memory;
static int peer;       /* at the other host, with this rank's place there */
static MPI_Win window; /* memory: LARGE bytes written by the peer, and a block behind */
static MPI_Request kept[2];
static int round_number;

static unsigned char byte_of(int r, int i)
{
    return (unsigned char)(round_number * 7 + r * 31 + i);
}

static void fill(int bytes)
{
    memset(out, byte_of(rank, 0), (size_t)bytes);
}

static void compare(const unsigned char *got, int bytes, int from)
{
    for (int i = 0; i < bytes; i += i + 64 < bytes ? 61 : 1)
        EQ(got[i], byte_of(from, 0));
}

static int exchange(int bytes)
{
    int err;

    fill(bytes);
    err = MPI_Sendrecv(out, bytes, MPI_BYTE, peer, 1, in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!err)
        compare(in, bytes, peer);
    return err;
}

static int short_messages(void)
{
    return exchange(8);
}

static int medium_messages(void)
{
    return exchange(65536);
}

static int large_messages(void)
{
    return exchange(LARGE);
}

static int allreduce(void)
{
    int mine[64], sum[64], err;

    for (int i = 0; i < 64; i++)
        mine[i] = rank + i + round_number;
    err = MPI_Allreduce(mine, sum, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 64 && !err; i++)
        EQ(sum[i], size * (size - 1) / 2 + size * (i + round_number));
    return err;
}

static int broadcast(void)
{
    int root = round_number % size, err;

    memset(out, byte_of(root, 0), 40000);
    if (rank != root)
        memset(out, 0, 40000);
    err = MPI_Bcast(out, 40000, MPI_BYTE, root, MPI_COMM_WORLD);
    if (!err)
        compare(out, 40000, root);
    return err;
}

static int alltoall(void)
{
    int each = 20000, err;

    fill(each * size);
    err = MPI_Alltoall(out, each, MPI_BYTE, in, each, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size && !err; r++)
        compare(in + r * each, each, r);
    return err;
}

static int put_and_get(int bytes)
{
    int err = MPI_Win_fence(0, window);

    fill(bytes);
    err = err ? err : MPI_Put(out, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, window);
    err = err ? err : MPI_Win_fence(0, window);
    if (err)
        return err;
    compare(memory, bytes, peer);
    err = MPI_Get(in, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, window);
    err = err ? err : MPI_Win_fence(0, window);
    if (!err)
        compare(in, bytes, rank);
    return err;
}

static int short_puts(void)
{
    return put_and_get(8);
}

static int large_puts(void)
{
    return put_and_get(LARGE / 4);
}

static int locks(void)
{
    long one = 1, was;
    int err = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, window);

    err = err ? err : MPI_Fetch_and_op(&one, &was, MPI_LONG, peer, LARGE, MPI_SUM, window);
    err = err ? err : MPI_Win_unlock(peer, window);
    if (!err)
        EQ(was, round_number);
    return err;
}

static int persistent(void)
{
    MPI_Status status[2];
    int err;

    fill(65536);
    err = MPI_Startall(2, kept);
    err = err ? err : MPI_Waitall(2, kept, status);
    for (int i = 0; i < 2 && err == MPI_ERR_IN_STATUS; i++)
        err = status[i].MPI_ERROR == MPI_ERR_PENDING || !status[i].MPI_ERROR ? err : status[i].MPI_ERROR;
    if (!err)
        compare(in, 65536, peer);
    return err;
}

static const struct kind {
    const char *name;
    int (*run)(void);
} kinds[] = {
    {"8", short_messages}, {"64k", medium_messages},   {"1m", large_messages}, {"allreduce", allreduce},
    {"bcast", broadcast},  {"alltoall", alltoall},     {"put", short_puts},    {"putlarge", large_puts},
    {"lock", locks},       {"persistent", persistent},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static double most;
static double at;
static const char *of = "none";

static int timed(const char *name, int (*run)(void))
{
    double begin = MPI_Wtime(), took;
    int err = run();

    took = MPI_Wtime() - begin;
    if (took > most) {
        most = took;
        at = begin;
        of = name;
    }
    return err;
}

static int goes_on;

/* Rank 0 decides whether there is another round. */
static int agree(void)
{
    return MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

/* Idle most of the time, so few rounds cover a long time. */
static void rest(void)
{
    struct timespec t = {0, 500000};

    nanosleep(&t, NULL);
}

static void told(int err)
{
    int class;

    MPI_Error_class(err, &class);
    printf("rank %d was told at %.6f class %d\n", rank, MPI_Wtime() * 1e3, class);
}

int main(int argc, char **argv)
{
    double until;
    int err = 0;

    mt_begin(&argc, &argv);
    CHECK(argc > 1 && size % 2 == 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    peer = (rank + size / 2) % size;
    out = calloc(1, LARGE);
    in = calloc(1, LARGE);
    MPI_Win_allocate(LARGE + sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, LARGE + sizeof(long));
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Send_init(out, 65536, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &kept[0]);
    MPI_Recv_init(in, 65536, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &kept[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    until = MPI_Wtime() + atof(argv[1]) / 1e3;
    for (round_number = 0; !err; round_number++) {
        goes_on = MPI_Wtime() < until;
        err = timed("agree", agree);
        if (err || !goes_on)
            break;
        rest();
        for (int k = 0; k < KINDS && !err; k++)
            if (argc < 3 || !strcmp(argv[2], kinds[k].name))
                err = timed(kinds[k].name, kinds[k].run);
    }
    if (err)
        told(err);
    else
        printf("rank %d longest %.6f at %.6f of %s rounds %d\n", rank, most * 1e3, at * 1e3, of, round_number);
    fflush(stdout);
    if (err)
        return mt_end(); /* the others are told as well */
    MPI_Request_free(&kept[0]);
    MPI_Request_free(&kept[1]);
    MPI_Win_free(&window);
    free(out);
    free(in);
    return mt_end();
}
