/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's small ratio: see ratio.h. */
#include "fabricd/proto/ratio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000

/* One number, without sign or blanks; *s moves behind it. */
static bool take_ratio_number(const char **s, unsigned *out)
{
    size_t n = strspn(*s, "0123456789");
    *out = n && n <= 4 ? (unsigned)strtoul(*s, NULL, 10) : MOST + 1;
    *s += n;
    return *out <= MOST;
}

bool ratio_parse(const char *s, struct ratio *out)
{
    struct ratio r;
    bool good = take_ratio_number(&s, &r.small) && *s++ == ':' && take_ratio_number(&s, &r.large) && !*s && r.large;
    *out = good ? r : (struct ratio){0};
    return good;
}

void ratio_text(const struct ratio *r, char out[FD_RATIO_MAX])
{
    memset(out, 0, FD_RATIO_MAX);
    if (r->large && ratio_good(r))
        snprintf(out, FD_RATIO_MAX, "%u:%u", r->small, r->large);
}

bool ratio_good(const struct ratio *r)
{
    return r->small <= MOST && r->large <= MOST && (r->large || !r->small);
}

double ratio_percent(const struct ratio *r)
{
    return 100.0 * r->small / (r->small + r->large);
}
