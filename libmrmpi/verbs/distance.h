/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far adapters of this host are from this process. Needs no rails: mrrun asks, too. hwloc tells at which node
 * a device is, by its name.
 */
#ifndef MRMPI_DISTANCE_H
#define MRMPI_DISTANCE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/*
 * Of each device: smaller is nearer, as the firmware's table of NUMA distances has it. False: it is not known on which
 * processors the process may run, so all are the same. Takes milliseconds.
 */
bool mr_distances_of(struct ibv_device *const dev[], unsigned n, unsigned out[]);
/* Not if all adapters are at one node, or the kernel does not say; that is soon asked. A device may be there twice. */
bool mr_distances_may_differ(struct ibv_device *const dev[], unsigned n);

#endif
