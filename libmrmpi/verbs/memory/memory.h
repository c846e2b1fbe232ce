/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory: with all devices, or with some of them. */
#ifndef MRMPI_VERBS_MEMORY_H
#define MRMPI_VERBS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/verbs/rail.h"

struct ibv_mr;

/*
 * Keys are by rail; NULL: the device does not know the memory. A newly opened device does not know earlier
 * registrations, either: such a registration is kept until it is made anew or the memory is deregistered.
 */
struct mr_memory {
    struct ibv_mr *mr[MR_DEVICES_MAX];
};

/* Read by the HCA; written by it, locally or remotely; changed by its atomics, too. */
enum mr_access { MR_ACCESS_SOURCE, MR_ACCESS_TARGET, MR_ACCESS_ATOMIC };

int mr_memory_register(void *addr, size_t len, enum mr_access access, struct mr_memory *out);
/* Registers with those devices of a set, by index, that do not know the memory yet. After an error m is unchanged. */
int mr_memory_add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m);
/* All memory mapped at its use, on demand; for devices with on-demand paging (odp.h). */
int mr_memory_register_all(enum mr_access access, struct mr_memory *out);
/* The same with devices that do not know it yet. */
int mr_memory_add_all(enum mr_access access, struct mr_memory *m);
void mr_memory_deregister(struct mr_memory *m);
uint32_t mr_memory_devices(const struct mr_memory *m); /* the set of devices that know the memory */
bool mr_memory_is_on(const struct mr_memory *m, const struct mr_rail *rail);
uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail);
uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail);

#endif
