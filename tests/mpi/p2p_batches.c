/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in equal batches. Of large messages, the last bytes of a batch go through a bounce buffer, so the sends end
 * early, and its last message has an eager prefix; short messages go eagerly first, and are read in later batches.
 * Ranks send in pairs, both ways or one way, and write over their buffers as soon as they may. Received data is checked
 * byte by byte: in order, late, cut off, with holes at the receiver, and after a batch that is cut short or goes on
 * longer than those before. p2p_batches [BYTES]: of a message, default 150000, a multiple of 10.
 */
#include <stdbool.h>

#include "tests/mpi/p2p.h"

enum { MESSAGES = 8, ROUNDS = 8, TAG = 3 };

struct how {
    const char *what;
    bool late, any, synchronous, cut, holes, probed, one_way, uneven;
};

static const struct how hows[] = {
    {.what = "at once"},
    {.what = "one way", .one_way = true},
    {.what = "late", .late = true},
    {.what = "from any rank, any tag", .any = true, .one_way = true},
    {.what = "synchronous", .synchronous = true},
    {.what = "cut off", .cut = true},
    {.what = "with holes", .holes = true, .late = true},
    {.what = "probed", .probed = true, .one_way = true},
    {.what = "uneven", .uneven = true},
};

static int len = 150000;
static bool first; /* of its pair, the sender if only one sends */
static unsigned char *out[MESSAGES + 1], *in[MESSAGES + 1];

static int messages_of(const struct how *h, int round)
{
    return !h->uneven || round % 5 < 4 ? MESSAGES : round % 2 ? MESSAGES + 1 : MESSAGES / 2;
}

static int room_of(const struct how *h, int i)
{
    const int rooms[] = {1, 100, len / 7, len - 1, len - len / 7, len / 2};

    return h->cut ? rooms[i % 6] : len;
}

static void receive_probed(int peer, MPI_Request *req, int num)
{
    for (int i = 0; i < num; i++) {
        MPI_Message m;
        MPI_Status st;
        int n;

        MPI_Mprobe(peer, TAG, MPI_COMM_WORLD, &m, &st);
        MPI_Get_count(&st, MPI_BYTE, &n);
        CHECK(n == len);
        MPI_Imrecv(in[i], len, MPI_BYTE, &m, &req[i]);
    }
}

static void receive(const struct how *h, int peer, MPI_Datatype holed, MPI_Request *req, int num)
{
    int from = h->any ? MPI_ANY_SOURCE : peer, tag = h->any ? MPI_ANY_TAG : TAG;

    for (int i = 0; i < num; i++) {
        memset(in[i], 0, 2 * (size_t)len);
        if (!h->probed)
            MPI_Irecv(in[i], h->holes ? len / 10 : room_of(h, i), h->holes ? holed : MPI_BYTE, from, tag,
                      MPI_COMM_WORLD, &req[i]);
    }
    if (h->probed)
        receive_probed(peer, req, num);
}

static int holds_holed(const unsigned char *p, unsigned seed)
{
    for (size_t i = 0; i < (size_t)len; i++)
        if (p[i / 10 * 15 + i % 10] != pattern(i, seed))
            return 0;
    return 1;
}

static void check(const struct how *h, unsigned seed, const MPI_Status *st, int i)
{
    int n, room = room_of(h, i);

    MPI_Get_count(st, MPI_BYTE, &n);
    CHECK(n == room && st->MPI_TAG == TAG);
    CHECK(h->cut ? st->MPI_ERROR == MPI_ERR_TRUNCATE : st->MPI_ERROR == MPI_SUCCESS);
    CHECK(h->holes ? holds_holed(in[i], seed) : holds(in[i], (size_t)room, seed));
    CHECK(h->holes || !in[i][room]);
}

static void send(const struct how *h, int peer, int round, MPI_Request *req, int num)
{
    for (int i = 0; i < num; i++) {
        fill(out[i], (size_t)len, (unsigned)(rank + round * 5 + i));
        (h->synchronous ? MPI_Issend : MPI_Isend)(out[i], len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[i]);
    }
}

static void away(double seconds)
{
    double until = MPI_Wtime() + seconds;

    while (MPI_Wtime() < until)
        ;
}

static void one_round(const struct how *h, int peer, int round, MPI_Datatype holed)
{
    MPI_Request rreq[MESSAGES + 1], sreq[MESSAGES + 1];
    MPI_Status st[MESSAGES + 1];
    int num = messages_of(h, round);
    bool receives = !h->one_way || !first, sends = !h->one_way || first;
    int err;

    for (int i = 0; i <= MESSAGES; i++)
        st[i].MPI_ERROR = MPI_SUCCESS;
    if (receives && !h->late && !h->probed)
        receive(h, peer, holed, rreq, num);
    if (sends)
        send(h, peer, round, sreq, num);
    if (receives && h->late)
        away(2e-5);
    if (receives && (h->late || h->probed))
        receive(h, peer, holed, rreq, num);
    if (sends) {
        CHECK(MPI_Waitall(num, sreq, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        for (int i = 0; i < num; i++)
            memset(out[i], 0xee, (size_t)len);
    }
    if (!receives)
        return;
    err = MPI_Waitall(num, rreq, st);
    CHECK(err == (h->cut ? MPI_ERR_IN_STATUS : MPI_SUCCESS));
    for (int i = 0; i < num; i++) {
        if (err == MPI_SUCCESS)
            st[i].MPI_ERROR = MPI_SUCCESS;
        check(h, (unsigned)(peer + round * 5 + i), &st[i], i);
    }
}

/*
 * The bounce buffers of a communicator may be under way when it is freed, and a request be freed before its send is
 * complete.
 */
static void freed(int peer)
{
    MPI_Request req[MESSAGES];
    MPI_Comm comm;

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < MESSAGES; i++) {
            fill(out[i], (size_t)len, (unsigned)(round + i));
            if (!first)
                MPI_Irecv(in[i], len, MPI_BYTE, peer, TAG, comm, &req[i]);
            else
                MPI_Isend(out[i], len, MPI_BYTE, peer, TAG, comm, &req[i]);
        }
        if (first && round % 2)
            for (int i = 0; i < MESSAGES; i++)
                MPI_Request_free(&req[i]);
        else
            MPI_Waitall(MESSAGES, req, MPI_STATUSES_IGNORE);
        MPI_Comm_free(&comm);
        for (int i = 0; !first && i < MESSAGES; i++)
            CHECK(holds(in[i], (size_t)len, (unsigned)(round + i)));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    MPI_Datatype holed, piece;
    int peer;

    begin(&argc, &argv);
    CHECK(size % 2 == 0);
    len = argc > 1 ? atoi(argv[1]) : len;
    first = rank < size / 2;
    peer = (rank + size / 2) % size;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(10, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, 15, &holed);
    MPI_Type_commit(&holed);
    for (int i = 0; i <= MESSAGES; i++) {
        out[i] = room((size_t)len);
        in[i] = room(2 * (size_t)len);
    }
    for (size_t k = 0; k < sizeof hows / sizeof hows[0]; k++) {
        for (int round = 0; round < ROUNDS; round++)
            one_round(&hows[k], peer, round, holed);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    freed(peer);
    MPI_Type_free(&piece);
    MPI_Type_free(&holed);
    for (int i = 0; i <= MESSAGES; i++) {
        free(out[i]);
        free(in[i]);
    }
    MPI_Finalize();
    return 0;
}
