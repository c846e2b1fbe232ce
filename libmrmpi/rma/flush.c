/* SPDX-License-Identifier: BSD-3-Clause */
/* The origin waits: for its lock at a target, and for its requested operations. */
#include <string.h>

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

static void far_held(void *owner)
{
    struct mr_rma_peer *p = owner;

    p->held = true;
    p->locking = false;
}

static void far_ask(void *owner)
{
    struct mr_rma_peer *p = owner;

    p->locking = !mr_rma_tell(p, MR_RMA_LOCK, (struct mr_hdr){.flags = p->wanted == MR_HOLD_EXCLUSIVE});
}

static void far_clear(void *owner, uint32_t delegated)
{
    mr_rma_tell(owner, MR_RMA_CLEAR, (struct mr_hdr){.sreq = delegated});
}

static void far_ask_delegation(void *owner, uint32_t serial)
{
    mr_rma_tell(owner, MR_RMA_LOCK, (struct mr_hdr){.flags = MR_RMA_ALONE | MR_RMA_DELEGATE, .sreq = serial});
}

static void far_withdraw(void *owner, uint32_t serial)
{
    mr_rma_tell(owner, MR_RMA_WITHDRAW, (struct mr_hdr){.sreq = serial});
}

static void far_give_back(void *owner, uint32_t serial)
{
    mr_rma_tell(owner, MR_RMA_WITHDRAW, (struct mr_hdr){.flags = MR_RMA_DELEGATE, .sreq = serial});
}

static const struct mr_far_events far_events = {.held = far_held,
                                                .ask = far_ask,
                                                .clear = far_clear,
                                                .ask_delegation = far_ask_delegation,
                                                .withdraw = far_withdraw,
                                                .give_back = far_give_back};

/* The first lock goes by packets: it may be the only one. */
static void ask_slot(struct mr_rma_peer *p)
{
    struct mr_vc *vc = mr_rma_vc(p->win, p->rank);

    if (p->far_asked || !mr_net_reaches(vc) || !(mr_vc_caps(vc, sizeof(uint64_t)) & MR_VC_WINDOW))
        return;
    p->far_asked = !mr_rma_tell(p, MR_RMA_SLOT, (struct mr_hdr){0});
}

void mr_lock_slot_is(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_remote keys;
    struct mr_taker as;

    if (p->far || len != sizeof(keys))
        return;
    memcpy(&keys, payload, sizeof(keys));
    mr_taker_init(&as, (uint64_t)p->win->comm->rank + 1, (uint32_t)hdr->sreq, (uint32_t)hdr->rreq);
    p->far = mr_far_open(mr_rma_vc(p->win, p->rank), &keys, &as, &far_events, p);
    if (p->far && mr_win_part_may_be_orphaned(p->win, p->rank)) /* news of the failure came before */
        mr_far_only_ask(p->far);
}

static bool is_settled(void *arg)
{
    const struct mr_win *w = arg;

    for (const struct mr_rma_peer *p = w->in->peers; p; p = p->next)
        if (p->far && !p->error && !mr_far_is_quiet(p->far))
            return false;
    return true;
}

void mr_lock_settle(struct mr_win *w)
{
    if (!is_settled(w))
        mr_progress_until(is_settled, w);
}

static enum mr_err take_near(struct mr_rma_peer *p, bool exclusive)
{
    const struct mr_win_target *t = &p->win->in->target[p->rank];
    enum mr_err err;

    while (!mr_lock_part_try(&t->mutex->lock, exclusive)) { /* our own may move while we wait */
        if ((err = mr_win_refusal(p->win)))
            return err;
        if (mr_win_has_orphans(p->win))
            return mr_fail(MR_ERR_PROC_FAILED, "the lock of rank %d of the window may be that of a failed rank",
                           p->rank);
        mr_progress_some();
    }
    p->held = true;
    return MR_SUCCESS;
}

enum mr_err mr_lock_begin(struct mr_rma_peer *p)
{
    bool exclusive = p->wanted == MR_HOLD_EXCLUSIVE;
    enum mr_err err;

    if (p->held || p->locking || p->unchecked)
        return MR_SUCCESS;
    if (p->win->in->target[p->rank].mutex)
        return take_near(p, exclusive);
    p->locking = true;
    if (p->far && mr_far_begin(p->far, exclusive))
        return MR_SUCCESS;
    err = mr_rma_tell(p, MR_RMA_LOCK, (struct mr_hdr){.flags = exclusive});
    p->locking = !err;
    if (!err)
        ask_slot(p);
    return err;
}

static bool is_lock_held(const struct mr_rma_peer *p, uint32_t goal)
{
    return p->held || (!p->locking && p->refused) || p->win->comm->source_revoked;
}

enum mr_err mr_lock_ensure(struct mr_rma_peer *p)
{
    enum mr_err err;

    if (p->held || p->unchecked)
        return MR_SUCCESS;
    err = mr_lock_begin(p);
    if (!err)
        err = mr_rma_await(p, is_lock_held, 0);
    if (!err && !p->held)
        err = mr_rma_take_refusal(p);
    return err || p->held ? err : mr_win_refusal(p->win);
}

/* ---- completion -------------------------------------------------------------------------------------------------- */

static bool is_local(const struct mr_rma_peer *p, uint32_t goal)
{
    return !mr_rma_is_busy(p);
}

static bool is_flushed(const struct mr_rma_peer *p, uint32_t goal)
{
    return !mr_rma_is_busy(p) && (int32_t)(p->flushed - goal) >= 0;
}

/* Posts collected writes now. */
static void post_collected(struct mr_rma_peer *p)
{
    if (p->writer && p->writer->open)
        mr_net_writer_post(p->writer);
}

enum mr_err mr_rma_flush_local(struct mr_rma_peer *p)
{
    enum mr_err err;

    post_collected(p);
    err = mr_rma_await(p, is_local, 0);

    return err ? err : mr_rma_take_refusal(p);
}

/* The question whether all is done, unless it has been asked. */
static enum mr_err ask_flush(struct mr_rma_peer *p)
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
        post_collected(p);
        err = ask_flush(p);
        if (!err)
            err = mr_rma_await(p, is_flushed, goal);
    } while (!err && p->again != again); /* operations done by other means meanwhile are not covered */
    return err ? err : mr_rma_take_refusal(p);
}

enum mr_err mr_rma_flush_peers(struct mr_win *w)
{
    enum mr_err first = MR_SUCCESS, err;

    for (struct mr_rma_peer *p = w->in->peers; p; p = p->next)
        if (!p->error) {
            post_collected(p);
            ask_flush(p);
        }
    for (struct mr_rma_peer *p = w->in->peers; p; p = p->next)
        if ((mr_rma_is_busy(p) || p->flushed != p->issued || p->refused) && (err = mr_rma_flush(p)) && !first)
            first = err;
    return first;
}
