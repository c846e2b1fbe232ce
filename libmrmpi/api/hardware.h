/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of hardware resources that processes can be restricted to, by the names that MPI_Get_hw_resource_info gives
 * them. */
#ifndef MRMPI_API_HARDWARE_H
#define MRMPI_API_HARDWARE_H

#include <stdbool.h>

/*
 * The calling process runs on one resource of this kind only: which, as a number that those of its node that run on the
 * same one get too. False: on several, nobody knows, or there is no such kind.
 */
bool api_hardware_instance(const char *kind, int *instance);

#endif
