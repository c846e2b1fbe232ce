/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queries of several requests without completing them (MPI-4.1 section 3.7.6): handles, generalized requests and active
 * persistent requests are unchanged, and so are errors, reported in statuses only.
 */
#include "libmrmpi/api/request.h"

MPI_FN(int, Request_get_status, (MPI_Request request, int *flag, MPI_Status *status))
{
    struct mr_request *r;
    API_ENTER();
    NOT_NULL(flag);
    NOT_MISSING(status);
    *flag = 1;
    api_status_empty(status);
    if (request == MPI_REQUEST_NULL)
        goto out;
    CHECK(api_request(request, &r));
    struct mr_request *l = api_live(r);
    if (!l)
        goto out;
    *flag = api_is_complete(l) || mr_test(l);
    if (!*flag)
        goto out;
    if (l->kind == MR_REQ_GENERALIZED)
        err = api_grequest_query(l, status);
    else if (l->kind != MR_REQ_COLL && l->kind != MR_REQ_RMA)
        api_status(status, &l->status);
    API_LEAVE(NULL);
}

/* Some requests, and the result of a query. */
struct request_scan {
    int count;
    const MPI_Request *handles;
    int wanted;                  /* so many, or all active ones, are enough */
    int active, complete, first; /* how many are active, and of these complete; the first complete one */
    enum mr_err err;             /* a handle is bad */
};

/* The request under way behind handle i, NULL for none: null, or inactive. */
static struct mr_request *live_request(struct request_scan *k, int i)
{
    struct mr_request *r;
    if (k->handles[i] == MPI_REQUEST_NULL)
        return NULL;
    k->err = api_request(k->handles[i], &r);
    return k->err ? NULL : api_live(r);
}

static void count_requests(struct request_scan *k)
{
    k->active = k->complete = 0;
    k->first = MPI_UNDEFINED;
    for (int i = 0; i < k->count; i++) {
        struct mr_request *l = live_request(k, i);
        if (k->err)
            return;
        if (!l)
            continue;
        k->active++;
        if (!api_is_complete(l))
            continue;
        if (!k->complete++)
            k->first = i;
    }
}

static bool enough(void *arg)
{
    struct request_scan *k = arg;
    count_requests(k);
    return k->err || k->complete >= (k->wanted < k->active ? k->wanted : k->active);
}

static void scan_for(struct request_scan *k, int wanted)
{
    k->wanted = wanted;
    mr_progress_try(enough, k);
}

/* The status of a completion. */
static enum mr_err status_of(struct mr_request *l, MPI_Status *status)
{
    if (l && l->kind == MR_REQ_GENERALIZED)
        return api_grequest_query(l, status);
    if (!l || l->kind == MR_REQ_COLL || l->kind == MR_REQ_RMA)
        api_status_empty(status);
    else
        api_status(status, &l->status);
    return MR_SUCCESS;
}

/* The same, with its error. */
static enum mr_err status_in_array(struct mr_request *l, MPI_Status *statuses, int i)
{
    MPI_Status *st = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    enum mr_err err = status_of(l, st);
    if (st != MPI_STATUS_IGNORE)
        st->MPI_ERROR = err ? api_code_of(err) : abi_error_of[l ? l->status.error : MR_SUCCESS];
    return err;
}

static enum mr_err check_requests(int count, const void *requests, const char *name)
{
    if (count < 0)
        return api_bad_count(count, name);
    return count && !requests ? api_null("array_of_requests") : MR_SUCCESS;
}

MPI_FN(int, Request_get_status_any,
       (int count, const MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status))
{
    struct request_scan k = {.count = count, .handles = array_of_requests};
    API_ENTER();
    CHECK(check_requests(count, array_of_requests, "count"));
    NOT_NULL(index);
    NOT_NULL(flag);
    NOT_MISSING(status);
    scan_for(&k, 1);
    CHECK(k.err);
    *index = k.first;
    *flag = k.complete || !k.active;
    if (*flag)
        err = status_of(k.complete ? live_request(&k, k.first) : NULL, status);
    API_LEAVE(NULL);
}

MPI_FN(int, Request_get_status_all,
       (int count, const MPI_Request array_of_requests[], int *flag, MPI_Status *array_of_statuses))
{
    struct request_scan k = {.count = count, .handles = array_of_requests};
    API_ENTER();
    CHECK(check_requests(count, array_of_requests, "count"));
    NOT_NULL(flag);
    if (count)
        NOT_MISSING(array_of_statuses);
    scan_for(&k, count);
    CHECK(k.err);
    *flag = k.complete == k.active;
    for (int i = 0; i < count && *flag; i++)
        CHECK(status_in_array(live_request(&k, i), array_of_statuses, i));
    API_LEAVE(NULL);
}

MPI_FN(int, Request_get_status_some,
       (int incount, const MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
        MPI_Status *array_of_statuses))
{
    struct request_scan k = {.count = incount, .handles = array_of_requests};
    API_ENTER();
    CHECK(check_requests(incount, array_of_requests, "incount"));
    NOT_NULL(outcount);
    if (incount) {
        NOT_NULL(array_of_indices);
        NOT_MISSING(array_of_statuses);
    }
    scan_for(&k, incount);
    CHECK(k.err);
    int n = 0;
    for (int i = 0; i < incount && n < k.complete; i++) {
        struct mr_request *l = live_request(&k, i);
        if (!l || !l->complete)
            continue;
        CHECK(status_in_array(l, array_of_statuses, n));
        array_of_indices[n++] = i;
    }
    *outcount = k.active ? n : MPI_UNDEFINED;
    API_LEAVE(NULL);
}
