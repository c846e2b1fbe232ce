/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/doubts.h"

#include <stdlib.h>

bool doubts_add(struct doubts *d, int by, int of)
{
    void *more = realloc(d->pair, (size_t)(d->num + 1) * sizeof(*d->pair));

    if (!more)
        return false;
    d->pair = more;
    d->pair[d->num].by = by;
    d->pair[d->num++].of = of;
    return true;
}

static void drop_ended(struct doubts *d, const bool *lives)
{
    int kept = 0;

    for (int i = 0; i < d->num; i++)
        if (lives[d->pair[i].by] && lives[d->pair[i].of])
            d->pair[kept++] = d->pair[i];
    d->num = kept;
}

/* Both ranks of a pair may have said the same: the pair counts twice for both. */
static int most_doubted(const struct doubts *d, int ranks)
{
    int *pairs = calloc((size_t)ranks, sizeof(*pairs)), most = 0;

    if (!pairs)
        abort();
    for (int i = 0; i < d->num; i++) {
        pairs[d->pair[i].by]++;
        pairs[d->pair[i].of]++;
    }
    for (int r = 0; r < ranks; r++)
        if (pairs[r] >= pairs[most])
            most = r;
    free(pairs);
    return most;
}

static int other_of(const struct doubts *d, int rank)
{
    int i = 0;

    while (d->pair[i].by != rank && d->pair[i].of != rank)
        i++;
    return d->pair[i].by == rank ? d->pair[i].of : d->pair[i].by;
}

int doubts_end_one(struct doubts *d, bool *lives, int ranks, int *by)
{
    int worst;

    drop_ended(d, lives);
    if (!d->num)
        return -1;
    worst = most_doubted(d, ranks);
    *by = other_of(d, worst);
    lives[worst] = false;
    return worst;
}

void doubts_free(struct doubts *d)
{
    free(d->pair);
    *d = (struct doubts){0};
}
