/* SPDX-License-Identifier: BSD-3-Clause */
/* Adaptive weights: rates measured, weights that follow them. */
#include "libmrmpi/rail/adapt.h"

#include <string.h>

/* Rates are alike that differ by one part in so many; it takes more to leave equal weights than to come back to them. */
#define ALIKE_LEAVE 4
#define ALIKE_BACK  8
/* Weights that are off by one part in so many are right. */
#define RIGHT 32

struct measure {
    uint64_t rate[MR_SUBS_MAX]; /* median; 0: took no part */
    unsigned num;               /* those that took part */
    uint64_t sum, slowest, fastest;
    uint64_t weight, lightest, heaviest; /* theirs, in sum */
};

void mr_adapt_started(struct mr_adapt *a, unsigned sub, uint64_t now_ns)
{
    struct mr_flow *f = &a->flow[sub];

    if (f->open++)
        return;
    f->since_ns = now_ns;
    f->bytes = 0;
}

void mr_adapt_finished(struct mr_adapt *a, unsigned sub, uint64_t len, uint64_t now_ns)
{
    struct mr_flow *f = &a->flow[sub];
    uint64_t took = now_ns > f->since_ns ? now_ns - f->since_ns : 1;

    f->open--;
    f->bytes += len;
    if (f->open && f->bytes < MR_ADAPT_RUN)
        return;
    /* bytes in a ms, never 0 */
    f->rate[f->samples++ % MR_ADAPT_SAMPLES] = (uint64_t)((unsigned __int128)f->bytes * 1000000 / took) + 1;
    f->since_ns = now_ns;
    f->bytes = 0;
}

static uint64_t median(const uint64_t rate[MR_ADAPT_SAMPLES])
{
    uint64_t v[MR_ADAPT_SAMPLES];

    for (unsigned i = 0; i < MR_ADAPT_SAMPLES; i++) {
        unsigned k = i;

        for (; k && v[k - 1] > rate[i]; k--)
            v[k] = v[k - 1];
        v[k] = rate[i];
    }
    return v[MR_ADAPT_SAMPLES / 2];
}

/* False: somebody's samples are too few. */
static bool enough(const struct mr_adapt *a, const struct mr_load *load, unsigned n)
{
    unsigned num = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct mr_flow *f = &a->flow[i];

        if (!load[i].up || (!f->open && !f->samples))
            continue;
        if (f->samples < MR_ADAPT_SAMPLES)
            return false;
        num++;
    }
    return num > 1;
}

static struct measure take(struct mr_adapt *a, const struct mr_load *load, unsigned n)
{
    struct measure m = {.slowest = UINT64_MAX, .lightest = UINT64_MAX};

    for (unsigned i = 0; i < n; i++) {
        struct mr_flow *f = &a->flow[i];
        uint64_t rate, weight = load[i].weight;

        if (load[i].up && f->samples) {
            m.rate[i] = rate = median(f->rate);
            m.num++;
            m.sum += rate;
            m.slowest = rate < m.slowest ? rate : m.slowest;
            m.fastest = rate > m.fastest ? rate : m.fastest;
            m.weight += weight;
            m.lightest = weight < m.lightest ? weight : m.lightest;
            m.heaviest = weight > m.heaviest ? weight : m.heaviest;
        }
        f->samples = 0;
    }
    return m;
}

/* The largest becomes MR_WEIGHT_MAX, none is less than MR_WEIGHT_MIN. */
static bool store(struct mr_load *load, const uint64_t *weight, unsigned n)
{
    uint64_t most = 1;
    bool changed = false;

    for (unsigned i = 0; i < n; i++)
        most = weight[i] > most ? weight[i] : most;
    for (unsigned i = 0; i < n; i++) {
        uint64_t w = (weight[i] * MR_WEIGHT_MAX + most / 2) / most;
        uint32_t now = w < MR_WEIGHT_MIN ? MR_WEIGHT_MIN : (uint32_t)w;

        changed |= now != load[i].weight;
        load[i].weight = now;
    }
    return changed;
}

bool mr_adapt_weigh(struct mr_adapt *a, struct mr_load *load, unsigned n)
{
    uint64_t weight[MR_SUBS_MAX];
    bool even, right = true;
    struct measure m;

    if (!enough(a, load, n))
        return false;
    m = take(a, load, n);
    even = m.fastest - m.fastest / (m.lightest == m.heaviest ? ALIKE_LEAVE : ALIKE_BACK) <= m.slowest;
    for (unsigned i = 0; i < n; i++) {
        uint64_t old = load[i].weight * 1024ull, to = old, off; /* room for fractions */

        if (m.rate[i])
            to = even ? m.weight * 1024 / m.num : (uint64_t)((unsigned __int128)m.weight * 1024 * m.rate[i] / m.sum);
        off = to > old ? to - old : old - to;
        right &= off <= old / RIGHT;
        weight[i] = even && off <= old / ALIKE_BACK ? to : (old + to) / 2;
    }
    return !(right && !even) && store(load, weight, n);
}
