/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distances of this host's adapters from this process. Needs no rails, because mrrun asks, too. hwloc gives the node of
 * a device, by its name.
 */
#ifndef MRMPI_DISTANCE_H
#define MRMPI_DISTANCE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/*
 * Of each device: smaller is nearer, from the firmware's table of NUMA distances. False: the processors of the process
 * are unknown, so all distances are equal. Takes milliseconds.
 */
bool mr_distances_of(struct ibv_device *const dev[], unsigned n, unsigned out[]);
/* False if all adapters are at one node, or the kernel does not tell; a quick question. A device may occur twice. */
bool mr_distances_may_differ(struct ibv_device *const dev[], unsigned n);

#endif
