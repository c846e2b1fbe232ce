/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A token bucket: an amount over time, and a burst. Traffic may go while the bucket has anything left, and may overdraw
 * it. Time fills the bucket at its rate until it is full. The caller reads the clock. Pure.
 */
#ifndef MRMPI_BUCKET_H
#define MRMPI_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define MR_BUCKET_SECOND_NS 1000000000ull

struct mr_bucket {
    uint64_t rate;       /* units per second; 0: no limit */
    int64_t left, depth; /* units; depth: of a full one */
    uint64_t filled_ns;  /* the time until which the rate is included */
};

static inline struct mr_bucket mr_bucket_full(uint64_t rate, int64_t depth, uint64_t now_ns)
{
    return (struct mr_bucket){.rate = rate, .left = depth, .depth = depth, .filled_ns = now_ns};
}

/* Another rate and depth. The contents stay, as far as there is room. */
static inline void mr_bucket_set(struct mr_bucket *b, uint64_t rate, int64_t depth)
{
    b->rate = rate;
    b->depth = depth;
    if (b->left > depth)
        b->left = depth;
}

static inline void mr_bucket_take(struct mr_bucket *b, uint64_t units)
{
    b->left -= (int64_t)units;
}

/*
 * Fills the bucket up to now. After a second it is full, whatever its rate. The time of less than a unit is not lost:
 * there may be many calls in it. strict: a nanosecond with a new unit is used up, so no number of calls gets more than
 * the rate; else it counts again.
 */
static inline void mr_bucket_fill(struct mr_bucket *b, uint64_t now_ns, bool strict)
{
    uint64_t passed = now_ns > b->filled_ns ? now_ns - b->filled_ns : 0;
    uint64_t most = (uint64_t)(b->depth - b->left), came;

    if (!b->rate || passed >= MR_BUCKET_SECOND_NS || __builtin_mul_overflow(passed, b->rate, &came))
        came = most;
    else
        came /= MR_BUCKET_SECOND_NS;
    if (came >= most) {
        b->left = b->depth;
        b->filled_ns = now_ns;
    } else {
        b->left += (int64_t)came;
        b->filled_ns += (came * MR_BUCKET_SECOND_NS + (strict ? b->rate - 1 : 0)) / b->rate;
    }
}

#endif
