/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce, allreduce. mr_schedule_reduce does inout = in op inout, so "mine op theirs" is a reduction
 * into their buffer, which is the accumulator from then on: algorithms that keep the order of ranks swap the two names
 * while they build the schedule.
 */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/select.h"

static void swap(void **a, void **b)
{
    void *x = *a;
    *a = *b;
    *b = x;
}

static unsigned has_of(const struct mr_op *op)
{
    return op->commutative ? MR_HAS_COMMUTATIVE : 0;
}

/* In order of ranks: subtrees are runs of ranks after this one. A non-commutative operation makes rank 0 the tree's
 * root. */
void mr_alg_reduce_binomial(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                            struct mr_op *op, int root, struct mr_comm *c)
{
    int p = c->size, top = op->commutative ? root : 0, v = (c->rank - top + p) % p;
    const void *mine = in == MR_IN_PLACE ? out : in;
    void *acc = c->rank == root ? out : NULL, *theirs = NULL;
    bool leaf = (v & 1) || v + 1 >= p;
    if (c->rank == root && in == MR_IN_PLACE && top == root) {
        /* accumulates where the result is wanted */
    } else if (!leaf || c->rank == root) {
        if (!acc || top != root)
            acc = mr_schedule_temp_for(s, t, count);
        mr_schedule_copy(s, mine, count, t, acc, count, t);
    }
    for (int mask = 1; mask < p; mask <<= 1) {
        if (v & mask) {
            mr_schedule_send(s, leaf && !acc ? mine : acc, count, t, (v - mask + top) % p);
            mr_schedule_fence(s);
            break;
        }
        if (v + mask >= p)
            continue;
        if (!theirs)
            theirs = mr_schedule_temp_for(s, t, count);
        mr_schedule_recv(s, theirs, count, t, (v + mask + top) % p);
        mr_schedule_fence(s);
        if (op->commutative) {
            mr_schedule_reduce(s, op, theirs, acc, count, t);
        } else {
            mr_schedule_reduce(s, op, acc, theirs, count, t);
            swap(&acc, &theirs);
        }
    }
    if (top == root) {
        if (c->rank == root && acc != out)
            mr_schedule_copy(s, acc, count, t, out, count, t);
    } else if (c->rank == top) {
        mr_schedule_send(s, acc, count, t, root);
        mr_schedule_fence(s);
    } else if (c->rank == root) {
        mr_schedule_recv(s, out, count, t, top);
        mr_schedule_fence(s);
    }
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

enum mr_err mr_coll_reduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, int root,
                           struct mr_comm *c, struct mr_schedule **built)
{
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, t);
    mr_schedule_hold_op(s, op);
    if (count == 0) {
        /* nothing to do */
    } else if (mr_comm_is_inter(c)) {
        mr_inter_reduce(s, in, out, count, t, op, root, c);
    } else if (mr_coll_select(MR_COLL_REDUCE, count * t->size, c->size, has_of(op)) == MR_ALG_RING) {
        reduce_ring(s, in, out, count, t, op, root, c);
    } else {
        mr_alg_reduce_binomial(s, in, out, count, t, op, root, c);
    }
    return mr_schedule_built(s, built);
}

/*
 * Recursive doubling over the largest power of two of ranks; of the first 2 * rest ranks, the even ones hand their data
 * to their odd neighbours before and get the result after. Pairs are neighbouring runs of ranks, so the order is kept.
 */
static void allreduce_doubling(struct mr_schedule *s, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                               struct mr_comm *c)
{
    int p = c->size, r = c->rank, pow2 = 1;
    while (2 * pow2 <= p)
        pow2 *= 2;
    int rest = p - pow2;
    if (r < 2 * rest && r % 2 == 0) {
        mr_schedule_send(s, out, count, t, r + 1);
        mr_schedule_fence(s);
        mr_schedule_recv(s, out, count, t, r + 1);
        return;
    }
    void *acc = out, *theirs = mr_schedule_temp_for(s, t, count);
    int v = r < 2 * rest ? r / 2 : r - rest;
    if (r < 2 * rest) {
        mr_schedule_recv(s, theirs, count, t, r - 1);
        mr_schedule_fence(s);
        mr_schedule_reduce(s, op, theirs, acc, count, t);
    }
    for (int mask = 1; mask < pow2; mask <<= 1) {
        int pv = v ^ mask, peer = pv < rest ? 2 * pv + 1 : pv + rest;
        mr_schedule_recv(s, theirs, count, t, peer);
        mr_schedule_send(s, acc, count, t, peer);
        mr_schedule_fence(s);
        if (pv < v || op->commutative) {
            mr_schedule_reduce(s, op, theirs, acc, count, t);
        } else {
            mr_schedule_reduce(s, op, acc, theirs, count, t);
            swap(&acc, &theirs);
        }
    }
    if (acc != out)
        mr_schedule_copy(s, acc, count, t, out, count, t);
    if (r < 2 * rest)
        mr_schedule_send(s, out, count, t, r - 1);
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

enum mr_err mr_coll_allreduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                              struct mr_comm *c, struct mr_schedule **built)
{
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
        if (c->size == 1)
            ;
        else if (mr_coll_select(MR_COLL_ALLREDUCE, count * t->size, c->size, has_of(op)) == MR_ALG_RING)
            allreduce_ring(s, out, count, t, op, c);
        else
            allreduce_doubling(s, out, count, t, op, c);
    }
    return mr_schedule_built(s, built);
}
