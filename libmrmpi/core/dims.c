/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A grid for a number of processes: dimensions as close to each other as possible, with the smallest difference between
 * the largest and the smallest; among equal differences the grid whose smallest dimensions are the largest.
 */
#include "libmrmpi/core/core.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const int *divisors; /* of the number of processes, ascending */
    int num_divisors;
    int *now, *best; /* [ndims], the largest first */
    int ndims, best_gap;
};

/* Whether d ^ n is less than limit. */
static bool power_below(long d, int n, long limit)
{
    long p = 1;
    while (n-- > 0 && p < limit)
        p *= d;
    return p < limit;
}

/* Whether the dimensions now tried are better than the best so far. */
static bool better(const struct search *s)
{
    int gap = s->now[0] - s->now[s->ndims - 1];
    if (gap != s->best_gap)
        return gap < s->best_gap;
    for (int i = s->ndims - 1; i >= 0; i--)
        if (s->now[i] != s->best[i])
            return s->now[i] > s->best[i];
    return false;
}

/* Places `rest` processes in the dimensions from i on, none larger than the one before. */
static void place_factors(struct search *s, int i, int rest)
{
    int left = s->ndims - i, largest = s->now[0];
    if (left == 0) {
        if (rest == 1 && better(s)) {
            s->best_gap = largest - s->now[s->ndims - 1];
            memcpy(s->best, s->now, (size_t)s->ndims * sizeof(*s->now));
        }
        return;
    }
    for (int k = 0; k < s->num_divisors; k++) {
        int d = s->divisors[k];
        if (i > 0 && d > s->now[i - 1])
            break;
        if (rest % d || (i > 0 && largest - d > s->best_gap))
            continue;
        /* the remaining dimensions are d at most, and must be so large that the gap does not grow */
        int least = (i ? largest : d) - s->best_gap;
        if (power_below(d, left, rest) || (least > 1 && !power_below(least, left, (long)rest + 1)))
            continue;
        s->now[i] = d;
        place_factors(s, i + 1, rest / d);
    }
}

static int divisors_of(int n, int *list)
{
    int k = 0;
    for (int d = 1; (long)d * d <= n; d++)
        if (n % d == 0)
            list[k++] = d;
    for (int j = k - 1; j >= 0; j--)
        if (list[j] != n / list[j])
            list[k++] = n / list[j];
    return k;
}

static enum mr_err balance(int n, int ndims, int *out)
{
    enum { MOST_DIVISORS = 1536 }; /* of any 31-bit number */
    int *room = malloc((size_t)(MOST_DIVISORS + ndims) * sizeof(*room));
    if (!room)
        return MR_ERR_NO_MEM;
    struct search s = {.divisors = room, .now = room + MOST_DIVISORS, .best = out, .ndims = ndims, .best_gap = INT_MAX};
    s.num_divisors = divisors_of(n, room);
    memset(s.now, 0, (size_t)ndims * sizeof(*s.now));
    place_factors(&s, 0, n);
    free(room);
    return MR_SUCCESS;
}

enum mr_err mr_dims_create(int nnodes, int ndims, int *dims)
{
    long fixed = 1;
    int num_free = 0;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0)
            return mr_fail(MR_ERR_DIMS, "dims[%d] is %d", i, dims[i]);
        if (dims[i] == 0)
            num_free++;
        else if ((fixed *= dims[i]) > nnodes)
            break;
    }
    if (fixed > nnodes || nnodes % fixed || (num_free == 0 && fixed != nnodes))
        return mr_fail(MR_ERR_DIMS, "%d processes do not fill the %ld that dims[] fixes", nnodes, fixed);
    if (num_free == 0)
        return MR_SUCCESS;
    int *got = malloc((size_t)num_free * sizeof(*got));
    enum mr_err err = got ? balance(nnodes / (int)fixed, num_free, got) : MR_ERR_NO_MEM;
    for (int i = 0, k = 0; i < ndims && !err; i++)
        if (dims[i] == 0)
            dims[i] = got[k++];
    free(got);
    return err;
}
