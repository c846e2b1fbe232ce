/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders about jobs: see orders.h. */
#include "fabricd/orders.h"
#include "fabricd/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static bool class_is_there(const struct daemon *d, const char *name, struct text *why)
{
    const struct policy *p = &d->current.policy;
    if (!*name || !d->current.valid || policy_class_by_name(p, name) >= 0)
        return true;
    text_printf(why, "the policy in force has no class '%s'; allowed:", name);
    for (unsigned i = 0; i < p->num_classes; i++)
        text_printf(why, " %s", p->classes[i].name);
    text_put(why, "\n", 1);
    return false;
}

static void tell(struct daemon *d, const struct job *job, enum job_news news)
{
    if (d->listener)
        d->listener->job(d->listener_arg, job, news);
}

int orders_job_set(struct daemon *d, const struct job *job, uint32_t by, struct text *why)
{
    const struct job *old = jobs_find(&d->jobs, job->id);
    bool is_new = !old, same_class = old && !strcmp(old->class_name, job->class_name);
    struct job now = *job;
    if (!class_is_there(d, job->class_name, why))
        return -EINVAL;
    now.since = same_class ? old->since : (uint32_t)time(NULL);
    int rc = jobs_set(&d->jobs, &now);
    if (rc) {
        log_error("%s: %s", d->jobs.path, strerror(-rc));
        return rc;
    }
    log_info("job %s: class %s (set by uid %u)", now.id, *now.class_name ? now.class_name : "by the rules", by);
    tell(d, jobs_find(&d->jobs, now.id), is_new ? JOB_NEW : JOB_CHANGED);
    return 0;
}

int orders_job_end(struct daemon *d, const char *id, uint32_t by)
{
    const struct job *old = jobs_find(&d->jobs, id);
    if (!old)
        return -ENOENT;
    struct job was = *old;
    int rc = jobs_delete(&d->jobs, was.id);
    if (rc) {
        log_error("%s: %s", d->jobs.path, strerror(-rc));
        return rc;
    }
    log_info("job %s: ended (by uid %u)", was.id, by);
    tell(d, &was, JOB_ENDED);
    return 0;
}
