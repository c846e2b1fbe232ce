/* SPDX-License-Identifier: BSD-3-Clause */
/* Generalized requests (MPI-4.0 section 13.2), also with the poll and wait functions of MPICH's extension (mpix.c). */
#include "libmrmpi/api/grequest.h"

#include <stdlib.h>

#include "libmrmpi/api/errcode.h"

struct grequest {
    struct api_grequest_calls call;
    void *extra;
    int handle;
    bool fortran; /* the callbacks are subroutines: all arguments by reference, the error last */
    bool freed;   /* MPI_Request_free came before MPI_Grequest_complete */
    bool polling; /* inside poll, which may wait itself */
};

/* The failing MPI function returns the code of the callback (MPI-4.1 section 13.2), MPI_ERR_OTHER if there is no such.
 */
static enum mr_err callback_failed(int code, const char *which)
{
    if (!code)
        return MR_SUCCESS;
    api_note_callback_code(code);
    return mr_fail(MR_ERR_OTHER, "the %s function of the generalized request returned %d", which, code);
}

typedef void fortran_query(void *extra, int *status, int *error);
typedef void fortran_free(void *extra, int *error);
typedef void fortran_cancel(void *extra, int *complete, int *error);
typedef void fortran_fn(void);

static int call_query(const struct grequest *g, MPI_Status *st)
{
    int code = 0;
    if (!g->fortran)
        return g->call.query ? g->call.query(g->extra, st) : 0;
    ((fortran_query *)(fortran_fn *)g->call.query)(g->extra, (int *)st, &code);
    return code;
}

static int call_free(const struct grequest *g)
{
    int code = 0;
    if (!g->fortran)
        return g->call.free ? g->call.free(g->extra) : 0;
    ((fortran_free *)(fortran_fn *)g->call.free)(g->extra, &code);
    return code;
}

static int call_cancel(const struct grequest *g, bool complete)
{
    int code = 0, logical = complete;
    if (!g->fortran)
        return g->call.cancel ? g->call.cancel(g->extra, complete) : 0;
    ((fortran_cancel *)(fortran_fn *)g->call.cancel)(g->extra, &logical, &code);
    return code;
}

void api_grequest_is_fortran(struct mr_request *r)
{
    ((struct grequest *)r->on_complete_arg)->fortran = true;
}

enum mr_err api_grequest_query(struct mr_request *r, MPI_Status *status)
{
    struct grequest *g = r->on_complete_arg;
    MPI_Status ignored, *st = status == MPI_STATUS_IGNORE ? &ignored : status;
    api_status_empty(st);
    api_in_callback++;
    int code = call_query(g, st);
    api_in_callback--;
    return callback_failed(code, "query");
}

/* err: of the query function. If both have failed, the error is that of the last callback. */
static enum mr_err free_grequest(struct mr_request *r, enum mr_err err)
{
    struct grequest *g = r->on_complete_arg;
    api_in_callback++;
    int code = call_free(g);
    api_in_callback--;
    free(g);
    r->on_complete_arg = NULL;
    if (!code)
        return err;
    api_forget_callback();
    return callback_failed(code, "free");
}

enum mr_err api_grequest_end(struct mr_request *r, MPI_Status *status)
{
    return free_grequest(r, api_grequest_query(r, status));
}

enum mr_err api_grequest_cancel(struct mr_request *r)
{
    struct grequest *g = r->on_complete_arg;
    api_in_callback++;
    int code = call_cancel(g, r->complete);
    api_in_callback--;
    return callback_failed(code, "cancel");
}

enum mr_err api_grequest_free(struct mr_request *r)
{
    struct grequest *g = r->on_complete_arg;
    if (!r->complete) {
        g->freed = true; /* MPI_Grequest_complete ends the request */
        return MR_SUCCESS;
    }
    api_handle_free(ABI_REQUEST, g->handle);
    enum mr_err err = free_grequest(r, MR_SUCCESS); /* nobody asks for a status */
    mr_request_put(r);
    return err;
}

bool api_grequest_poll(struct mr_request *r)
{
    struct grequest *g = r->on_complete_arg;
    MPI_Status st;
    if (r->complete || !g->call.poll || g->polling)
        return r->complete;
    mr_request_get(r);
    api_status_empty(&st);
    g->polling = true;
    api_in_callback++;
    g->call.poll(g->extra, &st);
    api_in_callback--;
    g->polling = false;
    bool complete = r->complete;
    mr_request_put(r);
    return complete;
}

static bool polled(void *r)
{
    return api_grequest_poll(r);
}

/* The wait function may block until another thread completes the request, so the lock is given up meanwhile. */
void api_grequest_wait(struct mr_request *r)
{
    struct grequest *g = r->on_complete_arg;
    MPI_Status st;
    if (g->call.wait && !r->complete && !g->polling) {
        void *extra = g->extra;
        api_status_empty(&st);
        api_unlock();
        g->call.wait(1, &extra, 0, &st);
        api_lock();
    }
    if (!r->complete)
        mr_progress_until(polled, r);
}

enum mr_err api_grequest_start(const struct api_grequest_calls *call, void *extra, MPI_Request *request)
{
    struct grequest *g = malloc(sizeof(*g));
    struct mr_request *r = g ? mr_request_new(MR_REQ_GENERALIZED, NULL) : NULL;
    if (!r) {
        free(g);
        return mr_fail(MR_ERR_NO_MEM, "no memory for a request");
    }
    *g = (struct grequest){.call = *call, .extra = extra};
    r->on_complete_arg = g;
    enum mr_err err = api_new_request(r, request);
    if (err)
        free(g);
    else
        g->handle = r->handle;
    return err;
}

MPI_FN(int, Grequest_start,
       (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function *free_fn,
        MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request))
{
    API_ENTER();
    NOT_NULL(request);
    err = api_grequest_start(&(struct api_grequest_calls){.query = query_fn, .free = free_fn, .cancel = cancel_fn},
                             extra_state, request);
    API_LEAVE(NULL);
}

MPI_FN(int, Grequest_complete, (MPI_Request request))
{
    struct mr_request *r;
    API_ENTER();
    CHECK(api_request(request, &r));
    if (r->kind != MR_REQ_GENERALIZED)
        CHECK(mr_fail(MR_ERR_REQUEST, "the request is not a generalized one"));
    if (r->complete)
        CHECK(mr_fail(MR_ERR_REQUEST, "the request is complete already"));
    struct grequest *g = r->on_complete_arg;
    mr_request_complete(r);
    if (g->freed)
        err = api_grequest_free(r);
    API_LEAVE(NULL);
}
