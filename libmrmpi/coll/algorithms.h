/* SPDX-License-Identifier: BSD-3-Clause */
/* Building blocks for more than one collective: each appends steps to a schedule. */
#ifndef MRMPI_COLL_ALGORITHMS_H
#define MRMPI_COLL_ALGORITHMS_H

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/place.h"
#include "libmrmpi/coll/schedule/sched.h"

/* The part of n items that falls to piece i of p, as evenly as can be: [mr_part(n, p, i), mr_part(n, p, i + 1)). */
static inline size_t mr_part(size_t n, int p, int i)
{
    size_t each = n / (size_t)p, more = n % (size_t)p;
    return each * (size_t)i + ((size_t)i < more ? (size_t)i : more);
}

/* Where "mine op theirs" is reduced into their buffer, that is the accumulator from then on. */
static inline void mr_swap(void **a, void **b)
{
    void *x = *a;
    *a = *b;
    *b = x;
}

void mr_alg_reduce_binomial(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                            struct mr_op *op, int root, struct mr_comm *c);
void mr_alg_barrier(struct mr_schedule *s, struct mr_comm *c);
void mr_alg_barrier_spread(struct mr_schedule *s, struct mr_comm *c);
void mr_alg_bcast_binomial(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int root,
                           struct mr_comm *c);
/* Ring reduce-scatter of acc in place: afterwards piece (rank + 1) % p of acc is complete. Commutative operations only.
 */
void mr_alg_ring_reduce_scatter(struct mr_schedule *s, void *acc, size_t count, struct mr_type *t, struct mr_op *op,
                                struct mr_comm *c);

/*
 * Each rank exchanges num messages at a time. Ranks of a host share its wire, which then is slower than all their
 * copies. The own host's number of ranks counts: hosts with other numbers may get another result, so this is for
 * messages of one length only.
 */
void mr_coll_crowd(struct mr_schedule *s, int num);

/*
 * two_level.c: for a grid of more than one node. base: `bytes` in one piece. Reductions: commutative operations only.
 */
void mr_alg_bcast_two_level(struct mr_schedule *s, void *base, size_t bytes, int root, struct mr_comm *c,
                            const struct mr_place *w);
void mr_alg_allgather_two_level(struct mr_schedule *s, const struct mr_vec *out, struct mr_comm *c,
                                const struct mr_place *w);
void mr_alg_allreduce_two_level(struct mr_schedule *s, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                                const struct mr_place *w);
void mr_alg_reduce_two_level(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                             struct mr_op *op, int root, struct mr_comm *c, const struct mr_place *w);
void mr_alg_reduce_scatter_two_level(struct mr_schedule *s, const void *in, void *out, const struct mr_vec *v,
                                     struct mr_op *op, struct mr_comm *c, const struct mr_place *w);

size_t mr_vec_before(const struct mr_vec *v, int rank); /* elements of the ranks before this rank */
/* From rank 0, where the blocks lie one behind the other at `all`, to out. */
void mr_alg_scatterv_linear(struct mr_schedule *s, const void *all, void *out, const struct mr_vec *v,
                            struct mr_comm *c);

#endif
