/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/launch/triplets.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

static bool read_number(const char **at, long *out)
{
    char *end;

    while (isspace((unsigned char)**at))
        ++*at;
    errno = 0;
    *out = strtol(*at, &end, 10);
    if (end == *at || errno || *out < INT_MIN || *out > INT_MAX)
        return false;
    while (isspace((unsigned char)*end))
        end++;
    *at = end;
    return true;
}

/* The members are first, first + step ... up to last; step > 0. */
static bool read_triplet(const char **at, long *first, long *last, long *step)
{
    long t[3] = {0, 0, 1}, members;
    int n = 0;

    do {
        if (n == 3 || !read_number(at, &t[n++]))
            return false;
    } while (**at == ':' && ++*at);
    if (n == 1)
        t[1] = t[0];
    if (!t[2] || (t[1] > t[0] && t[2] < 0) || (t[1] < t[0] && t[2] > 0))
        return false;
    members = (t[1] - t[0]) / t[2];
    *first = t[2] > 0 ? t[0] : t[0] + members * t[2];
    *last = t[2] > 0 ? t[0] + members * t[2] : t[0];
    *step = labs(t[2]);
    return true;
}

bool mr_triplets_read(const char *text, int max, int *least, int *largest)
{
    long first, last, step;

    *least = *largest = 0;
    for (;;) {
        if (!read_triplet(&text, &first, &last, &step))
            return false;
        if (first < 1)
            first += (1 - first + step - 1) / step * step;
        if (last > max)
            last = first > max ? 0 : first + (max - first) / step * step;
        if (first <= last) {
            *least = !*least || first < *least ? (int)first : *least;
            *largest = last > *largest ? (int)last : *largest;
        }
        if (!*text)
            return true;
        if (*text++ != ',')
            return false;
    }
}
