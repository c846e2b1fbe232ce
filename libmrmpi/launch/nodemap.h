/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nodemap: from the node of each rank to the arrays of struct mr_launch. Pure functions; the caller owns the result
 * (mr_nodemap_clear).
 */
#ifndef MRMPI_LAUNCH_NODEMAP_H
#define MRMPI_LAUNCH_NODEMAP_H

#include <stdint.h>

struct mr_nodemap {
    int num_nodes;
    int local_rank, local_size;
    int *node_of;     /* [size] dense, in order of first appearance */
    int *local_ranks; /* [local_size] ascending */
};

/* ids[r] is any number common to the ranks of a node. 0, -EINVAL or -ENOMEM. */
int mr_nodemap_from_ids(struct mr_nodemap *map, int rank, int size, const uint32_t *ids);

/* The same from names. */
int mr_nodemap_from_names(struct mr_nodemap *map, int rank, int size, const char *const *names);

void mr_nodemap_clear(struct mr_nodemap *map);

#endif
