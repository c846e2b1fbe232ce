/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: made from a pool, counted, completed once. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/p2p/request/state.h"
#include "libmrmpi/p2p/progress/progress.h"

struct mr_pt2pt mr_pt2pt;

#define SLAB_REQUESTS 64

struct slab {
    struct slab *next;
    struct mr_request requests[SLAB_REQUESTS];
};

static struct slab *slabs;

/* Fills the empty pool. */
static __attribute__((noinline)) bool more_requests(void)
{
    struct slab *s = malloc(sizeof(*s));

    if (!s)
        return false;
    s->next = slabs;
    slabs = s;
    for (int i = 0; i < SLAB_REQUESTS; i++) {
        s->requests[i].refs = 0;
        s->requests[i].next = mr_pt2pt.free_requests;
        mr_pt2pt.free_requests = &s->requests[i];
    }
    return true;
}

void mr_request_pool_free(void)
{
    while (slabs) {
        struct slab *s = slabs;

        slabs = s->next;
        free(s);
    }
    mr_pt2pt.free_requests = NULL;
}

static inline bool any_free(void)
{
    return likely(mr_pt2pt.free_requests != NULL) || more_requests();
}

struct mr_request *mr_request_new(enum mr_request_kind kind, struct mr_comm *comm)
{
    return any_free() ? mr_request_take(kind, comm, 1) : NULL;
}

struct mr_request *mr_request_start(enum mr_request_kind kind, struct mr_comm *comm, struct mr_type *type)
{
    struct mr_request *r = any_free() ? mr_request_take(kind, comm, 2) : NULL;

    if (r)
        r->type = mr_type_get(type);
    return r;
}

struct mr_request *mr_request_sent(struct mr_comm *comm, int dest, int tag, uint32_t ctx, uint64_t id)
{
    struct mr_request *r = mr_request_new(MR_REQ_SEND, comm);

    if (!r)
        return NULL;
    r->peer = dest;
    r->tag = tag;
    r->ctx = ctx;
    r->eager_id = id;
    r->complete = true;
    return r;
}

struct mr_request *mr_request_received(const struct mr_status *status)
{
    struct mr_request *r = mr_request_new(MR_REQ_RECV, NULL);

    if (!r)
        return NULL;
    r->status = *status;
    r->complete = true;
    return r;
}

struct mr_request *mr_request_get(struct mr_request *r)
{
    r->refs++;
    return r;
}

void mr_request_put(struct mr_request *r)
{
    struct mr_comm *comm = r->comm;

    if (--r->refs)
        return;
    if (r->kind == MR_REQ_SEND && r->behind)
        mr_request_put(r->behind);
    if (r->in_burst)
        mr_burst_leave(&mr_pt2pt.burst);
    if ((r->kind == MR_REQ_SEND || r->kind == MR_REQ_RECV) && r->type && !r->type->builtin)
        mr_type_put(r->type);
    r->next = mr_pt2pt.free_requests;
    mr_pt2pt.free_requests = r;
    if (comm && --comm->refs == 0) {
        comm->refs = 1;
        mr_comm_put(comm);
    }
}

void mr_request_completed(struct mr_request *r)
{
    void (*tell)(struct mr_request *, void *) = r->on_complete;

    if (mr_threaded)
        mr_shm_wake();
    if (tell) {
        r->on_complete = NULL;
        tell(r, r->on_complete_arg);
    }
}

/* A callback may change or free a request that is not in flight. */
void mr_request_complete(struct mr_request *r)
{
    if (r->kind == MR_REQ_SEND || r->kind == MR_REQ_RECV) {
        if (r->zsends)
            r->ended = true;
        else
            mr_request_end(r);
        return;
    }
    r->complete = true;
    mr_request_completed(r);
}

/* A greeting is about rounds to come: while one is under way, its request counts. */
static bool is_active_on(const struct mr_request *r, const struct mr_comm *c)
{
    return r->refs && r->comm == c && !r->complete && r->kind <= MR_REQ_COLL &&
           !(r->kind == MR_REQ_RECV && r->given_up) && r->ctx != (c->context | MR_CTX_GREETING);
}

static bool for_each(const struct mr_comm *c, void (*f)(struct mr_request *r))
{
    bool any = false;

    for (struct slab *s = slabs; s; s = s->next)
        for (int i = 0; i < SLAB_REQUESTS; i++)
            if (is_active_on(&s->requests[i], c)) {
                f(&s->requests[i]);
                any = true;
            }
    return any;
}

void mr_request_each(const struct mr_comm *c, void (*f)(struct mr_request *r))
{
    for_each(c, f);
}

enum mr_err mr_wait(struct mr_request *req)
{
    return mr_wait_here(req);
}

static bool is_complete(void *req)
{
    return ((const struct mr_request *)req)->complete;
}

bool mr_test(struct mr_request *req)
{
    return req->complete || mr_progress_try(is_complete, req);
}

static void wait_keeping(struct mr_request *req)
{
    mr_wait(mr_request_get(req));
    mr_request_put(req);
}

/* During the wait others may begin, among requests already checked. */
void mr_request_wait_for(const struct mr_comm *c)
{
    while (for_each(c, wait_keeping))
        ;
}
