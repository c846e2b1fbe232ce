/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point communication (MPI-3.1 chapter 3), all but completion and persistent requests. */
#include "libmrmpi/api/api.h"

#include <stdlib.h>
#include <string.h>

/* The checks that all sends and receives share. */
static inline enum mr_err send_args(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                                    struct mr_comm **c, struct mr_type **t)
{
    enum mr_err err;
    if (unlikely((err = api_comm(comm, c)) || (err = api_type(datatype, t)) || (err = api_buffer(buf, count, *t))))
        return err;
    return api_dest(*c, dest, tag);
}

static inline enum mr_err recv_args(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                                    struct mr_comm **c, struct mr_type **t)
{
    enum mr_err err;
    if (unlikely((err = api_comm(comm, c)) || (err = api_type(datatype, t)) || (err = api_buffer(buf, count, *t))))
        return err;
    return api_source(*c, source, tag);
}

#define SEND(name, mode)                                                                                               \
    MPI_FN(int, name, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm))           \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        struct mr_type *t;                                                                                             \
        API_ENTER();                                                                                                   \
        CHECK(send_args(buf, count, datatype, dest, tag, comm, &c, &t));                                               \
        err = mr_send(buf, (size_t)count, t, dest, tag, c, c->context, mode);                                          \
        API_LEAVE(c);                                                                                                  \
    }

#define ISEND(name, mode)                                                                                              \
    MPI_FN(                                                                                                            \
        int, name,                                                                                                     \
        (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request))   \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        struct mr_type *t;                                                                                             \
        struct mr_request *r;                                                                                          \
        API_ENTER();                                                                                                   \
        NOT_NULL(request);                                                                                             \
        CHECK(send_args(buf, count, datatype, dest, tag, comm, &c, &t));                                               \
        CHECK(mr_isend(buf, (size_t)count, t, dest, tag, c, c->context, mode, &r));                                    \
        err = api_new_request(r, request);                                                                             \
        API_LEAVE(c);                                                                                                  \
    }

SEND(Send, MR_SEND_STANDARD)
SEND(Bsend, MR_SEND_BUFFERED)
SEND(Ssend, MR_SEND_SYNCHRONOUS)
SEND(Rsend, MR_SEND_READY)
ISEND(Isend, MR_SEND_STANDARD)
ISEND(Ibsend, MR_SEND_BUFFERED)
ISEND(Issend, MR_SEND_SYNCHRONOUS)
ISEND(Irsend, MR_SEND_READY)

MPI_FN(int, Recv, (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    struct mr_status st;
    API_ENTER();
    CHECK(recv_args(buf, count, datatype, source, tag, comm, &c, &t));
    st = (struct mr_status){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    err = mr_recv(buf, (size_t)count, t, source, tag, c, c->context, &st);
    api_status(status, &st);
    API_LEAVE(c);
}

MPI_FN(int, Irecv,
       (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(request);
    CHECK(recv_args(buf, count, datatype, source, tag, comm, &c, &t));
    CHECK(mr_irecv(buf, (size_t)count, t, source, tag, c, c->context, &r));
    err = api_new_request(r, request);
    API_LEAVE(c);
}

/* A send and a receive at the same time; the receive's status and the first error. */
static enum mr_err both(const void *sbuf, size_t scount, struct mr_type *st, int dest, int stag, void *rbuf,
                        size_t rcount, struct mr_type *rt, int source, int rtag, struct mr_comm *c,
                        struct mr_status *status)
{
    struct mr_request *in, *out;
    enum mr_err err = mr_irecv(rbuf, rcount, rt, source, rtag, c, c->context, &in);
    if (err)
        return err;
    err = mr_isend(sbuf, scount, st, dest, stag, c, c->context, MR_SEND_STANDARD, &out);
    if (err) {
        mr_cancel(in);
        mr_request_put(in);
        return err;
    }
    mr_wait(in);
    mr_wait(out);
    *status = in->status;
    err = in->status.error ? in->status.error : out->status.error;
    mr_request_put(in);
    mr_request_put(out);
    return err;
}

MPI_FN(int, Sendrecv,
       (const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount,
        MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_type *st, *rt;
    struct mr_status s;
    API_ENTER();
    CHECK(send_args(sendbuf, sendcount, sendtype, dest, sendtag, comm, &c, &st));
    CHECK(recv_args(recvbuf, recvcount, recvtype, source, recvtag, comm, &c, &rt));
    s = (struct mr_status){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    err = both(sendbuf, (size_t)sendcount, st, dest, sendtag, recvbuf, (size_t)recvcount, rt, source, recvtag, c, &s);
    api_status(status, &s);
    API_LEAVE(c);
}

MPI_FN(int, Sendrecv_replace,
       (void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm,
        MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    struct mr_status s;
    char small[1024], *copy = NULL;
    API_ENTER();
    CHECK(send_args(buf, count, datatype, dest, sendtag, comm, &c, &t));
    CHECK(api_source(c, source, recvtag));
    size_t bytes = (size_t)count * t->size;
    copy = bytes <= sizeof(small) ? small : malloc(bytes);
    if (!copy)
        CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for a copy of %zu bytes", bytes));
    mr_type_pack(buf, (size_t)count, t, 0, copy, bytes);
    s = (struct mr_status){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    err = both(copy, bytes, mr_type_byte, dest, sendtag, buf, (size_t)count, t, source, recvtag, c, &s);
    if (copy != small)
        free(copy);
    api_status(status, &s);
    API_LEAVE(c);
}

/* ---- probing ---- */

/* A probe of MPI_PROC_NULL finds an empty message at once. */
static const struct mr_status no_proc = {.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};

MPI_FN(int, Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_status st = no_proc;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_source(c, source, tag));
    if (source != MPI_PROC_NULL)
        CHECK(mr_probe(source, tag, c, c->context, &st));
    api_status(status, &st);
    API_LEAVE(c);
}

MPI_FN(int, Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_status st = no_proc;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(flag);
    CHECK(api_source(c, source, tag));
    *flag = source == MPI_PROC_NULL || mr_iprobe(source, tag, c, c->context, &st);
    if (*flag)
        api_status(status, &st);
    API_LEAVE(c);
}

static enum mr_err new_message(struct mr_message *m, MPI_Message *h)
{
    *h = api_handle_new(ABI_MESSAGE, m);
    if (*h)
        return MR_SUCCESS;
    *h = MPI_MESSAGE_NULL;
    return mr_fail(MR_ERR_NO_MEM, "no memory for a message handle");
}

MPI_FN(int, Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_status st = no_proc;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(message);
    CHECK(api_source(c, source, tag));
    *message = MPI_MESSAGE_NO_PROC;
    if (source != MPI_PROC_NULL) {
        struct mr_message *m;
        CHECK(mr_mprobe(source, tag, c, c->context, &m, &st));
        CHECK(new_message(m, message));
    }
    api_status(status, &st);
    API_LEAVE(c);
}

MPI_FN(int, Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_status st = no_proc;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(flag);
    NOT_NULL(message);
    CHECK(api_source(c, source, tag));
    *flag = 1;
    *message = MPI_MESSAGE_NO_PROC;
    if (source != MPI_PROC_NULL) {
        struct mr_message *m = mr_improbe(source, tag, c, c->context, &st);
        *flag = m != NULL;
        *message = MPI_MESSAGE_NULL;
        if (m)
            CHECK(new_message(m, message));
    }
    if (*flag)
        api_status(status, &st);
    API_LEAVE(c);
}

static enum mr_err mrecv_args(const void *buf, int count, MPI_Datatype datatype, const MPI_Message *message,
                              struct mr_type **t, struct mr_message **m)
{
    enum mr_err err;
    if ((err = api_type(datatype, t)) || (err = api_buffer(buf, count, *t)))
        return err;
    *m = NULL;
    if (*message != MPI_MESSAGE_NO_PROC && !(*m = api_find(ABI_MESSAGE, *message)))
        return api_bad_handle(MR_ERR_REQUEST, "message", *message, MPI_MESSAGE_NULL);
    return MR_SUCCESS;
}

/* The request of a matched receive; from MPI_MESSAGE_NO_PROC it is a receive from MPI_PROC_NULL. */
static enum mr_err start_mrecv(void *buf, int count, struct mr_type *t, MPI_Message *message, struct mr_message *m,
                               struct mr_request **r)
{
    if (m)
        api_handle_free(ABI_MESSAGE, *message);
    *message = MPI_MESSAGE_NULL;
    if (m)
        return mr_imrecv(buf, (size_t)count, t, m, r);
    return mr_irecv(buf, (size_t)count, t, MPI_PROC_NULL, 0, mr_comm_world, mr_comm_world->context, r);
}

MPI_FN(int, Mrecv, (void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status))
{
    struct mr_type *t;
    struct mr_message *m;
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(message);
    CHECK(mrecv_args(buf, count, datatype, message, &t, &m));
    CHECK(start_mrecv(buf, count, t, message, m, &r));
    mr_wait(r);
    api_status(status, &r->status);
    err = r->status.error;
    mr_request_put(r);
    API_LEAVE(NULL);
}

MPI_FN(int, Imrecv, (void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request))
{
    struct mr_type *t;
    struct mr_message *m;
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(message);
    NOT_NULL(request);
    CHECK(mrecv_args(buf, count, datatype, message, &t, &m));
    CHECK(start_mrecv(buf, count, t, message, m, &r));
    err = api_new_request(r, request);
    API_LEAVE(NULL);
}

/* ---- buffered sends ---- */

MPI_FN(int, Buffer_attach, (void *buffer, int size))
{
    API_ENTER();
    if (size < 0)
        CHECK(mr_fail(MR_ERR_ARG, "size is %d", size));
    err = mr_buffer_attach(buffer, (size_t)size);
    API_LEAVE(NULL);
}

MPI_FN(int, Buffer_detach, (void *buffer_addr, int *size))
{
    API_ENTER();
    NOT_NULL(buffer_addr);
    NOT_NULL(size);
    void *buf = NULL;
    size_t bytes = 0;
    CHECK(mr_buffer_detach(&buf, &bytes));
    memcpy(buffer_addr, &buf, sizeof(buf));
    *size = (int)bytes;
    API_LEAVE(NULL);
}
