/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns of jobs: see pattern.h. */
#include "fabricd/pattern.h"

#include <fnmatch.h>

static bool matches(const char *pattern, const char *s)
{
    return !*pattern || !fnmatch(pattern, s, 0);
}

bool pattern_matches(const struct pattern *p, const struct pattern_job *job)
{
    return matches(p->user, job->user) && matches(p->account, job->account) && matches(p->qos, job->qos) &&
           matches(p->partition, job->partition) && matches(p->name, job->name);
}
