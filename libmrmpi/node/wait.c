/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for others in a node area: a short look first, since with a core for each rank what one waits for is on its
 * way; then as for messages, with the progress engine running and the lock given away.
 */
#include <sched.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/shm.h"
#include "libmrmpi/core/objects.h"
#include "libmrmpi/node/area.h"
#include "libmrmpi/pt2pt/pt2pt.h"

/* Looks before the progress engine has its turn: about a microsecond. */
#define LOOKS 64
/* With more ranks than cores: how often the core is given away before that, unless other threads wait for the lock. */
#define YIELDS 1
/* Operations that find all at once what they wait for still run it once in so many. */
#define PROGRESS_EVERY 16

static bool is_broken(const struct mr_node *n)
{
    uint64_t since = __atomic_load_n(n->broken, __ATOMIC_RELAXED);

    return __builtin_expect(since != 0, 0) && since <= n->started;
}

static enum mr_err broken(void)
{
    return mr_fail(MR_ERR_OTHER, "the ranks of this communicator have disagreed on a collective operation before, or "
                                 "their shared memory is damaged: it has no collective operations any more");
}

enum mr_err mr_node_begin(struct mr_node *n)
{
    mr_stat_add(MR_STAT_COLL_NODE, 1);
    if (++n->calls % PROGRESS_EVERY == 0)
        mr_progress();
    n->started = n->small.next;
    return is_broken(n) ? broken() : MR_SUCCESS;
}

static void break_since(struct mr_node *n, uint64_t since)
{
    uint64_t before = __atomic_load_n(n->broken, __ATOMIC_RELAXED);

    while ((!before || since < before) &&
           !__atomic_compare_exchange_n(n->broken, &before, since, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    mr_node_wake(n);
}

void mr_node_break(struct mr_node *n)
{
    break_since(n, n->started);
}

void mr_node_wake(const struct mr_node *n)
{
    mr_shm_ring(n->world, n->ranks);
}

/* ---- a piece ----------------------------------------------------------------------------------------------------- */

struct piece {
    struct mr_node *n;
    const struct mr_node_line *line;
    uint64_t number;
};

static bool piece_is_there(void *arg)
{
    const struct piece *p = arg;

    return mr_node_is_there(p->line, p->number) || mr_node_mad(p->line, p->number) || is_broken(p->n);
}

static __attribute__((noinline)) enum mr_err await_long(struct mr_node *n, const struct mr_node_line *line,
                                                        uint64_t piece, int rank)
{
    mr_progress_until(piece_is_there, &(struct piece){n, line, piece});
    if (mr_node_is_there(line, piece))
        return MR_SUCCESS;
    if (!is_broken(n)) {
        mr_log(MR_LOG_ERROR,
               "rank %d has written an impossible number into the shared memory of a communicator (its memory may be "
               "damaged); that communicator has no collective operations any more",
               n->world[rank]);
        break_since(n, 1);
    }
    return broken();
}

/* A core for each: it is on its way. Else it may be the turn of a rank that shares our core. */
static inline void look_away(const struct mr_node *n)
{
    if (n->crowded)
        sched_yield();
    else
        mr_relax();
}

enum mr_err mr_node_await(struct mr_node *n, const struct mr_node_line *line, uint64_t piece, int rank)
{
    for (int looks = !n->crowded ? LOOKS : mr_threaded ? 1 : YIELDS; looks; looks--) {
        if (__builtin_expect(mr_node_is_there(line, piece), 1))
            return MR_SUCCESS;
        look_away(n);
    }
    return await_long(n, line, piece, rank);
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

struct room {
    struct mr_node *n;
    struct mr_node_ring *ring;
    uint64_t piece;
};

static bool room_is_there(void *arg)
{
    const struct room *r = arg;

    return mr_node_has_room(r->ring, r->piece) || is_broken(r->n);
}

enum mr_err mr_node_await_room(struct mr_node *n, struct mr_node_ring *r, uint64_t piece)
{
    if (__builtin_expect(mr_node_has_room(r, piece), 1))
        return MR_SUCCESS;
    mr_progress_until(room_is_there, &(struct room){n, r, piece});
    return is_broken(n) ? broken() : MR_SUCCESS;
}
