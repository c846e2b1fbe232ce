/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flushing the buffers of buffered sends (MPI-4.1 section 3.6): afterwards the buffered messages have left, as after
 * detaching and attaching again.
 */
#include "libmrmpi/api/api.h"
#include "libmrmpi/p2p/p2p.h"

static enum mr_err iflush(struct mr_bsend **slot, MPI_Request *request)
{
    struct mr_request *r;
    if (!request)
        return api_null("request");
    enum mr_err err = mr_buffer_iflush(slot, &r);
    return err ? err : api_new_request(r, request);
}

MPI_FN(int, Buffer_flush, (void))
{
    API_ENTER();
    mr_buffer_flush(&mr_bsend_process);
    API_LEAVE(NULL);
}

MPI_FN(int, Buffer_iflush, (MPI_Request * request))
{
    API_ENTER();
    err = iflush(&mr_bsend_process, request);
    API_LEAVE(NULL);
}

MPI_FN(int, Comm_flush_buffer, (MPI_Comm comm))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    mr_buffer_flush(&c->buffer);
    API_LEAVE(c);
}

MPI_FN(int, Comm_iflush_buffer, (MPI_Comm comm, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = iflush(&c->buffer, request);
    API_LEAVE(c);
}

MPI_FN(int, Session_flush_buffer, (MPI_Session session))
{
    struct mr_session *s = NULL;
    API_ENTER();
    CHECK(api_session(session, &s));
    mr_buffer_flush(&s->buffer);
    API_LEAVE_SESSION(s);
}

MPI_FN(int, Session_iflush_buffer, (MPI_Session session, MPI_Request *request))
{
    struct mr_session *s = NULL;
    API_ENTER();
    CHECK(api_session(session, &s));
    err = iflush(&s->buffer, request);
    API_LEAVE_SESSION(s);
}
