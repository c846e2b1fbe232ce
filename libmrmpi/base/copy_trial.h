/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of the faster of two copy modes, by the time of the copies themselves: two in MR_COPY_TRIAL_EVERY use the
 * other mode. Of each mode the lesser of its last two times counts, because disturbances only add time. Pure.
 */
#ifndef MRMPI_COPY_TRIAL_H
#define MRMPI_COPY_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_COPY_TRIAL_EVERY 64
#define MR_COPY_TRIAL_FIRST 4 /* copies before that: the program's memory may be new in the very first */

struct mr_copy_trial {
    uint32_t ps[2], last[2]; /* for 1024 bytes: the lesser of the last two, the last; 0: not known */
    unsigned copies;
};

/* The next copy uses the second mode. */
static inline bool mr_copy_trial_next(struct mr_copy_trial *t)
{
    unsigned turn = t->copies++ % MR_COPY_TRIAL_EVERY;
    bool second = t->ps[true] && t->ps[true] < t->ps[false];

    return turn == MR_COPY_TRIAL_FIRST || turn == MR_COPY_TRIAL_FIRST + 1 ? !second : second;
}

static inline void mr_copy_trial_took(struct mr_copy_trial *t, bool second, size_t len, uint64_t ns)
{
    uint64_t ps = ns * 1024000 / len + 1;
    uint32_t took = ps < UINT32_MAX ? (uint32_t)ps : UINT32_MAX, last = t->last[second];

    t->ps[second] = last && last < took ? last : took;
    t->last[second] = took;
}

#endif
