/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective communication (MPI-3.1 chapter 5). Each operation is one function `start_*` that checks and starts it; the
 * blocking and the nonblocking MPI function differ only in what they do with its request, which COLLECTIVE writes once.
 */
#include "libmrmpi/api/api.h"

#include <stdlib.h>

/*
 * MPI_name(args...) and MPI_Iname(args..., request). params is the list in parentheses without the closing one; call
 * has the names, c and &r.
 */
#define ARGS(...) __VA_ARGS__
#define COLLECTIVE(name, iname, params, start, ...)                                                                    \
    MPI_FN(int, name, (params, MPI_Comm comm))                                                                         \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        struct mr_request *r = NULL;                                                                                   \
        API_ENTER();                                                                                                   \
        CHECK(api_comm(comm, &c));                                                                                     \
        err = start(__VA_ARGS__, c, &r);                                                                               \
        err = mr_coll_run(err, r);                                                                                     \
        API_LEAVE(c);                                                                                                  \
    }                                                                                                                  \
    MPI_FN(int, iname, (params, MPI_Comm comm, MPI_Request * request))                                                 \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        struct mr_request *r = NULL;                                                                                   \
        API_ENTER();                                                                                                   \
        NOT_NULL(request);                                                                                             \
        CHECK(api_comm(comm, &c));                                                                                     \
        CHECK(start(__VA_ARGS__, c, &r));                                                                              \
        err = api_new_request(r, request);                                                                             \
        API_LEAVE(c);                                                                                                  \
    }

#define TRY(expr)                                                                                                      \
    do {                                                                                                               \
        enum mr_err e_ = (expr);                                                                                       \
        if (unlikely(e_))                                                                                              \
            return e_;                                                                                                 \
    } while (0)

static const void *in_place(const void *buf)
{
    return unlikely(buf == MPI_IN_PLACE) ? MR_IN_PLACE : buf;
}

static enum mr_err root_of(int root, const struct mr_comm *c)
{
    if (unlikely((unsigned)root >= (unsigned)c->size))
        return mr_fail(MR_ERR_ROOT, "root is %d, the communicator has ranks 0 to %d", root, c->size - 1);
    return MR_SUCCESS;
}

/* One side: buffer, count, type. MPI_IN_PLACE is for the caller to have dealt with. */
static enum mr_err side(const void *buf, int count, MPI_Datatype datatype, struct mr_type **t)
{
    TRY(api_type(datatype, t));
    return api_buffer(buf, count, *t);
}

static enum mr_err counts_of(const int *counts, int n)
{
    if (!counts)
        return api_null("counts");
    for (int i = 0; i < n; i++)
        if (unlikely(counts[i] < 0))
            return mr_fail(MR_ERR_COUNT, "the count for rank %d is %d", i, counts[i]);
    return MR_SUCCESS;
}

static enum mr_err vec_of(struct mr_vec *v, const void *buf, const int *counts, const int *displs,
                          MPI_Datatype datatype, int n)
{
    TRY(api_type(datatype, &v->type));
    if (unlikely(!v->type->committed))
        return api_bad_type(v->type);
    TRY(counts_of(counts, n));
    if (!displs)
        return api_null("displs");
    v->buf = buf;
    v->counts = counts;
    v->disps = displs;
    return MR_SUCCESS;
}

/* ---- barrier, bcast ---- */

MPI_FN(int, Barrier, (MPI_Comm comm))
{
    struct mr_comm *c = NULL;
    struct mr_request *r = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = mr_ibarrier(c, &r);
    err = mr_coll_run(err, r);
    API_LEAVE(c);
}

MPI_FN(int, Ibarrier, (MPI_Comm comm, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    struct mr_request *r = NULL;
    API_ENTER();
    NOT_NULL(request);
    CHECK(api_comm(comm, &c));
    CHECK(mr_ibarrier(c, &r));
    err = api_new_request(r, request);
    API_LEAVE(c);
}

static enum mr_err start_bcast(void *buf, int count, MPI_Datatype datatype, int root, struct mr_comm *c,
                               struct mr_request **r)
{
    struct mr_type *t;
    TRY(side(buf, count, datatype, &t));
    TRY(root_of(root, c));
    return mr_ibcast(buf, (size_t)count, t, root, c, r);
}
COLLECTIVE(Bcast, Ibcast, ARGS(void *buffer, int count, MPI_Datatype datatype, int root), start_bcast, buffer, count,
           datatype, root)

/* ---- reductions ---- */

static enum mr_err start_reduce(const void *in, void *out, int count, MPI_Datatype datatype, MPI_Op op, int root,
                                struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *t;
    struct mr_op *o;
    TRY(root_of(root, c));
    if (in == MPI_IN_PLACE && c->rank != root)
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is allowed at the root only");
    TRY(side(in == MPI_IN_PLACE ? out : in, count, datatype, &t));
    if (c->rank == root)
        TRY(api_buffer(out, count, t));
    TRY(api_op_on(op, &o, t));
    return mr_ireduce(in_place(in), out, (size_t)count, t, o, root, c, r);
}
COLLECTIVE(Reduce, Ireduce,
           ARGS(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root),
           start_reduce, sendbuf, recvbuf, count, datatype, op, root)

static enum mr_err reduce_sides(const void *in, void *out, int count, MPI_Datatype datatype, MPI_Op op,
                                struct mr_type **t, struct mr_op **o)
{
    TRY(side(out, count, datatype, t));
    if (in != MPI_IN_PLACE)
        TRY(api_buffer(in, count, *t));
    if (unlikely(in == out) && count && (*t)->size)
        return mr_fail(MR_ERR_BUFFER, "send and receive buffer are the same: use MPI_IN_PLACE");
    return api_op_on(op, o, *t);
}

static enum mr_err start_allreduce(const void *in, void *out, int count, MPI_Datatype datatype, MPI_Op op,
                                   struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *t;
    struct mr_op *o;
    TRY(reduce_sides(in, out, count, datatype, op, &t, &o));
    return mr_iallreduce(in_place(in), out, (size_t)count, t, o, c, r);
}
COLLECTIVE(Allreduce, Iallreduce, ARGS(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op),
           start_allreduce, sendbuf, recvbuf, count, datatype, op)

static enum mr_err start_scan(const void *in, void *out, int count, MPI_Datatype datatype, MPI_Op op, bool exclusive,
                              struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *t;
    struct mr_op *o;
    TRY(reduce_sides(in, out, count, datatype, op, &t, &o));
    return mr_iscan(in_place(in), out, (size_t)count, t, o, exclusive, c, r);
}
COLLECTIVE(Scan, Iscan, ARGS(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op),
           start_scan, sendbuf, recvbuf, count, datatype, op, false)
COLLECTIVE(Exscan, Iexscan, ARGS(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op),
           start_scan, sendbuf, recvbuf, count, datatype, op, true)

static enum mr_err start_reduce_scatter(const void *in, void *out, const int *counts, MPI_Datatype datatype, MPI_Op op,
                                        struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *t;
    struct mr_op *o;
    TRY(counts_of(counts, c->size));
    TRY(reduce_sides(in, out, counts[c->rank], datatype, op, &t, &o));
    return mr_ireduce_scatter(in_place(in), out, counts, t, o, c, r);
}
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           ARGS(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op),
           start_reduce_scatter, sendbuf, recvbuf, recvcounts, datatype, op)

static enum mr_err start_reduce_scatter_block(const void *in, void *out, int count, MPI_Datatype datatype, MPI_Op op,
                                              struct mr_comm *c, struct mr_request **r)
{
    int *counts = malloc((size_t)c->size * sizeof(*counts));
    if (!counts)
        return mr_fail(MR_ERR_NO_MEM, "no memory for %d counts", c->size);
    for (int i = 0; i < c->size; i++)
        counts[i] = count;
    enum mr_err err = start_reduce_scatter(in, out, counts, datatype, op, c, r);
    free(counts);
    return err;
}
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
           ARGS(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op),
           start_reduce_scatter_block, sendbuf, recvbuf, recvcount, datatype, op)

/* ---- gather, scatter: what only the root needs is looked at only there ---- */

static enum mr_err start_gather(const void *in, int icount, MPI_Datatype itype, void *out, int ocount,
                                MPI_Datatype otype, int root, struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *it = mr_type_byte, *ot = mr_type_byte;
    TRY(root_of(root, c));
    if (in != MPI_IN_PLACE)
        TRY(side(in, icount, itype, &it));
    else if (c->rank != root)
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is allowed at the root only");
    if (c->rank == root)
        TRY(side(out, ocount, otype, &ot));
    return mr_igather(in_place(in), (size_t)icount, it, out, (size_t)ocount, ot, root, c, r);
}
COLLECTIVE(Gather, Igather,
           ARGS(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                MPI_Datatype recvtype, int root),
           start_gather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root)

static enum mr_err start_gatherv(const void *in, int icount, MPI_Datatype itype, void *out, const int *counts,
                                 const int *displs, MPI_Datatype otype, int root, struct mr_comm *c,
                                 struct mr_request **r)
{
    struct mr_type *it = mr_type_byte;
    struct mr_vec v = {0};
    TRY(root_of(root, c));
    if (in != MPI_IN_PLACE)
        TRY(side(in, icount, itype, &it));
    else if (c->rank != root)
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is allowed at the root only");
    if (c->rank == root)
        TRY(vec_of(&v, out, counts, displs, otype, c->size));
    return mr_igatherv(in_place(in), (size_t)icount, it, &v, root, c, r);
}
COLLECTIVE(Gatherv, Igatherv,
           ARGS(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                const int displs[], MPI_Datatype recvtype, int root),
           start_gatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root)

static enum mr_err start_scatter(const void *in, int icount, MPI_Datatype itype, void *out, int ocount,
                                 MPI_Datatype otype, int root, struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *it = mr_type_byte, *ot = mr_type_byte;
    TRY(root_of(root, c));
    if (out != MPI_IN_PLACE)
        TRY(side(out, ocount, otype, &ot));
    else if (c->rank != root)
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is allowed at the root only");
    if (c->rank == root)
        TRY(side(in, icount, itype, &it));
    return mr_iscatter(in, (size_t)icount, it, (void *)(uintptr_t)in_place(out), (size_t)ocount, ot, root, c, r);
}
COLLECTIVE(Scatter, Iscatter,
           ARGS(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                MPI_Datatype recvtype, int root),
           start_scatter, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root)

static enum mr_err start_scatterv(const void *in, const int *counts, const int *displs, MPI_Datatype itype, void *out,
                                  int ocount, MPI_Datatype otype, int root, struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *ot = mr_type_byte;
    struct mr_vec v = {0};
    TRY(root_of(root, c));
    if (out != MPI_IN_PLACE)
        TRY(side(out, ocount, otype, &ot));
    else if (c->rank != root)
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is allowed at the root only");
    if (c->rank == root)
        TRY(vec_of(&v, in, counts, displs, itype, c->size));
    return mr_iscatterv(&v, (void *)(uintptr_t)in_place(out), (size_t)ocount, ot, root, c, r);
}
COLLECTIVE(Scatterv, Iscatterv,
           ARGS(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
                int recvcount, MPI_Datatype recvtype, int root),
           start_scatterv, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root)

/* ---- all to all ---- */

static enum mr_err start_allgather(const void *in, int icount, MPI_Datatype itype, void *out, int ocount,
                                   MPI_Datatype otype, struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *it = mr_type_byte, *ot;
    if (in != MPI_IN_PLACE)
        TRY(side(in, icount, itype, &it));
    TRY(side(out, ocount, otype, &ot));
    return mr_iallgather(in_place(in), (size_t)icount, it, out, (size_t)ocount, ot, c, r);
}
COLLECTIVE(Allgather, Iallgather,
           ARGS(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                MPI_Datatype recvtype),
           start_allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)

static enum mr_err start_allgatherv(const void *in, int icount, MPI_Datatype itype, void *out, const int *counts,
                                    const int *displs, MPI_Datatype otype, struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *it = mr_type_byte;
    struct mr_vec v = {0};
    if (in != MPI_IN_PLACE)
        TRY(side(in, icount, itype, &it));
    TRY(vec_of(&v, out, counts, displs, otype, c->size));
    return mr_iallgatherv(in_place(in), (size_t)icount, it, &v, c, r);
}
COLLECTIVE(Allgatherv, Iallgatherv,
           ARGS(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                const int displs[], MPI_Datatype recvtype),
           start_allgatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype)

static enum mr_err start_alltoall(const void *in, int icount, MPI_Datatype itype, void *out, int ocount,
                                  MPI_Datatype otype, struct mr_comm *c, struct mr_request **r)
{
    struct mr_type *it = mr_type_byte, *ot;
    if (in != MPI_IN_PLACE)
        TRY(side(in, icount, itype, &it));
    TRY(side(out, ocount, otype, &ot));
    return mr_ialltoall(in_place(in), (size_t)icount, it, out, (size_t)ocount, ot, c, r);
}
COLLECTIVE(Alltoall, Ialltoall,
           ARGS(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                MPI_Datatype recvtype),
           start_alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)

static enum mr_err start_alltoallv(const void *in, const int *icounts, const int *idispls, MPI_Datatype itype,
                                   void *out, const int *ocounts, const int *odispls, MPI_Datatype otype,
                                   struct mr_comm *c, struct mr_request **r)
{
    struct mr_vec from = {.buf = MR_IN_PLACE}, to = {0};
    if (in != MPI_IN_PLACE)
        TRY(vec_of(&from, in, icounts, idispls, itype, c->size));
    TRY(vec_of(&to, out, ocounts, odispls, otype, c->size));
    return mr_ialltoallv(&from, &to, c, r);
}
COLLECTIVE(Alltoallv, Ialltoallv,
           ARGS(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                const int recvcounts[], const int rdispls[], MPI_Datatype recvtype),
           start_alltoallv, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype)

static enum mr_err types_of(const MPI_Datatype *handles, struct mr_type **types, int n)
{
    for (int i = 0; i < n; i++) {
        TRY(api_type(handles[i], &types[i]));
        if (unlikely(!types[i]->committed))
            return api_bad_type(types[i]);
    }
    return MR_SUCCESS;
}

static enum mr_err start_alltoallw(const void *in, const int *icounts, const int *idispls, const MPI_Datatype *itypes,
                                   void *out, const int *ocounts, const int *odispls, const MPI_Datatype *otypes,
                                   struct mr_comm *c, struct mr_request **r)
{
    size_t n = (size_t)c->size;
    struct mr_type **types = malloc(2 * n * sizeof(struct mr_type *));
    if (!types)
        return mr_fail(MR_ERR_NO_MEM, "no memory for %d datatypes", c->size);
    struct mr_vec from = {.buf = in_place(in), .counts = icounts, .disps = idispls, .types = types};
    struct mr_vec to = {.buf = out, .counts = ocounts, .disps = odispls, .types = types + n};
    enum mr_err err = counts_of(ocounts, c->size);
    if (!err)
        err = types_of(otypes, types + n, c->size);
    if (!err && in != MPI_IN_PLACE && !(err = counts_of(icounts, c->size)))
        err = types_of(itypes, types, c->size);
    if (!err)
        err = mr_ialltoallv(&from, &to, c, r);
    free(types);
    return err;
}
COLLECTIVE(Alltoallw, Ialltoallw,
           ARGS(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[]),
           start_alltoallw, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes)
