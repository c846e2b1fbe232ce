/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that several collectives are made of: see algorithms.h. */
#include "libmrmpi/coll/algorithms.h"

#include "libmrmpi/launch/launch.h"

size_t mr_vec_before(const struct mr_vec *v, int rank)
{
    size_t n = 0;
    for (int i = 0; i < rank; i++)
        n += mr_vec_count(v, i);
    return n;
}

void mr_coll_crowd(struct mr_schedule *s, int num)
{
    mr_schedule_crowd(s, mr_launch_info()->local_size == 1 ? num : 1);
}

/* Dissemination: in round k every rank tells the one 2^k further on. */
void mr_alg_barrier(struct mr_schedule *s, struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    for (int k = 1; k < p; k <<= 1) {
        mr_schedule_recv(s, NULL, 0, mr_type_byte, (r - k + p) % p);
        mr_schedule_send(s, NULL, 0, mr_type_byte, (r + k) % p);
        mr_schedule_fence(s);
    }
}

/* All send to all: one latency, while messages are few. */
void mr_alg_barrier_spread(struct mr_schedule *s, struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    for (int k = 1; k < p; k++)
        mr_schedule_recv(s, NULL, 0, mr_type_byte, (r - k + p) % p);
    for (int k = 1; k < p; k++)
        mr_schedule_send(s, NULL, 0, mr_type_byte, (r + k) % p);
}

/* Ranks are counted from the root: v = 0 is the root. */
void mr_alg_bcast_binomial(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int root,
                           struct mr_comm *c)
{
    int p = c->size, v = (c->rank - root + p) % p, mask = 1;
    while (mask < p && !(v & mask))
        mask <<= 1;
    if (v) {
        mr_schedule_recv(s, buf, count, t, (v - mask + root) % p);
        mr_schedule_fence(s);
    }
    for (mask >>= 1; mask; mask >>= 1)
        if (v + mask < p)
            mr_schedule_send(s, buf, count, t, (v + mask + root) % p);
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
            mr_swap(&acc, &theirs);
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

void mr_alg_scatterv_linear(struct mr_schedule *s, const void *all, void *out, const struct mr_vec *v,
                            struct mr_comm *c)
{
    struct mr_type *t = v->type;
    if (c->rank) {
        mr_schedule_recv(s, out, mr_vec_count(v, c->rank), t, 0);
        return;
    }
    size_t at = mr_vec_count(v, 0);
    mr_schedule_copy(s, all, at, t, out, at, t);
    for (int i = 1; i < c->size; i++) {
        mr_schedule_send(s, mr_at(all, at, t), mr_vec_count(v, i), t, i);
        at += mr_vec_count(v, i);
    }
}
