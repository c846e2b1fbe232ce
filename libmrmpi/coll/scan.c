/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scan and exscan by recursive doubling: `all` is the reduction over this rank's run of 2^k ranks, the result takes in
 * only the runs before this one. Runs are neighbours, so the order of ranks is kept for operations that do not commute.
 */
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/schedule/sched.h"

enum mr_err mr_coll_scan(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, bool exclusive,
                         struct mr_comm *c, struct mr_schedule **built)
{
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, t);
    mr_schedule_hold_op(s, op);
    if (count == 0)
        return mr_schedule_built(s, built);
    int p = c->size, r = c->rank;
    const void *mine = in == MR_IN_PLACE ? out : in;
    void *all = mr_schedule_temp_for(s, t, count), *theirs = mr_schedule_temp_for(s, t, count);
    mr_schedule_copy(s, mine, count, t, all, count, t);
    if (!exclusive && in != MR_IN_PLACE)
        mr_schedule_copy(s, in, count, t, out, count, t);
    bool empty = exclusive; /* the result has nothing in it yet */
    for (int mask = 1; mask < p; mask <<= 1) {
        int peer = r ^ mask;
        if (peer >= p)
            continue;
        mr_schedule_recv(s, theirs, count, t, peer);
        mr_schedule_send(s, all, count, t, peer);
        mr_schedule_fence(s);
        if (peer < r) {
            if (empty)
                mr_schedule_copy(s, theirs, count, t, out, count, t);
            else
                mr_schedule_reduce(s, op, theirs, out, count, t);
            empty = false;
            mr_schedule_reduce(s, op, theirs, all, count, t);
        } else {
            mr_schedule_reduce(s, op, all, theirs, count, t);
            void *x = all;
            all = theirs;
            theirs = x;
        }
    }
    return mr_schedule_built(s, built);
}
