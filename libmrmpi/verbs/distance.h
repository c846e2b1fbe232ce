/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distances of this host's adapters from this process. Needs no rails, because mrrun asks, too. hwloc gives the node of
 * a device, by its name.
 */
#ifndef MRMPI_DISTANCE_H
#define MRMPI_DISTANCE_H

#include <hwloc.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

/* Without a table of the firmware: its value for a node and itself, and commonly of two nodes. */
enum { MR_DISTANCE_NEAR = 10, MR_DISTANCE_FAR = 20 };

/* From the nearest NUMA node of one set to the nearest of the other; near if a set is empty. */
unsigned mr_distance_of_nodes(hwloc_topology_t t, hwloc_const_nodeset_t from, hwloc_const_nodeset_t to);
/*
 * Of each device: smaller is nearer, from the firmware's table of NUMA distances. False: the processors of the process
 * are unknown, so all distances are equal. Takes milliseconds.
 */
bool mr_distances_of(struct ibv_device *const dev[], unsigned n, unsigned out[]);
/* False if all adapters are at one node, or the kernel does not tell; a quick question. A device may occur twice. */
bool mr_distances_may_differ(struct ibv_device *const dev[], unsigned n);

#endif
