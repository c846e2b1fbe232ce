/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting persistent requests (MPI-4.0 section 3.9). */
#include "libmrmpi/api/request.h"
#include "libmrmpi/p2p/p2p.h"

static void copy_back(struct mr_request *live, void *copy)
{
    (void)live;
    ((struct api_copy *)copy)->event(copy, API_COPY_OUT);
}

/* A started operation whose buffer is a language binding's. */
static void copy_at_end(struct mr_request *live, struct api_copy *copy)
{
    if (live->complete) {
        copy_back(live, copy);
    } else {
        live->on_complete = copy_back;
        live->on_complete_arg = copy;
    }
}

/* A collective or a partitioned operation. */
static enum mr_err start_whole(struct mr_request *r, struct mr_request **live)
{
    enum mr_err err;
    api_copy(r, API_COPY_IN);
    if (r->kind == MR_REQ_PERSISTENT_COLL)
        err = mr_coll_restart(r->schedule, live);
    else
        err = mr_part_start(r->part, live);
    if (!err && r->copy)
        copy_at_end(*live, r->copy);
    return err;
}

/* *c: of the request, whose error handler is told. */
static enum mr_err start_persistent(MPI_Request h, struct mr_comm **c)
{
    struct mr_request *r, *l;
    enum mr_err err = api_request(h, &r);
    *c = NULL;
    if (err)
        return err;
    *c = r->comm;
    if (!api_is_persistent(r))
        return mr_fail(MR_ERR_REQUEST, "the request is not a persistent one");
    if (r->on_complete_arg)
        return mr_fail(MR_ERR_REQUEST, "the request is active already: complete it before it is started again");
    if (r->kind == MR_REQ_PERSISTENT_COLL || r->kind == MR_REQ_PERSISTENT_PART)
        err = start_whole(r, &l);
    else if (r->kind == MR_REQ_PERSISTENT_SEND && r->mode == MR_SEND_BUFFERED)
        err = mr_ibsend(r->send_buf, r->count, r->type, r->peer, r->tag, r->comm, r->comm->context, &l);
    else if (r->kind == MR_REQ_PERSISTENT_SEND)
        err = mr_isend(r->send_buf, r->count, r->type, r->peer, r->tag, r->comm, r->comm->context, r->mode, &l);
    else
        err = mr_irecv(r->recv_buf, r->count, r->type, r->peer, r->tag, r->comm, r->comm->context, &l);
    if (err)
        return err;
    r->on_complete_arg = l;
    r->active = true;
    return MR_SUCCESS;
}

MPI_FN(int, Start, (MPI_Request * request))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    NOT_NULL(request);
    err = start_persistent(*request, &c);
    API_LEAVE(c);
}

MPI_FN(int, Startall, (int count, MPI_Request requests[]))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    if (count < 0)
        CHECK(api_bad_count(count, "count"));
    if (count)
        NOT_NULL(requests);
    for (int i = 0; i < count; i++)
        CHECK(start_persistent(requests[i], &c));
    API_LEAVE(c);
}
