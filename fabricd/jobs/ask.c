/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs in fabricctl's options: see ask.h. */
#include "fabricd/jobs/ask.h"
#include "fabricd/proto/ratio.h"
#include "fabricd/base/ydoc.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ask_text(char *to, size_t size, const char *value, const char *what)
{
    if (!value || strlen(value) < size) {
        snprintf(to, size, "%s", value ? value : "");
        return true;
    }
    fprintf(stderr, "fabricctl: the %s has %zu characters; allowed: up to %zu\n", what, strlen(value), size - 1);
    return false;
}

static bool owner(const struct ask_options *o, uint32_t *uid)
{
    if (!o->user) {
        *uid = getuid() && !o->renew ? getuid() : FD_UID_ANY;
        return true;
    }
    struct passwd *pw = getpwnam(o->user);
    char *end;
    unsigned long n = strtoul(o->user, &end, 10);
    if (!pw && (*end || end == o->user || n >= FD_UID_ANY)) {
        fprintf(stderr, "fabricctl: no user '%s'\n", o->user);
        return false;
    }
    *uid = pw ? pw->pw_uid : (uint32_t)n;
    return true;
}

static bool lease(const struct ask_options *o, uint32_t *seconds)
{
    uint64_t s = 0;
    if (o->lease && (!ydoc_uint_of(o->lease, &s) || s < 1 || s > FD_LEASE_MAX)) {
        fprintf(stderr, "fabricctl: the lease is '%s'; allowed: 1 to %u seconds\n", o->lease, FD_LEASE_MAX);
        return false;
    }
    *seconds = (uint32_t)s;
    return true;
}

static bool parse_run(const struct ask_options *o, struct fd_job *m)
{
    uint64_t n = 0;
    if (o->run && (!ydoc_uint_of(o->run, &n) || n > FD_RUN_MAX)) {
        fprintf(stderr, "fabricctl: the run is '%s'; allowed: 0 to %u\n", o->run, FD_RUN_MAX);
        return false;
    }
    m->flags |= o->run ? FD_JOB_RUN : 0;
    m->run = (uint32_t)n;
    return true;
}

static bool small_ratio(const struct ask_options *o, struct fd_job *m)
{
    struct ratio r = {0};
    if (!o->small_ratio)
        return true;
    if (strcmp(o->small_ratio, RATIO_NONE) && !ratio_parse(o->small_ratio, &r)) {
        fprintf(stderr,
                "fabricctl: the small ratio is '%s'; allowed: SMALL:LARGE, 0 to 1000 and 1 to 1000, as 1:99; "
                "none\n",
                o->small_ratio);
        return false;
    }
    m->flags |= FD_JOB_RATIO;
    m->ratio_small = (uint16_t)r.small;
    m->ratio_large = (uint16_t)r.large;
    return true;
}

bool ask_job(const struct ask_options *o, enum fd_type type, const char *job, const char *class_name, bool same,
             struct fd_job *m)
{
    bool choose = type == FD_JOB_CHOOSE;
    memset(m, 0, sizeof(*m));
    m->flags = (o->renew ? FD_JOB_RENEW : 0) | (same ? FD_JOB_SAME : 0);
    return small_ratio(o, m) && ask_text(m->job, sizeof(m->job), job, "job id") &&
           ask_text(m->class_name, sizeof(m->class_name), choose ? NULL : class_name, "class name") &&
           ask_text(m->wish, sizeof(m->wish), choose ? class_name : o->wish, "class name") &&
           ask_text(m->account, sizeof(m->account), o->account, "account") &&
           ask_text(m->qos, sizeof(m->qos), o->qos, "QOS") &&
           ask_text(m->partition, sizeof(m->partition), o->partition, "partition") &&
           ask_text(m->name, sizeof(m->name), o->name, "job name") &&
           ask_text(m->cgroup, sizeof(m->cgroup), o->cgroup, "cgroup") && lease(o, &m->lease_s) && parse_run(o, m) &&
           owner(o, &m->uid);
}
