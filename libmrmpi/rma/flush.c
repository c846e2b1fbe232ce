/* SPDX-License-Identifier: BSD-3-Clause */
/* The origin waits: for its lock at a target, and until what it has asked for is done. */
#include "libmrmpi/rma/internal.h"

enum mr_err mr_rma_take_refusal(struct mr_rma_peer *p)
{
    enum mr_err err = p->refused;

    if (p->writer && p->writer->error) {
        p->writer->error = 0;
        err = err ? err : MR_ERR_PROC_FAILED;
    }
    p->refused = MR_SUCCESS;
    return err ? mr_fail(err, "rank %d of the window has refused an operation", p->rank) : MR_SUCCESS;
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

struct wanted {
    struct mr_rma_mutex *mutex;
    bool exclusive;
};

static bool have_taken(void *arg)
{
    struct wanted *want = arg;

    return mr_lock_try(want->mutex, want->exclusive);
}

enum mr_err mr_lock_begin(struct mr_rma_peer *p)
{
    struct mr_rma_mutex *mutex = p->win->in->target[p->rank].mutex;
    bool exclusive = p->wanted == MR_HOLD_EXCLUSIVE;
    enum mr_err err;

    if (p->held || p->locking || p->unchecked)
        return MR_SUCCESS;
    if (mutex) {
        struct wanted want = {mutex, exclusive};

        while (!have_taken(&want))
            mr_progress_some();
        p->held = true;
        return MR_SUCCESS;
    }
    err = mr_rma_tell(p, MR_RMA_LOCK, (struct mr_hdr){.flags = exclusive});
    p->locking = !err;
    return err;
}

static bool is_held(const struct mr_rma_peer *p, uint32_t goal)
{
    return p->held || (!p->locking && p->refused);
}

enum mr_err mr_lock_ensure(struct mr_rma_peer *p)
{
    enum mr_err err;

    if (p->held || p->unchecked)
        return MR_SUCCESS;
    err = mr_lock_begin(p);
    if (!err)
        err = mr_rma_await(p, is_held, 0);
    return !err && !p->held ? mr_rma_take_refusal(p) : err;
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static bool is_local(const struct mr_rma_peer *p, uint32_t goal)
{
    return !mr_rma_is_busy(p);
}

static bool is_flushed(const struct mr_rma_peer *p, uint32_t goal)
{
    return !mr_rma_is_busy(p) && (int32_t)(p->flushed - goal) >= 0;
}

/* What is collected goes now. */
static void post(struct mr_rma_peer *p)
{
    if (p->writer && p->writer->open)
        mr_vc_writer_post(p->writer);
}

enum mr_err mr_rma_flush_local(struct mr_rma_peer *p)
{
    enum mr_err err;

    post(p);
    err = mr_rma_await(p, is_local, 0);

    return err ? err : mr_rma_take_refusal(p);
}

/* The question whether all is done, unless it has been asked. */
static enum mr_err ask(struct mr_rma_peer *p)
{
    enum mr_err err;

    if (p->flushed == p->issued || p->asked == p->issued)
        return MR_SUCCESS;
    err = mr_rma_tell(p, MR_RMA_FLUSH, (struct mr_hdr){.sreq = p->issued});
    if (!err)
        p->asked = p->issued;
    return err;
}

enum mr_err mr_rma_flush(struct mr_rma_peer *p)
{
    uint32_t again;
    enum mr_err err;

    do {
        uint32_t goal = p->issued;

        again = p->again;
        post(p);
        err = ask(p);
        if (!err)
            err = mr_rma_await(p, is_flushed, goal);
    } while (!err && p->again != again); /* what went another way meanwhile has not been asked about */
    return err ? err : mr_rma_take_refusal(p);
}

enum mr_err mr_rma_flush_peers(struct mr_win *w)
{
    enum mr_err first = MR_SUCCESS, err;

    for (struct mr_rma_peer *p = w->in->peers; p; p = p->next)
        if (!p->error) {
            post(p);
            ask(p);
        }
    for (struct mr_rma_peer *p = w->in->peers; p; p = p->next)
        if ((mr_rma_is_busy(p) || p->flushed != p->issued || p->refused) && (err = mr_rma_flush(p)) && !first)
            first = err;
    return first;
}
