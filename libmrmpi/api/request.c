/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion (MPI-4.0 section 3.7), freeing and cancelling. Queries without completing are in request_status.c. */
#include "libmrmpi/api/done.h"
#include "libmrmpi/api/request.h"
#include "libmrmpi/p2p/p2p.h"

static bool done_or_pending(void *arg)
{
    struct mr_request *l = arg;
    if (!l->complete && !mr_recv_is_pending(l) && mr_never_ends(l))
        mr_end_unheard(l);
    return l->complete || mr_recv_is_pending(l);
}

/* Afterwards the request is complete, or a receive that a failure has stopped for now. */
static void wait_for_live(struct mr_request *l)
{
    if (unlikely(l->kind == MR_REQ_GENERALIZED))
        api_grequest_wait(l);
    else if (!l->complete && mr_config.recover)
        mr_progress_until(done_or_pending, l);
    else if (!l->complete)
        mr_wait(l);
}

/* Such a receive stays as it is: the program acknowledges the failure, and waits again, or cancels. */
static enum mr_err still_pending(MPI_Status *status)
{
    api_status_empty(status);
    return mr_fail(MR_ERR_PROC_FAILED_PENDING, "a process has failed that may be the sender");
}

static void free_handle(MPI_Request h)
{
    if (likely(api_find(ABI_REQUEST, abi_number(h)) != NULL))
        api_handle_free(ABI_REQUEST, abi_number(h));
    else
        api_done_drop(h);
}

/* The request is complete, or pending: its status goes to the user, and it becomes inactive or is freed. */
static enum mr_err finish_request(MPI_Request *h, struct mr_request *r, MPI_Status *status)
{
    enum mr_err err;
    if (unlikely(mr_config.recover) && mr_recv_is_pending(api_live(r)))
        return still_pending(status);
    if (unlikely(api_is_persistent(r))) {
        struct mr_request *l = r->on_complete_arg;
        if (r->kind == MR_REQ_PERSISTENT_COLL)
            api_status_empty(status);
        else
            api_status(status, &l->status);
        err = l->status.error;
        mr_request_put(l);
        r->on_complete_arg = NULL;
        r->active = false;
        return err;
    }
    if (likely(r->kind <= MR_REQ_SENDRECV)) {
        api_status(status, &r->status);
        err = r->status.error;
    } else if (r->kind == MR_REQ_GENERALIZED) {
        err = api_grequest_end(r, status);
    } else {
        api_status_empty(status);
        err = r->status.error;
    }
    free_handle(*h);
    *h = MPI_REQUEST_NULL;
    mr_request_put(r);
    return err;
}

/* ---- one request ---- */

/* The communicator whose error handler is called for an error of r; keep it beyond r's end. */
static struct mr_comm *comm_of_request(const struct mr_request *r)
{
    return r->comm ? r->comm : mr_comm_world;
}

/* A function of its own: short messages skip it, and keep no registers for it. */
static __attribute__((noinline)) enum mr_err wait_one(MPI_Request *request, MPI_Status *status, struct mr_comm **c)
{
    struct mr_request *r, *l;
    enum mr_err err;
    NOT_NULL(request);
    NOT_MISSING(status);
    if (api_done_end(request, status))
        return MR_SUCCESS;
    if (*request == MPI_REQUEST_NULL) {
        api_status_empty(status);
        return MR_SUCCESS;
    }
    CHECK(api_request(*request, &r));
    *c = comm_of_request(r);
    l = api_live(r);
    if (l) {
        wait_for_live(l);
        err = finish_request(request, r, status);
    } else {
        api_status_empty(status);
    }
out:
    return err;
}

static __attribute__((noinline)) int wait_guarded(MPI_Request *request, MPI_Status *status)
{
    struct mr_comm *c = NULL;
    enum mr_err err;
    api_enter(API_NAME(Wait));
    err = wait_one(request, status, &c);
    if (unlikely(err))
        return api_fail(c, err, API_NAME(Wait));
    api_unlock();
    return MPI_SUCCESS;
}

MPI_FN(int, Wait, (MPI_Request * request, MPI_Status *status))
{
    if (likely(api_fast && request && !abi_no_status(status) && api_done_end(request, status)))
        return MPI_SUCCESS;
    return wait_guarded(request, status);
}

MPI_FN(int, Test, (MPI_Request * request, int *flag, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(request);
    NOT_NULL(flag);
    NOT_MISSING(status);
    *flag = 1;
    if (api_done_end(request, status))
        goto out;
    if (*request == MPI_REQUEST_NULL) {
        api_status_empty(status);
        mr_progress_some();
        goto out;
    }
    CHECK(api_request(*request, &r));
    c = comm_of_request(r);
    struct mr_request *l = api_live(r);
    if (!l)
        api_status_empty(status);
    else if (api_is_complete(l) || mr_test(l) || mr_recv_is_pending(l))
        err = finish_request(request, r, status);
    else
        *flag = 0;
    API_LEAVE(c);
}

/* ---- many requests ---- */

struct many {
    int count;
    MPI_Request *handles;
    int found;       /* index of a complete request */
    bool any_active; /* some are neither null nor inactive */
    enum mr_err err; /* a handle is bad */
};

/* True if one of them is complete. Fills in the results of struct many. */
static bool scan(void *arg)
{
    struct many *m = arg;
    m->any_active = false;
    m->found = MPI_UNDEFINED;
    for (int i = 0; i < m->count; i++) {
        struct mr_request *r;
        if (m->handles[i] == MPI_REQUEST_NULL)
            continue;
        if (api_done_find(m->handles[i])) {
            m->any_active = true;
            m->found = i;
            return true;
        }
        m->err = api_request(m->handles[i], &r);
        if (m->err)
            return true;
        struct mr_request *l = api_live(r);
        if (!l)
            continue;
        m->any_active = true;
        if (api_is_complete(l)) {
            m->found = i;
            return true;
        }
    }
    return !m->any_active;
}

/* The same, in a call that blocks until one is complete. If none ever could be, the first one ends with an error. */
static bool scan_or_end(void *arg)
{
    struct many *m = arg;
    struct mr_request *first = NULL;
    if (scan(m))
        return true;
    for (int i = 0; i < m->count; i++) {
        MPI_Request h = m->handles[i];
        struct mr_request *l = h == MPI_REQUEST_NULL ? NULL : api_live(api_find_request(h));
        if (l && !mr_never_ends(l))
            return false;
        first = first ? first : l;
    }
    mr_end_unheard(first);
    return scan(m);
}

static enum mr_err check_request_array(int count, const void *requests, const char *name)
{
    if (count < 0)
        return api_bad_count(count, name);
    return count && !requests ? api_null("array_of_requests") : MR_SUCCESS;
}

#define check_arrays(count, requests, statuses) check_arrays_named(count, requests, statuses, #count)
static enum mr_err check_arrays_named(int count, const void *requests, const MPI_Status *statuses, const char *name)
{
    enum mr_err err = check_request_array(count, requests, name);
    return !err && count && abi_no_status(statuses) ? api_null("array_of_statuses") : err;
}

/* Ends an operation that was complete at once. */
static inline bool end_done(MPI_Request *h, MPI_Status *status)
{
    if (!api_done_end(h, status))
        return false;
    if (status != MPI_STATUS_IGNORE)
        status->MPI_ERROR = MPI_SUCCESS;
    return true;
}

/* Finishes request i, notes its error in its status; true with an error. */
static bool finish_one(int i, MPI_Request *handles, MPI_Status *status, struct mr_comm **c)
{
    struct mr_request *r = api_find_request(handles[i]);
    struct mr_comm *comm = comm_of_request(r);
    enum mr_err err = finish_request(&handles[i], r, status);
    int code = api_take_code(err);
    if (status != MPI_STATUS_IGNORE)
        status->MPI_ERROR = code;
    if (err)
        *c = comm;
    return err;
}

static MPI_Status *nth(MPI_Status *statuses, int i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static enum mr_err in_status(bool failed)
{
    return failed ? mr_fail(MR_ERR_IN_STATUS, "one or more requests failed") : MR_SUCCESS;
}

static void null_status(MPI_Status *st)
{
    api_status_empty(st);
    if (st != MPI_STATUS_IGNORE)
        st->MPI_ERROR = MPI_SUCCESS;
}

MPI_FN(int, Waitall, (int count, MPI_Request requests[], MPI_Status *statuses))
{
    struct mr_comm *c = NULL;
    bool failed = false;
    API_ENTER();
    CHECK(check_arrays(count, requests, statuses));
    for (int i = 0; i < count; i++) {
        struct mr_request *r;
        if (end_done(&requests[i], nth(statuses, i)))
            continue;
        if (requests[i] == MPI_REQUEST_NULL) {
            null_status(nth(statuses, i));
            continue;
        }
        CHECK(api_request(requests[i], &r));
        struct mr_request *l = api_live(r);
        if (!l) {
            null_status(nth(statuses, i));
            continue;
        }
        wait_for_live(l);
        failed |= finish_one(i, requests, nth(statuses, i), &c);
    }
    err = in_status(failed);
    API_LEAVE(c);
}

/* All complete? -1 if not; else 0, or an error. */
static int all_complete(int count, MPI_Request *handles, enum mr_err *err)
{
    for (int i = 0; i < count; i++) {
        struct mr_request *r;
        if (handles[i] == MPI_REQUEST_NULL || api_done_find(handles[i]))
            continue;
        if ((*err = api_request(handles[i], &r)))
            return 0;
        struct mr_request *l = api_live(r);
        if (l && !api_is_complete(l))
            return -1;
    }
    return 0;
}

MPI_FN(int, Testall, (int count, MPI_Request requests[], int *flag, MPI_Status *statuses))
{
    struct mr_comm *c = NULL;
    bool failed = false;
    API_ENTER();
    NOT_NULL(flag);
    CHECK(check_arrays(count, requests, statuses));
    *flag = 0;
    if (all_complete(count, requests, &err)) {
        mr_progress_some();
        if (all_complete(count, requests, &err))
            goto out;
    }
    CHECK(err);
    *flag = 1;
    for (int i = 0; i < count; i++) {
        if (end_done(&requests[i], nth(statuses, i)))
            continue;
        struct mr_request *r = requests[i] == MPI_REQUEST_NULL ? NULL : api_find_request(requests[i]);
        if (!r || !api_live(r))
            null_status(nth(statuses, i));
        else
            failed |= finish_one(i, requests, nth(statuses, i), &c);
    }
    err = in_status(failed);
    API_LEAVE(c);
}

/* The request found by scan, or none because there is none. */
static enum mr_err take_any(struct many *m, int *index, MPI_Status *status, struct mr_comm **c)
{
    *index = m->found;
    if (m->found == MPI_UNDEFINED) {
        api_status_empty(status);
        return MR_SUCCESS;
    }
    if (api_done_end(&m->handles[m->found], status))
        return MR_SUCCESS;
    struct mr_request *r = api_find_request(m->handles[m->found]);
    *c = comm_of_request(r);
    return finish_request(&m->handles[m->found], r, status);
}

MPI_FN(int, Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct many m = {.count = count, .handles = requests};
    API_ENTER();
    NOT_NULL(index);
    NOT_MISSING(status);
    CHECK(check_request_array(count, requests, "count"));
    if (!scan(&m))
        mr_progress_until(scan_or_end, &m);
    CHECK(m.err);
    err = take_any(&m, index, status, &c);
    API_LEAVE(c);
}

MPI_FN(int, Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status))
{
    struct mr_comm *c = NULL;
    struct many m = {.count = count, .handles = requests};
    API_ENTER();
    NOT_NULL(index);
    NOT_MISSING(status);
    NOT_NULL(flag);
    CHECK(check_request_array(count, requests, "count"));
    *flag = 1;
    if (!scan(&m)) {
        mr_progress_some();
        *flag = scan(&m);
    }
    CHECK(m.err);
    if (*flag)
        err = take_any(&m, index, status, &c);
    else
        *index = MPI_UNDEFINED;
    API_LEAVE(c);
}

/* All complete requests. */
static enum mr_err take_some(struct many *m, int *outcount, int *indices, MPI_Status *statuses, struct mr_comm **c)
{
    int n = 0;
    bool failed = false;
    for (int i = 0; i < m->count; i++) {
        if (end_done(&m->handles[i], nth(statuses, n))) {
            indices[n++] = i;
            continue;
        }
        struct mr_request *r = m->handles[i] == MPI_REQUEST_NULL ? NULL : api_find_request(m->handles[i]);
        struct mr_request *l = r ? api_live(r) : NULL;
        if (!l || !(l->complete || mr_recv_is_pending(l)))
            continue;
        failed |= finish_one(i, m->handles, nth(statuses, n), c);
        indices[n++] = i;
    }
    *outcount = n;
    return in_status(failed);
}

MPI_FN(int, Waitsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status *statuses))
{
    struct mr_comm *c = NULL;
    struct many m = {.count = incount, .handles = requests};
    API_ENTER();
    NOT_NULL(outcount);
    CHECK(check_arrays(incount, requests, statuses));
    if (incount)
        NOT_NULL(indices);
    if (!scan(&m))
        mr_progress_until(scan_or_end, &m);
    CHECK(m.err);
    if (m.any_active)
        err = take_some(&m, outcount, indices, statuses, &c);
    else
        *outcount = MPI_UNDEFINED;
    API_LEAVE(c);
}

MPI_FN(int, Testsome, (int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status *statuses))
{
    struct mr_comm *c = NULL;
    struct many m = {.count = incount, .handles = requests};
    API_ENTER();
    NOT_NULL(outcount);
    CHECK(check_arrays(incount, requests, statuses));
    if (incount)
        NOT_NULL(indices);
    mr_progress();
    if (!scan(&m)) {
        mr_progress_some();
        scan(&m);
    }
    CHECK(m.err);
    if (m.any_active)
        err = take_some(&m, outcount, indices, statuses, &c);
    else
        *outcount = MPI_UNDEFINED;
    API_LEAVE(c);
}

/* ---- freeing, cancelling ---- */

static void free_persistent(struct mr_request *r)
{
    if (r->on_complete_arg)
        mr_request_put(r->on_complete_arg); /* goes on alone */
    if (r->kind == MR_REQ_PERSISTENT_COLL || r->kind == MR_REQ_PERSISTENT_PART)
        api_copy(r, API_COPY_FREE);
    if (r->kind == MR_REQ_PERSISTENT_COLL)
        mr_coll_drop(r->schedule);
    else if (r->kind == MR_REQ_PERSISTENT_PART)
        mr_part_free(r->part);
    else
        mr_type_put(r->type);
    r->type = NULL;
    mr_request_put(r);
}

/* The kind of a request that can be neither freed before completion nor cancelled; NULL: it can. */
static const char *stays(const struct mr_request *l)
{
    switch (l->kind) {
    case MR_REQ_COLL:
        return "collective";
    case MR_REQ_PART:
        return "partitioned";
    case MR_REQ_RMA:
        return "one-sided";
    default:
        return NULL;
    }
}

MPI_FN(int, Request_free, (MPI_Request * request))
{
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(request);
    CHECK(api_request(*request, &r));
    struct mr_request *l = api_live(r);
    if (l && stays(l))
        CHECK(mr_fail(MR_ERR_REQUEST, "a %s operation that is under way cannot be freed: wait for it", stays(l)));
    if (r->kind == MR_REQ_GENERALIZED) {
        err = api_grequest_free(r);
    } else {
        free_handle(*request);
        if (api_is_persistent(r))
            free_persistent(r);
        else
            mr_request_put(r);
    }
    *request = MPI_REQUEST_NULL;
    API_LEAVE(NULL);
}

MPI_FN(int, Cancel, (MPI_Request * request))
{
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(request);
    CHECK(api_request(*request, &r));
    struct mr_request *l = api_live(r);
    if (l && l->kind == MR_REQ_GENERALIZED) {
        err = api_grequest_cancel(l);
    } else if (l && stays(l)) {
        CHECK(mr_fail(MR_ERR_REQUEST, "a %s operation cannot be cancelled", stays(l)));
    } else if (l && l->kind == MR_REQ_FLUSH) {
        CHECK(mr_fail(MR_ERR_REQUEST, "the flushing of a buffer cannot be cancelled"));
    } else if (l) {
        err = mr_cancel(l);
    }
    API_LEAVE(NULL);
}
