/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Back-off, counted in chances: after a failure a number of chances is skipped, after each further failure twice as
 * many, up to MR_BACKOFF_MOST. A success makes the next failure the first again. Pure; all zero at the start.
 */
#ifndef MRMPI_BASE_BACKOFF_H
#define MRMPI_BASE_BACKOFF_H

#include <stdbool.h>

#define MR_BACKOFF_FIRST 64u /* chances after the first failure, unless the caller has a number of its own */
#define MR_BACKOFF_MOST  4096u

struct mr_backoff {
    unsigned left;   /* chances still to be skipped */
    unsigned length; /* chances skipped after the latest failure; 0: none since the latest success */
};

/* A chance. True: skip the chance. */
static inline bool mr_backoff_skips(struct mr_backoff *b)
{
    if (!b->left)
        return false;
    b->left--;
    return true;
}

/* first: chances to skip after the first failure. */
static inline void mr_backoff_failed(struct mr_backoff *b, unsigned first)
{
    b->length = !b->length ? first : b->length < MR_BACKOFF_MOST ? 2 * b->length : MR_BACKOFF_MOST;
    b->left = b->length;
}

static inline void mr_backoff_succeeded(struct mr_backoff *b)
{
    b->length = 0;
}

#endif
