/* SPDX-License-Identifier: BSD-3-Clause */
/* CLOCK_MONOTONIC, in microseconds: nobody sets this time. The clock stands still while the host sleeps. */
#ifndef FABRICD_CLOCK_H
#define FABRICD_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

#endif
