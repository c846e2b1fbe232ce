/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives between the two groups of an intercommunicator: each group does its part by itself, over the
 * intracommunicator of its own that the intercommunicator has, and the first ranks speak for the groups; where every
 * pair has something of its own to say, it does so directly. root is a rank of the other group, MR_ROOT at the root, or
 * MR_PROC_NULL in the rest of the root's group.
 */
#include "libmrmpi/coll/inter.h"

#include "libmrmpi/coll/algorithms.h"

void mr_inter_barrier(struct mr_schedule *s, struct mr_comm *c)
{
    mr_schedule_on(s, c->local);
    mr_alg_barrier(s, c->local);
    if (c->rank == 0) {
        mr_schedule_on(s, c);
        mr_schedule_recv(s, NULL, 0, mr_type_byte, 0);
        mr_schedule_send(s, NULL, 0, mr_type_byte, 0);
        mr_schedule_fence(s);
    }
    mr_schedule_on(s, c->local);
    mr_alg_bcast_binomial(s, NULL, 0, mr_type_byte, 0, c->local);
}

void mr_inter_bcast(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int root, struct mr_comm *c)
{
    if (root == MR_ROOT)
        mr_schedule_send(s, buf, count, t, 0);
    if (root < 0)
        return;
    if (c->rank == 0) {
        mr_schedule_recv(s, buf, count, t, root);
        mr_schedule_fence(s);
    }
    mr_schedule_on(s, c->local);
    mr_alg_bcast_binomial(s, buf, count, t, 0, c->local);
}

/* The group's reduction, at its rank 0 in the memory returned. */
static void *reduce_here(struct mr_schedule *s, const void *in, size_t count, struct mr_type *t, struct mr_op *op,
                         struct mr_comm *c)
{
    void *sum = c->rank == 0 ? mr_schedule_temp_for(s, t, count) : NULL;
    mr_schedule_on(s, c->local);
    mr_alg_reduce_binomial(s, in, sum, count, t, op, 0, c->local);
    mr_schedule_fence(s);
    mr_schedule_on(s, c);
    return sum;
}

void mr_inter_reduce(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                     struct mr_op *op, int root, struct mr_comm *c)
{
    if (root == MR_ROOT)
        mr_schedule_recv(s, out, count, t, 0);
    if (root < 0)
        return;
    const void *sum = reduce_here(s, in, count, t, op, c);
    if (c->rank == 0)
        mr_schedule_send(s, sum, count, t, root);
}

/* The other group's result, at rank 0 in `out`. */
static void exchange_sums(struct mr_schedule *s, const void *sum, void *out, size_t count, struct mr_type *t,
                          struct mr_comm *c)
{
    if (c->rank == 0) {
        mr_schedule_recv(s, out, count, t, 0);
        mr_schedule_send(s, sum, count, t, 0);
        mr_schedule_fence(s);
    }
    mr_schedule_on(s, c->local);
}

void mr_inter_allreduce(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                        struct mr_op *op, struct mr_comm *c)
{
    const void *sum = reduce_here(s, in, count, t, op, c);
    exchange_sums(s, sum, out, count, t, c);
    mr_alg_bcast_binomial(s, out, count, t, 0, c->local);
}

void mr_inter_reduce_scatter(struct mr_schedule *s, const void *in, void *out, const struct mr_vec *v, struct mr_op *op,
                             struct mr_comm *c)
{
    size_t total = mr_vec_before(v, c->size);
    const void *sum = reduce_here(s, in, total, v->type, op, c);
    void *theirs = c->rank == 0 ? mr_schedule_temp_for(s, v->type, total) : NULL;
    exchange_sums(s, sum, theirs, total, v->type, c);
    mr_alg_scatterv_linear(s, theirs, out, v, c->local);
}

void mr_inter_gather(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                     int root, struct mr_comm *c)
{
    if (root >= 0 && icount * it->size > 0)
        mr_schedule_send(s, in, icount, it, root);
    for (int i = 0; root == MR_ROOT && i < c->num_peers; i++)
        if (mr_vec_bytes(out, i))
            mr_schedule_recv(s, mr_vec_part(out, i), mr_vec_count(out, i), out->type, i);
}

void mr_inter_scatter(struct mr_schedule *s, const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot,
                      int root, struct mr_comm *c)
{
    if (root >= 0 && ocount * ot->size > 0)
        mr_schedule_recv(s, out, ocount, ot, root);
    for (int i = 0; root == MR_ROOT && i < c->num_peers; i++)
        if (mr_vec_bytes(in, i))
            mr_schedule_send(s, mr_vec_part(in, i), mr_vec_count(in, i), in->type, i);
}

void mr_inter_allgather(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it,
                        const struct mr_vec *out, struct mr_comm *c)
{
    int n = c->num_peers;
    for (int k = 0; k < n; k++) { /* not all of a group at the same rank at a time */
        int i = (c->rank + k) % n;
        if (mr_vec_bytes(out, i))
            mr_schedule_recv(s, mr_vec_part(out, i), mr_vec_count(out, i), out->type, i);
    }
    for (int k = 0; k < n && icount * it->size > 0; k++)
        mr_schedule_send(s, in, icount, it, (c->rank + k) % n);
}

void mr_inter_alltoall(struct mr_schedule *s, const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c)
{
    int n = c->num_peers;
    for (int k = 0; k < n; k++) {
        int i = (c->rank + k) % n;
        if (mr_vec_bytes(out, i))
            mr_schedule_recv(s, mr_vec_part(out, i), mr_vec_count(out, i), mr_vec_type(out, i), i);
    }
    for (int k = 0; k < n; k++) {
        int i = (c->rank + k) % n;
        if (mr_vec_bytes(in, i))
            mr_schedule_send(s, mr_vec_part(in, i), mr_vec_count(in, i), mr_vec_type(in, i), i);
    }
}
