/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier. */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/select.h"

/* When a row is complete its ranks tell the ranks of other rows, each in its column. */
static enum mr_err hierarchical_barrier(struct mr_grid *g)
{
    struct mr_schedule *s = MR_COLL_AT_ONCE;
    enum mr_err err = mr_node_barrier(g->row->node), built = mr_coll_barrier(g->column, &s);
    return mr_coll_run_after(err, built, s);
}

enum mr_err mr_coll_barrier(struct mr_comm *c, struct mr_schedule **built)
{
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_BARRIER, 0, NULL, c, built);
    if (mode.grid)
        return hierarchical_barrier(mode.grid);
    if (mode.node)
        return mr_node_barrier(mode.node);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    if (mr_comm_is_inter(c))
        mr_inter_barrier(s, c);
    else if (mr_coll_select(MR_COLL_BARRIER, 0, c->size, 0) == MR_ALG_SPREAD)
        mr_alg_barrier_spread(s, c);
    else
        mr_alg_barrier(s, c);
    return mr_schedule_built(s, built);
}
