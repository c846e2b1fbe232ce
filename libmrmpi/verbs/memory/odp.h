/* SPDX-License-Identifier: BSD-3-Clause */
/* On-demand paging (verbs.h): the interface for use.c. */
#ifndef MRMPI_ODP_H
#define MRMPI_ODP_H

#include "libmrmpi/verbs/verbs.h"

void mr_odp_close(void);
/*
 * The registration of all memory, if [addr, addr + len) is mapped and paging is the way to register it: at first, or
 * after pinning has failed for lack of memory. NULL: not so. Made at its first use.
 */
struct mr_reg *mr_odp_get(const void *addr, size_t len, enum mr_access access, bool pinning_failed);

#endif
