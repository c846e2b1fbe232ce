/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory: on all devices at once. */
#ifndef MRMPI_VERBS_MEMORY_H
#define MRMPI_VERBS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/verbs/rail.h"

struct ibv_mr;

/* Memory that every device knows; keys are by rail. */
struct mr_memory {
    struct ibv_mr *mr[MR_DEVICES_MAX];
};

enum mr_access { MR_ACCESS_SOURCE, MR_ACCESS_TARGET }; /* read by the HCA; written by it, from here or from far */

int mr_memory_register(void *addr, size_t len, enum mr_access access, struct mr_memory *out);
/* All that is mapped when it is used, on demand; for devices that have that (odp.h). */
int mr_memory_register_all(enum mr_access access, struct mr_memory *out);
void mr_memory_deregister(struct mr_memory *m);
uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail);
uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail);

#endif
