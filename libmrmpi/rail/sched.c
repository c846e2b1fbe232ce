/* SPDX-License-Identifier: BSD-3-Clause */
/* The communication scheduler: round robin and striping by weight. */
#include "libmrmpi/rail/sched.h"

unsigned mr_sched_pick(struct mr_sched *s, const struct mr_load *load, unsigned n)
{
    unsigned i = s->next < n ? s->next : 0;

    for (unsigned k = 0; k < n; k++) {
        unsigned after = i + 1 < n ? i + 1 : 0;

        if (load[i].up) {
            s->next = after;
            return i;
        }
        i = after;
    }
    return n;
}

/* The subchannels that take part, in turn, with their weights; returns how many. */
static unsigned choose(struct mr_sched *s, const struct mr_load *load, unsigned n, unsigned want, unsigned sub[])
{
    unsigned count = 0, first;

    while (count < want) {
        first = mr_sched_pick(s, load, n);
        if (first == n || (count && first == sub[0]))
            break;
        sub[count++] = first;
    }
    return count;
}

unsigned mr_sched_plan(struct mr_sched *s, const struct mr_load *load, unsigned n, uint64_t len, uint64_t stripe_min,
                       uint64_t align, struct mr_stripe out[MR_SUBS_MAX])
{
    uint64_t shortest = stripe_min / 2 ? stripe_min / 2 : 1;
    uint64_t most = len / shortest, total = 0, sum = 0, from = 0;
    unsigned sub[MR_SUBS_MAX], count, used = 0, up = 0;

    for (unsigned i = 0; i < n; i++)
        up += load[i].up;
    if (!up)
        return 0;
    if (len < stripe_min || up == 1)
        most = 1;
    count = choose(s, load, n, most < up ? (unsigned)most : up, sub);
    for (unsigned i = 0; i < count; i++)
        total += load[sub[i]].weight;

    for (unsigned i = 0; i < count; i++) {
        uint64_t to;

        sum += load[sub[i]].weight;
        /* 128 bits: a length times a sum of weights */
        to = total ? (uint64_t)((unsigned __int128)len * sum / total) : len;
        to -= to % align;
        if (i == count - 1)
            to = len;
        if (to <= from)
            continue;
        out[used++] = (struct mr_stripe){.sub = sub[i], .offset = from, .len = to - from};
        from = to;
    }
    return used;
}
