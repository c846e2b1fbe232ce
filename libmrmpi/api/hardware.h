/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of hardware resources that processes can be restricted to, by the names of MPI_Get_hw_resource_info. */
#ifndef MRMPI_API_HARDWARE_H
#define MRMPI_API_HARDWARE_H

#include <stdbool.h>

/*
 * True if the calling process runs on one resource of this kind only: *instance is its number, the same for all
 * processes of the node on the same resource. False: on several, unknown, or there is no such kind.
 */
bool api_hardware_instance(const char *kind, int *instance);

#endif
