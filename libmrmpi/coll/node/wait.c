/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for others in a node area: a short poll first, because with a core for each rank the data is on its way; then
 * as for messages, with the progress engine running and the lock given away.
 */
#include <sched.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/coll/node/area.h"
#include "libmrmpi/p2p/p2p.h"

/* Polls before the progress engine has its turn: about a microsecond. */
#define POLLS 64
/* With more ranks than cores: how often the core is given away before that, unless other threads wait for the lock. */
#define YIELDS 1
/* Operations without any wait still run the progress engine once in so many. */
#define PROGRESS_EVERY 16

/* In `broken`: not by a mistake. */
#define MISSING (1ull << 63)
#define REVOKED (1ull << 62)
#define REASON  (MISSING | REVOKED)

static uint64_t broken_since(const struct mr_node *n)
{
    return __atomic_load_n(n->broken, __ATOMIC_RELAXED);
}

static bool is_broken(const struct mr_node *n)
{
    uint64_t since = broken_since(n) & ~REASON;

    return unlikely(since != 0) && since <= n->started;
}

static enum mr_err broken(struct mr_node *n)
{
    mr_node_done(&n->bulk, MR_NODE_LEFT);
    if (broken_since(n) & REVOKED || (n->whole && mr_comm_fault(n->whole) == MR_ERR_REVOKED))
        return mr_fail(MR_ERR_REVOKED, "the communicator has been revoked");
    if (broken_since(n) & MISSING)
        return mr_fail(MR_ERR_PROC_FAILED, "a process of this communicator has failed, or called MPI_Finalize after "
                                           "an error: it has no collective operations any more");
    return mr_fail(MR_ERR_OTHER, "the ranks of this communicator have disagreed on a collective operation before, or "
                                 "their shared memory is damaged: it has no collective operations any more");
}

static void break_since(struct mr_node *n, uint64_t since)
{
    uint64_t before = broken_since(n);

    while ((!before || (since & ~REASON) < (before & ~REASON)) &&
           !__atomic_compare_exchange_n(n->broken, &before, since, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    mr_node_wake(n);
}

/* This rank reads no long piece any more, and nobody waits until it has. */
void mr_node_break(struct mr_node *n)
{
    break_since(n, n->started);
    mr_node_done(&n->bulk, MR_NODE_LEFT);
}

void mr_node_wake(const struct mr_node *n)
{
    mr_shm_ring(n->world, n->ranks);
}

/* Others may have seen an error before, and never begin this operation: nobody waits for them. */
static uint64_t node_fault(const struct mr_node *n)
{
    enum mr_err err = n->whole ? mr_comm_fault(n->whole) : MR_SUCCESS;

    return !err ? 0 : err == MR_ERR_REVOKED ? REVOKED : MISSING;
}

enum mr_err mr_node_begin(struct mr_node *n)
{
    mr_stat_add(MR_STAT_COLL_NODE, 1);
    if (++n->calls % PROGRESS_EVERY == 0)
        mr_progress();
    n->started = n->small.next;
    if (unlikely(node_fault(n)))
        break_since(n, n->started | node_fault(n));
    return is_broken(n) ? broken(n) : MR_SUCCESS;
}

/* ---- a piece ----------------------------------------------------------------------------------------------------- */

struct piece {
    struct mr_node *n;
    const struct mr_node_line *line;
    uint64_t number;
    int rank;
};

static bool piece_is_there(void *arg)
{
    const struct piece *p = arg;

    if (mr_node_is_there(p->line, p->number) || mr_node_mad(p->line, p->number) || is_broken(p->n))
        return true;
    if (node_fault(p->n))
        break_since(p->n, p->n->started | node_fault(p->n));
    else if (mr_peer_parts(p->n->world[p->rank]))
        break_since(p->n, p->n->started | MISSING);
    return is_broken(p->n);
}

static enum mr_err is_damaged(struct mr_node *n, int rank)
{
    mr_log(MR_LOG_ERROR,
           "rank %d has written an impossible number into the shared memory of a communicator (its memory may be "
           "damaged); that communicator has no collective operations any more",
           n->world[rank]);
    break_since(n, 1);
    return broken(n);
}

static __attribute__((noinline)) enum mr_err await_piece(struct mr_node *n, const struct mr_node_line *line,
                                                         uint64_t piece, int rank)
{
    mr_progress_until(piece_is_there, &(struct piece){n, line, piece, rank});
    if (mr_node_is_there(line, piece))
        return MR_SUCCESS;
    return is_broken(n) ? broken(n) : is_damaged(n, rank);
}

/* A core for each: the data is on its way. Else another rank on our core may need its turn. */
static inline void yield_core(const struct mr_node *n)
{
    if (n->crowded)
        sched_yield();
    else
        mr_relax();
}

enum mr_err mr_node_await(struct mr_node *n, const struct mr_node_line *line, uint64_t piece, int rank)
{
    for (int polls = !n->crowded ? POLLS : mr_threaded ? 1 : YIELDS; polls; polls--) {
        if (likely(mr_node_is_there(line, piece)))
            return MR_SUCCESS;
        yield_core(n);
    }
    return await_piece(n, line, piece, rank);
}

enum mr_err mr_node_await_long(struct mr_node *n, int rank, uint64_t piece, size_t bytes, char **at)
{
    enum mr_err err = mr_node_await(n, mr_node_first(&n->bulk, rank, piece), piece, rank);

    if (unlikely(err))
        return err;
    *at = mr_node_long(n, rank, piece, bytes);
    return likely(*at != NULL) ? MR_SUCCESS : is_damaged(n, rank);
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

struct room {
    struct mr_node *n;
    uint64_t piece;
    size_t bytes; /* of a long piece; 0: of the small ring */
    char *to;
};

static bool member_has_parted(const struct mr_node *n)
{
    for (int i = 0; i < n->ranks; i++)
        if (mr_peer_parts(n->world[i]))
            return true;
    return false;
}

static bool room_found(struct room *r)
{
    if (!r->bytes)
        return mr_node_has_room(&r->n->small, r->piece);
    r->to = mr_node_try_long(r->n, r->piece, r->bytes);
    return r->to;
}

static bool room_is_there(void *arg)
{
    struct room *r = arg;

    if (is_broken(r->n) || room_found(r))
        return true;
    if (node_fault(r->n))
        break_since(r->n, r->n->started | node_fault(r->n));
    else if (member_has_parted(r->n))
        break_since(r->n, r->n->started | MISSING);
    return is_broken(r->n);
}

static enum mr_err await_room(struct room *r)
{
    if (likely(room_found(r)))
        return MR_SUCCESS;
    mr_progress_until(room_is_there, r);
    return is_broken(r->n) ? broken(r->n) : MR_SUCCESS;
}

enum mr_err mr_node_await_room(struct mr_node *n, uint64_t piece)
{
    return await_room(&(struct room){.n = n, .piece = piece});
}

enum mr_err mr_node_begin_long(struct mr_node *n, uint64_t piece, size_t bytes, char **to)
{
    struct room r = {.n = n, .piece = piece, .bytes = bytes};
    enum mr_err err = await_room(&r);

    *to = r.to;
    return err;
}
