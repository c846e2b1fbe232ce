/* SPDX-License-Identifier: BSD-3-Clause */
/* Adaptive striping as printed in the paper. */
#include "libmrmpi/net/stripe/feedback.h"

/* Even parts of the total, as the paper begins. */
static void begin_weights(struct mr_feedback *f, const struct mr_load *load, unsigned num, uint32_t total)
{
    unsigned up = 0, k = 0;

    for (unsigned i = 0; i < num; i++)
        up += load[i].up;
    for (unsigned i = 0; i < num; i++) {
        uint32_t part = up ? total / up + (load[i].up && k < total % up) : 0;

        f->weight[i] = part ? part : 1;
        k += load[i].up;
    }
    f->begun = true;
}

/*
 * Whole numbers, at least 1 each, with the same sum: the largest rounding losses get the rest, and if the least ones
 * got too much the largest give it.
 */
static void settle_weights(uint32_t weight[], const double wanted[], unsigned n, uint64_t sum)
{
    uint64_t now = 0;

    for (unsigned i = 0; i < n; i++) {
        weight[i] = wanted[i] >= 1 ? (uint32_t)wanted[i] : 1;
        now += weight[i];
    }
    while (now != sum) {
        unsigned most = n;

        for (unsigned i = 0; i < n; i++)
            if ((now < sum || weight[i] > 1) &&
                (most == n || (now < sum ? wanted[i] - weight[i] > wanted[most] - weight[most]
                                         : weight[i] - wanted[i] > weight[most] - wanted[most])))
                most = i;
        if (most == n)
            return;
        weight[most] += now < sum ? 1 : -1u;
        now += now < sum ? 1 : -1ull;
    }
}

static bool store_fed_back_weights(const struct mr_feedback *f, struct mr_load *load, unsigned num)
{
    uint32_t most = 1;
    bool changed = false;

    for (unsigned i = 0; i < num; i++)
        most = f->weight[i] > most ? f->weight[i] : most;
    for (unsigned i = 0; i < num; i++) {
        uint32_t now = (uint32_t)(((uint64_t)f->weight[i] * MR_WEIGHT_MAX + most / 2) / most);

        now = now ? now : 1;
        changed |= now != load[i].weight;
        load[i].weight = now;
    }
    return changed;
}

bool mr_feedback_weigh(struct mr_feedback *f, struct mr_load *load, unsigned num, const struct mr_feedback_time t[],
                       unsigned n, double alpha, uint32_t total)
{
    double speed[MR_SUBS_MAX], wanted[MR_SUBS_MAX], speeds = 0;
    uint32_t weight[MR_SUBS_MAX];
    uint64_t sum = 0;

    if (n < 2)
        return false;
    if (!f->begun)
        begin_weights(f, load, num, total);
    for (unsigned i = 0; i < n; i++) {
        uint32_t w = f->weight[t[i].sub];

        speed[i] = (double)w / (double)(t[i].took_ns ? t[i].took_ns : 1);
        speeds += speed[i];
        sum += w;
    }
    for (unsigned i = 0; i < n; i++)
        wanted[i] = (1 - alpha) * f->weight[t[i].sub] + alpha * (double)sum * speed[i] / speeds;
    settle_weights(weight, wanted, n, sum);
    for (unsigned i = 0; i < n; i++)
        f->weight[t[i].sub] = weight[i];
    return store_fed_back_weights(f, load, num);
}
