/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The view of a request for completion (request.c) and for queries (request_status.c). A persistent request is a record
 * of the arguments; while it is active, `on_complete_arg` (otherwise unused by such requests) is the request under way.
 * Waiting uses api_live().
 */
#ifndef MRMPI_API_REQUEST_H
#define MRMPI_API_REQUEST_H

#include "libmrmpi/api/grequest.h"
#include "libmrmpi/p2p/p2p.h"

static inline bool api_is_persistent(const struct mr_request *r)
{
    return r->kind >= MR_REQ_PERSISTENT_SEND && r->kind <= MR_REQ_PERSISTENT_COLL;
}

/* The request under way; NULL for an inactive persistent one. */
static inline struct mr_request *api_live(struct mr_request *r)
{
    return unlikely(api_is_persistent(r)) ? r->on_complete_arg : r;
}

/* Is the request under way complete? */
static inline bool api_is_complete(struct mr_request *l)
{
    return l->complete || (unlikely(l->kind == MR_REQ_GENERALIZED) && api_grequest_poll(l)) ||
           (unlikely(mr_config.recover) && mr_recv_is_pending(l));
}

/*
 * A language binding's memory in the place of a buffer that C cannot describe. At the end of the operation the binding
 * gets API_COPY_OUT, then API_COPY_FREE. For a persistent request: API_COPY_IN at each start and when a partition is
 * ready, API_COPY_OUT at each end and when a partition has arrived, API_COPY_FREE with the request. The events come
 * with the lock held: no MPI function may be called.
 */
enum api_copy_event { API_COPY_IN = 0, API_COPY_OUT = 1, API_COPY_FREE = 2 };
struct api_copy {
    void (*event)(struct api_copy *copy, int event);
};

/* Of a persistent collective or partitioned operation. */
static inline void api_copy(const struct mr_request *r, enum api_copy_event event)
{
    if (unlikely(r->copy))
        r->copy->event(r->copy, event);
}

/* api_new_request for a request that has just been made, inline: every nonblocking message passes here. */
static inline enum mr_err api_first_handle(struct mr_request *r, MPI_Request *h)
{
    if (unlikely(!api_tables[ABI_REQUEST].free))
        return api_new_request(r, h);
    r->handle = api_handle_again(ABI_REQUEST, r);
    *h = abi_handle(MPI_Request, r->handle);
    return MR_SUCCESS;
}

#endif
