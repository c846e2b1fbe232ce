/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results awaited by an origin, in a table by which targets name them, an id being index and generation; and the
 * operations with a request of the program.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/core/core.h"
#include "libmrmpi/rma/internal.h"

struct result {
    uint32_t index, generation;
    struct mr_rma_peer *peer; /* NULL: free */
    struct mr_rma_job *job;
    struct mr_rma_data to;
    size_t offset, len, left;
    struct result *next; /* of the free ones */
};

static struct {
    struct result **at;
    uint32_t num, room;
    struct result *free;
} results;

/* ---- operations with a request ----------------------------------------------------------------------------------- */

struct mr_rma_job *mr_rma_job_new(struct mr_win *w)
{
    struct mr_rma_job *j = calloc(1, sizeof(*j));

    if (j)
        *j = (struct mr_rma_job){.win = w, .req = mr_request_new(MR_REQ_RMA, w->comm), .parts = 1};
    if (j && !j->req) {
        free(j);
        j = NULL;
    }
    if (j)
        mr_request_get(j->req); /* the program's; ours goes with the job */
    else
        mr_error_detail("no memory for a request");
    return j;
}

void mr_rma_job_part_done(struct mr_rma_job *j, enum mr_err err)
{
    struct mr_request *req;

    if (!j)
        return;
    if (err)
        j->err = err;
    if (--j->parts)
        return;
    req = j->req;
    req->status.error = j->err;
    mr_win_note(j->win, j->err);
    free(j);
    mr_request_complete(req);
    mr_request_put(req);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static bool grow_results(void)
{
    uint32_t room = results.room ? 2 * results.room : 64;
    struct result **more = realloc(results.at, room * sizeof(*more));

    if (!more)
        return false;
    results.at = more;
    results.room = room;
    return true;
}

static struct result *take_result(void)
{
    struct result *r = results.free;

    if (r) {
        results.free = r->next;
        return r;
    }
    if (results.num == results.room && !grow_results())
        return NULL;
    r = calloc(1, sizeof(*r));
    if (r) {
        r->index = results.num;
        r->generation = 1;
        results.at[results.num++] = r;
    }
    return r;
}

uint64_t mr_result_expect(struct mr_rma_peer *p, struct mr_rma_job *j, const struct mr_rma_data *to, size_t offset,
                          size_t len)
{
    struct result *r = take_result();

    if (!r) {
        mr_error_detail("no memory to await a result of rank %d with", p->rank);
        return 0;
    }
    r->peer = p;
    r->job = j;
    r->to = *to;
    mr_type_get(r->to.type);
    r->offset = offset;
    r->len = r->left = len;
    p->open++;
    p->awaited++;
    if (j)
        j->parts++;
    return (uint64_t)r->generation << 32 | r->index;
}

static void end_result(struct result *r, enum mr_err err)
{
    struct mr_rma_peer *p = r->peer;
    struct mr_rma_job *j = r->job;

    mr_type_put(r->to.type);
    r->peer = NULL;
    r->generation = r->generation == UINT32_MAX ? 1 : r->generation + 1;
    r->next = results.free;
    results.free = r;
    p->open--;
    p->awaited--;
    if (err && !j)
        p->refused = err;
    mr_rma_job_part_done(j, err);
}

static struct result *find_result(const struct mr_rma_peer *p, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    struct result *r = index < results.num ? results.at[index] : NULL;

    return r && r->peer == p && r->generation == id >> 32 ? r : NULL;
}

void mr_result_forget(struct mr_rma_peer *p, uint64_t id)
{
    struct result *r = find_result(p, id);

    if (r)
        end_result(r, MR_SUCCESS);
}

void mr_result_arrived(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *data, size_t len)
{
    struct result *r = find_result(p, hdr->rreq);

    if (!r) {
        mr_log(MR_LOG_DEBUG, "a result of rank %d of a window that nobody awaits", p->rank);
        return;
    }
    if (hdr->tag == MR_RMA_REFUSED) {
        end_result(r, hdr->sreq > MR_SUCCESS && hdr->sreq <= MR_ERR_LAST ? (enum mr_err)hdr->sreq : MR_ERR_OTHER);
        return;
    }
    if (hdr->sreq > r->len || len > r->len - hdr->sreq || len > r->left) {
        mr_log(MR_LOG_ERROR, "dropped a damaged result of rank %d of a window", p->rank);
        return;
    }
    mr_type_unpack(r->to.buf, r->to.count, r->to.type, r->offset + hdr->sreq, data, len);
    r->left -= len;
    if (!r->left)
        end_result(r, MR_SUCCESS);
}

void mr_results_fail(struct mr_rma_peer *p, enum mr_err err)
{
    for (uint32_t i = 0; i < results.num; i++)
        if (results.at[i]->peer == p)
            end_result(results.at[i], err);
}

void mr_results_finalize(void)
{
    for (uint32_t i = 0; i < results.num; i++)
        free(results.at[i]);
    free(results.at);
    memset(&results, 0, sizeof(results));
}
