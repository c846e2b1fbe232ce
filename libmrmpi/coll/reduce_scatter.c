/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce-scatter: every rank sends directly to the owners, all at once or one after the other, or by way of rank 0
 * where the order of ranks matters.
 */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/select.h"

/* The owners add up arriving data: one peer per round. */
static void pairwise(struct mr_schedule *s, const void *in, void *out, const struct mr_vec *v, struct mr_op *op,
                     struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    struct mr_type *t = v->type;
    size_t n = mr_vec_count(v, r);
    void *theirs = mr_schedule_temp_for(s, t, n), *acc = in == MR_IN_PLACE ? mr_schedule_temp_for(s, t, n) : out;
    const void *from = in == MR_IN_PLACE ? out : in;
    mr_schedule_copy(s, mr_at(from, mr_vec_before(v, r), t), n, t, acc, n, t);
    for (int k = 1; k < p; k++) {
        int to = (r + k) % p, src = (r - k + p) % p;
        mr_schedule_recv(s, theirs, n, t, src);
        mr_schedule_send(s, mr_at(from, mr_vec_before(v, to), t), mr_vec_count(v, to), t, to);
        mr_schedule_fence(s);
        mr_schedule_reduce(s, op, theirs, acc, n, t);
    }
    if (acc != out)
        mr_schedule_copy(s, acc, n, t, out, n, t);
}

/* The owners take everything in, and reduce it in the order of ranks: any operation, but room for all. */
static void gather_to_owners(struct mr_schedule *s, const void *in, void *out, const struct mr_vec *v, struct mr_op *op,
                             struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    struct mr_type *t = v->type;
    size_t n = mr_vec_count(v, r);
    const void *from = in == MR_IN_PLACE ? out : in;
    void *all = mr_schedule_temp_for(s, t, n * (size_t)p);
    for (int k = 1; k < p && n; k++) {
        int src = (r - k + p) % p;
        mr_schedule_recv(s, mr_at_mut(all, (size_t)src * n, t), n, t, src);
    }
    for (int k = 1; k < p; k++) {
        int to = (r + k) % p;
        if (mr_vec_count(v, to))
            mr_schedule_send(s, mr_at(from, mr_vec_before(v, to), t), mr_vec_count(v, to), t, to);
    }
    mr_schedule_copy(s, mr_at(from, mr_vec_before(v, r), t), n, t, mr_at_mut(all, (size_t)r * n, t), n, t);
    mr_schedule_fence(s);
    void *acc = mr_at_mut(all, (size_t)(p - 1) * n, t);
    for (int k = p - 2; k >= 0; k--)
        mr_schedule_reduce(s, op, mr_at(all, (size_t)k * n, t), acc, n, t);
    mr_schedule_copy(s, acc, n, t, out, n, t);
}

enum mr_err mr_coll_reduce_scatter(const void *in, void *out, const struct mr_vec *v, struct mr_op *op,
                                   struct mr_comm *c, struct mr_schedule **built)
{
    size_t total = mr_vec_before(v, c->size), bytes = total * v->type->size,
           share = (bytes + (size_t)c->size - 1) / (size_t)c->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_REDUCE_SCATTER, share, op, c, built);
    if (mode.node && mr_node_takes(mode.node, bytes))
        return mr_node_reduce_scatter(mode.node, in, out, v, op);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, v->type);
    mr_schedule_hold_op(s, op);
    enum mr_alg alg = mr_coll_select(MR_COLL_REDUCE_SCATTER, share, c->size,
                                     (op->commutative ? MR_HAS_COMMUTATIVE : 0) | mr_coll_place_has(c, bytes));
    if (total && mr_comm_is_inter(c))
        mr_inter_reduce_scatter(s, in, out, v, op, c);
    else if (total && alg == MR_ALG_TWO_LEVEL)
        mr_alg_reduce_scatter_two_level(s, in, out, v, op, c, mr_comm_place(c));
    else if (total)
        (alg == MR_ALG_SPREAD ? gather_to_owners : pairwise)(s, in, out, v, op, c);
    return mr_schedule_built(s, built);
}
