/* SPDX-License-Identifier: BSD-3-Clause */
/* Cartesian topologies (MPI-4.0 chapter 8); graphs are in graph.c. */
#include "libmrmpi/api/topo.h"

#include <stdlib.h>

static enum mr_err cart_of(MPI_Comm comm, struct mr_comm **c, struct mr_topology **t)
{
    enum mr_err err = api_comm(comm, c);
    if (err)
        return err;
    *t = (*c)->topology;
    if (!*t || (*t)->kind != MR_TOPO_CART)
        return mr_fail(MR_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
    return MR_SUCCESS;
}

enum mr_err api_topology_place(struct mr_comm *c, int nodes, enum mr_err wrong, struct mr_comm **made)
{
    return mr_comm_split(c, c->rank < nodes ? 0 : MR_UNDEFINED, c->rank, wrong, made);
}

enum mr_err api_topology_attach(struct mr_comm *made, struct mr_topology *t, MPI_Comm *h)
{
    *h = MPI_COMM_NULL;
    if (!t) {
        mr_comm_put(made);
        return mr_fail(MR_ERR_NO_MEM, "no memory for a topology");
    }
    made->topology = t;
    return api_new_comm(made, h);
}

static enum mr_err product(int ndims, const int *dims, int limit, int *n)
{
    long total = 1;
    if (ndims < 0)
        return mr_fail(MR_ERR_DIMS, "ndims is %d", ndims);
    if (ndims && !dims)
        return api_null("dims");
    for (int i = 0; i < ndims; i++) {
        if (dims[i] <= 0)
            return mr_fail(MR_ERR_DIMS, "dims[%d] is %d", i, dims[i]);
        total *= dims[i];
        if (total > limit)
            return mr_fail(MR_ERR_DIMS, "the grid has more places than the communicator has processes (%d)", limit);
    }
    *n = (int)total;
    return MR_SUCCESS;
}

MPI_FN(int, Cart_create,
       (MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *comm_cart))
{
    struct mr_comm *c = NULL, *made;
    enum mr_err wrong = MR_SUCCESS;
    int n = 0;
    API_ENTER();
    CHECK(api_comm(comm_old, &c));
    CHECK(api_intra(c));
    ALSO_NOT_NULL(comm_cart);
    if (comm_cart)
        *comm_cart = MPI_COMM_NULL;
    ALSO(product(ndims, dims, c->size, &n));
    if (ndims)
        ALSO_NOT_NULL(periods);
    CHECK(api_topology_place(c, n, wrong, &made));
    if (made)
        err = api_topology_attach(made, mr_cart_new(ndims, dims, periods, made->rank), comm_cart);
    API_LEAVE(c);
}

/* Ranks are not reordered: a process keeps its place. */
MPI_FN(int, Cart_map, (MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank))
{
    struct mr_comm *c = NULL;
    int n;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    NOT_NULL(newrank);
    CHECK(product(ndims, dims, c->size, &n));
    *newrank = c->rank < n ? c->rank : MPI_UNDEFINED;
    API_LEAVE(c);
}

MPI_FN(int, Dims_create, (int nnodes, int ndims, int dims[]))
{
    API_ENTER();
    if (nnodes < 1 || ndims < 0)
        CHECK(mr_fail(MR_ERR_DIMS, "nnodes is %d, ndims is %d", nnodes, ndims));
    if (ndims)
        NOT_NULL(dims);
    err = mr_dims_create(nnodes, ndims, dims);
    API_LEAVE(NULL);
}

MPI_FN(int, Cartdim_get, (MPI_Comm comm, int *ndims))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(cart_of(comm, &c, &t));
    NOT_NULL(ndims);
    *ndims = t->ndims;
    API_LEAVE(c);
}

MPI_FN(int, Cart_get, (MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(cart_of(comm, &c, &t));
    if (maxdims < t->ndims)
        CHECK(mr_fail(MR_ERR_ARG, "maxdims is %d, the topology has %d dimensions", maxdims, t->ndims));
    if (t->ndims) {
        NOT_NULL(dims);
        NOT_NULL(periods);
        NOT_NULL(coords);
    }
    for (int i = 0; i < t->ndims; i++) {
        dims[i] = t->dims[i];
        periods[i] = t->periods[i];
        coords[i] = t->coords[i];
    }
    API_LEAVE(c);
}

MPI_FN(int, Cart_rank, (MPI_Comm comm, const int coords[], int *rank))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(cart_of(comm, &c, &t));
    NOT_NULL(rank);
    if (t->ndims)
        NOT_NULL(coords);
    *rank = mr_cart_rank(t, coords);
    if (*rank == MR_PROC_NULL)
        CHECK(mr_fail(MR_ERR_ARG, "the coordinates are outside of a dimension that is not periodic"));
    API_LEAVE(c);
}

MPI_FN(int, Cart_coords, (MPI_Comm comm, int rank, int maxdims, int coords[]))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(cart_of(comm, &c, &t));
    if (rank < 0 || rank >= c->size)
        CHECK(api_bad_rank(c, rank, false, "rank"));
    if (maxdims < t->ndims)
        CHECK(mr_fail(MR_ERR_ARG, "maxdims is %d, the topology has %d dimensions", maxdims, t->ndims));
    if (t->ndims)
        NOT_NULL(coords);
    mr_cart_coords(t, rank, maxdims, coords);
    API_LEAVE(c);
}

MPI_FN(int, Cart_shift, (MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(cart_of(comm, &c, &t));
    NOT_NULL(rank_source);
    NOT_NULL(rank_dest);
    if (direction < 0 || direction >= t->ndims)
        CHECK(mr_fail(MR_ERR_ARG, "direction is %d, the topology has %d dimensions", direction, t->ndims));
    *rank_source = abi_rank_out(mr_cart_shifted(t, direction, -disp));
    *rank_dest = abi_rank_out(mr_cart_shifted(t, direction, disp));
    API_LEAVE(c);
}

MPI_FN(int, Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL, *made;
    struct mr_topology *t;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(cart_of(comm, &c, &t));
    ALSO_NOT_NULL(newcomm);
    if (t->ndims)
        ALSO_NOT_NULL(remain_dims);
    /* the removed dimensions name the slice (color), the others the place in the slice (key) */
    int color = 0, key = 0, n = 0;
    int *kept = malloc((size_t)(2 * t->ndims + 1) * sizeof(*kept));
    if (!kept)
        ALSO(mr_fail(MR_ERR_NO_MEM, "no memory for a topology"));
    for (int i = 0; i < t->ndims && !wrong; i++) {
        if (remain_dims[i]) {
            key = key * t->dims[i] + t->coords[i];
            kept[n] = t->dims[i];
            kept[t->ndims + n++] = t->periods[i];
        } else {
            color = color * t->dims[i] + t->coords[i];
        }
    }
    /* the grid without dimensions is one place, for the first process (as from MPI_Cart_create, and as in MPICH) */
    err = mr_comm_split(c, n || c->rank == 0 ? color : MR_UNDEFINED, key, wrong, &made);
    if (!err && !made)
        *newcomm = MPI_COMM_NULL;
    else if (!err)
        err = api_topology_attach(made, mr_cart_new(n, kept, kept + t->ndims, made->rank), newcomm);
    free(kept);
    API_LEAVE(c);
}

MPI_FN(int, Topo_test, (MPI_Comm comm, int *status))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(status);
    static const int kinds[] = {
        [MR_TOPO_CART] = MPI_CART, [MR_TOPO_GRAPH] = MPI_GRAPH, [MR_TOPO_DIST_GRAPH] = MPI_DIST_GRAPH};
    *status = c->topology ? kinds[c->topology->kind] : MPI_UNDEFINED;
    API_LEAVE(c);
}
