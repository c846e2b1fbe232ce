/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations over a communicator. Each function here builds a schedule (sched.h), *out, NULL on error. The
 * schedule then is run (blocking), started (nonblocking, continues in the progress engine) or kept to be started many
 * times (persistent); all three take the schedule over. All ranks must build in the same order, as the standard
 * requires.
 *
 * Arguments have been checked; MR_IN_PLACE stands for MPI_IN_PLACE. Arrays of counts are read only while building.
 * Callers hold the library's lock.
 */
#ifndef MRMPI_COLL_H
#define MRMPI_COLL_H

#include "libmrmpi/core/objects.h"
#include "libmrmpi/p2p/pt2pt.h"
#include "libmrmpi/coll/schedule/run.h"

#define MR_IN_PLACE ((void *)-1)
#define MR_ROOT     (-3) /* of an operation on an intercommunicator */

int mr_coll_init(void); /* reads MRMPI_COLL and MRMPI_COLL_TABLE, hooks into progress; 0 or -errno */
void mr_coll_finalize(void);
/*
 * The number of operations that this rank has begun on c, including the library's own. All members with the same
 * operations have the same number.
 */
unsigned mr_coll_begun(const struct mr_comm *c);

/*
 * One side of a collective: for each rank (neighbour) a count of elements and a displacement, in arrays of int, or of
 * int64_t and ptrdiff_t if wide; without an array of counts `each` for all ranks, one behind the other.
 */
struct mr_vec {
    const void *buf;
    const void *counts, *disps; /* disps in extents; with types in bytes */
    bool wide, wide_disps;
    size_t each;
    struct mr_type *type; /* NULL: per rank in types */
    struct mr_type *const *types;
};

static inline size_t mr_vec_count(const struct mr_vec *v, int i)
{
    if (!v->counts)
        return v->each;
    return v->wide ? (size_t)((const int64_t *)v->counts)[i] : (size_t)((const int *)v->counts)[i];
}

static inline struct mr_type *mr_vec_type(const struct mr_vec *v, int i)
{
    return v->types ? v->types[i] : v->type;
}

/* Where the part of rank i begins. */
static inline void *mr_vec_part(const struct mr_vec *v, int i)
{
    ptrdiff_t d = v->disps ? v->wide_disps ? ((const ptrdiff_t *)v->disps)[i] : ((const int *)v->disps)[i]
                           : (ptrdiff_t)v->each * i;
    return (char *)(uintptr_t)v->buf + (v->types ? d : d * v->type->extent);
}

static inline size_t mr_vec_bytes(const struct mr_vec *v, int i)
{
    return mr_vec_count(v, i) * mr_vec_type(v, i)->size;
}

enum mr_err mr_coll_barrier(struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_bcast(void *buf, size_t count, struct mr_type *t, int root, struct mr_comm *c,
                          struct mr_schedule **built);
enum mr_err mr_coll_reduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, int root,
                           struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_allreduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                              struct mr_comm *c, struct mr_schedule **built);
/* v: counts and type; the result is at out */
enum mr_err mr_coll_reduce_scatter(const void *in, void *out, const struct mr_vec *v, struct mr_op *op,
                                   struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_scan(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, bool exclusive,
                         struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_gather(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                           struct mr_type *ot, int root, struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_gatherv(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out, int root,
                            struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_scatter(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                            struct mr_type *ot, int root, struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_scatterv(const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot, int root,
                             struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_allgather(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                              struct mr_type *ot, struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_allgatherv(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                               struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_alltoall(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                             struct mr_type *ot, struct mr_comm *c, struct mr_schedule **built);
/* v and w alike; in->buf may be MR_IN_PLACE */
enum mr_err mr_coll_alltoallv(const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c,
                              struct mr_schedule **built);

/* On a communicator with a topology; the vectors are over the sources and destinations of its neighbours. */
enum mr_err mr_coll_neighbor_allgather(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                                       struct mr_comm *c, struct mr_schedule **built);
/* v and w alike */
enum mr_err mr_coll_neighbor_alltoall(const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c,
                                      struct mr_schedule **built);

#endif
