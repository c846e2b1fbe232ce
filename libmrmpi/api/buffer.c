/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaching buffers for buffered sends to the process, a communicator or a session, and detaching them (MPI-4.1 section
 * 3.6), with counts: this file is compiled twice (api.h). Flushing is in flush.c.
 */
#include <string.h>

#include "libmrmpi/api/api.h"
#include "libmrmpi/p2p/p2p.h"

/* An automatic buffer has no size. */
static enum mr_err attach(struct mr_bsend **slot, void *buffer, api_count size)
{
    if (buffer == MPI_BUFFER_AUTOMATIC)
        return mr_buffer_attach(slot, (struct mr_buffer){.automatic = true});
    if (size < 0)
        return mr_fail(MR_ERR_ARG, "size is %lld", (long long)size);
    if (size && !buffer)
        return mr_fail(MR_ERR_BUFFER, "buffer is a null pointer, size is %lld", (long long)size);
    return mr_buffer_attach(slot, (struct mr_buffer){buffer, (size_t)size, false});
}

/* buffer_addr is the address of a pointer of any type, perhaps not aligned like a pointer to void. */
static enum mr_err detach(struct mr_bsend **slot, void *buffer_addr, api_count *size)
{
    if (!buffer_addr)
        return api_null("buffer_addr");
    if (!size)
        return api_null("size");
    struct mr_buffer was = mr_buffer_detach(slot);
    void *at = was.automatic ? MPI_BUFFER_AUTOMATIC : was.at;
    memcpy(buffer_addr, &at, sizeof(at));
    *size = api_count_of(was.bytes);
    return MR_SUCCESS;
}

MPI_COUNT_FN(int, Buffer_attach, (void *buffer, api_count size))
{
    API_ENTER();
    err = attach(&mr_bsend_process, buffer, size);
    API_LEAVE(NULL);
}

MPI_COUNT_FN(int, Buffer_detach, (void *buffer_addr, api_count *size))
{
    API_ENTER();
    err = detach(&mr_bsend_process, buffer_addr, size);
    API_LEAVE(NULL);
}

MPI_COUNT_FN(int, Comm_attach_buffer, (MPI_Comm comm, void *buffer, api_count size))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = attach(&c->buffer, buffer, size);
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Comm_detach_buffer, (MPI_Comm comm, void *buffer_addr, api_count *size))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = detach(&c->buffer, buffer_addr, size);
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Session_attach_buffer, (MPI_Session session, void *buffer, api_count size))
{
    struct mr_session *s = NULL;
    API_ENTER();
    CHECK(api_session(session, &s));
    err = attach(&s->buffer, buffer, size);
    API_LEAVE_SESSION(s);
}

MPI_COUNT_FN(int, Session_detach_buffer, (MPI_Session session, void *buffer_addr, api_count *size))
{
    struct mr_session *s = NULL;
    API_ENTER();
    CHECK(api_session(session, &s));
    err = detach(&s->buffer, buffer_addr, size);
    API_LEAVE_SESSION(s);
}
