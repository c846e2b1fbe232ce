/* SPDX-License-Identifier: BSD-3-Clause */
/* Adaptive weights: rates measured, weights that follow them. */
#include "libmrmpi/net/stripe/adapt.h"

#include <string.h>

#define ALIKE 4   /* rates that differ by no more than one part in so many are alike */
#define RIGHT 128 /* weights that are off by no more than one part in so many are right */

struct measure {
    uint64_t rate[MR_SUBS_MAX]; /* median; 0: took no part */
    unsigned num;               /* subchannels that took part */
    uint64_t sum, slowest, fastest;
    uint64_t weight; /* theirs, in sum */
};

void mr_adapt_started(struct mr_adapt *a, unsigned sub, bool cut, uint64_t now_ns)
{
    struct mr_adapt_flow *f = &a->flow[sub];

    if (!f->open++) {
        f->since_ns = now_ns;
        f->bytes = 0;
        f->cut = false;
        f->behind = a->behind;
        f->away = a->away;
    }
    f->cut |= cut;
}

/* A run is over: its rate is a sample, and stripes still under way begin the next. */
static void end_run(const struct mr_adapt *a, struct mr_adapt_flow *f, uint64_t now_ns)
{
    uint64_t took = now_ns > f->since_ns ? now_ns - f->since_ns : 1;

    if (f->cut && f->away == a->away && !f->behind) {
        /* bytes in a ms, never 0 */
        f->sample[f->next].rate = (uint64_t)((unsigned __int128)f->bytes * 1000000 / took) + 1;
        f->sample[f->next].bytes = f->bytes;
        f->next = (f->next + 1) % MR_ADAPT_SAMPLES;
        f->samples += f->samples < MR_ADAPT_SAMPLES;
        f->fresh++;
        f->fresh_bytes += f->bytes;
    }
    f->behind = a->behind;
    f->away = a->away;
    f->since_ns = now_ns;
    f->bytes = 0;
}

void mr_adapt_finished(struct mr_adapt *a, unsigned sub, uint64_t len, uint64_t now_ns)
{
    struct mr_adapt_flow *f = &a->flow[sub];

    f->open--;
    f->bytes += len;
    if (!f->open || f->bytes >= MR_ADAPT_RUN)
        end_run(a, f, now_ns);
}

void mr_adapt_forget(struct mr_adapt *a, unsigned sub)
{
    a->flow[sub].open = 0;
    a->flow[sub].bytes = 0;
}

/* Of the rates, each counted as often as it has bytes. */
static uint64_t median_rate(const struct mr_adapt_flow *f)
{
    struct mr_sample v[MR_ADAPT_SAMPLES];
    uint64_t all = 0, below = 0;
    unsigned i;

    for (i = 0; i < f->samples; i++) {
        unsigned k = i;

        for (; k && v[k - 1].rate > f->sample[i].rate; k--)
            v[k] = v[k - 1];
        v[k] = f->sample[i];
        all += v[k].bytes;
    }
    for (i = 0; i + 1 < f->samples; i++) {
        below += v[i].bytes;
        if (below > all / 2)
            break;
    }
    return v[i].rate;
}

/* It takes part: it has a stripe, or had one lately. */
static bool is_busy(const struct mr_adapt_flow *f, const struct mr_load *l)
{
    return l->up && l->sick < MR_WEIGHT_MAX && (f->open || f->fresh);
}

/* False: some samples are too few, or not of the same messages as the others'. */
static bool has_enough(const struct mr_adapt *a, const struct mr_load *load, unsigned n)
{
    uint64_t weights = 0;
    unsigned num = 0;

    for (unsigned i = 0; i < n; i++)
        if (is_busy(&a->flow[i], &load[i]))
            weights += load[i].weight;
    for (unsigned i = 0; i < n; i++) {
        const struct mr_adapt_flow *f = &a->flow[i];

        if (!is_busy(f, &load[i]))
            continue;
        if (f->fresh < MR_ADAPT_ROUND || f->fresh_bytes < (uint64_t)MR_ADAPT_BYTES * load[i].weight / weights)
            return false;
        num++;
    }
    return num > 1;
}

static struct measure take_run(struct mr_adapt *a, const struct mr_load *load, unsigned n)
{
    struct measure m = {.slowest = UINT64_MAX};

    for (unsigned i = 0; i < n; i++) {
        struct mr_adapt_flow *f = &a->flow[i];
        uint64_t rate;

        if (load[i].up && f->fresh) {
            m.rate[i] = rate = median_rate(f);
            m.num++;
            m.sum += rate;
            m.slowest = rate < m.slowest ? rate : m.slowest;
            m.fastest = rate > m.fastest ? rate : m.fastest;
            m.weight += load[i].weight;
        }
        f->fresh = 0;
        f->fresh_bytes = 0;
    }
    return m;
}

static void forget_runs(struct mr_adapt *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        a->flow[i].samples = a->flow[i].next = 0;
}

/* The largest becomes MR_WEIGHT_MAX, none is less than MR_WEIGHT_MIN. */
static bool store_adapted_weights(struct mr_load *load, const uint64_t *weight, unsigned n)
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
    bool even, right = true, first = !a->weighed;
    struct measure m;

    if (!has_enough(a, load, n))
        return false;
    m = take_run(a, load, n);
    even = m.fastest - m.fastest / ALIKE <= m.slowest;
    if (first && !even && !a->doubted) {
        a->doubted = true;
        forget_runs(a, n);
        return false;
    }
    a->weighed = true;
    for (unsigned i = 0; i < n; i++) {
        uint64_t old = load[i].weight * 1024ull, to = old, off; /* room for fractions */

        if (m.rate[i])
            to = even ? m.weight * 1024 / m.num : (uint64_t)((unsigned __int128)m.weight * 1024 * m.rate[i] / m.sum);
        off = to > old ? to - old : old - to;
        right &= off <= old / RIGHT;
        weight[i] = first || (even && off <= old / ALIKE) ? to : (old + to) / 2;
    }
    return !(right && !even) && store_adapted_weights(load, weight, n);
}
