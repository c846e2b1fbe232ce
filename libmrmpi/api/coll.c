/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective communication (MPI-4.0 chapter 6) with counts: this file is compiled twice (api.h). Each operation is one
 * function that checks and builds; the blocking, nonblocking and persistent MPI functions differ only in their use of
 * its schedule (api_coll.h).
 */
#include "libmrmpi/api/api_coll.h"

#include <stdlib.h>

static const void *in_place(const void *buf)
{
    return unlikely(buf == MPI_IN_PLACE) ? MR_IN_PLACE : buf;
}

/*
 * Roots, as core/ numbers them. On an intercommunicator the root passes MPI_ROOT, the rest of its group MPI_PROC_NULL
 * (and their other arguments are ignored), the other group the root's rank.
 */
static enum mr_err root_of(int root, const struct mr_comm *c)
{
    if (mr_comm_is_inter(c) && (root == MR_ROOT || root == MR_PROC_NULL))
        return MR_SUCCESS;
    if (unlikely((unsigned)root >= (unsigned)c->num_peers))
        return mr_fail(MR_ERR_ROOT, "root is %d, the %s has ranks 0 to %d", abi_rank_out(root),
                       mr_comm_is_inter(c) ? "remote group" : "communicator", c->num_peers - 1);
    return MR_SUCCESS;
}

static bool is_root(int root, const struct mr_comm *c)
{
    return mr_comm_is_inter(c) ? root == MR_ROOT : c->rank == root;
}

/* True if the caller has a part of the root's collection or distribution. */
static bool has_part(int root, const struct mr_comm *c)
{
    return !mr_comm_is_inter(c) || root >= 0;
}

static enum mr_err may_be_in_place(const void *buf, const struct mr_comm *c)
{
    if (unlikely(buf == MPI_IN_PLACE && mr_comm_is_inter(c)))
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is not for intercommunicators");
    return MR_SUCCESS;
}

static enum mr_err may_be_in_place_at(const void *buf, int root, const struct mr_comm *c)
{
    TRY(may_be_in_place(buf, c));
    if (unlikely(buf == MPI_IN_PLACE && c->rank != root))
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is allowed at the root only");
    return MR_SUCCESS;
}

/* ---- bcast ---- */

static enum mr_err build_bcast(void *buffer, api_count count, MPI_Datatype datatype, int root, struct mr_comm *c,
                               struct mr_schedule **s)
{
    struct mr_type *t = mr_type_byte;
    TRY(root_of(root, c));
    if (root != MR_PROC_NULL)
        TRY(api_side(buffer, count, datatype, &t));
    return mr_coll_bcast(buffer, (size_t)count, t, root, c, s);
}
COLLECTIVE(Bcast, Ibcast, ARGS(void *buffer, api_count count, MPI_Datatype datatype, int root), build_bcast, buffer,
           count, datatype, abi_rank_in(root))

/* ---- reductions ---- */

static enum mr_err build_reduce(const void *sendbuf, void *recvbuf, api_count count, MPI_Datatype datatype, MPI_Op op,
                                int root, struct mr_comm *c, struct mr_schedule **s)
{
    struct mr_type *t = mr_type_byte;
    struct mr_op *o = &mr_op_builtin[MR_OP_BOR];
    TRY(root_of(root, c));
    if (root == MR_PROC_NULL)
        return mr_coll_reduce(NULL, NULL, 0, t, o, root, c, s);
    TRY(api_type(datatype, &t));
    if (is_root(root, c))
        TRY(api_buffer(recvbuf, count, t));
    if (has_part(root, c)) {
        TRY(may_be_in_place_at(sendbuf, root, c));
        if (sendbuf != MPI_IN_PLACE)
            TRY(api_buffer(sendbuf, count, t));
        if (is_root(root, c) && sendbuf != MPI_IN_PLACE)
            TRY(api_apart(sendbuf, (size_t)count, t, recvbuf, (size_t)count, t));
    }
    TRY(api_op_on(op, &o, t));
    return mr_coll_reduce(in_place(sendbuf), recvbuf, (size_t)count, t, o, root, c, s);
}
COLLECTIVE(Reduce, Ireduce,
           ARGS(const void *sendbuf, void *recvbuf, api_count count, MPI_Datatype datatype, MPI_Op op, int root),
           build_reduce, sendbuf, recvbuf, count, datatype, op, abi_rank_in(root))

#define reduce_sides(sendbuf, scount, recvbuf, rcount, datatype, op, c, t, o)                                          \
    reduce_sides_named(sendbuf, scount, recvbuf, rcount, datatype, op, c, t, o, #rcount)
static enum mr_err reduce_sides_named(const void *sendbuf, api_count scount, void *recvbuf, api_count rcount,
                                      MPI_Datatype datatype, MPI_Op op, const struct mr_comm *c, struct mr_type **t,
                                      struct mr_op **o, const char *count_name)
{
    TRY(may_be_in_place(sendbuf, c));
    TRY(api_side_named(recvbuf, rcount, datatype, t, "recvbuf", count_name, "datatype"));
    if (sendbuf != MPI_IN_PLACE) {
        TRY(api_buffer_named(sendbuf, scount, *t, "sendbuf", count_name, "datatype"));
        TRY(api_apart(sendbuf, (size_t)scount, *t, recvbuf, (size_t)rcount, *t));
    }
    return api_op_on(op, o, *t);
}

static enum mr_err build_allreduce(const void *sendbuf, void *recvbuf, api_count count, MPI_Datatype datatype,
                                   MPI_Op op, struct mr_comm *c, struct mr_schedule **s)
{
    struct mr_type *t;
    struct mr_op *o;
    TRY(reduce_sides(sendbuf, count, recvbuf, count, datatype, op, c, &t, &o));
    return mr_coll_allreduce(in_place(sendbuf), recvbuf, (size_t)count, t, o, c, s);
}
COLLECTIVE(Allreduce, Iallreduce,
           ARGS(const void *sendbuf, void *recvbuf, api_count count, MPI_Datatype datatype, MPI_Op op), build_allreduce,
           sendbuf, recvbuf, count, datatype, op)

static enum mr_err build_scan(const void *sendbuf, void *recvbuf, api_count count, MPI_Datatype datatype, MPI_Op op,
                              bool exclusive, struct mr_comm *c, struct mr_schedule **s)
{
    struct mr_type *t;
    struct mr_op *o;
    if (mr_comm_is_inter(c))
        return mr_fail(MR_ERR_COMM, "there is no scan on an intercommunicator");
    TRY(reduce_sides(sendbuf, count, recvbuf, count, datatype, op, c, &t, &o));
    return mr_coll_scan(in_place(sendbuf), recvbuf, (size_t)count, t, o, exclusive, c, s);
}
COLLECTIVE(Scan, Iscan, ARGS(const void *sendbuf, void *recvbuf, api_count count, MPI_Datatype datatype, MPI_Op op),
           build_scan, sendbuf, recvbuf, count, datatype, op, false)
COLLECTIVE(Exscan, Iexscan, ARGS(const void *sendbuf, void *recvbuf, api_count count, MPI_Datatype datatype, MPI_Op op),
           build_scan, sendbuf, recvbuf, count, datatype, op, true)

static enum mr_err build_reduce_scatter(const void *sendbuf, void *recvbuf, const api_count *recvcounts,
                                        MPI_Datatype datatype, MPI_Op op, struct mr_comm *c, struct mr_schedule **s)
{
    struct mr_vec v = {.counts = recvcounts, .wide = API_WIDE};
    struct mr_op *o;
    api_count all = 0;
    TRY(api_counts(recvcounts, c->size));
    for (int i = 0; i < c->size; i++)
        all += recvcounts[i];
    TRY(reduce_sides(sendbuf, all, recvbuf, recvcounts[c->rank], datatype, op, c, &v.type, &o));
    return mr_coll_reduce_scatter(in_place(sendbuf), recvbuf, &v, o, c, s);
}
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           ARGS(const void *sendbuf, void *recvbuf, const api_count recvcounts[], MPI_Datatype datatype, MPI_Op op),
           build_reduce_scatter, sendbuf, recvbuf, recvcounts, datatype, op)

static enum mr_err build_reduce_scatter_block(const void *sendbuf, void *recvbuf, api_count recvcount,
                                              MPI_Datatype datatype, MPI_Op op, struct mr_comm *c,
                                              struct mr_schedule **s)
{
    struct mr_vec v = {.each = (size_t)recvcount};
    struct mr_op *o;
    TRY(reduce_sides(sendbuf, recvcount * c->size, recvbuf, recvcount, datatype, op, c, &v.type, &o));
    return mr_coll_reduce_scatter(in_place(sendbuf), recvbuf, &v, o, c, s);
}
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
           ARGS(const void *sendbuf, void *recvbuf, api_count recvcount, MPI_Datatype datatype, MPI_Op op),
           build_reduce_scatter_block, sendbuf, recvbuf, recvcount, datatype, op)

/* ---- gather, scatter: arguments of the root are checked only there ------- */

/*
 * One buffer and another with a part for each rank. Data with gaps may lie between the parts, but not in its own place.
 */
static enum mr_err apart_from_all(const void *one, api_count count, const struct mr_type *t, const void *all,
                                  api_count each, const struct mr_type *all_type, const struct mr_comm *c)
{
    TRY(api_apart(one, (size_t)count, t, all, (size_t)each * (size_t)c->num_peers, all_type));
    if (mr_comm_is_inter(c))
        return MR_SUCCESS;
    struct mr_vec v = {.buf = all, .each = (size_t)each, .type = (struct mr_type *)(uintptr_t)all_type};
    return api_apart(one, (size_t)count, t, mr_vec_part(&v, c->rank), (size_t)each, all_type);
}

static enum mr_err build_gather(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                api_count recvcount, MPI_Datatype recvtype, int root, struct mr_comm *c,
                                struct mr_schedule **s)
{
    struct mr_type *it = mr_type_byte, *ot = mr_type_byte;
    TRY(root_of(root, c));
    if (has_part(root, c)) {
        TRY(may_be_in_place_at(sendbuf, root, c));
        if (sendbuf != MPI_IN_PLACE)
            TRY(api_side(sendbuf, sendcount, sendtype, &it));
    }
    if (is_root(root, c)) {
        TRY(api_side(recvbuf, recvcount, recvtype, &ot));
        if (has_part(root, c) && sendbuf != MPI_IN_PLACE)
            TRY(apart_from_all(sendbuf, sendcount, it, recvbuf, recvcount, ot, c));
    }
    return mr_coll_gather(in_place(sendbuf), (size_t)sendcount, it, recvbuf, (size_t)recvcount, ot, root, c, s);
}
COLLECTIVE(Gather, Igather,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf, api_count recvcount,
                MPI_Datatype recvtype, int root),
           build_gather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, abi_rank_in(root))

static enum mr_err build_gatherv(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                 const api_count *recvcounts, const api_displ *displs, MPI_Datatype recvtype, int root,
                                 struct mr_comm *c, struct mr_schedule **s)
{
    struct mr_type *it = mr_type_byte;
    struct mr_vec v = {0};
    TRY(root_of(root, c));
    if (has_part(root, c)) {
        TRY(may_be_in_place_at(sendbuf, root, c));
        if (sendbuf != MPI_IN_PLACE)
            TRY(api_side(sendbuf, sendcount, sendtype, &it));
    }
    if (is_root(root, c)) {
        TRY(api_vec(&v, recvbuf, recvcounts, displs, recvtype, c->num_peers));
        if (has_part(root, c) && sendbuf != MPI_IN_PLACE)
            TRY(api_apart_vec(sendbuf, (size_t)sendcount, it, &v, c->num_peers));
    }
    return mr_coll_gatherv(in_place(sendbuf), (size_t)sendcount, it, &v, root, c, s);
}
COLLECTIVE(Gatherv, Igatherv,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                const api_count recvcounts[], const api_displ displs[], MPI_Datatype recvtype, int root),
           build_gatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, abi_rank_in(root))

static enum mr_err build_scatter(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                 api_count recvcount, MPI_Datatype recvtype, int root, struct mr_comm *c,
                                 struct mr_schedule **s)
{
    struct mr_type *it = mr_type_byte, *ot = mr_type_byte;
    TRY(root_of(root, c));
    if (has_part(root, c)) {
        TRY(may_be_in_place_at(recvbuf, root, c));
        if (recvbuf != MPI_IN_PLACE)
            TRY(api_side(recvbuf, recvcount, recvtype, &ot));
    }
    if (is_root(root, c)) {
        TRY(api_side(sendbuf, sendcount, sendtype, &it));
        if (has_part(root, c) && recvbuf != MPI_IN_PLACE)
            TRY(apart_from_all(recvbuf, recvcount, ot, sendbuf, sendcount, it, c));
    }
    return mr_coll_scatter(sendbuf, (size_t)sendcount, it, (void *)(uintptr_t)in_place(recvbuf), (size_t)recvcount, ot,
                           root, c, s);
}
COLLECTIVE(Scatter, Iscatter,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf, api_count recvcount,
                MPI_Datatype recvtype, int root),
           build_scatter, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, abi_rank_in(root))

static enum mr_err build_scatterv(const void *sendbuf, const api_count *sendcounts, const api_displ *displs,
                                  MPI_Datatype sendtype, void *recvbuf, api_count recvcount, MPI_Datatype recvtype,
                                  int root, struct mr_comm *c, struct mr_schedule **s)
{
    struct mr_type *ot = mr_type_byte;
    struct mr_vec v = {0};
    TRY(root_of(root, c));
    if (has_part(root, c)) {
        TRY(may_be_in_place_at(recvbuf, root, c));
        if (recvbuf != MPI_IN_PLACE)
            TRY(api_side(recvbuf, recvcount, recvtype, &ot));
    }
    if (is_root(root, c)) {
        TRY(api_vec(&v, sendbuf, sendcounts, displs, sendtype, c->num_peers));
        if (has_part(root, c) && recvbuf != MPI_IN_PLACE)
            TRY(api_apart_vec(recvbuf, (size_t)recvcount, ot, &v, c->num_peers));
    }
    return mr_coll_scatterv(&v, (void *)(uintptr_t)in_place(recvbuf), (size_t)recvcount, ot, root, c, s);
}
COLLECTIVE(Scatterv, Iscatterv,
           ARGS(const void *sendbuf, const api_count sendcounts[], const api_displ displs[], MPI_Datatype sendtype,
                void *recvbuf, api_count recvcount, MPI_Datatype recvtype, int root),
           build_scatterv, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, abi_rank_in(root))

/* ---- all to all ---- */

static enum mr_err build_allgather(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                   api_count recvcount, MPI_Datatype recvtype, struct mr_comm *c,
                                   struct mr_schedule **s)
{
    struct mr_type *it = mr_type_byte, *ot;
    TRY(may_be_in_place(sendbuf, c));
    if (sendbuf != MPI_IN_PLACE)
        TRY(api_side(sendbuf, sendcount, sendtype, &it));
    TRY(api_side(recvbuf, recvcount, recvtype, &ot));
    if (sendbuf != MPI_IN_PLACE)
        TRY(apart_from_all(sendbuf, sendcount, it, recvbuf, recvcount, ot, c));
    return mr_coll_allgather(in_place(sendbuf), (size_t)sendcount, it, recvbuf, (size_t)recvcount, ot, c, s);
}
COLLECTIVE(Allgather, Iallgather,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf, api_count recvcount,
                MPI_Datatype recvtype),
           build_allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)

static enum mr_err build_allgatherv(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                    const api_count *recvcounts, const api_displ *displs, MPI_Datatype recvtype,
                                    struct mr_comm *c, struct mr_schedule **s)
{
    struct mr_type *it = mr_type_byte;
    struct mr_vec v = {0};
    TRY(may_be_in_place(sendbuf, c));
    if (sendbuf != MPI_IN_PLACE)
        TRY(api_side(sendbuf, sendcount, sendtype, &it));
    TRY(api_vec(&v, recvbuf, recvcounts, displs, recvtype, c->num_peers));
    if (sendbuf != MPI_IN_PLACE)
        TRY(api_apart_vec(sendbuf, (size_t)sendcount, it, &v, c->num_peers));
    return mr_coll_allgatherv(in_place(sendbuf), (size_t)sendcount, it, &v, c, s);
}
COLLECTIVE(Allgatherv, Iallgatherv,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                const api_count recvcounts[], const api_displ displs[], MPI_Datatype recvtype),
           build_allgatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype)

static enum mr_err build_alltoall(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                  api_count recvcount, MPI_Datatype recvtype, struct mr_comm *c, struct mr_schedule **s)
{
    struct mr_type *it = mr_type_byte, *ot;
    TRY(may_be_in_place(sendbuf, c));
    if (sendbuf != MPI_IN_PLACE)
        TRY(api_side(sendbuf, sendcount, sendtype, &it));
    TRY(api_side(recvbuf, recvcount, recvtype, &ot));
    size_t n = (size_t)c->num_peers;
    if (sendbuf != MPI_IN_PLACE)
        TRY(api_apart(sendbuf, n * (size_t)sendcount, it, recvbuf, n * (size_t)recvcount, ot));
    return mr_coll_alltoall(in_place(sendbuf), (size_t)sendcount, it, recvbuf, (size_t)recvcount, ot, c, s);
}
COLLECTIVE(Alltoall, Ialltoall,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf, api_count recvcount,
                MPI_Datatype recvtype),
           build_alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)

static enum mr_err build_alltoallv(const void *sendbuf, const api_count *sendcounts, const api_displ *sdispls,
                                   MPI_Datatype sendtype, void *recvbuf, const api_count *recvcounts,
                                   const api_displ *rdispls, MPI_Datatype recvtype, struct mr_comm *c,
                                   struct mr_schedule **s)
{
    struct mr_vec from = {.buf = MR_IN_PLACE}, to = {0};
    TRY(may_be_in_place(sendbuf, c));
    if (sendbuf != MPI_IN_PLACE)
        TRY(api_vec(&from, sendbuf, sendcounts, sdispls, sendtype, c->num_peers));
    TRY(api_vec(&to, recvbuf, recvcounts, rdispls, recvtype, c->num_peers));
    if (sendbuf != MPI_IN_PLACE)
        TRY(api_apart_pairs(&from, &to, c->num_peers));
    return mr_coll_alltoallv(&from, &to, c, s);
}
COLLECTIVE(Alltoallv, Ialltoallv,
           ARGS(const void *sendbuf, const api_count sendcounts[], const api_displ sdispls[], MPI_Datatype sendtype,
                void *recvbuf, const api_count recvcounts[], const api_displ rdispls[], MPI_Datatype recvtype),
           build_alltoallv, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype)

static enum mr_err build_alltoallw(const void *sendbuf, const api_count *sendcounts, const api_displ *sdispls,
                                   const MPI_Datatype *sendtypes, void *recvbuf, const api_count *recvcounts,
                                   const api_displ *rdispls, const MPI_Datatype *recvtypes, struct mr_comm *c,
                                   struct mr_schedule **s)
{
    size_t n = (size_t)c->num_peers;
    TRY(may_be_in_place(sendbuf, c));
    struct mr_type **types = malloc(2 * n * sizeof(struct mr_type *));
    if (!types)
        return mr_fail(MR_ERR_NO_MEM, "no memory for %d datatypes", c->num_peers);
    struct mr_vec from = {.buf = in_place(sendbuf),
                          .counts = sendcounts,
                          .disps = sdispls,
                          .types = types,
                          .wide = API_WIDE,
                          .wide_disps = API_WIDE};
    struct mr_vec to = {.buf = recvbuf,
                        .counts = recvcounts,
                        .disps = rdispls,
                        .types = types + n,
                        .wide = API_WIDE,
                        .wide_disps = API_WIDE};
    enum mr_err err = api_parts(recvcounts, rdispls, recvtypes, types + n, c->num_peers);
    if (!err)
        err = api_vec_buffer(&to, c->num_peers, "recvbuf", "recvcounts");
    if (!err && sendbuf != MPI_IN_PLACE && !(err = api_parts(sendcounts, sdispls, sendtypes, types, c->num_peers)) &&
        !(err = api_vec_buffer(&from, c->num_peers, "sendbuf", "sendcounts")))
        err = api_apart_pairs(&from, &to, c->num_peers);
    if (!err)
        err = mr_coll_alltoallv(&from, &to, c, s);
    free(types);
    return err;
}
COLLECTIVE(Alltoallw, Ialltoallw,
           ARGS(const void *sendbuf, const api_count sendcounts[], const api_displ sdispls[],
                const MPI_Datatype sendtypes[], void *recvbuf, const api_count recvcounts[], const api_displ rdispls[],
                const MPI_Datatype recvtypes[]),
           build_alltoallw, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes)
