/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations over a communicator. Every one is a schedule (sched.h) that starts now and goes on in the
 * progress engine; the blocking form is mr_coll_run on the request. Arguments have been checked; MR_IN_PLACE stands for
 * MPI_IN_PLACE. Called with the library's lock held. *req is NULL on error.
 */
#ifndef MRMPI_COLL_H
#define MRMPI_COLL_H

#include "libmrmpi/core/objects.h"
#include "libmrmpi/pt2pt/pt2pt.h"

#define MR_IN_PLACE ((void *)-1)

int mr_coll_init(void); /* hooks into progress */
void mr_coll_finalize(void);

/* Wait, free the request, return its error. */
enum mr_err mr_coll_run(enum mr_err started, struct mr_request *req);

/* One side of a collective: count elements of type at buf; the *v forms have counts and displacements per rank. */
struct mr_vec {
    const void *buf;
    const int *counts, *disps; /* disps in extents; for w in bytes */
    struct mr_type *type;      /* NULL: per rank in types */
    struct mr_type *const *types;
};

enum mr_err mr_ibarrier(struct mr_comm *c, struct mr_request **req);
enum mr_err mr_ibcast(void *buf, size_t count, struct mr_type *t, int root, struct mr_comm *c, struct mr_request **req);
enum mr_err mr_ireduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, int root,
                       struct mr_comm *c, struct mr_request **req);
enum mr_err mr_iallreduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                          struct mr_comm *c, struct mr_request **req);
enum mr_err mr_ireduce_scatter(const void *in, void *out, const int *counts, struct mr_type *t, struct mr_op *op,
                               struct mr_comm *c, struct mr_request **req);
enum mr_err mr_iscan(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, bool exclusive,
                     struct mr_comm *c, struct mr_request **req);
enum mr_err mr_igather(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount, struct mr_type *ot,
                       int root, struct mr_comm *c, struct mr_request **req);
enum mr_err mr_igatherv(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out, int root,
                        struct mr_comm *c, struct mr_request **req);
enum mr_err mr_iscatter(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount, struct mr_type *ot,
                        int root, struct mr_comm *c, struct mr_request **req);
enum mr_err mr_iscatterv(const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot, int root,
                         struct mr_comm *c, struct mr_request **req);
enum mr_err mr_iallgather(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                          struct mr_type *ot, struct mr_comm *c, struct mr_request **req);
enum mr_err mr_iallgatherv(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                           struct mr_comm *c, struct mr_request **req);
enum mr_err mr_ialltoall(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                         struct mr_type *ot, struct mr_comm *c, struct mr_request **req);
/* v and w alike; in->buf may be MR_IN_PLACE */
enum mr_err mr_ialltoallv(const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c,
                          struct mr_request **req);

#endif
