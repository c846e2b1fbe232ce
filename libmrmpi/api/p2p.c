/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point communication (MPI-4.0 chapter 3) with counts: this file is compiled twice (api.h). Probing is in
 * probe.c, starting and completing in request.c.
 */
#include "libmrmpi/api/done.h"
#include "libmrmpi/api/request.h"
#include "libmrmpi/p2p/p2p.h"

#include <stdlib.h>
#include <string.h>

/* An empty message needs no type: programs written for MPICH pass the null handle. */
static inline enum mr_err message_type(api_count count, MPI_Datatype datatype, struct mr_type **t, const char *name)
{
    if (likely((*t = abi_basic(datatype)) != NULL))
        return MR_SUCCESS;
    if (datatype != MPI_DATATYPE_NULL || count)
        return api_type_named(datatype, t, name);
    *t = mr_type_byte;
    return MR_SUCCESS;
}

/* The common checks of all sends and receives: data, and partners. */
#define message_args(buf, count, datatype, comm, c, t)                                                                 \
    message_args_named(buf, count, datatype, comm, c, t, #buf, #count, #datatype)
static inline __attribute__((always_inline)) enum mr_err
message_args_named(const void *buf, api_count count, MPI_Datatype datatype, MPI_Comm comm, struct mr_comm **c,
                   struct mr_type **t, const char *name, const char *count_name, const char *type_name)
{
    enum mr_err err;
    if (unlikely((err = api_comm(comm, c)) || (err = message_type(count, datatype, t, type_name))))
        return err;
    return api_buffer_named(buf, count, *t, name, count_name, type_name);
}

#define SEND_ARGS(buf, count, datatype, dest, tag, comm, c, t)                                                         \
    CHECK(message_args(buf, count, datatype, comm, c, t));                                                             \
    CHECK(api_dest(*(c), dest, tag))

#define RECV_ARGS(buf, count, datatype, source, tag, comm, c, t)                                                       \
    CHECK(message_args(buf, count, datatype, comm, c, t));                                                             \
    CHECK(api_source(*(c), source, tag))

#define SEND(name, mode)                                                                                               \
    MPI_SHORT_FN(name, (const void *buf, api_count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),    \
                 (buf, count, datatype, dest, tag, comm))                                                              \
    {                                                                                                                  \
        enum mr_err err;                                                                                               \
        struct mr_comm *c;                                                                                             \
        struct mr_type *t;                                                                                             \
        SEND_ARGS(buf, count, datatype, dest, tag, comm, &c, &t);                                                      \
        err = (mode) == MR_SEND_BUFFERED ? mr_bsend(buf, (size_t)count, t, dest, tag, c, c->context)                   \
                                         : mr_send(buf, (size_t)count, t, dest, tag, c, c->context, mode);             \
    out:                                                                                                               \
        return err;                                                                                                    \
    }

#define ISEND(name, mode)                                                                                              \
    MPI_SHORT_FN(name,                                                                                                 \
                 (const void *buf, api_count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,           \
                  MPI_Request *request),                                                                               \
                 (buf, count, datatype, dest, tag, comm, request))                                                     \
    {                                                                                                                  \
        enum mr_err err;                                                                                               \
        struct mr_comm *c;                                                                                             \
        struct mr_type *t;                                                                                             \
        struct mr_request *r;                                                                                          \
        uint64_t id;                                                                                                   \
        NOT_NULL(request);                                                                                             \
        SEND_ARGS(buf, count, datatype, dest, tag, comm, &c, &t);                                                      \
        if (((mode) == MR_SEND_STANDARD || (mode) == MR_SEND_READY) && api_done_room() &&                              \
            mr_isend_now(buf, (size_t)count, t, dest, tag, c, c->context, &id)) {                                      \
            api_done_sent(request, c, dest, tag, id);                                                                  \
            return MR_SUCCESS;                                                                                         \
        }                                                                                                              \
        CHECK((mode) == MR_SEND_BUFFERED ? mr_ibsend(buf, (size_t)count, t, dest, tag, c, c->context, &r)              \
                                         : mr_isend(buf, (size_t)count, t, dest, tag, c, c->context, mode, &r));       \
        err = api_first_handle(r, request);                                                                            \
    out:                                                                                                               \
        return err;                                                                                                    \
    }

SEND(Send, MR_SEND_STANDARD)
SEND(Bsend, MR_SEND_BUFFERED)
SEND(Ssend, MR_SEND_SYNCHRONOUS)
SEND(Rsend, MR_SEND_READY)
ISEND(Isend, MR_SEND_STANDARD)
ISEND(Ibsend, MR_SEND_BUFFERED)
ISEND(Issend, MR_SEND_SYNCHRONOUS)
ISEND(Irsend, MR_SEND_READY)

MPI_COUNT_FN(int, Recv,
             (void *buf, api_count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    struct mr_status st;
    API_ENTER();
    NOT_MISSING(status);
    RECV_ARGS(buf, count, datatype, source, tag, comm, &c, &t);
    if (status == MPI_STATUS_IGNORE) {
        err = mr_recv(buf, (size_t)count, t, source, tag, c, c->context, NULL);
    } else {
        st = (struct mr_status){.source = MR_ANY_SOURCE, .tag = MR_ANY_TAG};
        err = mr_recv(buf, (size_t)count, t, source, tag, c, c->context, &st);
        api_status(status, &st);
    }
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Irecv,
             (void *buf, api_count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request *request))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    struct mr_request *r;
    struct mr_status st;
    API_ENTER();
    NOT_NULL(request);
    RECV_ARGS(buf, count, datatype, source, tag, comm, &c, &t);
    if (api_done_room() && mr_irecv_now(buf, (size_t)count, t, source, tag, c, c->context, &st)) {
        api_done_received(request, &st);
        goto out;
    }
    CHECK(mr_irecv(buf, (size_t)count, t, source, tag, c, c->context, &r));
    err = api_first_handle(r, request);
    API_LEAVE(c);
}

/* A message to be sent and one to be received at the same time may not share memory. */
static enum mr_err check_no_overlap(const void *sendbuf, api_count sendcount, const struct mr_type *st, int dest,
                                    const void *recvbuf, api_count recvcount, const struct mr_type *rt, int source)
{
    if (dest == MR_PROC_NULL || source == MR_PROC_NULL ||
        likely(!api_overlap(sendbuf, (size_t)sendcount, st, recvbuf, (size_t)recvcount, rt)))
        return MR_SUCCESS;
    return mr_fail(MR_ERR_BUFFER, "sendbuf and recvbuf overlap: %lld elements at %p and %lld at %p",
                   (long long)sendcount, sendbuf, (long long)recvcount, recvbuf);
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

MPI_COUNT_FN(int, Sendrecv,
             (const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
              api_count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_type *st, *rt;
    struct mr_status s;
    API_ENTER();
    NOT_MISSING(status);
    SEND_ARGS(sendbuf, sendcount, sendtype, dest, sendtag, comm, &c, &st);
    RECV_ARGS(recvbuf, recvcount, recvtype, source, recvtag, comm, &c, &rt);
    CHECK(check_no_overlap(sendbuf, sendcount, st, dest, recvbuf, recvcount, rt, source));
    s = (struct mr_status){.source = MR_ANY_SOURCE, .tag = MR_ANY_TAG};
    err = both(sendbuf, (size_t)sendcount, st, dest, sendtag, recvbuf, (size_t)recvcount, rt, source, recvtag, c, &s);
    api_status(status, &s);
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Sendrecv_replace,
             (void *buf, api_count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
              MPI_Comm comm, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    struct mr_status s;
    char small[1024], *copy = NULL;
    API_ENTER();
    NOT_MISSING(status);
    SEND_ARGS(buf, count, datatype, dest, sendtag, comm, &c, &t);
    CHECK(api_source(c, source, recvtag));
    size_t bytes = (size_t)count * t->size;
    copy = bytes <= sizeof(small) ? small : malloc(bytes);
    if (!copy)
        CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for a copy of %zu bytes", bytes));
    mr_type_pack(buf, (size_t)count, t, 0, copy, bytes);
    s = (struct mr_status){.source = MR_ANY_SOURCE, .tag = MR_ANY_TAG};
    err = both(copy, bytes, mr_type_byte, dest, sendtag, buf, (size_t)count, t, source, recvtag, c, &s);
    if (copy != small)
        free(copy);
    api_status(status, &s);
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Isendrecv,
             (const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
              api_count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    struct mr_type *st, *rt;
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(request);
    SEND_ARGS(sendbuf, sendcount, sendtype, dest, sendtag, comm, &c, &st);
    RECV_ARGS(recvbuf, recvcount, recvtype, source, recvtag, comm, &c, &rt);
    CHECK(check_no_overlap(sendbuf, sendcount, st, dest, recvbuf, recvcount, rt, source));
    struct mr_message_args send = {sendbuf, (size_t)sendcount, st, dest, sendtag};
    struct mr_message_args recv = {recvbuf, (size_t)recvcount, rt, source, recvtag};
    CHECK(mr_isendrecv(&send, &recv, c, &r));
    err = api_new_request(r, request);
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Isendrecv_replace,
             (void *buf, api_count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
              MPI_Comm comm, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(request);
    SEND_ARGS(buf, count, datatype, dest, sendtag, comm, &c, &t);
    CHECK(api_source(c, source, recvtag));
    CHECK(mr_isendrecv_replace(buf, (size_t)count, t, dest, sendtag, source, recvtag, c, &r));
    err = api_new_request(r, request);
    API_LEAVE(c);
}

/* ---- matched receives ---- */

static enum mr_err mrecv_args(const void *buf, api_count count, MPI_Datatype datatype, const MPI_Message *message,
                              struct mr_type **t, struct mr_message **m)
{
    enum mr_err err;
    if ((err = message_type(count, datatype, t, "datatype")) || (err = api_buffer(buf, count, *t)))
        return err;
    *m = NULL;
    if (*message != MPI_MESSAGE_NO_PROC && !(*m = api_find(ABI_MESSAGE, abi_number(*message))))
        return api_bad_handle(MR_ERR_REQUEST, "message", "message", abi_number(*message), abi_number(MPI_MESSAGE_NULL));
    return MR_SUCCESS;
}

/* The request of a matched receive; from MPI_MESSAGE_NO_PROC it is a receive from MPI_PROC_NULL. */
static enum mr_err start_mrecv(void *buf, api_count count, struct mr_type *t, MPI_Message *message,
                               struct mr_message *m, struct mr_request **r)
{
    if (m)
        api_handle_free(ABI_MESSAGE, abi_number(*message));
    *message = MPI_MESSAGE_NULL;
    if (m)
        return mr_imrecv(buf, (size_t)count, t, m, r);
    return mr_irecv(buf, (size_t)count, t, MR_PROC_NULL, 0, mr_comm_world, mr_comm_world->context, r);
}

MPI_COUNT_FN(int, Mrecv, (void *buf, api_count count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status))
{
    struct mr_type *t;
    struct mr_message *m;
    struct mr_request *r;
    API_ENTER();
    NOT_MISSING(status);
    NOT_NULL(message);
    CHECK(mrecv_args(buf, count, datatype, message, &t, &m));
    CHECK(start_mrecv(buf, count, t, message, m, &r));
    mr_wait(r);
    api_status(status, &r->status);
    err = r->status.error;
    mr_request_put(r);
    API_LEAVE(NULL);
}

MPI_COUNT_FN(int, Imrecv,
             (void *buf, api_count count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request))
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

/* ---- persistent requests ---- */

/* The request for MPI_Start. */
static enum mr_err record(enum mr_request_kind kind, const void *sbuf, void *rbuf, api_count count, struct mr_type *t,
                          int peer, int tag, struct mr_comm *c, enum mr_send_mode mode, MPI_Request *h)
{
    struct mr_request *r = mr_request_new(kind, c);
    if (!r)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a request");
    r->send_buf = sbuf;
    r->recv_buf = rbuf;
    r->count = (size_t)count;
    r->type = mr_type_get(t);
    r->peer = peer;
    r->tag = tag;
    r->mode = mode;
    return api_new_request(r, h);
}

#define SEND_INIT(name, mode)                                                                                          \
    MPI_COUNT_FN(int, name,                                                                                            \
                 (const void *buf, api_count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,           \
                  MPI_Request *request))                                                                               \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        struct mr_type *t;                                                                                             \
        API_ENTER();                                                                                                   \
        NOT_NULL(request);                                                                                             \
        CHECK(api_comm(comm, &c));                                                                                     \
        CHECK(api_type(datatype, &t));                                                                                 \
        CHECK(api_buffer(buf, count, t));                                                                              \
        CHECK(api_dest(c, dest, tag));                                                                                 \
        err = record(MR_REQ_PERSISTENT_SEND, buf, NULL, count, t, dest, tag, c, mode, request);                        \
        API_LEAVE(c);                                                                                                  \
    }
SEND_INIT(Send_init, MR_SEND_STANDARD)
SEND_INIT(Bsend_init, MR_SEND_BUFFERED)
SEND_INIT(Ssend_init, MR_SEND_SYNCHRONOUS)
SEND_INIT(Rsend_init, MR_SEND_READY)

MPI_COUNT_FN(int, Recv_init,
             (void *buf, api_count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request *request))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(request);
    CHECK(api_comm(comm, &c));
    CHECK(api_type(datatype, &t));
    CHECK(api_buffer(buf, count, t));
    CHECK(api_source(c, source, tag));
    err = record(MR_REQ_PERSISTENT_RECV, NULL, buf, count, t, source, tag, c, MR_SEND_STANDARD, request);
    API_LEAVE(c);
}
