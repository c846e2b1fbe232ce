/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Health of rails in messages between ranks: the reduction of a rail's weight, of MR_WEIGHT_MAX, in four bits for each
 * rail of a 32-bit value. 0 is a healthy rail, so a value of 0 means that all are healthy. Pure.
 */
#ifndef MRMPI_HEALTH_H
#define MRMPI_HEALTH_H

#include "libmrmpi/conn/route/sched.h"

#define MR_HEALTH_BITS 4
#define MR_HEALTH_MOST ((1u << MR_HEALTH_BITS) - 1)

/* Rail i of a value: only 0 and MR_WEIGHT_MAX are exact, and are kept exactly. */
static inline uint32_t mr_health_put(uint32_t word, unsigned i, uint32_t sick)
{
    uint32_t part = sick >= MR_WEIGHT_MAX ? MR_HEALTH_MOST : sick ? 1 + sick * (MR_HEALTH_MOST - 1) / MR_WEIGHT_MAX : 0;

    return word | part << i * MR_HEALTH_BITS;
}

static inline uint32_t mr_health_of(uint32_t word, unsigned i)
{
    return (word >> i * MR_HEALTH_BITS & MR_HEALTH_MOST) * MR_WEIGHT_MAX / MR_HEALTH_MOST;
}

/* Of a way from one rail to another: the remaining weight here is reduced by the other end. */
static inline uint32_t mr_health_both(uint32_t here, uint32_t there)
{
    return MR_WEIGHT_MAX - (MR_WEIGHT_MAX - here) * (MR_WEIGHT_MAX - there) / MR_WEIGHT_MAX;
}

#endif
