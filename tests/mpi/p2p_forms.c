/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every kind of send meets every kind of receive: each rank sends to the next around the ring, with data in one piece
 * and data with gaps. With LARGE the functions are those with large counts (p2p_forms_c.c).
 */
#include "mt.h"

#include <stdbool.h>

#ifdef LARGE
#define F(name) name##_c
typedef MPI_Count cnt;
#else
#define F(name) name
typedef int cnt;
#endif

enum { TAG = 11, MAX = 70000 };
static const int lengths[] = {0, 1, 300, MAX};

struct message {
    void *buf;
    int n;
    MPI_Datatype t;
    int peer;
};

/* ---- kinds of sends: blocking ones end what they begin; persistent ones are freed by the caller ---- */

#define BLOCKING(mode)                                                                                                 \
    static void send_##mode(const struct message *m, MPI_Request *q)                                                   \
    {                                                                                                                  \
        *q = MPI_REQUEST_NULL;                                                                                         \
        F(MPI_##mode)(m->buf, (cnt)m->n, m->t, m->peer, TAG, MPI_COMM_WORLD);                                          \
    }
#define NONBLOCKING(mode)                                                                                              \
    static void send_##mode(const struct message *m, MPI_Request *q)                                                   \
    {                                                                                                                  \
        F(MPI_##mode)(m->buf, (cnt)m->n, m->t, m->peer, TAG, MPI_COMM_WORLD, q);                                       \
    }
#define PERSISTENT(mode)                                                                                               \
    static void send_##mode(const struct message *m, MPI_Request *q)                                                   \
    {                                                                                                                  \
        F(MPI_##mode)(m->buf, (cnt)m->n, m->t, m->peer, TAG, MPI_COMM_WORLD, q);                                       \
        MPI_Start(q);                                                                                                  \
    }
BLOCKING(Send)
BLOCKING(Bsend)
BLOCKING(Ssend)
BLOCKING(Rsend)
NONBLOCKING(Isend)
NONBLOCKING(Ibsend)
NONBLOCKING(Issend)
NONBLOCKING(Irsend)
PERSISTENT(Send_init)
PERSISTENT(Bsend_init)
PERSISTENT(Ssend_init)
PERSISTENT(Rsend_init)

/* `waits`: ends only when the receive has begun; `ready`: may begin only when the receive is there. */
static const struct way_out {
    void (*send)(const struct message *, MPI_Request *);
    bool blocks, waits, ready, persistent;
} ways_out[] = {
    {send_Send, .blocks = true},
    {send_Bsend, .blocks = false},
    {send_Ssend, .blocks = true, .waits = true},
    {send_Rsend, .blocks = true, .ready = true},
    {send_Isend, .blocks = false},
    {send_Ibsend, .blocks = false},
    {send_Issend, .waits = true},
    {send_Irsend, .ready = true},
    {send_Send_init, .persistent = true},
    {send_Bsend_init, .persistent = true},
    {send_Ssend_init, .waits = true, .persistent = true},
    {send_Rsend_init, .ready = true, .persistent = true},
};

/* ---- ways to receive: in two halves, before and after the send ---- */

static void nothing(const struct message *m, MPI_Request *q)
{
    *q = MPI_REQUEST_NULL;
}

static void post_irecv(const struct message *m, MPI_Request *q)
{
    F(MPI_Irecv)(m->buf, (cnt)m->n, m->t, m->peer, TAG, MPI_COMM_WORLD, q);
}

static void post_recv_init(const struct message *m, MPI_Request *q)
{
    F(MPI_Recv_init)(m->buf, (cnt)m->n, m->t, m->peer, TAG, MPI_COMM_WORLD, q);
    MPI_Start(q);
}

static void wait_for_it(const struct message *m, MPI_Request *q, MPI_Status *st)
{
    MPI_Wait(q, st);
    if (*q != MPI_REQUEST_NULL) /* persistent */
        MPI_Request_free(q);
}

static void recv_now(const struct message *m, MPI_Request *q, MPI_Status *st)
{
    F(MPI_Recv)(m->buf, (cnt)m->n, m->t, m->peer, TAG, MPI_COMM_WORLD, st);
}

static void mrecv(const struct message *m, MPI_Request *q, MPI_Status *st)
{
    MPI_Message found;
    MPI_Mprobe(m->peer, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    F(MPI_Mrecv)(m->buf, (cnt)m->n, m->t, &found, st);
    EQ(found, MPI_MESSAGE_NULL);
}

static void imrecv(const struct message *m, MPI_Request *q, MPI_Status *st)
{
    MPI_Message found;
    MPI_Mprobe(m->peer, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    F(MPI_Imrecv)(m->buf, (cnt)m->n, m->t, &found, q);
    MPI_Wait(q, st);
}

static const struct way_in {
    void (*post)(const struct message *, MPI_Request *);
    void (*finish)(const struct message *, MPI_Request *, MPI_Status *);
    bool posted;
} ways_in[] = {
    {nothing, recv_now, false}, {post_irecv, wait_for_it, true}, {post_recv_init, wait_for_it, true},
    {nothing, mrecv, false},    {nothing, imrecv, false},
};

/* ---- a round ---- */

/* Elements of the matrix's first column, or all of a line. */
static int *element(int *buf, int i, bool gaps)
{
    return buf + (gaps ? 2 * i : i);
}

static void arrived(int *buf, int n, bool gaps, int left, const MPI_Status *st)
{
    int got;
    MPI_Get_count(st, MPI_INT, &got);
    EQ(got, n);
    EQ(st->MPI_SOURCE, left);
    EQ(st->MPI_TAG, TAG);
    for (int i = 0; i < n; i++)
        EQ(*element(buf, i, gaps), 1000 * left + i);
    for (int i = 0; gaps && i < n; i++)
        EQ(buf[2 * i + 1], -1);
}

static void round_trip(const struct way_out *out, const struct way_in *in, int n, bool gaps, MPI_Datatype column)
{
    static int from[2 * MAX], to[2 * MAX];
    int right = (rank + 1) % size, left = (rank + size - 1) % size, done = 0;
    struct message m = {from, n, gaps ? column : MPI_INT, right}, r = {to, n, gaps ? column : MPI_INT, left};
    MPI_Request q, p;
    MPI_Status st;
    memset(to, -1, sizeof(to));
    for (int i = 0; i < n; i++)
        *element(from, i, gaps) = 1000 * rank + i;
    in->post(&r, &p);
    MPI_Barrier(MPI_COMM_WORLD);
    out->send(&m, &q);
    if (out->waits && !in->posted) { /* nobody receives before the barrier */
        MPI_Request_get_status(q, &done, MPI_STATUS_IGNORE);
        CHECK(!done);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    in->finish(&r, &p, &st);
    arrived(to, n, gaps, left, &st);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    EQ(q == MPI_REQUEST_NULL, !out->persistent);
    if (out->persistent)
        MPI_Request_free(&q);
}

static void all_ways(int n, bool gaps, MPI_Datatype column)
{
    for (size_t o = 0; o < sizeof(ways_out) / sizeof(ways_out[0]); o++)
        for (size_t i = 0; i < sizeof(ways_in) / sizeof(ways_in[0]); i++)
            if (ways_in[i].posted || (!ways_out[o].blocks && !ways_out[o].ready))
                round_trip(&ways_out[o], &ways_in[i], n, gaps, column);
}

/* Both at once. */
static void exchange(int n, MPI_Datatype column)
{
    static int from[2 * MAX], to[2 * MAX];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Status st;
    memset(to, -1, sizeof(to));
    for (int i = 0; i < n; i++)
        from[2 * i] = to[2 * i] = 1000 * rank + i;
    F(MPI_Sendrecv_replace)(to, (cnt)n, column, right, TAG, left, TAG, MPI_COMM_WORLD, &st);
    arrived(to, n, true, left, &st);
    memset(to, -1, sizeof(to));
    F(MPI_Sendrecv)(from, (cnt)n, column, right, TAG, to, (cnt)n, MPI_INT, left, TAG, MPI_COMM_WORLD, &st);
    arrived(to, n, false, left, &st);
}

int main(int argc, char **argv)
{
    MPI_Datatype column;
    mt_begin(&argc, &argv);
    cnt room = 2 * (MAX * sizeof(int) + MPI_BSEND_OVERHEAD), detached;
    char *buffer = malloc((size_t)room), *back;
    F(MPI_Buffer_attach)(buffer, room);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &column);
    MPI_Type_commit(&column);
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        all_ways(lengths[k], false, column);
        all_ways(lengths[k], true, column);
        exchange(lengths[k], column);
    }
    MPI_Type_free(&column);
    F(MPI_Buffer_detach)(&back, &detached);
    CHECK(back == buffer && detached == room);
    free(buffer);
    return mt_end();
}
