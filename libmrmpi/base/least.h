/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time of an operation, by several measurements. Interruptions only lengthen a measurement, so the least counts,
 * and only with a second one at most a quarter longer: otherwise all may have been interrupted. Pure.
 */
#ifndef MRMPI_LEAST_H
#define MRMPI_LEAST_H

#include <stdint.h>

struct mr_least {
    uint64_t least_ns, second_ns; /* of num measurements */
    unsigned num;
};

/* 0: too short for the clock; does not count. */
static inline void mr_least_add(struct mr_least *l, uint64_t ns)
{
    if (!ns)
        return;
    if (!l->num || ns < l->least_ns) {
        l->second_ns = l->least_ns;
        l->least_ns = ns;
    } else if (l->num == 1 || ns < l->second_ns) {
        l->second_ns = ns;
    }
    l->num++;
}

/* The time, or 0: unknown. */
static inline uint64_t mr_least_ns(const struct mr_least *l)
{
    return l->num >= 2 && l->second_ns <= l->least_ns + l->least_ns / 4 ? l->least_ns : 0;
}

#endif
