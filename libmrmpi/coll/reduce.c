/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce, allreduce. mr_schedule_reduce does inout = in op inout, so "mine op theirs" is a reduction into their buffer,
 * which is the accumulator from then on: algorithms that keep the order of ranks swap the two names while they build
 * the schedule.
 */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/select.h"

static unsigned has_of(const struct mr_op *op)
{
    return op->commutative ? MR_HAS_COMMUTATIVE : 0;
}

void mr_alg_ring_reduce_scatter(struct mr_schedule *s, void *acc, size_t count, struct mr_type *t, struct mr_op *op,
                                struct mr_comm *c)
{
    int p = c->size, r = c->rank, right = (r + 1) % p, left = (r - 1 + p) % p;
    void *theirs = mr_schedule_temp_for(s, t, mr_part(count, p, 1));
    for (int k = 0; k < p - 1; k++) {
        int give = (r - k + p) % p, take = (r - k - 1 + p) % p;
        size_t g = mr_part(count, p, give), a = mr_part(count, p, take), n = mr_part(count, p, take + 1) - a;
        mr_schedule_recv(s, theirs, n, t, left);
        mr_schedule_send(s, mr_at(acc, g, t), mr_part(count, p, give + 1) - g, t, right);
        mr_schedule_fence(s);
        mr_schedule_reduce(s, op, theirs, mr_at_mut(acc, a, t), n, t);
    }
}

/* Ring reduce-scatter, then the pieces go to the root. */
static void reduce_ring(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                        struct mr_op *op, int root, struct mr_comm *c)
{
    int p = c->size, r = c->rank, mine = (r + 1) % p;
    void *acc = r == root ? out : mr_schedule_temp_for(s, t, count);
    if (in != MR_IN_PLACE)
        mr_schedule_copy(s, in, count, t, acc, count, t);
    mr_alg_ring_reduce_scatter(s, acc, count, t, op, c);
    if (r != root) {
        size_t at = mr_part(count, p, mine);
        mr_schedule_send(s, mr_at(acc, at, t), mr_part(count, p, mine + 1) - at, t, root);
        return;
    }
    for (int i = 0; i < p; i++) {
        int piece = (i + 1) % p;
        size_t at = mr_part(count, p, piece);
        if (i != root)
            mr_schedule_recv(s, mr_at_mut(out, at, t), mr_part(count, p, piece + 1) - at, t, i);
    }
}

/*
 * From the elements of all ranks, in their order one behind the other at `all`: the last rank's elements become the
 * result.
 */
static void reduce_all(struct mr_schedule *s, void *all, size_t count, struct mr_type *t, struct mr_op *op, void *out,
                       int p)
{
    void *acc = mr_at_mut(all, (size_t)(p - 1) * count, t);
    for (int k = p - 2; k >= 0; k--)
        mr_schedule_reduce(s, op, mr_at(all, (size_t)k * count, t), acc, count, t);
    mr_schedule_copy(s, acc, count, t, out, count, t);
}

/* All send directly to the root, which has room for all and reduces in the order of ranks: any operation. */
static void reduce_linear(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                          struct mr_op *op, int root, struct mr_comm *c)
{
    int p = c->size;
    const void *mine = in == MR_IN_PLACE ? out : in;
    if (c->rank != root) {
        mr_schedule_send(s, mine, count, t, root);
        return;
    }
    char *all = mr_schedule_temp_for(s, t, count * (size_t)p);
    for (int k = 1; k < p; k++) {
        int src = (root + k) % p;
        mr_schedule_recv(s, mr_at_mut(all, (size_t)src * count, t), count, t, src);
    }
    mr_schedule_copy(s, mine, count, t, mr_at_mut(all, (size_t)root * count, t), count, t);
    mr_schedule_fence(s);
    reduce_all(s, all, count, t, op, out, p);
}

/* Each row reduces at its rank of the root's column, and the column at the root. */
static enum mr_err reduce_hierarchical(struct mr_grid *g, const void *in, void *out, size_t count, struct mr_type *t,
                                       struct mr_op *op, int root)
{
    struct mr_grid_spot at = mr_grid_find(g, root);
    struct mr_span span = mr_type_span(t, count);
    bool holds = g->place->local == at.local, is_root = holds && g->place->node == at.node;
    void *sum = is_root ? out : holds ? mr_grid_scratch(g, span.len + 1) - span.lo : NULL;
    struct mr_schedule *s = MR_COLL_AT_ONCE;
    enum mr_err err = mr_node_reduce(g->row->node, in, sum, count, t, op, at.local), built;
    if (!holds)
        return err;
    built = mr_coll_reduce(is_root ? MR_IN_PLACE : sum, out, count, t, op, at.node, g->column, &s);
    return mr_coll_run_after(err, built, s);
}

enum mr_err mr_coll_reduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, int root,
                           struct mr_comm *c, struct mr_schedule **built)
{
    size_t bytes = count * t->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_REDUCE, bytes, op, c, built);
    if (mode.grid && mr_node_reduces(mode.grid->row->node, t))
        return reduce_hierarchical(mode.grid, in, out, count, t, op, root);
    if (mode.node && mr_node_reduces(mode.node, t))
        return mr_node_reduce(mode.node, in, out, count, t, op, root);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, t);
    mr_schedule_hold_op(s, op);
    if (count == 0) {
        /* nothing to do */
    } else if (mr_comm_is_inter(c)) {
        mr_inter_reduce(s, in, out, count, t, op, root, c);
    } else {
        switch (mr_coll_select(MR_COLL_REDUCE, bytes, c->size, has_of(op) | mr_coll_place_has(c, bytes))) {
        case MR_ALG_LINEAR:
            reduce_linear(s, in, out, count, t, op, root, c);
            break;
        case MR_ALG_TWO_LEVEL:
            mr_alg_reduce_two_level(s, in, out, count, t, op, root, c, mr_comm_place(c));
            break;
        case MR_ALG_RING:
            reduce_ring(s, in, out, count, t, op, root, c);
            break;
        default:
            mr_alg_reduce_binomial(s, in, out, count, t, op, root, c);
        }
    }
    return mr_schedule_built(s, built);
}

/*
 * The largest power of two of ranks works, as v = 0, 1, ...; of the first 2 * rest ranks, the even ranks hand their
 * data to their odd neighbours before and get the result after. Pairs are neighbouring runs of ranks, so the order is
 * kept.
 */
struct fold {
    int pow2, rest, v; /* v -1: hands its data over */
};

static struct fold fold_of(const struct mr_comm *c)
{
    struct fold f = {.pow2 = 1};
    while (2 * f.pow2 <= c->size)
        f.pow2 *= 2;
    f.rest = c->size - f.pow2;
    f.v = c->rank >= 2 * f.rest ? c->rank - f.rest : c->rank % 2 ? c->rank / 2 : -1;
    return f;
}

static int fold_rank(const struct fold *f, int v)
{
    return v < f->rest ? 2 * v + 1 : v + f->rest;
}

/* True if this rank has nothing else to do. theirs has room for all. */
static bool fold_in(struct mr_schedule *s, const struct fold *f, void *out, void *theirs, size_t count,
                    struct mr_type *t, struct mr_op *op, int rank)
{
    if (f->v < 0) {
        mr_schedule_send(s, out, count, t, rank + 1);
        mr_schedule_fence(s);
        mr_schedule_recv(s, out, count, t, rank + 1);
        return true;
    }
    if (f->v < f->rest) {
        mr_schedule_recv(s, theirs, count, t, rank - 1);
        mr_schedule_fence(s);
        mr_schedule_reduce(s, op, theirs, out, count, t);
    }
    return false;
}

static void fold_out(struct mr_schedule *s, const struct fold *f, const void *out, size_t count, struct mr_type *t,
                     int rank)
{
    if (f->v < f->rest)
        mr_schedule_send(s, out, count, t, rank - 1);
}

/*
 * Partners exchange what they have. Both apply the operation to the same operands in the same order, so all ranks have
 * the same bits: the maximum of a NaN and a number is either of them, by the order.
 */
static void allreduce_doubling(struct mr_schedule *s, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                               struct mr_comm *c)
{
    struct fold f = fold_of(c);
    void *acc = out, *theirs = f.v < 0 ? NULL : mr_schedule_temp_for(s, t, count);
    if (fold_in(s, &f, out, theirs, count, t, op, c->rank))
        return;
    for (int mask = 1; mask < f.pow2; mask <<= 1) {
        int pv = f.v ^ mask, peer = fold_rank(&f, pv);
        mr_schedule_recv(s, theirs, count, t, peer);
        mr_schedule_send(s, acc, count, t, peer);
        mr_schedule_fence(s);
        if (pv < f.v) {
            mr_schedule_reduce(s, op, theirs, acc, count, t);
        } else {
            mr_schedule_reduce(s, op, acc, theirs, count, t);
            mr_swap(&acc, &theirs);
        }
    }
    if (acc != out)
        mr_schedule_copy(s, acc, count, t, out, count, t);
    fold_out(s, &f, out, count, t, c->rank);
}

/* Exchanges the parts [to_give, + n) and [to_take, + n) of pow2 parts of buf; received data goes to `in`. */
static void trade_halves(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int pow2, int to_give,
                         int to_take, int n, void *in, int peer)
{
    size_t give = mr_part(count, pow2, to_give), take = mr_part(count, pow2, to_take);
    mr_schedule_recv(s, in, mr_part(count, pow2, to_take + n) - take, t, peer);
    mr_schedule_send(s, mr_at(buf, give, t), mr_part(count, pow2, to_give + n) - give, t, peer);
    mr_schedule_fence(s);
}

/*
 * Rabenseifner's algorithm: in each round partners halve their range, each reducing a half; then the way back, doubling
 * the known range. Data as in a ring, in 2 log p rounds. Commutative operations only.
 */
static void allreduce_halving(struct mr_schedule *s, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                              struct mr_comm *c)
{
    struct fold f = fold_of(c);
    void *theirs = f.v < 0 ? NULL : mr_schedule_temp_for(s, t, count);
    if (fold_in(s, &f, out, theirs, count, t, op, c->rank))
        return;
    int mine = 0; /* the first of my parts */
    for (int mask = f.pow2 / 2; mask; mask /= 2) {
        int other = f.v & mask ? mine : mine + mask;
        mine = f.v & mask ? mine + mask : mine;
        trade_halves(s, out, count, t, f.pow2, other, mine, mask, theirs, fold_rank(&f, f.v ^ mask));
        size_t at = mr_part(count, f.pow2, mine), n = mr_part(count, f.pow2, mine + mask) - at;
        mr_schedule_reduce(s, op, theirs, mr_at_mut(out, at, t), n, t);
    }
    for (int mask = 1; mask < f.pow2; mask *= 2) {
        int other = mine ^ mask;
        trade_halves(s, out, count, t, f.pow2, mine, other, mask, mr_at_mut(out, mr_part(count, f.pow2, other), t),
                     fold_rank(&f, f.v ^ mask));
        mine &= ~mask;
    }
    fold_out(s, &f, out, count, t, c->rank);
}

/* All send all their data to all, and each reduces in the order of ranks: one latency, and the same bits everywhere. */
static void allreduce_spread(struct mr_schedule *s, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                             struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    char *all = mr_schedule_temp_for(s, t, count * (size_t)p);
    for (int k = 1; k < p; k++) {
        int src = (r - k + p) % p;
        mr_schedule_recv(s, mr_at_mut(all, (size_t)src * count, t), count, t, src);
    }
    for (int k = 1; k < p; k++)
        mr_schedule_send(s, out, count, t, (r + k) % p);
    mr_schedule_copy(s, out, count, t, mr_at_mut(all, (size_t)r * count, t), count, t);
    mr_schedule_fence(s);
    reduce_all(s, all, count, t, op, out, p);
}

static void allreduce_ring(struct mr_schedule *s, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                           struct mr_comm *c)
{
    int p = c->size, r = c->rank, right = (r + 1) % p, left = (r - 1 + p) % p;
    mr_alg_ring_reduce_scatter(s, out, count, t, op, c);
    for (int k = 0; k < p - 1; k++) {
        int give = (r + 1 - k + p) % p, take = (r - k + p) % p;
        size_t g = mr_part(count, p, give), a = mr_part(count, p, take);
        mr_schedule_recv(s, mr_at_mut(out, a, t), mr_part(count, p, take + 1) - a, t, left);
        mr_schedule_send(s, mr_at(out, g, t), mr_part(count, p, give + 1) - g, t, right);
        mr_schedule_fence(s);
    }
}

/* Along rows, then along all columns: all end with the same bits, and nobody passes the result on. */
static enum mr_err allreduce_hierarchical(struct mr_grid *g, const void *in, void *out, size_t count, struct mr_type *t,
                                          struct mr_op *op)
{
    struct mr_schedule *s = MR_COLL_AT_ONCE;
    enum mr_err err = mr_node_allreduce(g->row->node, in, out, count, t, op),
                built = mr_coll_allreduce(MR_IN_PLACE, out, count, t, op, g->column, &s);
    return mr_coll_run_after(err, built, s);
}

enum mr_err mr_coll_allreduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                              struct mr_comm *c, struct mr_schedule **built)
{
    size_t bytes = count * t->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_ALLREDUCE, bytes, op, c, built);
    if (mode.grid && mr_node_reduces(mode.grid->row->node, t))
        return allreduce_hierarchical(mode.grid, in, out, count, t, op);
    if (mode.node && mr_node_reduces(mode.node, t))
        return mr_node_allreduce(mode.node, in, out, count, t, op);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, t);
    mr_schedule_hold_op(s, op);
    if (mr_comm_is_inter(c)) {
        if (count)
            mr_inter_allreduce(s, in, out, count, t, op, c);
    } else if (count) {
        if (in != MR_IN_PLACE)
            mr_schedule_copy(s, in, count, t, out, count, t);
        unsigned has =
            has_of(op) | (c->size & (c->size - 1) ? 0 : MR_HAS_POWER_OF_TWO) | mr_coll_place_has(c, count * t->size);
        enum mr_alg alg = mr_coll_select(MR_COLL_ALLREDUCE, count * t->size, c->size, has);
        if (c->size > 1 && alg == MR_ALG_TWO_LEVEL)
            mr_alg_allreduce_two_level(s, out, count, t, op, mr_comm_place(c));
        else if (c->size > 1)
            (alg == MR_ALG_RING      ? allreduce_ring
             : alg == MR_ALG_HALVING ? allreduce_halving
             : alg == MR_ALG_SPREAD  ? allreduce_spread
                                     : allreduce_doubling)(s, out, count, t, op, c);
    }
    return mr_schedule_built(s, built);
}
