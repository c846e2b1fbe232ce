/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attached buffers: of the process, of a communicator, of a session, and the buffer used by a buffered send; automatic
 * buffers; flushing and detaching, which wait for the messages in the buffer and for no others.
 */
#include "mt.h"

#include <pthread.h>

enum { N = 100000 }; /* too large to leave before received */

static char data[N], got[N];

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/* The three levels behind one interface; large: the functions with large counts. */
enum level { PROCESS, COMMUNICATOR, SESSION };
static struct {
    MPI_Comm comm;
    MPI_Session session;
} at;

static int attach(enum level l, void *buf, long bytes, int large)
{
    int n = (int)bytes;
    switch (l) {
    case PROCESS:
        return large ? MPI_Buffer_attach_c(buf, bytes) : MPI_Buffer_attach(buf, n);
    case COMMUNICATOR:
        return large ? MPI_Comm_attach_buffer_c(at.comm, buf, bytes) : MPI_Comm_attach_buffer(at.comm, buf, n);
    default:
        return large ? MPI_Session_attach_buffer_c(at.session, buf, bytes)
                     : MPI_Session_attach_buffer(at.session, buf, n);
    }
}

static int detach(enum level l, void *buf, long *bytes, int large)
{
    MPI_Count wide = -1;
    int n = -1, code;
    if (l == PROCESS)
        code = large ? MPI_Buffer_detach_c(buf, &wide) : MPI_Buffer_detach(buf, &n);
    else if (l == COMMUNICATOR)
        code = large ? MPI_Comm_detach_buffer_c(at.comm, buf, &wide) : MPI_Comm_detach_buffer(at.comm, buf, &n);
    else
        code = large ? MPI_Session_detach_buffer_c(at.session, buf, &wide)
                     : MPI_Session_detach_buffer(at.session, buf, &n);
    *bytes = large ? wide : n;
    return code;
}

static int flush(enum level l)
{
    return l == PROCESS        ? MPI_Buffer_flush()
           : l == COMMUNICATOR ? MPI_Comm_flush_buffer(at.comm)
                               : MPI_Session_flush_buffer(at.session);
}

static int iflush(enum level l, MPI_Request *q)
{
    return l == PROCESS        ? MPI_Buffer_iflush(q)
           : l == COMMUNICATOR ? MPI_Comm_iflush_buffer(at.comm, q)
                               : MPI_Session_iflush_buffer(at.session, q);
}

/*
 * True if a send now uses this level's buffer. That buffer must have room, and all other attached buffers must have
 * none.
 */
static int takes(MPI_Comm c, int n)
{
    int me;
    MPI_Comm_rank(c, &me);
    int code = MPI_Bsend(data, n, MPI_CHAR, me, 9, c);
    if (code == MPI_SUCCESS)
        MPI_Recv(got, n, MPI_CHAR, me, 9, c, MPI_STATUS_IGNORE);
    else
        EQ(class_of(code), MPI_ERR_BUFFER);
    return code == MPI_SUCCESS;
}

/*
 * Detaching returns the attached buffer; a second buffer is refused; without a buffer, a buffer of no bytes is
 * returned.
 */
static void attaching(enum level l, int large)
{
    static char space[2 * MPI_BSEND_OVERHEAD + 10];
    void *p = &p;
    long n;
    EQ(detach(l, &p, &n, large), MPI_SUCCESS);
    CHECK(!p && n == 0);
    CHECK(!takes(at.comm, 1));
    EQ(attach(l, space, sizeof(space), large), MPI_SUCCESS);
    CHECK(takes(at.comm, 10));
    CHECK(!takes(at.comm, sizeof(space)));
    EQ(class_of(attach(l, space, sizeof(space), large)), MPI_ERR_BUFFER);
    EQ(class_of(attach(l, MPI_BUFFER_AUTOMATIC, 0, large)), MPI_ERR_BUFFER);
    EQ(flush(l), MPI_SUCCESS);
    EQ(detach(l, &p, &n, large), MPI_SUCCESS);
    CHECK(p == space && n == sizeof(space));
    CHECK(!takes(at.comm, 1));
    /* an automatic one has no size, and room for everything */
    EQ(attach(l, MPI_BUFFER_AUTOMATIC, -5, large), MPI_SUCCESS);
    CHECK(takes(at.comm, 1) && takes(at.comm, N));
    EQ(detach(l, &p, &n, large), MPI_SUCCESS);
    CHECK(p == MPI_BUFFER_AUTOMATIC && n == 0);
    CHECK(!takes(at.comm, 1));
}

/*
 * The communicator's own comes before its session's, and that before the process's. Other communicators are not
 * affected.
 */
static void precedence(MPI_Comm of_world)
{
    static char small[3][3 * MPI_BSEND_OVERHEAD + 1000];
    void *p;
    long n;
    for (int l = PROCESS; l <= SESSION; l++)
        attach(l, small[l], MPI_BSEND_OVERHEAD, 0); /* a buffer without room for a message of 500 bytes */
    CHECK(!takes(at.comm, 500) && !takes(of_world, 500));
    detach(COMMUNICATOR, &p, &n, 0);
    attach(COMMUNICATOR, small[0], sizeof(small[0]), 0);
    CHECK(takes(at.comm, 500) && !takes(of_world, 500));
    detach(COMMUNICATOR, &p, &n, 0);
    CHECK(!takes(at.comm, 500));
    detach(SESSION, &p, &n, 0);
    attach(SESSION, small[1], sizeof(small[1]), 0);
    CHECK(takes(at.comm, 500) && !takes(of_world, 500));
    detach(SESSION, &p, &n, 0);
    CHECK(!takes(at.comm, 500));
    detach(PROCESS, &p, &n, 0);
    CHECK(p == small[PROCESS]);
    attach(PROCESS, small[2], sizeof(small[2]), 0);
    CHECK(takes(at.comm, 500) && takes(of_world, 500));
    detach(PROCESS, &p, &n, 0);
}

/* Communicators and groups that come from the session's, by whatever way, have its buffer, and none of the
 * communicator's. */
static void derived(void)
{
    static char space[2 * MPI_BSEND_OVERHEAD + 1000];
    MPI_Comm c[6], inter;
    MPI_Group g, one, both;
    void *p;
    long n;
    int me, first = 0;
    MPI_Comm_rank(at.comm, &me);
    MPI_Comm_dup(at.comm, &c[0]);
    MPI_Comm_split(at.comm, me, 0, &c[1]);
    MPI_Comm_split_type(at.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c[2]);
    MPI_Comm_group(c[1], &g);
    MPI_Group_incl(g, 1, &first, &one);
    MPI_Group_union(one, g, &both);
    MPI_Comm_create_from_group(both, "derived", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c[3]);
    MPI_Comm_create_group(at.comm, one, 5, &c[4]);
    MPI_Cart_create(at.comm, 1, &size, &first, 0, &c[5]);
    attach(COMMUNICATOR, space, sizeof(space), 0);
    for (int i = 0; i < 6; i++)
        CHECK(!takes(c[i], 500));
    detach(COMMUNICATOR, &p, &n, 0);
    attach(SESSION, space, sizeof(space), 0);
    for (int i = 0; i < 6; i++)
        CHECK(takes(c[i], 500));
    /* between two groups, too */
    if (size > 1) {
        MPI_Comm half, back;
        MPI_Comm_split(at.comm, me % 2, 0, &half);
        MPI_Intercomm_create(half, 0, at.comm, 1 - me % 2, 3, &inter);
        MPI_Comm_free(&half);
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        MPI_Request q;
        int x = -1, peers, mine;
        MPI_Comm_remote_size(inter, &peers);
        MPI_Comm_rank(inter, &mine);
        if (mine < peers) {
            MPI_Irecv(&x, 1, MPI_INT, mine, 1, inter, &q);
            EQ(MPI_Bsend(&me, 1, MPI_INT, mine, 1, inter), MPI_SUCCESS);
            MPI_Wait(&q, MPI_STATUS_IGNORE);
            EQ(x, mine * 2 + 1 - me % 2);
        }
        MPI_Intercomm_merge(inter, 0, &back);
        CHECK(takes(back, 500));
        MPI_Comm_free(&back);
        MPI_Comm_free(&inter);
    }
    detach(SESSION, &p, &n, 0);
    CHECK(!takes(c[0], 1));
    for (int i = 0; i < 6; i++)
        MPI_Comm_free(&c[i]);
    MPI_Group_free(&g);
    MPI_Group_free(&one);
    MPI_Group_free(&both);
}

/* A message too large to leave by itself stays in the buffer until received; a flush waits for it. */
static void flushing(enum level l, int automatic)
{
    static char space[3 * (N + MPI_BSEND_OVERHEAD)];
    MPI_Request q, r[2];
    MPI_Status st;
    void *p;
    long n;
    int flag, me;
    MPI_Comm_rank(at.comm, &me);
    /* no buffer, no messages: complete at once */
    EQ(iflush(l, &q), MPI_SUCCESS);
    MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
    CHECK(flag && q == MPI_REQUEST_NULL);
    EQ(flush(l), MPI_SUCCESS);

    attach(l, automatic ? MPI_BUFFER_AUTOMATIC : space, sizeof(space), 0);
    memset(data, me + 1, N);
    MPI_Bsend(data, N, MPI_CHAR, me, 1, at.comm);
    MPI_Bsend(data, N, MPI_CHAR, me, 2, at.comm);
    memset(data, 0, N);
    EQ(iflush(l, &q), MPI_SUCCESS);
    for (int i = 0; i < 20; i++) {
        MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
    }
    CHECK(class_of(MPI_Cancel(&q)) == MPI_ERR_REQUEST);
    /* a later message is not waited for */
    MPI_Bsend(data, 1000, MPI_CHAR, me, 4, at.comm);
    MPI_Ibsend(data, N, MPI_CHAR, me, 3, at.comm, &r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Recv(got, N, MPI_CHAR, me, 2, at.comm, MPI_STATUS_IGNORE);
    MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Recv(got, N, MPI_CHAR, me, 1, at.comm, MPI_STATUS_IGNORE);
    CHECK(got[0] == me + 1 && got[N - 1] == me + 1);
    memset(&st, 77, sizeof(st));
    MPI_Wait(&q, &st);
    EQ(q, MPI_REQUEST_NULL);
    EQ(st.MPI_SOURCE, MPI_ANY_SOURCE);
    EQ(st.MPI_TAG, MPI_ANY_TAG);
    /* several flushes at once, one of them without a wait */
    EQ(iflush(l, &r[0]), MPI_SUCCESS);
    EQ(iflush(l, &r[1]), MPI_SUCCESS);
    MPI_Request_free(&r[0]);
    MPI_Request_get_status(r[1], &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Recv(got, 1000, MPI_CHAR, me, 4, at.comm, MPI_STATUS_IGNORE);
    MPI_Irecv(got, N, MPI_CHAR, me, 3, at.comm, &q);
    EQ(flush(l), MPI_SUCCESS);
    MPI_Request_get_status(r[1], &flag, &st);
    CHECK(flag && st.MPI_SOURCE == MPI_ANY_SOURCE);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    /* detaching waits as well */
    MPI_Bsend(data, N, MPI_CHAR, me, 1, at.comm);
    MPI_Irecv(got, N, MPI_CHAR, me, 1, at.comm, &q);
    detach(l, &p, &n, 0);
    CHECK(p == (automatic ? MPI_BUFFER_AUTOMATIC : space));
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

/* Flushed memory is no longer read: the program may write there again, although the buffer stays attached. */
static void reuse(enum level l)
{
    static char space[2 * (N + MPI_BSEND_OVERHEAD)];
    MPI_Request q;
    void *p;
    long bytes;
    int me, n;
    MPI_Comm_rank(at.comm, &me);
    MPI_Comm_size(at.comm, &n);
    attach(l, space, sizeof(space), 0);
    for (int round = 0; round < 5; round++) {
        memset(data, me + round, N);
        memset(got, 0, N);
        if (round % 2) /* it waits until the other asks for the message, or not */
            MPI_Irecv(got, N, MPI_CHAR, (me + n - 1) % n, 6, at.comm, &q);
        MPI_Bsend(data, N, MPI_CHAR, (me + 1) % n, 6, at.comm);
        if (round % 2 == 0)
            MPI_Irecv(got, N, MPI_CHAR, (me + n - 1) % n, 6, at.comm, &q);
        EQ(flush(l), MPI_SUCCESS);
        memset(space, 0x5a, sizeof(space));
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++)
            EQ(got[i], (char)((me + n - 1) % n + round));
    }
    detach(l, &p, &bytes, 0);
}

/* All ranks send first, round a ring, then receive: many messages under way in one automatic buffer. */
static void ring(enum level l)
{
    enum { MANY = 30 };
    int me, n;
    void *p;
    long bytes;
    MPI_Comm_rank(at.comm, &me);
    MPI_Comm_size(at.comm, &n);
    attach(l, MPI_BUFFER_AUTOMATIC, 0, 1);
    for (int i = 0; i < MANY; i++) {
        int len = i % 3 ? 10 + i : N - i;
        memset(data, me + i, (size_t)len);
        EQ(MPI_Bsend(data, len, MPI_CHAR, (me + 1) % n, i, at.comm), MPI_SUCCESS);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        int len = i % 3 ? 10 + i : N - i, from = (me + n - 1) % n;
        MPI_Recv(got, N, MPI_CHAR, from, i, at.comm, MPI_STATUS_IGNORE);
        CHECK(got[0] == (char)(from + i) && got[len - 1] == (char)(from + i));
    }
    detach(l, &p, &bytes, 1);
}

/* A communicator freed or disconnected with its buffer: messages in the buffer still arrive. */
static void freeing(int disconnect)
{
    static char space[N + MPI_BSEND_OVERHEAD];
    MPI_Comm c;
    MPI_Request q;
    int me;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_rank(MPI_COMM_SELF, &me);
    EQ(MPI_Comm_attach_buffer(c, space, sizeof(space)), MPI_SUCCESS);
    memset(data, 55, N);
    MPI_Irecv(got, N, MPI_CHAR, me, 1, c, &q);
    MPI_Bsend(data, N, MPI_CHAR, me, 1, c);
    memset(got, 0, 1);
    if (disconnect) {
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&c);
        memset(space, 0, sizeof(space)); /* the program's again */
    } else {
        MPI_Comm_free(&c);
        memset(space, 0, sizeof(space));
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    CHECK(got[1] == 55 && got[N - 1] == 55);
}

/* Threads that send in one buffer, flush it, and detach and attach automatic buffers meanwhile. */
static void *sends(void *arg)
{
    int me, tag = (int)(long)arg, x, y;
    MPI_Comm_rank(at.comm, &me);
    for (int i = 0; i < 200; i++) {
        x = tag * 1000 + i;
        MPI_Bsend(&x, 1, MPI_INT, me, tag, at.comm);
        if (i % 10 == 0)
            MPI_Comm_flush_buffer(at.comm);
        MPI_Recv(&y, 1, MPI_INT, me, tag, at.comm, MPI_STATUS_IGNORE);
        EQ(x, y);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[3];
    void *p;
    long n;
    attach(COMMUNICATOR, MPI_BUFFER_AUTOMATIC, 0, 0);
    for (long i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, sends, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    detach(COMMUNICATOR, &p, &n, 0);
}

static void errors(void)
{
    void *p;
    int n;
    MPI_Comm none = MPI_COMM_NULL;
    MPI_Request q;
    EQ(class_of(MPI_Comm_attach_buffer(none, data, 5)), MPI_ERR_COMM);
    EQ(class_of(MPI_Comm_detach_buffer(none, &p, &n)), MPI_ERR_COMM);
    EQ(class_of(MPI_Comm_flush_buffer(none)), MPI_ERR_COMM);
    EQ(class_of(MPI_Comm_iflush_buffer(none, &q)), MPI_ERR_COMM);
    EQ(class_of(MPI_Session_attach_buffer(MPI_SESSION_NULL, data, 5)), MPI_ERR_SESSION);
    EQ(class_of(MPI_Session_flush_buffer(MPI_SESSION_NULL)), MPI_ERR_SESSION);
    EQ(class_of(MPI_Buffer_attach(data, -1)), MPI_ERR_ARG);
    EQ(class_of(MPI_Comm_attach_buffer(at.comm, NULL, 10)), MPI_ERR_BUFFER);
    EQ(class_of(MPI_Session_detach_buffer(at.session, NULL, &n)), MPI_ERR_ARG);
    EQ(class_of(MPI_Comm_detach_buffer(at.comm, &p, NULL)), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Comm of_world;
    MPI_Group g;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &at.session);
    MPI_Group_from_session_pset(at.session, "mpi://WORLD", &g);
    MPI_Comm_create_from_group(g, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &at.comm);
    MPI_Group_free(&g);
    MPI_Comm_dup(MPI_COMM_WORLD, &of_world);
    for (int l = PROCESS; l <= SESSION; l++) {
        attaching(l, 0);
        attaching(l, 1);
        flushing(l, 0);
        flushing(l, 1);
        reuse(l);
        ring(l);
    }
    precedence(of_world);
    derived();
    freeing(0);
    freeing(1);
    threads();
    errors();
    MPI_Comm_free(&of_world);
    MPI_Comm_disconnect(&at.comm);
    /* a session that ends with a buffer detaches the buffer */
    EQ(MPI_Session_attach_buffer(at.session, data, N), MPI_SUCCESS);
    MPI_Session_finalize(&at.session);
    return mt_end();
}
