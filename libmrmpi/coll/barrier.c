/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier. */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/node.h"

enum mr_err mr_coll_barrier(struct mr_comm *c, struct mr_schedule **built)
{
    struct mr_node *n = mr_coll_node(MR_COLL_BARRIER, 0, c, built);
    if (n)
        return mr_node_barrier(n);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    if (mr_comm_is_inter(c))
        mr_inter_barrier(s, c);
    else
        mr_alg_barrier(s, c);
    return mr_schedule_built(s, built);
}
