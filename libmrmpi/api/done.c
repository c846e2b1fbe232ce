/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of operations that were complete at once (done.h), and requests made from records. */
#include "libmrmpi/api/done.h"

static struct api_done records[API_DONE_MOST];
struct api_done *const api_dones = records;
struct api_done *api_done_free;
struct mr_request api_done_unused;

/* Handles of an earlier time stay stale. */
void api_done_init(bool keep)
{
    api_done_free = NULL;
    for (int i = API_DONE_MOST; i--;) {
        struct api_done *d = &api_dones[i];
        if (!d->handle)
            d->handle = abi_handle_first(ABI_DONE, (uint32_t)i);
        api_done_release(d);
    }
    if (keep)
        api_done_free = NULL;
}

static struct api_done *used(MPI_Request h)
{
    const int n = abi_number(h);
    struct api_done *d = &api_dones[(uint32_t)n % API_DONE_MOST];
    return d->handle == n && d->request != &api_done_unused ? d : NULL;
}

static struct mr_request *make_done_request(const struct api_done *d)
{
    if (d->comm)
        return mr_request_sent(d->comm, d->dest, d->sent_tag, d->comm->context, d->id);
    const struct mr_status st = abi_kept_status(&d->status);
    return mr_request_received(&st);
}

struct mr_request *api_done_request(MPI_Request h)
{
    struct api_done *d = used(h);
    if (d && !d->request)
        d->request = make_done_request(d);
    return d ? d->request : NULL;
}

void api_done_drop(MPI_Request h)
{
    struct api_done *d = used(h);
    if (d->comm && --d->comm->refs == 0) {
        d->comm->refs = 1;
        mr_comm_put(d->comm);
    }
    api_done_release(d);
}
