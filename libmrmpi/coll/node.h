/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives through the node area (coll/node/area.h) of a communicator on one node: done at once, without a
 * schedule. Arguments as in coll.h. All return the operation's error.
 */
#ifndef MRMPI_COLL_NODE_H
#define MRMPI_COLL_NODE_H

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/grid.h"
#include "libmrmpi/coll/select.h"
#include "libmrmpi/coll/node/area.h"

/* How a call is run at once: through the communicator's area, in two levels, or (both NULL) not. */
struct mr_coll_mode {
    struct mr_node *node;
    struct mr_grid *grid;
};
/*
 * All ranks have the same answer. *built is MR_COLL_AT_ONCE if the call may be run at once, and NULL afterwards. bytes:
 * as for mr_coll_select, and 0 is for a barrier only; op: of a reduction, else NULL. Makes area or grid when c seems to
 * be worth one.
 */
struct mr_coll_mode mr_coll_mode_at_once(enum mr_coll coll, size_t bytes, const struct mr_op *op, struct mr_comm *c,
                                         struct mr_schedule **built);

/* True if a rank's data of so many bytes fits one piece. */
static inline bool mr_node_takes(const struct mr_node *n, size_t bytes)
{
    return bytes <= n->small.shape.slot_bytes;
}

enum mr_err mr_node_barrier(struct mr_node *n);
enum mr_err mr_node_bcast(struct mr_node *n, void *buf, size_t count, struct mr_type *t, int root);
enum mr_err mr_node_gather(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                           size_t ocount, struct mr_type *ot, int root);
enum mr_err mr_node_scatter(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                            size_t ocount, struct mr_type *ot, int root);
enum mr_err mr_node_allgather(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                              size_t ocount, struct mr_type *ot);
/* Each block satisfies mr_node_takes. */
enum mr_err mr_node_allgatherv(struct mr_node *n, const void *in, size_t icount, struct mr_type *it,
                               const struct mr_vec *out);
enum mr_err mr_node_alltoall(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                             size_t ocount, struct mr_type *ot);

/*
 * Blocks with lengths known to two ranks only. later: [n->ranks], false before. A rank whose blocks do not fit one
 * piece is true afterwards, at all ranks for which it has a block, and at itself: these blocks go by messages. Blocks
 * for oneself are copied.
 */
enum mr_err mr_node_alltoallv(struct mr_node *n, const struct mr_vec *in, const struct mr_vec *out, bool *later);
enum mr_err mr_node_gatherv(struct mr_node *n, const void *in, size_t icount, struct mr_type *it,
                            const struct mr_vec *out, int root, bool *later);
enum mr_err mr_node_scatterv(struct mr_node *n, const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot,
                             int root, bool *later);
static inline bool mr_node_any(const struct mr_node *n, const bool *later)
{
    bool any = false;

    for (int i = 0; i < n->ranks; i++)
        any |= later[i];
    return any;
}

/* Elements must fit a piece; false: this type has too long ones. */
bool mr_node_reduces(const struct mr_node *n, const struct mr_type *t);
enum mr_err mr_node_reduce(struct mr_node *n, const void *in, void *out, size_t count, struct mr_type *t,
                           struct mr_op *op, int root);
enum mr_err mr_node_allreduce(struct mr_node *n, const void *in, void *out, size_t count, struct mr_type *t,
                              struct mr_op *op);
/* The data of all ranks together (v: counts and type; `count` elements) satisfies mr_node_takes. */
enum mr_err mr_node_reduce_scatter(struct mr_node *n, const void *in, void *out, const struct mr_vec *v,
                                   struct mr_op *op);
enum mr_err mr_node_scan(struct mr_node *n, const void *in, void *out, size_t count, struct mr_type *t,
                         struct mr_op *op, bool exclusive);

#endif
