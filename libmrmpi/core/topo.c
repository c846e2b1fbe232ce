/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Topologies: row-major grids of ranks, graphs known to every process as a whole, and graphs of which each process
 * knows its own edges. A topology is made once, never changed, and shared by the duplicates of its communicator.
 */
#include "libmrmpi/core/core.h"

#include <stdlib.h>
#include <string.h>

/* With room for `ints` integers in one piece, at t->room. */
static struct mr_topology *topology_new(enum mr_topology_kind kind, size_t ints)
{
    struct mr_topology *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->refs = 1;
    t->kind = kind;
    t->room = calloc(ints + 1, sizeof(*t->room));
    if (t->room)
        return t;
    free(t);
    return NULL;
}

struct mr_topology *mr_topology_get(struct mr_topology *t)
{
    t->refs++;
    return t;
}

void mr_topology_put(struct mr_topology *t)
{
    if (!t || --t->refs)
        return;
    free(t->room);
    free(t);
}

/* Takes `from` (NULL: nothing) to the next place of the room; returns that place. */
static int *fill_room(int **room, const int *from, int n)
{
    int *at = *room;
    if (from && n)
        memcpy(at, from, (size_t)n * sizeof(*at));
    *room += n;
    return at;
}

/* ---- grids ---- */

int mr_cart_rank(const struct mr_topology *t, const int *coords)
{
    int rank = 0;
    for (int i = 0; i < t->ndims; i++) {
        int c = coords[i], d = t->dims[i];
        if (t->periods[i])
            c = (c % d + d) % d;
        else if (c < 0 || c >= d)
            return MR_PROC_NULL;
        rank = rank * d + c;
    }
    return rank;
}

void mr_cart_coords(const struct mr_topology *t, int rank, int maxdims, int *coords)
{
    for (int i = t->ndims - 1; i >= 0; i--) {
        if (i < maxdims)
            coords[i] = rank % t->dims[i];
        rank /= t->dims[i];
    }
}

/* Up and down a dimension may be far: the distance modulo its size is as good where the grid is closed. */
int mr_cart_shifted(const struct mr_topology *t, int direction, int by)
{
    int here = t->coords[direction], size = t->dims[direction];
    long there = (long)here + by;
    if (t->periods[direction])
        there = (there % size + size) % size;
    else if (there < 0 || there >= size)
        return MR_PROC_NULL;
    t->coords[direction] = (int)there;
    int rank = mr_cart_rank(t, t->coords);
    t->coords[direction] = here;
    return rank;
}

struct mr_topology *mr_cart_new(int ndims, const int *dims, const int *periods, int rank)
{
    struct mr_topology *t = topology_new(MR_TOPO_CART, (size_t)ndims * 5);
    if (!t)
        return NULL;
    int *room = t->room;
    t->ndims = ndims;
    t->dims = fill_room(&room, dims, ndims);
    t->periods = fill_room(&room, periods, ndims);
    t->coords = fill_room(&room, NULL, ndims);
    for (int i = 0; i < ndims; i++)
        t->periods[i] = t->periods[i] != 0;
    mr_cart_coords(t, rank, ndims, t->coords);
    int *next = room;
    for (int i = 0; i < ndims; i++) {
        *next++ = mr_cart_shifted(t, i, -1);
        *next++ = mr_cart_shifted(t, i, 1);
    }
    t->around = (struct mr_neighbors){.num_in = 2 * ndims, .num_out = 2 * ndims, .in = room, .out = room};
    return t;
}

/* ---- graphs ---- */

struct mr_topology *mr_graph_new(int nodes, const int *index, const int *edges, int rank)
{
    int num_edges = nodes ? index[nodes - 1] : 0;
    struct mr_topology *t = topology_new(MR_TOPO_GRAPH, (size_t)nodes + (size_t)num_edges);
    if (!t)
        return NULL;
    int *room = t->room;
    t->num_nodes = nodes;
    t->index = fill_room(&room, index, nodes);
    t->edges = fill_room(&room, edges, num_edges);
    int n;
    const int *mine = mr_graph_neighbors(t, rank, &n);
    t->around = (struct mr_neighbors){.num_in = n, .num_out = n, .in = mine, .out = mine};
    return t;
}

const int *mr_graph_neighbors(const struct mr_topology *t, int rank, int *n)
{
    int first = rank ? t->index[rank - 1] : 0;
    *n = t->index[rank] - first;
    return t->edges + first;
}

struct mr_topology *mr_dist_graph_new(const struct mr_neighbors *of)
{
    size_t edges = (size_t)of->num_in + (size_t)of->num_out;
    struct mr_topology *t = topology_new(MR_TOPO_DIST_GRAPH, 2 * edges);
    if (!t)
        return NULL;
    int *room = t->room;
    t->around = (struct mr_neighbors){.num_in = of->num_in, .num_out = of->num_out, .weighted = of->weighted};
    t->around.in = fill_room(&room, of->in, of->num_in);
    t->around.out = fill_room(&room, of->out, of->num_out);
    if (of->weighted) {
        t->around.in_weights = fill_room(&room, of->in_weights, of->num_in);
        t->around.out_weights = fill_room(&room, of->out_weights, of->num_out);
    }
    return t;
}
