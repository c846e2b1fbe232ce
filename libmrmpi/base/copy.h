/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying what another core or a device has just written. The C library takes the processor's string instructions for
 * some KiB and more; where the source is in no near cache these were measured at half the speed of loads that the
 * processor sees coming (AMD, 11 GB/s against 20), and they are no faster elsewhere. How it is loaded: copy_loops.h.
 *
 * Where another memcpy comes before the C library's, somebody wants to see copies, or to charge for them (simfab does):
 * then all are made by it.
 */
#ifndef MRMPI_COPY_H
#define MRMPI_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "libmrmpi/base/idioms.h"

typedef void *mr_copy_fn(void *to, const void *from, size_t len);

extern MR_OWN bool mr_copy_watched;     /* memcpy is not the C library's */
extern MR_OWN mr_copy_fn *mr_copy_long; /* memcpy, or a loop of this processor's level */
void mr_copy_init(void);                /* finds both; until then all copies are memcpy's */

#define MR_COPY_LONG 4096 /* shorter ones are the C library's */

/*
 * Copying what is in this core's caches, or was, to memory that nobody reads at once. The C library takes the
 * processor's string instruction for some KiB and more, but on AMD's not from 1 MiB on. It writes lines that it need
 * not read, and is 1.05 to 1.2 times as fast there on some processors (AMD, family 26), on others as much slower
 * (family 25): long copies show which it is (copy_trial.h).
 */
#define MR_COPY_STRING (512u << 10)
extern MR_OWN bool mr_copy_by_string; /* it may be tried */
void mr_copy_away_long(void *to, const void *from, size_t len);

static inline void mr_copy_away(void *to, const void *from, size_t len)
{
    if (len >= MR_COPY_STRING && mr_copy_by_string)
        mr_copy_away_long(to, from, len);
    else
        memcpy(to, from, len);
}

static inline void mr_copy_in(void *to, const void *from, size_t len)
{
    if (len >= MR_COPY_LONG)
        mr_copy_long(to, from, len);
    else
        memcpy(to, from, len);
}

#endif
