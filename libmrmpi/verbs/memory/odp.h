/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On-demand paging. One registration per device and access covers all present and future memory of the process, and
 * pins none of it: the adapter asks the kernel for pages on demand and forgets unmapped pages. Neither unmapping nor
 * fork matters then.
 *
 * Memory read by adapters has a registration of its own, without the right to write: for a registration with the right
 * to write, the kernel would refuse a read-only page.
 *
 * An adapter that waits for a page keeps its connection waiting. Datagrams and unreliable connections cannot wait, so
 * the targets of their writes must be pinned. The caller sees to that. With the library's lock.
 */
#ifndef MRMPI_ODP_H
#define MRMPI_ODP_H

#include <stdbool.h>
#include <stddef.h>

#include "libmrmpi/verbs/memory/memory.h"
#include "libmrmpi/verbs/memory/regcache.h"

enum mr_odp_use {
    MR_ODP_NEVER,
    MR_ODP_LAST,  /* for memory that cannot be pinned */
    MR_ODP_FIRST, /* for mapped memory */
};

/* NULL if every device has the abilities for connections of these kinds, else the name of the first that lacks them. */
const char *mr_odp_missing(bool datagrams);
void mr_odp_open(enum mr_odp_use use);
void mr_odp_close(void);
/* A device was opened anew: existing registrations are made with it, too. 0 or negative errno. */
int mr_odp_renew(void);
bool mr_odp_comes_first(void);

/*
 * The registration of all memory, if [addr, addr + len) is mapped and paging is the way to register it: at first, or
 * after pinning has failed for lack of memory. NULL: not so. Made at its first use.
 */
struct mr_reg *mr_odp_get(const void *addr, size_t len, enum mr_access access, bool pinning_failed);
bool mr_odp_owns(const struct mr_reg *r);

#endif
