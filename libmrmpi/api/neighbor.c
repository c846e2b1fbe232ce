/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbourhood collectives (MPI-4.0 sections 8.6 to 8.8). They have counts: compiled twice (api.h). */
#include "libmrmpi/api/api_coll.h"

#include <stdlib.h>

static enum mr_err around(const struct mr_comm *c, const struct mr_neighbors **n)
{
    if (!c->topology)
        return mr_fail(MR_ERR_TOPOLOGY, "the communicator has no topology, so its processes have no neighbours");
    *n = &c->topology->around;
    return MR_SUCCESS;
}

static enum mr_err build_allgather(const void *in, api_count icount, MPI_Datatype itype, void *out, api_count ocount,
                                   MPI_Datatype otype, struct mr_comm *c, struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_type *it, *ot;
    TRY(around(c, &n));
    TRY(api_side(in, icount, itype, &it));
    TRY(api_side(out, ocount, otype, &ot));
    TRY(api_apart(in, (size_t)icount, it, out, (size_t)ocount * (size_t)n->num_in, ot));
    return mr_coll_neighbor_allgather(in, (size_t)icount, it,
                                      &(struct mr_vec){.buf = out, .each = (size_t)ocount, .type = ot}, c, s);
}
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf, api_count recvcount,
                MPI_Datatype recvtype),
           build_allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)

static enum mr_err build_allgatherv(const void *in, api_count icount, MPI_Datatype itype, void *out,
                                    const api_count *counts, const api_displ *displs, MPI_Datatype otype,
                                    struct mr_comm *c, struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_type *it;
    struct mr_vec v;
    TRY(around(c, &n));
    TRY(api_side(in, icount, itype, &it));
    TRY(api_vec(&v, out, counts, displs, otype, n->num_in));
    TRY(api_apart_vec(in, (size_t)icount, it, &v, n->num_in));
    return mr_coll_neighbor_allgather(in, (size_t)icount, it, &v, c, s);
}
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                const api_count recvcounts[], const api_displ displs[], MPI_Datatype recvtype),
           build_allgatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype)

static enum mr_err build_alltoall(const void *in, api_count icount, MPI_Datatype itype, void *out, api_count ocount,
                                  MPI_Datatype otype, struct mr_comm *c, struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_vec from = {.buf = in, .each = (size_t)icount}, to = {.buf = out, .each = (size_t)ocount};
    TRY(around(c, &n));
    TRY(api_side(in, icount, itype, &from.type));
    TRY(api_side(out, ocount, otype, &to.type));
    TRY(api_apart(in, (size_t)icount * (size_t)n->num_out, from.type, out, (size_t)ocount * (size_t)n->num_in,
                  to.type));
    return mr_coll_neighbor_alltoall(&from, &to, c, s);
}
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf, api_count recvcount,
                MPI_Datatype recvtype),
           build_alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)

static enum mr_err build_alltoallv(const void *in, const api_count *icounts, const api_displ *idispls,
                                   MPI_Datatype itype, void *out, const api_count *ocounts, const api_displ *odispls,
                                   MPI_Datatype otype, struct mr_comm *c, struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_vec from, to;
    TRY(around(c, &n));
    TRY(api_vec(&from, in, icounts, idispls, itype, n->num_out));
    TRY(api_vec(&to, out, ocounts, odispls, otype, n->num_in));
    TRY(api_apart_pairs(&from, &to, n->num_in < n->num_out ? n->num_in : n->num_out));
    return mr_coll_neighbor_alltoall(&from, &to, c, s);
}
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv,
           ARGS(const void *sendbuf, const api_count sendcounts[], const api_displ sdispls[], MPI_Datatype sendtype,
                void *recvbuf, const api_count recvcounts[], const api_displ rdispls[], MPI_Datatype recvtype),
           build_alltoallv, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype)

/* One side of alltoallw; displacements are MPI_Aint with small counts too. */
static enum mr_err side_w(struct mr_vec *v, const void *buf, const api_count *counts, const MPI_Aint *displs,
                          const MPI_Datatype *handles, struct mr_type **types, int n)
{
    if (buf == MPI_IN_PLACE)
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is not allowed here");
    TRY(api_parts(counts, displs, handles, types, n));
    *v = (struct mr_vec){
        .buf = buf, .counts = counts, .disps = displs, .wide = API_WIDE, .wide_disps = true, .types = types};
    return api_vec_buffer(v, n);
}

static enum mr_err build_alltoallw(const void *in, const api_count *icounts, const MPI_Aint *idispls,
                                   const MPI_Datatype *itypes, void *out, const api_count *ocounts,
                                   const MPI_Aint *odispls, const MPI_Datatype *otypes, struct mr_comm *c,
                                   struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_vec from, to;
    TRY(around(c, &n));
    struct mr_type **types = malloc(((size_t)n->num_in + (size_t)n->num_out + 1) * sizeof(struct mr_type *));
    if (!types)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the datatypes of %d neighbours", n->num_in + n->num_out);
    enum mr_err err = side_w(&from, in, icounts, idispls, itypes, types, n->num_out);
    if (!err)
        err = side_w(&to, out, ocounts, odispls, otypes, types + n->num_out, n->num_in);
    if (!err)
        err = api_apart_pairs(&from, &to, n->num_in < n->num_out ? n->num_in : n->num_out);
    if (!err)
        err = mr_coll_neighbor_alltoall(&from, &to, c, s);
    free(types);
    return err;
}
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
           ARGS(const void *sendbuf, const api_count sendcounts[], const MPI_Aint sdispls[],
                const MPI_Datatype sendtypes[], void *recvbuf, const api_count recvcounts[], const MPI_Aint rdispls[],
                const MPI_Datatype recvtypes[]),
           build_alltoallw, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes)
