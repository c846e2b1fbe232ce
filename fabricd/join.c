/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts of a job become members of the partition of the job, and leave the partition with the job. */
#include "fabricd/daemon.h"
#include "fabricd/base/log.h"
#include "fabricd/jobs/orders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t epoch_s(void)
{
    return (uint64_t)time(NULL);
}

/* By the policy in force: the given class, else the wish, else the rules; limits belong to each host. */
static const struct policy_partition *partition_of_job(struct daemon *d, struct job *job, struct text *why)
{
    struct seats nobody = {0};
    const struct policy *p = &d->current.policy;
    const struct user *user = users_get(d->users, job->uid);
    seats_decide(&nobody, p, user, NULL, job);
    const struct policy_partition *part = seats_partition(p, user, job, job->seat - 1);
    const char *name = p->classes[job->seat - 1].name;
    if (part->of_jobs)
        return part;
    if (part->pkey)
        text_printf(why, "job %s has class '%s' and P_Key 0x%04x, which has no job members: nothing to do\n", job->id,
                    name, part->pkey);
    else
        text_printf(why, "job %s has class '%s', which has no pkey: nothing to do\n", job->id, name);
    return NULL;
}

static int may_join(const struct daemon *d, const struct job *job, struct text *why)
{
    if (!d->current.valid)
        text_printf(why, "no policy is in force\n");
    else if (!d->conf.num_opensm)
        text_printf(why, "fabricd.yaml names no opensm: the order is for the host that manages the subnet\n");
    else if (*job->class_name && policy_class_by_name(&d->current.policy, job->class_name) < 0)
        text_printf(why, "the policy in force has no class '%s'\n", job->class_name);
    else
        return 0;
    return !d->current.valid ? -ENODATA : -EINVAL;
}

int daemon_join(struct daemon *d, const struct job *job, const char *hosts, uint64_t client, struct text *why)
{
    struct job now = *job;
    int rc = may_join(d, job, why);
    const struct policy_partition *part = rc ? NULL : partition_of_job(d, &now, why);
    if (!part)
        return rc ? rc : 1;
    struct join join = {.run = job->run, .pkey = part->pkey, .hosts = (char *)hosts};
    memcpy(join.job, job->id, sizeof(join.job));
    if (job->lease_s)
        join.until_s = epoch_s() + job->lease_s;
    rc = joins_set(&d->joins, &join);
    if (rc) {
        text_printf(why, "%s: %s\n", d->joins.path, strerror(-rc));
        return rc;
    }
    log_info("job %s: its hosts join P_Key 0x%04x: %s", join.job, join.pkey, hosts);
    rc = daemon_members(d, join.job, client);
    if (rc)
        joins_delete(&d->joins, join.job);
    return rc;
}

static void tell_left(const struct daemon *d, const char *id)
{
    if (d->listener)
        d->listener->joined(d->listener_arg, id, NULL);
}

int daemon_leave(struct daemon *d, const char *id, uint32_t run, uint64_t client)
{
    const struct join *join = joins_find(&d->joins, id);
    if (!join || (run && join->run > run))
        return -ENOENT;
    int rc = joins_delete(&d->joins, id);
    if (rc)
        return rc;
    log_info("job %s: its hosts leave its partition", id);
    tell_left(d, id);
    return daemon_members(d, "", client);
}

void daemon_end_joins(struct daemon *d)
{
    const struct join *join;
    char id[FD_JOB_MAX];
    bool changed = false;
    while ((join = joins_due(&d->joins, epoch_s()))) {
        memcpy(id, join->job, sizeof(id));
        if (joins_delete(&d->joins, id))
            break;
        changed = true;
        tell_left(d, id);
        log_warn("job %s: its hosts leave its partition, since the job's time is over and nobody said that it has "
                 "ended",
                 id);
    }
    if (changed)
        daemon_members(d, "", 0);
}
