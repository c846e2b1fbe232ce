/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The places of the ranks of a communicator: rows are nodes, in the order of their first ranks, columns the ranks of a
 * node in order. The places are a grid only if all nodes have equally many ranks. All ranks have the same places, from
 * the launcher's map, so all choose alike.
 */
#ifndef MRMPI_COLL_PLACE_H
#define MRMPI_COLL_PLACE_H

#include <stdbool.h>

struct mr_comm;

struct mr_place {
    int nodes, each; /* each: ranks of every node; 0: they differ, and the rest is not set */
    int node, local; /* this rank's */
    int rank[];      /* [nodes * each]: the ranks of node 0, then those of node 1 */
};

static inline int mr_place_rank(const struct mr_place *w, int node, int local)
{
    return w->rank[node * w->each + local];
}

/* Pure: node_of[i] is the node of rank i of `size`, numbers from 0 to size - 1 or more. NULL: no memory; the caller
 * frees it. */
struct mr_place *mr_place_of(const int *node_of, int size, int me);

/* The places of c, made at the first call, owned by c. Without memory the job ends. (select.c) */
const struct mr_place *mr_comm_place(struct mr_comm *c);

#endif
