/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering memory with devices, for the caches of this folder and for packets and rings. */
#ifndef MRMPI_VERBS_MEMORY_H
#define MRMPI_VERBS_MEMORY_H

#include "libmrmpi/verbs/verbs.h"

int mr_memory_register(void *addr, size_t len, enum mr_access access, struct mr_memory *out);
/* All memory mapped at its use, on demand; for devices with on-demand paging (odp.h). */
int mr_memory_register_all(enum mr_access access, struct mr_memory *out);
/* The same with devices that do not know it yet. */
int mr_memory_add_all(enum mr_access access, struct mr_memory *m);
void mr_memory_deregister(struct mr_memory *m);
uint32_t mr_memory_devices(const struct mr_memory *m); /* the set of devices that know the memory */

#endif
