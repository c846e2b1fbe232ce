/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns of jobs: see pattern.h. */
#include "fabricd/policy/pattern.h"

#include <fnmatch.h>
#include <string.h>

static bool matches(const char *pattern, const char *s)
{
    return !*pattern || !fnmatch(pattern, s, 0);
}

static bool matches_one(const char *pattern, const char *groups)
{
    bool is = !*pattern;
    for (; !is && *groups; groups += strlen(groups) + 1)
        is = matches(pattern, groups);
    return is;
}

bool pattern_matches(const struct pattern *p, const struct pattern_job *job)
{
    return matches(p->user, job->user) && matches_one(p->group, job->groups) && matches(p->account, job->account) &&
           matches(p->qos, job->qos) && matches(p->partition, job->partition) && matches(p->name, job->name);
}
