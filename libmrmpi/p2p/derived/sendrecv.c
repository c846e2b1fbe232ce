/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send and a receive under one request (MPI-4.0 section 3.10): complete when both are, with the receive's status and
 * the first error. Replaced data is sent from a copy.
 */
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/p2p/derived/internal.h"

struct pair {
    struct mr_request *whole, *in, *out;
    int pending;
    _Alignas(16) char copy[];
};

static void settle_pair(struct pair *p)
{
    struct mr_request *whole = p->whole;

    whole->status = p->in->status;
    if (!whole->status.error)
        whole->status.error = p->out->status.error;
    mr_request_put(p->in);
    mr_request_put(p->out);
    free(p);
    mr_request_complete(whole);
    mr_request_put(whole);
}

static void half_done(struct mr_request *req, void *arg)
{
    struct pair *p = arg;

    if (--p->pending == 0)
        settle_pair(p);
}

static void watch(struct pair *p, struct mr_request *half)
{
    if (half->complete)
        return;
    p->pending++;
    half->on_complete = half_done;
    half->on_complete_arg = p;
}

static enum mr_err start_pair(struct pair *p, const struct mr_message_args *send, const struct mr_message_args *recv,
                              struct mr_comm *comm)
{
    enum mr_err err = mr_irecv((void *)(uintptr_t)recv->buf, recv->count, recv->type, recv->peer, recv->tag, comm,
                               comm->context, &p->in);

    if (err)
        return err;
    err = mr_isend(send->buf, send->count, send->type, send->peer, send->tag, comm, comm->context, MR_SEND_STANDARD,
                   &p->out);
    if (err) { /* the receive may have met its message already: then that is lost with the operation */
        mr_cancel(p->in);
        mr_request_put(p->in);
    }
    return err;
}

static enum mr_err begin_pair(struct pair *p, const struct mr_message_args *send, const struct mr_message_args *recv,
                              struct mr_comm *comm, struct mr_request **req)
{
    enum mr_err err = MR_ERR_NO_MEM;

    p->whole = mr_request_new(MR_REQ_SENDRECV, comm);
    if (p->whole && !(err = start_pair(p, send, recv, comm))) {
        p->whole->receive = p->in;
        *req = mr_request_get(p->whole);
        p->pending = 0;
        watch(p, p->in);
        watch(p, p->out);
        if (!p->pending)
            settle_pair(p);
        return MR_SUCCESS;
    }
    if (p->whole)
        mr_request_put(p->whole);
    free(p);
    return err;
}

enum mr_err mr_isendrecv(const struct mr_message_args *send, const struct mr_message_args *recv, struct mr_comm *comm,
                         struct mr_request **req)
{
    struct pair *p = malloc(sizeof(*p));

    *req = NULL;
    return p ? begin_pair(p, send, recv, comm, req) : MR_ERR_NO_MEM;
}

enum mr_err mr_isendrecv_replace(void *buf, size_t count, struct mr_type *type, int dest, int stag, int src, int rtag,
                                 struct mr_comm *comm, struct mr_request **req)
{
    size_t bytes = count * type->size;
    struct pair *p = malloc(sizeof(*p) + bytes);
    struct mr_message_args recv = {buf, count, type, src, rtag};

    *req = NULL;
    if (!p) {
        mr_error_detail("no memory for a copy of %zu bytes", bytes);
        return MR_ERR_NO_MEM;
    }
    mr_type_pack(buf, count, type, 0, p->copy, bytes);
    return begin_pair(p, &(struct mr_message_args){p->copy, bytes, mr_type_byte, dest, stag}, &recv, comm, req);
}
