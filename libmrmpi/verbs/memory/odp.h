/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On-demand paging. One registration per device and access covers all memory that the process has or will have, and
 * pins none of it: the adapter asks the kernel for pages when it needs them and forgets them when they are unmapped.
 * Neither unmapping nor fork is of any concern then.
 *
 * What is read by adapters has a registration of its own, without the right to write: the kernel would refuse a page
 * that is only to be read to one that may write.
 *
 * An adapter that waits for a page keeps its connection waiting. Datagrams and unreliable connections cannot wait, so
 * what they write to must be pinned. The caller sees to that. With the library's lock.
 */
#ifndef MRMPI_ODP_H
#define MRMPI_ODP_H

#include <stdbool.h>
#include <stddef.h>

#include "libmrmpi/verbs/memory/memory.h"
#include "libmrmpi/verbs/memory/regcache.h"

enum mr_odp_use {
    MR_ODP_NEVER,
    MR_ODP_LAST,  /* for what cannot be pinned */
    MR_ODP_FIRST, /* for what is mapped */
};

/* NULL if every device has what connections of these kinds need, else the name of the first that has not. */
const char *mr_odp_missing(bool datagrams);
void mr_odp_open(enum mr_odp_use use);
void mr_odp_close(void);
/* A device was opened anew: what was registered is registered with it, too. 0 or negative errno. */
int mr_odp_renew(void);
bool mr_odp_comes_first(void);

/*
 * The registration of all memory, if [addr, addr + len) is mapped and this is how to register it: at first, or after
 * pinning it has failed for want of memory. NULL: it is not. Registered when it is needed first.
 */
struct mr_reg *mr_odp_get(const void *addr, size_t len, enum mr_access access, bool pinning_failed);
bool mr_odp_owns(const struct mr_reg *r);

#endif
