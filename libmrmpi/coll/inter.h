/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on intercommunicators: each appends its steps to the schedule. in and out of a gather, scatter or
 * alltoall are vectors over the ranks of the other group. */
#ifndef MRMPI_COLL_INTER_H
#define MRMPI_COLL_INTER_H

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/schedule/sched.h"

void mr_inter_barrier(struct mr_schedule *s, struct mr_comm *c);
void mr_inter_bcast(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int root, struct mr_comm *c);
void mr_inter_reduce(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                     struct mr_op *op, int root, struct mr_comm *c);
void mr_inter_allreduce(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                        struct mr_op *op, struct mr_comm *c);
void mr_inter_reduce_scatter(struct mr_schedule *s, const void *in, void *out, const struct mr_vec *v, struct mr_op *op,
                             struct mr_comm *c);
void mr_inter_gather(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                     int root, struct mr_comm *c);
void mr_inter_scatter(struct mr_schedule *s, const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot,
                      int root, struct mr_comm *c);
void mr_inter_allgather(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it,
                        const struct mr_vec *out, struct mr_comm *c);
void mr_inter_alltoall(struct mr_schedule *s, const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c);

#endif
