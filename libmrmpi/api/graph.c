/* SPDX-License-Identifier: BSD-3-Clause */
/* Graph and distributed graph topologies (MPI-4.0 sections 8.5.3 to 8.5.5). Ranks are never reordered. */
#include "libmrmpi/api/topo.h"

#include <string.h>

static enum mr_err topology_of(MPI_Comm comm, enum mr_topology_kind kind, const char *what, struct mr_comm **c,
                               struct mr_topology **t)
{
    enum mr_err err = api_comm(comm, c);
    if (err)
        return err;
    *t = (*c)->topology;
    if (!*t || (*t)->kind != kind)
        return mr_fail(MR_ERR_TOPOLOGY, "the communicator has no %s topology", what);
    return MR_SUCCESS;
}

static enum mr_err graph_of(MPI_Comm comm, struct mr_comm **c, struct mr_topology **t)
{
    return topology_of(comm, MR_TOPO_GRAPH, "graph", c, t);
}

static enum mr_err dist_graph_of(MPI_Comm comm, struct mr_comm **c, struct mr_topology **t)
{
    return topology_of(comm, MR_TOPO_DIST_GRAPH, "distributed graph", c, t);
}

/* n integers, and a place for them if there are any. */
static enum mr_err list_named(int n, const int *at, const char *n_name, const char *name)
{
    if (n < 0)
        return mr_fail(MR_ERR_ARG, "%s is %d", n_name, n);
    return n && !at ? api_null(name) : MR_SUCCESS;
}
#define list(n, at) list_named(n, at, #n, #at)

/* ---- graphs ---- */

static enum mr_err check_graph(const struct mr_comm *c, int nnodes, const int *indx, const int *edges)
{
    enum mr_err err = list(nnodes, indx);
    if (err)
        return err;
    if (nnodes > c->size)
        return mr_fail(MR_ERR_ARG, "nnodes is %d, the communicator has %d processes", nnodes, c->size);
    for (int i = 0; i < nnodes; i++)
        if (indx[i] < (i ? indx[i - 1] : 0))
            return mr_fail(MR_ERR_ARG, "indx[%d] is %d: it must not be less than the one before", i, indx[i]);
    int n = nnodes ? indx[nnodes - 1] : 0;
    if ((err = list_named(n, edges, "indx", "edges")))
        return err;
    for (int i = 0; i < n; i++)
        if (edges[i] < 0 || edges[i] >= nnodes)
            return mr_fail(MR_ERR_ARG, "edges[%d] is %d, the graph has nodes 0 to %d", i, edges[i], nnodes - 1);
    return MR_SUCCESS;
}

MPI_FN(int, Graph_create,
       (MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int reorder, MPI_Comm *comm_graph))
{
    struct mr_comm *c = NULL, *made;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm_old, &c));
    CHECK(api_intra(c));
    ALSO_NOT_NULL(comm_graph);
    ALSO(check_graph(c, nnodes, indx, edges));
    CHECK(api_topology_place(c, nnodes, wrong, &made));
    *comm_graph = MPI_COMM_NULL;
    if (made)
        err = api_topology_attach(made, mr_graph_new(nnodes, indx, edges, made->rank), comm_graph);
    API_LEAVE(c);
}

MPI_FN(int, Graph_map, (MPI_Comm comm, int nnodes, const int indx[], const int edges[], int *newrank))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    NOT_NULL(newrank);
    CHECK(check_graph(c, nnodes, indx, edges));
    *newrank = c->rank < nnodes ? c->rank : MPI_UNDEFINED;
    API_LEAVE(c);
}

MPI_FN(int, Graphdims_get, (MPI_Comm comm, int *nnodes, int *nedges))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(graph_of(comm, &c, &t));
    NOT_NULL(nnodes);
    NOT_NULL(nedges);
    *nnodes = t->num_nodes;
    *nedges = t->index[t->num_nodes - 1];
    API_LEAVE(c);
}

/* As many as there is room for. */
static void copy_some(int *to, int room, const int *from, int n)
{
    n = n < room ? n : room;
    if (n > 0)
        memcpy(to, from, (size_t)n * sizeof(*to));
}

MPI_FN(int, Graph_get, (MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(graph_of(comm, &c, &t));
    CHECK(list(maxindex, indx));
    CHECK(list(maxedges, edges));
    copy_some(indx, maxindex, t->index, t->num_nodes);
    copy_some(edges, maxedges, t->edges, t->index[t->num_nodes - 1]);
    API_LEAVE(c);
}

MPI_FN(int, Graph_neighbors_count, (MPI_Comm comm, int rank, int *nneighbors))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(graph_of(comm, &c, &t));
    NOT_NULL(nneighbors);
    if (rank < 0 || rank >= c->size)
        CHECK(api_bad_rank(c, rank, false, "rank"));
    mr_graph_neighbors(t, rank, nneighbors);
    API_LEAVE(c);
}

MPI_FN(int, Graph_neighbors, (MPI_Comm comm, int rank, int maxneighbors, int neighbors[]))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    int n;
    API_ENTER();
    CHECK(graph_of(comm, &c, &t));
    if (rank < 0 || rank >= c->size)
        CHECK(api_bad_rank(c, rank, false, "rank"));
    CHECK(list(maxneighbors, neighbors));
    const int *from = mr_graph_neighbors(t, rank, &n);
    copy_some(neighbors, maxneighbors, from, n);
    API_LEAVE(c);
}

/* ---- distributed graphs ---- */

#define ranks_of(c, n, ranks) ranks_of_named(c, n, ranks, #n, #ranks)
static enum mr_err ranks_of_named(const struct mr_comm *c, int n, const int *ranks, const char *n_name,
                                  const char *name)
{
    enum mr_err err = list_named(n, ranks, n_name, name);
    for (int i = 0; i < n && !err; i++)
        if (ranks[i] < 0 || ranks[i] >= c->size)
            err = mr_fail(MR_ERR_RANK, "%s[%d] is %d, the communicator has ranks 0 to %d", name, i, ranks[i],
                          c->size - 1);
    return err;
}

static enum mr_err weights_of(const char *name, int n, const int *weights)
{
    if (weights == MPI_UNWEIGHTED)
        return MR_SUCCESS;
    if (n && weights == MPI_WEIGHTS_EMPTY)
        return mr_fail(MR_ERR_ARG, "%s is MPI_WEIGHTS_EMPTY, but there are %d edges", name, n);
    enum mr_err err = list_named(n, weights, "n", name);
    for (int i = 0; i < n && !err; i++)
        if (weights[i] < 0)
            err = mr_fail(MR_ERR_ARG, "%s[%d] is %d", name, i, weights[i]);
    return err;
}

/* A duplicate without attributes, with the hints and the topology. Takes t over; there may be none if all is not well.
 */
static enum mr_err dup_with(struct mr_comm *c, struct mr_topology *t, MPI_Info info, enum mr_err wrong, MPI_Comm *h)
{
    struct mr_comm *made;
    enum mr_err err = api_topology_place(c, c->size, wrong, &made);
    if (!err && (err = api_set_hints(made, info)))
        mr_comm_put(made);
    if (!err)
        return api_topology_attach(made, t, h);
    mr_topology_put(t);
    return err;
}

MPI_FN(int, Dist_graph_create_adjacent,
       (MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[], int outdegree,
        const int destinations[], const int destweights[], MPI_Info info, int reorder, MPI_Comm *comm_dist_graph))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t = NULL;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm_old, &c));
    CHECK(api_intra(c));
    ALSO_NOT_NULL(comm_dist_graph);
    ALSO(ranks_of(c, indegree, sources));
    ALSO(ranks_of(c, outdegree, destinations));
    ALSO(weights_of("sourceweights", indegree, sourceweights));
    ALSO(weights_of("destweights", outdegree, destweights));
    ALSO(api_hints(info));
    if ((sourceweights == MPI_UNWEIGHTED) != (destweights == MPI_UNWEIGHTED))
        ALSO(mr_fail(MR_ERR_ARG, "only one of sourceweights and destweights is MPI_UNWEIGHTED"));
    if (!wrong)
        t = mr_dist_graph_new(&(struct mr_neighbors){.num_in = indegree,
                                                     .num_out = outdegree,
                                                     .in = sources,
                                                     .out = destinations,
                                                     .weighted = sourceweights != MPI_UNWEIGHTED,
                                                     .in_weights = sourceweights,
                                                     .out_weights = destweights});
    err = dup_with(c, t, info, wrong, comm_dist_graph);
    API_LEAVE(c);
}

static enum mr_err check_edges(const struct mr_comm *c, const struct mr_edges *e, const int *weights)
{
    enum mr_err err = ranks_of_named(c, e->num_sources, e->sources, "n", "sources");
    if (!err)
        err = list_named(e->num_sources, e->degrees, "n", "degrees");
    int n = 0;
    for (int i = 0; i < e->num_sources && !err; i++) {
        if (e->degrees[i] < 0)
            err = mr_fail(MR_ERR_ARG, "degrees[%d] is %d", i, e->degrees[i]);
        n += e->degrees[i];
    }
    if (!err)
        err = ranks_of_named(c, n, e->destinations, "degrees", "destinations");
    return err ? err : weights_of("weights", n, weights);
}

MPI_FN(int, Dist_graph_create,
       (MPI_Comm comm_old, int n, const int sources[], const int degrees[], const int destinations[],
        const int weights[], MPI_Info info, int reorder, MPI_Comm *comm_dist_graph))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm_old, &c));
    CHECK(api_intra(c));
    ALSO_NOT_NULL(comm_dist_graph);
    ALSO(api_hints(info));
    struct mr_edges e = {n, sources, degrees, destinations, weights == MPI_UNWEIGHTED ? NULL : weights};
    ALSO(check_edges(c, &e, weights));
    if (!weights)
        e.weights = MPI_WEIGHTS_EMPTY; /* no edges from here, but the graph has weights */
    CHECK(mr_dist_graph_gather(c, &e, wrong, &t));
    err = dup_with(c, t, info, MR_SUCCESS, comm_dist_graph);
    API_LEAVE(c);
}

MPI_FN(int, Dist_graph_neighbors_count, (MPI_Comm comm, int *indegree, int *outdegree, int *weighted))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(dist_graph_of(comm, &c, &t));
    NOT_NULL(indegree);
    NOT_NULL(outdegree);
    NOT_NULL(weighted);
    *indegree = t->around.num_in;
    *outdegree = t->around.num_out;
    *weighted = t->around.weighted;
    API_LEAVE(c);
}

/* Ranks and, where there are any and they are asked for, weights. */
static void give_side(int room, int *ranks, int *weights, int n, const int *from, const int *from_weights)
{
    copy_some(ranks, room, from, n);
    if (from_weights && weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY)
        copy_some(weights, room, from_weights, n);
}

MPI_FN(int, Dist_graph_neighbors,
       (MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree, int destinations[],
        int destweights[]))
{
    struct mr_comm *c = NULL;
    struct mr_topology *t;
    API_ENTER();
    CHECK(dist_graph_of(comm, &c, &t));
    CHECK(list(maxindegree, sources));
    CHECK(list(maxoutdegree, destinations));
    const struct mr_neighbors *a = &t->around;
    if (a->weighted && maxindegree)
        NOT_NULL(sourceweights);
    if (a->weighted && maxoutdegree)
        NOT_NULL(destweights);
    give_side(maxindegree, sources, sourceweights, a->num_in, a->in, a->in_weights);
    give_side(maxoutdegree, destinations, destweights, a->num_out, a->out, a->out_weights);
    API_LEAVE(c);
}
