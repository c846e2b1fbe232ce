/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles of operations that were complete when their call returned, as short messages often are: they have no request.
 * A record, one cache line, keeps the facts that the program may ask for. The record becomes a request when the program
 * wants more than completion (api_done_request): to cancel a send, for example.
 */
#ifndef MRMPI_API_DONE_H
#define MRMPI_API_DONE_H

#include "libmrmpi/api/arguments.h"

struct api_done {
    /* The handle of this use, or the next one: 11 kind(4) generation(16) index(10) */
    _Alignas(64) int handle;
    int dest, sent_tag;         /* a send's, */
    uint64_t id;                /* the key for finding it again, */
    struct mr_comm *comm;       /* held; NULL: a receive's */
    struct api_done *next;      /* free ones */
    struct mr_request *request; /* made from the record; NULL: none. api_done_unused: free */
    struct abi_kept_status status;
};
_Static_assert(sizeof(struct api_done) == 64, "one cache line");
enum { API_DONE_MOST = 1024 };                  /* at a time; further operations have requests */
extern MR_OWN struct api_done *const api_dones; /* [API_DONE_MOST] */
extern MR_OWN struct api_done *api_done_free;
extern MR_OWN struct mr_request api_done_unused;

/* With keep no record is used: leaks.c reports requests. */
void api_done_init(bool keep);
void api_done_drop(MPI_Request h); /* of a record with a request, which is the caller's */

static inline bool api_done_room(void)
{
    return likely(api_done_free != NULL);
}

/* There is room. */
static inline struct api_done *api_done_new(MPI_Request *h)
{
    struct api_done *d = api_done_free;
    api_done_free = d->next;
    d->request = NULL;
    *h = abi_handle(MPI_Request, d->handle);
    return d;
}

static inline void api_done_sent(MPI_Request *h, struct mr_comm *c, int dest, int tag, uint64_t id)
{
    struct api_done *d = api_done_new(h);
    d->comm = c;
    c->refs++;
    d->dest = dest;
    d->sent_tag = tag;
    d->id = id;
    abi_keep_status(&d->status, &(struct mr_status){.source = MR_PROC_NULL, .tag = MR_ANY_TAG});
}

static inline void api_done_received(MPI_Request *h, const struct mr_status *s)
{
    struct api_done *d = api_done_new(h);
    d->comm = NULL;
    abi_keep_status(&d->status, s);
}

/* NULL: the handle is no such one, or has become a request. */
static inline struct api_done *api_done_find(MPI_Request h)
{
    const int n = abi_number(h);
    struct api_done *d = &api_dones[(uint32_t)n % API_DONE_MOST];
    return d->handle == n && likely(!d->request) ? d : NULL;
}

static inline void api_done_release(struct api_done *d)
{
    uint32_t next = (uint32_t)d->handle + API_DONE_MOST;
    d->handle = (int)(likely(next >> 26 == (3u << 4 | ABI_DONE)) ? next : next - (1u << 26));
    d->request = &api_done_unused;
    d->next = api_done_free;
    api_done_free = d;
}

/* Completes the record, and its status goes to the user. False: the last user of its communicator must do more. */
static inline bool api_done_complete(struct api_done *d, MPI_Request *h, MPI_Status *status)
{
    if (d->comm) {
        if (unlikely(d->comm->refs == 1))
            return false;
        d->comm->refs--;
    }
    if (status != MPI_STATUS_IGNORE)
        abi_give_status(status, &d->status);
    api_done_release(d);
    *h = MPI_REQUEST_NULL;
    return true;
}

/* False: no such handle, or there is more to do: the record has become a request, or will. */
static inline bool api_done_end(MPI_Request *h, MPI_Status *status)
{
    struct api_done *d = api_done_find(*h);
    return d && api_done_complete(d, h, status);
}

#endif
