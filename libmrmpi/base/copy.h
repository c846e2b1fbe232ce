/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of data just written by another core or a device. From some KiB on, the C library uses the processor's string
 * instructions. With a source in no near cache, the string instructions were measured at half the speed of loads that
 * the processor can predict (AMD, 11 GB/s against 20), and are no faster elsewhere. copy_loops.h has the loads.
 *
 * If another memcpy comes before the C library's, a tool wants to see copies, or to charge for them (simfab does): then
 * all copies use that memcpy.
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

#define MR_COPY_LONG 4096 /* the C library copies shorter data */

/*
 * Copies of data in this core's caches, or recently there, to memory that nobody reads at once. From some KiB on, the C
 * library uses the processor's string instruction, but on AMD only below 1 MiB. The instruction writes lines without
 * reading them, and is 1.05 to 1.2 times as fast on some processors (AMD, family 26), and as much slower on others
 * (family 25): long copies find out (learn.h).
 */
#define MR_COPY_STRING (512u << 10)
extern MR_OWN bool mr_copy_by_string; /* the instruction may be tried */
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
