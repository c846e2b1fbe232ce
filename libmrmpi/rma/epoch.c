/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epochs (MPI-4.1 section 12.5). The permitted operations of a process are in the window's state, and for locks and
 * groups in its peers. Processes of a node see each other's stores through shared memory: each synchronizing call
 * orders them.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/rma/internal.h"

static void order_memory(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

static enum mr_err wrong(const char *what)
{
    return mr_fail(MR_ERR_RMA_SYNC, "%s", what);
}

static bool in_passive(const struct mr_win_state *s)
{
    return s->lock_all || s->num_locked;
}

bool mr_epoch_is_over(const struct mr_win *w)
{
    return !in_passive(w->in) && !w->in->access && !w->in->exposure;
}

enum mr_err mr_epoch_admit(struct mr_win *w, int rank, struct mr_rma_peer **p)
{
    struct mr_win_state *s = w->in;

    if (!(*p = mr_rma_peer_get(w, rank)))
        return MR_ERR_NO_MEM;
    if ((*p)->error)
        return mr_rma_lost(*p);
    if ((*p)->wanted)
        return mr_lock_ensure(*p);
    if (s->lock_all) {
        (*p)->wanted = MR_HOLD_SHARED;
        (*p)->unchecked = s->all_unchecked;
        return mr_lock_ensure(*p);
    }
    if (s->fenced || (*p)->started)
        return MR_SUCCESS;
    return mr_fail(MR_ERR_RMA_SYNC,
                   "there is no access epoch for rank %d: it begins with MPI_Win_fence, MPI_Win_start, "
                   "MPI_Win_lock or MPI_Win_lock_all",
                   rank);
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

static enum mr_err win_barrier(struct mr_win *w)
{
    struct mr_schedule *s = MR_COLL_AT_ONCE;
    enum mr_err err = mr_coll_barrier(w->comm, &s);

    return mr_coll_run(err, s);
}

/*
 * With NOPRECEDE nothing is to be completed. The barrier stays: later writes of others must not come before this
 * process's own changes of its memory. But a fence that ends nothing and begins nothing has nothing to do.
 */
enum mr_err mr_win_fence(struct mr_win *w, unsigned assert)
{
    struct mr_win_state *s = w->in;
    enum mr_err err = MR_SUCCESS, met = MR_SUCCESS;

    if (!mr_epoch_is_over(w))
        return wrong("MPI_Win_fence within an epoch of locks, MPI_Win_start or MPI_Win_post");
    order_memory();
    if (!(assert &MR_MODE_NOPRECEDE))
        err = mr_rma_flush_peers(w);
    if (!(assert &MR_MODE_NOPRECEDE &&assert &MR_MODE_NOSUCCEED))
        met = win_barrier(w);
    order_memory();
    s->fenced = !(assert &MR_MODE_NOSUCCEED);
    err = err ? err : met;
    return err ? err : mr_win_refusal(w);
}

/* ---- post, start, complete, wait --------------------------------------------------------------------------------- */

/* The rank in the window of the i-th of g; MR_UNDEFINED: not a member. */
static int win_rank(const struct mr_win *w, const struct mr_group *g, int i)
{
    return mr_group_find(w->comm->group, g->world[i]);
}

static enum mr_err check_group(struct mr_win *w, const struct mr_group *g)
{
    for (int i = 0; i < g->size; i++) {
        int rank = win_rank(w, g, i);

        if (rank == MR_UNDEFINED)
            return mr_fail(MR_ERR_GROUP, "rank %d of the group is not in the window's", i);
        if (!mr_rma_peer_get(w, rank))
            return MR_ERR_NO_MEM;
    }
    return MR_SUCCESS;
}

static struct mr_rma_peer *member(const struct mr_win *w, const struct mr_group *g, int i)
{
    return w->in->target[win_rank(w, g, i)].peer;
}

enum mr_err mr_win_post(struct mr_win *w, struct mr_group *g, unsigned assert)
{
    enum mr_err err;

    if (w->in->exposure)
        return wrong("MPI_Win_post while an exposure epoch is open: MPI_Win_wait ends it");
    if (in_passive(w->in))
        return wrong("MPI_Win_post within an epoch of locks");
    err = mr_win_refusal(w);
    if (!err)
        err = check_group(w, g);
    if (err)
        return err;
    order_memory();
    w->in->fenced = false;
    w->in->exposure = mr_group_get(g);
    for (int i = 0; i < g->size; i++) {
        struct mr_rma_peer *p = member(w, g, i);
        enum mr_err told = MR_SUCCESS;

        p->exposed = true;
        if (!(assert &MR_MODE_NOCHECK))
            told = mr_rma_tell(p, MR_RMA_POST, (struct mr_hdr){0});
        if (told && !err)
            err = told;
    }
    return err;
}

/* The peer's program has called MPI_Finalize: it neither posts nor completes any more. */
static bool parts(const struct mr_rma_peer *p)
{
    return mr_peer_parts(mr_comm_world_rank(p->win->comm, p->rank));
}

static enum mr_err fail_alone(const struct mr_rma_peer *p)
{
    enum mr_err refusal = mr_win_refusal(p->win);

    if (refusal)
        return refusal;
    if (parts(p))
        return mr_fail(MR_ERR_PROC_FAILED, "rank %d of the window has called MPI_Finalize", p->rank);
    return mr_fail(MR_ERR_PROC_FAILED, "a rank of the window has failed, and rank %d, which lives, may have given up",
                   p->rank);
}

/* No call of the peer's program is worth waiting for. */
static bool waits_alone(const struct mr_rma_peer *p)
{
    return parts(p) || mr_win_lacks_member(p->win);
}

static bool posted_or_alone(const struct mr_rma_peer *p, uint32_t goal)
{
    return p->posts > 0 || waits_alone(p);
}

/* The post is used up. */
static enum mr_err await_post(struct mr_rma_peer *p)
{
    enum mr_err err = mr_rma_await(p, posted_or_alone, 0);

    if (err)
        return err;
    if (!p->posts)
        return fail_alone(p);
    p->posts--;
    return MR_SUCCESS;
}

enum mr_err mr_win_start(struct mr_win *w, struct mr_group *g, unsigned assert)
{
    enum mr_err err;

    if (w->in->access)
        return wrong("MPI_Win_start while an access epoch is open: MPI_Win_complete ends it");
    if (in_passive(w->in))
        return wrong("MPI_Win_start within an epoch of locks");
    err = mr_win_refusal(w);
    if (!err)
        err = check_group(w, g);
    if (err)
        return err;
    w->in->fenced = false;
    w->in->access = mr_group_get(g);
    for (int i = 0; i < g->size; i++) {
        struct mr_rma_peer *p = member(w, g, i);
        enum mr_err come = assert &MR_MODE_NOCHECK ? MR_SUCCESS : await_post(p);

        if (come && !err)
            err = come;
        p->started = true;
    }
    order_memory();
    return err;
}

enum mr_err mr_win_complete(struct mr_win *w)
{
    struct mr_group *g = w->in->access;
    enum mr_err first = MR_SUCCESS;

    if (!g)
        return wrong("MPI_Win_complete without MPI_Win_start");
    order_memory();
    for (int i = 0; i < g->size; i++) {
        struct mr_rma_peer *p = member(w, g, i);
        enum mr_err err = mr_rma_flush_local(p);

        if (err && !first)
            first = err;
        p->started = false;
        err = p->error ? MR_SUCCESS : mr_rma_tell(p, MR_RMA_COMPLETE, (struct mr_hdr){.sreq = p->issued});
        if (err && !first)
            first = err;
    }
    w->in->access = NULL;
    mr_group_put(g);
    return first ? first : mr_win_refusal(w);
}

static bool has_completed(const struct mr_rma_peer *p, uint32_t goal)
{
    return p->completed && (int32_t)(p->done - p->complete_at) >= 0;
}

/* A peer that completed and lives has sent all operations before: they come. */
static bool completed_or_alone(const struct mr_rma_peer *p, uint32_t goal)
{
    return has_completed(p, 0) || (!p->completed && waits_alone(p));
}

static enum mr_err await_complete(struct mr_rma_peer *p)
{
    enum mr_err err = mr_rma_await(p, completed_or_alone, 0);

    return err || has_completed(p, 0) ? err : fail_alone(p);
}

static void end_exposure(struct mr_win *w)
{
    struct mr_group *g = w->in->exposure;

    for (int i = 0; i < g->size; i++) {
        struct mr_rma_peer *p = member(w, g, i);

        p->exposed = p->completed = false;
    }
    w->in->exposure = NULL;
    mr_group_put(g);
    order_memory();
}

enum mr_err mr_win_wait(struct mr_win *w)
{
    struct mr_group *g = w->in->exposure;
    enum mr_err first = MR_SUCCESS;

    if (!g)
        return wrong("MPI_Win_wait without MPI_Win_post");
    for (int i = 0; i < g->size; i++) {
        enum mr_err err = await_complete(member(w, g, i));

        if (err && !first)
            first = err;
    }
    end_exposure(w);
    return first ? first : mr_win_refusal(w);
}

static bool all_completed(void *arg)
{
    const struct mr_win *w = arg;
    const struct mr_group *g = w->in->exposure;

    for (int i = 0; i < g->size; i++)
        if (!member(w, g, i)->error && !completed_or_alone(member(w, g, i), 0))
            return false;
    return true;
}

enum mr_err mr_win_test(struct mr_win *w, bool *done)
{
    *done = false;
    if (!w->in->exposure)
        return wrong("MPI_Win_test without MPI_Win_post");
    *done = mr_progress_try(all_completed, w);
    return *done ? mr_win_wait(w) : MR_SUCCESS;
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

static enum mr_err may_lock(const struct mr_win *w)
{
    if (w->hints.no_locks)
        return wrong("the window was made with the hint no_locks");
    if (w->in->lock_all)
        return wrong("MPI_Win_lock_all has begun an epoch: MPI_Win_unlock_all ends it");
    if (w->in->access || w->in->exposure)
        return wrong("an epoch of MPI_Win_start or MPI_Win_post is open");
    return mr_win_refusal(w);
}

enum mr_err mr_win_lock(struct mr_win *w, int rank, bool exclusive, unsigned assert)
{
    enum mr_err err = may_lock(w);
    struct mr_rma_peer *p;

    if (err)
        return err;
    if (!(p = mr_rma_peer_get(w, rank)))
        return MR_ERR_NO_MEM;
    if (p->wanted)
        return mr_fail(MR_ERR_RMA_SYNC, "rank %d of the window is locked already", rank);
    if (p->error)
        return mr_rma_lost(p);
    p->wanted = exclusive ? MR_HOLD_EXCLUSIVE : MR_HOLD_SHARED;
    p->unchecked = assert &MR_MODE_NOCHECK;
    err = mr_lock_begin(p);
    if (err) {
        p->wanted = MR_HOLD_NONE;
        p->unchecked = false;
        return err;
    }
    w->in->fenced = false;
    w->in->num_locked++;
    order_memory();
    return MR_SUCCESS;
}

/*
 * Everything is done and the lock is given back. A requested lock that has not come is waited for: the answer must not
 * meet the next request. In a revoked window nothing is waited for, and there is no next request.
 */
static enum mr_err unlock(struct mr_rma_peer *p)
{
    struct mr_rma_mutex *mutex = p->win->in->target[p->rank].mutex;
    bool exclusive = p->wanted == MR_HOLD_EXCLUSIVE;
    enum mr_err err = p->locking ? mr_lock_ensure(p) : MR_SUCCESS, told;
    bool far = p->far && mr_far_holds(p->far);

    order_memory();
    if (!err && p->held && !mutex && !far && !p->error && !mr_rma_is_busy(p)) {
        /* one packet requests both */
        bool answer = p->flushed != p->issued;

        err = mr_rma_tell(p, MR_RMA_UNLOCK, (struct mr_hdr){.flags = answer, .sreq = p->issued});
        p->asked = p->issued;
        if (!err)
            err = mr_rma_flush(p);
        p->held = false;
    } else if (!err) {
        err = mr_rma_flush(p);
    }
    if (p->held && mutex)
        mr_lock_part_drop(&mutex->lock, exclusive);
    else if (far)
        mr_far_give(p->far);
    else if (p->held && !p->error && (told = mr_rma_tell(p, MR_RMA_UNLOCK, (struct mr_hdr){.sreq = p->issued})) && !err)
        err = told;
    p->held = p->locking = p->unchecked = false;
    p->wanted = MR_HOLD_NONE;
    return err;
}

enum mr_err mr_win_unlock(struct mr_win *w, int rank)
{
    struct mr_rma_peer *p = w->in->target[rank].peer;
    unsigned polls = mr_progress_polls;
    enum mr_err err;

    if (!p || !p->wanted || w->in->lock_all)
        return mr_fail(MR_ERR_RMA_SYNC, "rank %d of the window is not locked", rank);
    w->in->num_locked--;
    err = unlock(p);
    return mr_rma_poll(w, polls, rank == w->comm->rank, err ? err : mr_win_refusal(w));
}

/* All that are wanted; the first error. */
static enum mr_err unlock_wanted(struct mr_win_state *s)
{
    enum mr_err first = MR_SUCCESS, err;

    for (struct mr_rma_peer *p = s->peers; p; p = p->next)
        if (p->wanted && (err = unlock(p)) && !first)
            first = err;
    return first;
}

/*
 * Locks without messages are taken at once, since the program may load and store in the protected memory. The others
 * are requested with their first operation. After an error no lock is held, and no epoch is open.
 */
static enum mr_err lock_near_targets(struct mr_win *w)
{
    struct mr_win_state *s = w->in;
    enum mr_err err = MR_SUCCESS;

    for (int i = 0; i < w->comm->size && !err; i++)
        if (s->target[i].mutex) {
            struct mr_rma_peer *p = mr_rma_peer_get(w, i);

            if (!p)
                return MR_ERR_NO_MEM;
            p->wanted = MR_HOLD_SHARED;
            err = mr_lock_begin(p);
        }
    return err;
}

enum mr_err mr_win_lock_all(struct mr_win *w, unsigned assert)
{
    struct mr_win_state *s = w->in;
    enum mr_err err = may_lock(w);

    if (err)
        return err;
    if (s->num_locked)
        return wrong("MPI_Win_lock_all while a rank is locked");
    s->all_unchecked = assert &MR_MODE_NOCHECK;
    if (!s->all_unchecked && (err = lock_near_targets(w))) {
        unlock_wanted(s);
        return err;
    }
    s->fenced = false;
    s->lock_all = true;
    order_memory();
    return MR_SUCCESS;
}

enum mr_err mr_win_unlock_all(struct mr_win *w)
{
    unsigned polls = mr_progress_polls;
    enum mr_err first, err;

    if (!w->in->lock_all)
        return wrong("MPI_Win_unlock_all without MPI_Win_lock_all");
    first = mr_rma_flush_peers(w);
    err = unlock_wanted(w->in);
    first = first ? first : err;
    w->in->lock_all = false;
    return mr_rma_poll(w, polls, false, first ? first : mr_win_refusal(w));
}

void mr_epoch_abandon(struct mr_win *w)
{
    struct mr_win_state *s = w->in;

    unlock_wanted(s);
    for (struct mr_rma_peer *p = s->peers; p; p = p->next)
        p->started = false;
    s->lock_all = false;
    s->num_locked = 0;
    if (s->access)
        mr_group_put(s->access);
    s->access = NULL;
    if (s->exposure)
        end_exposure(w);
}

/* ---- flushes ----------------------------------------------------------------------------------------------------- */

static enum mr_err may_flush(struct mr_win *w, int rank)
{
    const struct mr_rma_peer *p = w->in->target[rank].peer;

    if (w->in->lock_all || (p && p->wanted))
        return MR_SUCCESS;
    return mr_fail(MR_ERR_RMA_SYNC, "rank %d of the window is not locked: there is nothing to flush", rank);
}

static enum mr_err may_flush_all(const struct mr_win *w)
{
    return in_passive(w->in) ? MR_SUCCESS : wrong("no rank of the window is locked: there is nothing to flush");
}

enum mr_err mr_win_flush(struct mr_win *w, int rank)
{
    unsigned polls = mr_progress_polls;
    enum mr_err err = may_flush(w, rank);

    order_memory();
    if (!err && w->in->target[rank].peer)
        err = mr_rma_flush(w->in->target[rank].peer);
    return mr_rma_poll(w, polls, false, err ? err : mr_win_refusal(w));
}

enum mr_err mr_win_flush_all(struct mr_win *w)
{
    unsigned polls = mr_progress_polls;
    enum mr_err err = may_flush_all(w);

    order_memory();
    if (!err)
        err = mr_rma_flush_peers(w);
    return mr_rma_poll(w, polls, false, err ? err : mr_win_refusal(w));
}

enum mr_err mr_win_flush_local(struct mr_win *w, int rank)
{
    unsigned polls = mr_progress_polls;
    enum mr_err err = may_flush(w, rank);

    if (!err && w->in->target[rank].peer)
        err = mr_rma_flush_local(w->in->target[rank].peer);
    return mr_rma_poll(w, polls, false, err ? err : mr_win_refusal(w));
}

enum mr_err mr_win_flush_local_all(struct mr_win *w)
{
    unsigned polls = mr_progress_polls;
    enum mr_err first = may_flush_all(w), err;

    for (struct mr_rma_peer *p = first ? NULL : w->in->peers; p; p = p->next)
        if ((mr_rma_is_busy(p) || p->refused) && (err = mr_rma_flush_local(p)) && !first)
            first = err;
    return mr_rma_poll(w, polls, false, first ? first : mr_win_refusal(w));
}

enum mr_err mr_win_sync(struct mr_win *w)
{
    order_memory();
    mr_rma_poll(w, mr_progress_polls, true, MR_SUCCESS);
    order_memory();
    return MR_SUCCESS;
}

/* ---- for inquiries ----------------------------------------------------------------------------------------------- */

struct words {
    char *out;
    size_t cap, len;
};

static void say(struct words *w, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(w->out + w->len, w->cap - w->len, fmt, ap);
    va_end(ap);
    w->len += n < 0 ? 0 : (size_t)n < w->cap - w->len ? (size_t)n : w->cap - w->len - 1;
}

/* "WHAT rank 1, 5" of the peers with is(p); nothing if there are none. */
static void say_peers(struct words *w, const struct mr_win *win, const char *what,
                      bool (*is)(const struct mr_rma_peer *p))
{
    const char *before = what;

    for (const struct mr_rma_peer *p = win->in->peers; p; p = p->next)
        if (is(p)) {
            say(w, before == what ? "%s%s rank %d" : "%s%s %d", before == what && w->len ? "; " : "", before, p->rank);
            before = ",";
        }
}

static bool awaits_lock(const struct mr_rma_peer *p)
{
    return p->wanted && p->locking && !p->held;
}

static bool holds_lock(const struct mr_rma_peer *p)
{
    return p->wanted && p->held;
}

static bool has_not_completed(const struct mr_rma_peer *p)
{
    return p->exposed && !(p->completed && p->done == p->complete_at);
}

static bool awaits_answers(const struct mr_rma_peer *p)
{
    return p->open || p->asked != p->flushed;
}

void mr_win_describe(const struct mr_win *win, char *out, size_t cap)
{
    struct words w = {out, cap, 0};
    const struct mr_win_state *s = win->in;

    *out = 0;
    if (s->fenced)
        say(&w, "fence epoch");
    if (s->lock_all)
        say(&w, "%slock_all", w.len ? "; " : "");
    say_peers(&w, win, "holds the lock of", holds_lock);
    say_peers(&w, win, "waits for the lock of", awaits_lock);
    if (s->access)
        say(&w, "%saccess epoch for %d rank%s", w.len ? "; " : "", s->access->size, s->access->size == 1 ? "" : "s");
    if (s->exposure)
        say(&w, "%sexposure epoch for %d rank%s", w.len ? "; " : "", s->exposure->size,
            s->exposure->size == 1 ? "" : "s");
    say_peers(&w, win, "not completed by", has_not_completed);
    say_peers(&w, win, "operations under way to", awaits_answers);
}
