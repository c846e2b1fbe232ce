/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The learner: the fastest of a few ways of doing the same work, found during the work.
 *
 * Operations go the kept way. After a rest comes a round of trials: each of the other ways for some operations in a
 * row. A sample is the time for a unit of work, of one operation or of several. Of each way the median of the last
 * MR_LEARN_SAMPLES samples counts: one that was interrupted decides nothing, nor does one with cold memory. Samples of
 * an earlier round are dropped: the machine's load may have changed. A tried way is kept if its time is shorter by more
 * than one part in MR_LEARN_GAIN. The rest is MR_LEARN_REST times as long as a round at first, and twice as long after
 * each round without a gain (backoff.h): all trials together soon are less than 2 % of the operations. If MR_LEARN_SLOW
 * samples in a row of the kept way take half as long again as when chosen, a round begins at once.
 *
 * All zero at the start: way 0, and a round as soon as its time is known. Pure.
 */
#ifndef MRMPI_BASE_LEARN_H
#define MRMPI_BASE_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/backoff.h"

#define MR_LEARN_WAYS    3u
#define MR_LEARN_SAMPLES 3u
#define MR_LEARN_GAIN    20u
#define MR_LEARN_REST    32u
#define MR_LEARN_SLOW    6u

/* The estimate: the median of the latest samples. */
struct mr_median {
    uint32_t of[MR_LEARN_SAMPLES];
    uint8_t num, next; /* samples; place of the oldest */
};

static inline void mr_median_add(struct mr_median *m, uint64_t time)
{
    m->of[m->next] = time < 1 ? 1 : time < UINT32_MAX ? (uint32_t)time : UINT32_MAX;
    m->next = (uint8_t)((m->next + 1) % MR_LEARN_SAMPLES);
    m->num = (uint8_t)(m->num + (m->num < MR_LEARN_SAMPLES));
}

/* Of two samples the lesser. 0: no samples. */
static inline uint32_t mr_median_of(const struct mr_median *m)
{
    uint32_t low = m->of[0] < m->of[1] ? m->of[0] : m->of[1], high = m->of[0] < m->of[1] ? m->of[1] : m->of[0];

    _Static_assert(MR_LEARN_SAMPLES == 3, "the median of three");
    if (m->num < 2)
        return m->of[0];
    return m->num == 2 || m->of[2] < low ? low : m->of[2] > high ? high : m->of[2];
}

struct mr_learn {
    struct mr_median time[MR_LEARN_WAYS];
    uint32_t chosen;        /* time of the kept way when chosen; 0: not known */
    uint16_t left;          /* operations of the trial to come */
    uint8_t kept, tried;    /* ways: in use, on trial or tried last */
    uint8_t due, open;      /* ways of this round to be tried, and those tried without a result yet: bits */
    uint8_t slow;           /* consecutive slow samples of the kept way */
    bool known;             /* not the first operation */
    bool begun;             /* the rest */
    struct mr_backoff rest; /* operations between rounds */
};

/*
 * A learner that begins with the knowledge about other sizes of the same work: the kept way is the same, and ways that
 * may be faster are tried soon. Samples are times of a byte, and sizes differ by a factor of 2^doublings. As costs are
 * linear in bytes, the time of a byte changes by no more than this factor.
 */
static inline struct mr_learn mr_learn_like(const struct mr_learn *other, unsigned doublings)
{
    struct mr_learn l = {.kept = other->kept, .known = true};
    uint64_t kept = mr_median_of(&other->time[other->kept]);

    for (unsigned i = 0; i < MR_LEARN_WAYS; i++)
        if (i != other->kept && other->time[i].num) {
            l.time[i] = other->time[i];
            l.due = (uint8_t)(l.due | (mr_median_of(&l.time[i]) < kept << doublings) << i);
        }
    return l;
}

/* The kept way has become impossible. Takes the fastest of the others, as far as known. ways: bits. */
static inline void mr_learn_leave(struct mr_learn *l, unsigned ways)
{
    uint32_t least = 0;

    for (unsigned i = MR_LEARN_WAYS; i--;) {
        uint32_t time = mr_median_of(&l->time[i]);

        if (!(ways & 1u << i) || (least && (!time || time > least)))
            continue;
        least = time;
        l->kept = (uint8_t)i;
    }
    l->chosen = 0;
}

static inline void mr_learn_try(struct mr_learn *l, unsigned way, unsigned trial)
{
    l->due = (uint8_t)(l->due & ~(1u << way));
    l->open = (uint8_t)(l->open | 1u << way);
    l->time[way] = (struct mr_median){0};
    l->tried = (uint8_t)way;
    l->left = (uint16_t)trial;
}

/*
 * The way of the next operation. ways: the possible ones, bits, at least one. A trial has `trial` operations, enough
 * for MR_LEARN_SAMPLES samples.
 */
static inline unsigned mr_learn_next(struct mr_learn *l, unsigned ways, unsigned trial)
{
    unsigned others, rest = MR_LEARN_REST * trial * ((unsigned)__builtin_popcount(ways) - 1);

    if (!(ways & 1u << l->kept))
        mr_learn_leave(l, ways);
    if (!l->begun) {
        l->begun = true;
        l->due = (uint8_t)(l->known ? l->due : ways & ~(1u << l->kept));
        l->known = true;
        l->rest = (struct mr_backoff){0};
        mr_backoff_failed(&l->rest, rest);
    }
    others = ways & ~(1u << l->kept);
    if (l->left && others & 1u << l->tried) {
        l->left--;
        return l->tried;
    }
    l->left = 0;
    if (!(l->due & others)) {
        if (!others || mr_backoff_skips(&l->rest))
            return l->kept;
        mr_backoff_failed(&l->rest, rest); /* as if without a gain */
        l->due = (uint8_t)others;
    }
    if (l->time[l->kept].num < MR_LEARN_SAMPLES) /* nothing to compare with */
        return l->kept;
    mr_learn_try(l, (unsigned)__builtin_ctz(l->due & others), trial);
    l->left--;
    return l->tried;
}

/* The latest operation, one of a trial, does not count: the trial has one more. */
static inline void mr_learn_again(struct mr_learn *l)
{
    l->left++;
}

/* The way on trial did not do the work: nothing is known about it, and the trial is over. */
static inline void mr_learn_void(struct mr_learn *l)
{
    l->left = 0;
    l->open = (uint8_t)(l->open & ~(1u << l->tried));
    l->time[l->tried] = (struct mr_median){0};
    l->rest.left = l->rest.length /= 2; /* not longer than before */
}

/* The latest operation was as long as this number of operations: the rest is shorter by the others. */
static inline void mr_learn_long(struct mr_learn *l, unsigned operations)
{
    l->rest.left -= l->rest.left < operations ? l->rest.left : operations - 1;
}

/* Another way may have become better: a round begins with the next operation, and rests begin anew. */
static inline void mr_learn_anew(struct mr_learn *l)
{
    l->rest = (struct mr_backoff){0};
}

/* A tried way has all samples. The kept way is as fast as now or as when chosen: now it may have been interrupted.
 */
static inline void mr_learn_judge(struct mr_learn *l, unsigned way)
{
    uint32_t tried = mr_median_of(&l->time[way]), now = mr_median_of(&l->time[l->kept]),
             kept = l->chosen && l->chosen < now ? l->chosen : now;
    bool gain = tried < kept && kept - tried > kept / MR_LEARN_GAIN;

    l->open = (uint8_t)(l->open & ~(1u << way));
    if (way == l->tried)
        l->left = 0;
    l->chosen = gain ? tried : now;
    l->slow = 0;
    if (!gain)
        return;
    l->kept = (uint8_t)way;
    l->begun = false;
}

/* The kept way's latest sample. */
static inline void mr_learn_watch(struct mr_learn *l, uint64_t time)
{
    bool known = l->time[l->kept].num == MR_LEARN_SAMPLES;

    l->slow = (uint8_t)(l->chosen && time / 3 > l->chosen / 2 ? l->slow + 1 : 0);
    if (l->slow == MR_LEARN_SLOW)
        l->rest.left = 0;
    if (known && (l->slow == MR_LEARN_SLOW || !l->chosen))
        l->chosen = mr_median_of(&l->time[l->kept]);
    l->slow %= MR_LEARN_SLOW;
}

/* A sample of a way: the time for a unit of work, in any unit. */
static inline void mr_learn_took(struct mr_learn *l, unsigned way, uint64_t time)
{
    mr_median_add(&l->time[way], time);
    if (way == l->kept)
        mr_learn_watch(l, time);
    else if (l->open & 1u << way && l->time[way].num == MR_LEARN_SAMPLES)
        mr_learn_judge(l, way);
}

#endif
