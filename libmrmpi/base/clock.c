/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock. All time of the library comes from here, so a simulated clock under clock_gettime is enough. */
#include "libmrmpi/base/base.h"

#include <time.h>

uint64_t mr_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}
