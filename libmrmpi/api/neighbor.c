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

static enum mr_err build_nb_allgather(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                      api_count recvcount, MPI_Datatype recvtype, struct mr_comm *c,
                                      struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_type *it, *ot;
    TRY(around(c, &n));
    TRY(api_side(sendbuf, sendcount, sendtype, &it));
    TRY(api_side(recvbuf, recvcount, recvtype, &ot));
    TRY(api_apart(sendbuf, (size_t)sendcount, it, recvbuf, (size_t)recvcount * (size_t)n->num_in, ot));
    return mr_coll_neighbor_allgather(sendbuf, (size_t)sendcount, it,
                                      &(struct mr_vec){.buf = recvbuf, .each = (size_t)recvcount, .type = ot}, c, s);
}
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf, api_count recvcount,
                MPI_Datatype recvtype),
           build_nb_allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)

static enum mr_err build_nb_allgatherv(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                       const api_count *recvcounts, const api_displ *displs, MPI_Datatype recvtype,
                                       struct mr_comm *c, struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_type *it;
    struct mr_vec v;
    TRY(around(c, &n));
    TRY(api_side(sendbuf, sendcount, sendtype, &it));
    TRY(api_vec(&v, recvbuf, recvcounts, displs, recvtype, n->num_in));
    TRY(api_apart_vec(sendbuf, (size_t)sendcount, it, &v, n->num_in));
    return mr_coll_neighbor_allgather(sendbuf, (size_t)sendcount, it, &v, c, s);
}
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                const api_count recvcounts[], const api_displ displs[], MPI_Datatype recvtype),
           build_nb_allgatherv, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype)

static enum mr_err build_nb_alltoall(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                     api_count recvcount, MPI_Datatype recvtype, struct mr_comm *c,
                                     struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_vec from = {.buf = sendbuf, .each = (size_t)sendcount}, to = {.buf = recvbuf, .each = (size_t)recvcount};
    TRY(around(c, &n));
    TRY(api_side(sendbuf, sendcount, sendtype, &from.type));
    TRY(api_side(recvbuf, recvcount, recvtype, &to.type));
    TRY(api_apart(sendbuf, (size_t)sendcount * (size_t)n->num_out, from.type, recvbuf,
                  (size_t)recvcount * (size_t)n->num_in, to.type));
    return mr_coll_neighbor_alltoall(&from, &to, c, s);
}
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall,
           ARGS(const void *sendbuf, api_count sendcount, MPI_Datatype sendtype, void *recvbuf, api_count recvcount,
                MPI_Datatype recvtype),
           build_nb_alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype)

static enum mr_err build_nb_alltoallv(const void *sendbuf, const api_count *sendcounts, const api_displ *sdispls,
                                      MPI_Datatype sendtype, void *recvbuf, const api_count *recvcounts,
                                      const api_displ *rdispls, MPI_Datatype recvtype, struct mr_comm *c,
                                      struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_vec from, to;
    TRY(around(c, &n));
    TRY(api_vec(&from, sendbuf, sendcounts, sdispls, sendtype, n->num_out));
    TRY(api_vec(&to, recvbuf, recvcounts, rdispls, recvtype, n->num_in));
    TRY(api_apart_pairs(&from, &to, n->num_in < n->num_out ? n->num_in : n->num_out));
    return mr_coll_neighbor_alltoall(&from, &to, c, s);
}
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv,
           ARGS(const void *sendbuf, const api_count sendcounts[], const api_displ sdispls[], MPI_Datatype sendtype,
                void *recvbuf, const api_count recvcounts[], const api_displ rdispls[], MPI_Datatype recvtype),
           build_nb_alltoallv, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype)

/* One side of alltoallw; displacements are MPI_Aint with small counts too. */
#define side_w(v, buf, counts, displs, handles, types, n)                                                              \
    side_w_named(v, buf, counts, displs, handles, types, n, #buf, #counts, #displs, #handles)
static enum mr_err side_w_named(struct mr_vec *v, const void *buf, const api_count *counts, const MPI_Aint *displs,
                                const MPI_Datatype *handles, struct mr_type **types, int n, const char *name,
                                const char *counts_name, const char *displs_name, const char *types_name)
{
    if (buf == MPI_IN_PLACE)
        return mr_fail(MR_ERR_BUFFER, "%s is MPI_IN_PLACE, which is not allowed here", name);
    TRY(api_parts_named(counts, displs, handles, types, n, counts_name, displs_name, types_name));
    *v = (struct mr_vec){
        .buf = buf, .counts = counts, .disps = displs, .wide = API_WIDE, .wide_disps = true, .types = types};
    return api_vec_buffer(v, n, name, counts_name);
}

static enum mr_err build_nb_alltoallw(const void *sendbuf, const api_count *sendcounts, const MPI_Aint *sdispls,
                                      const MPI_Datatype *sendtypes, void *recvbuf, const api_count *recvcounts,
                                      const MPI_Aint *rdispls, const MPI_Datatype *recvtypes, struct mr_comm *c,
                                      struct mr_schedule **s)
{
    const struct mr_neighbors *n;
    struct mr_vec from, to;
    TRY(around(c, &n));
    struct mr_type **types = malloc(((size_t)n->num_in + (size_t)n->num_out + 1) * sizeof(struct mr_type *));
    if (!types)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the datatypes of %d neighbours", n->num_in + n->num_out);
    enum mr_err err = side_w(&from, sendbuf, sendcounts, sdispls, sendtypes, types, n->num_out);
    if (!err)
        err = side_w(&to, recvbuf, recvcounts, rdispls, recvtypes, types + n->num_out, n->num_in);
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
           build_nb_alltoallw, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes)
