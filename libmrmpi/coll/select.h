/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithm of a collective: one table (select.c), first match wins. Rows of the file MRMPI_COLL_TABLE, which
 * bench/tune writes for a machine, take precedence, and the setting MRMPI_COLL takes precedence over both.
 */
#ifndef MRMPI_COLL_SELECT_H
#define MRMPI_COLL_SELECT_H

#include <stdbool.h>
#include <stddef.h>

enum mr_coll {
    MR_COLL_BARRIER,
    MR_COLL_BCAST,
    MR_COLL_REDUCE,
    MR_COLL_ALLREDUCE,
    MR_COLL_GATHER,
    MR_COLL_SCATTER,
    MR_COLL_ALLGATHER,
    MR_COLL_ALLGATHERV,
    MR_COLL_ALLTOALL,
    MR_COLL_REDUCE_SCATTER,
    MR_COLL_SCAN /* and exscan */
};

enum mr_alg {
    MR_ALG_NODE, /* through shared memory: node.h */
    MR_ALG_DISSEMINATION,
    MR_ALG_BINOMIAL,
    MR_ALG_LINEAR,
    MR_ALG_SCATTER_ALLGATHER,
    MR_ALG_RECURSIVE_DOUBLING,
    MR_ALG_HALVING,
    MR_ALG_RING,
    MR_ALG_BRUCK,
    MR_ALG_SPREAD,
    MR_ALG_PAIRWISE,
    MR_ALG_TWO_LEVEL,
    MR_ALG_HIERARCHICAL /* through memory on each node, by messages between nodes: grid.h */
};

/* Features of a call; a rule asks for some of them. */
enum {
    MR_HAS_COMMUTATIVE = 1,
    MR_HAS_CONTIGUOUS = 2,
    MR_HAS_POWER_OF_TWO = 4, /* ranks */
    MR_HAS_GRID = 8,         /* several nodes with equally many ranks each */
    MR_HAS_ROWS = 16,        /* the same, with more than one rank each */
    MR_HAS_NODE = 32,        /* the ranks share a node area, and the call is a blocking one */
    MR_HAS_GRID_AREAS = 512, /* the ranks of each node do, and the call is a blocking one */
    /* a named algorithm does without these */
    MR_HAS_FEW_NODES = 64,
    MR_HAS_LONG_PARTS = 128, /* nodes are few, and the part of each is worth a message */
    MR_HAS_FEW_RANKS = 256   /* mr_coll_select finds out itself */
};

struct mr_comm;

/*
 * The features of c about nodes, without MR_HAS_NODE. bytes: the data of all ranks together, which is cut into as many
 * parts as there are nodes.
 */
unsigned mr_coll_place_has(struct mr_comm *c, size_t bytes);
/* bytes: the contribution of one rank (bcast: the message). */
enum mr_alg mr_coll_select(enum mr_coll coll, size_t bytes, int ranks, unsigned has);

/* True if MRMPI_COLL names an algorithm through node areas for the collective. */
bool mr_coll_wants_node(enum mr_coll coll);

#endif
