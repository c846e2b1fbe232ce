/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scan and exscan by recursive doubling: `all` is the reduction over this rank's run of 2^k ranks, the result includes
 * only the runs before this rank. Runs are neighbours, so the order of ranks is kept for operations that do not
 * commute.
 */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/select.h"

/*
 * True if rank r of p passes its run on, in the round of mask `first` or later. To a higher rank always; to a lower
 * rank if that rank passes the run on. There is then a round m in which a higher rank hears of it: of the rank whose
 * bits from `first` up to m, set in r, were cleared on the way.
 */
static bool passes_on(int r, int first, int p)
{
    for (int m = first; m < p; m <<= 1)
        if (!(r & m) && ((r & ~(m - 1)) | m | (r & (first - 1))) < p)
            return true;
    return false;
}

enum mr_err mr_coll_scan(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, bool exclusive,
                         struct mr_comm *c, struct mr_schedule **built)
{
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_SCAN, count * t->size, op, c, built);
    if (mode.node && mr_node_takes(mode.node, count * t->size))
        return mr_node_scan(mode.node, in, out, count, t, op, exclusive);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, t);
    mr_schedule_hold_op(s, op);
    if (count == 0)
        return mr_schedule_built(s, built);
    int p = c->size, r = c->rank;
    bool in_place = in == MR_IN_PLACE, empty = exclusive; /* the result is still empty */
    const void *mine = in_place ? out : in, *all = mine;
    void *kept = NULL, *theirs = NULL; /* where `all` is, once it is more than this rank's own */
    if (in_place && passes_on(r, 1, p)) {
        all = kept = mr_schedule_temp_for(s, t, count);
        mr_schedule_copy(s, mine, count, t, kept, count, t);
    }
    if (!exclusive && !in_place)
        mr_schedule_copy(s, in, count, t, out, count, t);
    for (int mask = 1; mask < p; mask <<= 1) {
        int peer = r ^ mask;
        if (peer >= p)
            continue;
        bool later = passes_on(r, 2 * mask, p), lower = peer < r, first = lower && empty;
        if (!theirs && !first && (lower || later))
            theirs = mr_schedule_temp_for(s, t, count);
        void *into = first ? out : theirs;
        if (lower || later)
            mr_schedule_recv(s, into, count, t, peer);
        if (!lower || passes_on(peer, 2 * mask, p))
            mr_schedule_send(s, all, count, t, peer);
        mr_schedule_fence(s);
        if (lower && !empty)
            mr_schedule_reduce(s, op, theirs, out, count, t);
        empty = empty && !lower;
        if (!later)
            continue;
        if (lower) {
            if (!kept) {
                kept = mr_schedule_temp_for(s, t, count);
                mr_schedule_copy(s, mine, count, t, kept, count, t);
            }
            mr_schedule_reduce(s, op, into, kept, count, t);
        } else {
            mr_schedule_reduce(s, op, all, theirs, count, t);
            mr_swap(&kept, &theirs);
        }
        all = kept;
    }
    return mr_schedule_built(s, built);
}
