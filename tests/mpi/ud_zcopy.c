/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages of all lengths, for ud_zcopy.sh. ud_zcopy sizes ROUNDS: between pairs of ranks, expected and not, each
 * buffer with guards on both sides; the buffer of a complete receive is overwritten at once, and must not change any
 * more. ud_zcopy many COUNT BYTES: from all other ranks to rank 0, all at the same time. ud_zcopy all COUNT BYTES: from
 * each to each, in turn. ud_zcopy busy: a rank that has sent but computes, without polling, does not keep others from
 * sending.
 */

#include "p2p.h"

enum { GUARD = 5000, SPENT = 0xa5, LARGEST = 1200000 };

static const int sizes[] = {16384, 16385, 20479, 20480, 20481, 65535, 65536, 65537, 262143, 300001, 1048576, LARGEST};
enum { SIZES = sizeof sizes / sizeof *sizes };

struct buffer {
    unsigned char *all;
    int n;
};

static int is_all(const unsigned char *p, size_t n, unsigned char c)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != c)
            return 0;
    return 1;
}

/* The data are right, nothing beside them has changed, and from now on nothing may. */
static void spend(struct buffer *b, unsigned seed)
{
    CHECK(is_all(b->all, GUARD, SPENT) && is_all(b->all + GUARD + b->n, GUARD, SPENT));
    CHECK(holds(b->all + GUARD, (size_t)b->n, seed));
    memset(b->all + GUARD, SPENT, (size_t)b->n);
}

static void try_sizes(int rounds)
{
    struct buffer in[SIZES], out[SIZES];
    int peer = (rank + size / 2) % size;

    for (int i = 0; i < SIZES; i++) {
        in[i] = (struct buffer){room((size_t)sizes[i] + 2 * GUARD), sizes[i]};
        out[i] = (struct buffer){room((size_t)sizes[i]), sizes[i]};
        memset(in[i].all, SPENT, (size_t)sizes[i] + 2 * GUARD);
    }
    for (int r = 0; r < rounds; r++) {
        MPI_Request req[2 * SIZES];
        int late = r % 2 ? SIZES / 2 : 0; /* number of messages before their receives are posted */

        for (int i = 0; i < SIZES; i++)
            fill(out[i].all, (size_t)out[i].n, (unsigned)(rank * 100 + r * SIZES + i));
        for (int i = late; i < SIZES; i++)
            MPI_Irecv(in[i].all + GUARD, in[i].n + (i % 3 ? 0 : 100), MPI_BYTE, peer, i, MPI_COMM_WORLD, &req[i]);
        for (int i = 0; i < SIZES; i++)
            MPI_Isend(out[i].all, out[i].n, MPI_BYTE, peer, i, MPI_COMM_WORLD, &req[SIZES + i]);
        for (int i = 0; i < late; i++) {
            MPI_Probe(peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Irecv(in[i].all + GUARD, in[i].n, MPI_BYTE, peer, i, MPI_COMM_WORLD, &req[i]);
        }
        for (int i, k = 0; k < SIZES; k++) {
            MPI_Waitany(SIZES, req, &i, MPI_STATUS_IGNORE);
            spend(&in[i], (unsigned)(peer * 100 + r * SIZES + i));
        }
        MPI_Waitall(SIZES, req + SIZES, MPI_STATUSES_IGNORE);
        for (int i = 0; i < SIZES; i++)
            CHECK(is_all(in[i].all, (size_t)in[i].n + 2 * GUARD, SPENT));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < SIZES; i++) {
        CHECK(is_all(in[i].all, (size_t)in[i].n + 2 * GUARD, SPENT));
        free(in[i].all);
        free(out[i].all);
    }
}

static void to_one(int count, int bytes)
{
    MPI_Request *req = room((size_t)(count * size) * sizeof *req);
    unsigned char *all = room((size_t)bytes * (size_t)count * (rank ? 1 : (size_t)size));
    int n = 0;

    for (int i = 0; i < count; i++)
        for (int s = 1; s < size; s++) {
            unsigned char *at = all + (size_t)(rank ? i : i * size + s) * (size_t)bytes;

            if (!rank)
                MPI_Irecv(at, bytes, MPI_BYTE, s, i, MPI_COMM_WORLD, &req[n++]);
            if (rank != s)
                continue;
            fill(at, (size_t)bytes, (unsigned)(s * 1000 + i));
            MPI_Isend(at, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &req[n++]);
        }
    MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count && !rank; i++)
        for (int s = 1; s < size; s++)
            CHECK(holds(all + (size_t)(i * size + s) * (size_t)bytes, (size_t)bytes, (unsigned)(s * 1000 + i)));
    free(all);
    free(req);
}

static void each_to_each(int count, int bytes)
{
    unsigned char *out = room((size_t)bytes), *in = room((size_t)bytes);

    for (int i = 0; i < count * size; i++) {
        int to = (rank + i) % size, from = (rank - i % size + size) % size;

        fill(out, (size_t)bytes, (unsigned)(rank + i));
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, i, in, bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(in, (size_t)bytes, (unsigned)(from + i)));
    }
    free(out);
    free(in);
}

/* Rank 1 begins more messages than there are queue pairs, and computes; those of rank 2 come meanwhile. */
static void busy(void)
{
    enum { COUNT = 24, BYTES = 200000 };
    unsigned char *buf = room((size_t)COUNT * BYTES);
    MPI_Request req[COUNT];
    double begin;

    CHECK(size >= 3);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    if (rank == 0) {
        for (int i = 0; i < COUNT; i++)
            MPI_Irecv(buf + (size_t)i * BYTES, BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD, &req[i]);
        for (int i = 0; i < 3; i++)
            MPI_Recv(buf, 1, MPI_BYTE, 2, COUNT + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        unsigned char *other = room(BYTES);
        for (int i = 0; i < COUNT; i++) {
            MPI_Recv(other, BYTES, MPI_BYTE, 2, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(holds(other, BYTES, (unsigned)i));
        }
        free(other);
        printf("the other's messages took %.3f s\n", MPI_Wtime() - begin);
        MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE);
        for (int i = 0; i < COUNT; i++)
            CHECK(holds(buf + (size_t)i * BYTES, BYTES, (unsigned)(500 + i)));
        printf("the busy one's messages took %.3f s\n", MPI_Wtime() - begin);
    } else if (rank == 1) {
        for (int i = 0; i < COUNT; i++) {
            fill(buf + (size_t)i * BYTES, BYTES, (unsigned)(500 + i));
            MPI_Isend(buf + (size_t)i * BYTES, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, &req[i]);
        }
        while (MPI_Wtime() - begin < 0.1) /* computes */
            ;
        MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE);
    } else if (rank == 2) {
        while (MPI_Wtime() - begin < 0.001)
            ;
        for (int i = 0; i < 3; i++)
            MPI_Send(buf, 1, MPI_BYTE, 0, COUNT + 1, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++) {
            fill(buf, BYTES, (unsigned)i);
            MPI_Send(buf, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD);
        }
    }
    free(buf);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "sizes";

    begin(&argc, &argv);
    if (!strcmp(what, "sizes"))
        try_sizes(argc > 2 ? atoi(argv[2]) : 4);
    else if (!strcmp(what, "many"))
        to_one(argc > 2 ? atoi(argv[2]) : 4, argc > 3 ? atoi(argv[3]) : 300001);
    else if (!strcmp(what, "all"))
        each_to_each(argc > 2 ? atoi(argv[2]) : 4, argc > 3 ? atoi(argv[3]) : 300001);
    else if (!strcmp(what, "busy"))
        busy();
    else
        CHECK(!"known");
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank)
        puts("all is right");
    MPI_Finalize();
    return 0;
}
