/* SPDX-License-Identifier: BSD-3-Clause */
/* Membership in jobs: see claims.h. */
#include "fabricd/jobs/claims.h"

#include <stdlib.h>
#include <string.h>

void claim_free(struct claim *c)
{
    free(c->where);
    c->where = NULL;
}

void claim_look(struct claim *c, int socket, const struct ucred *peer)
{
    claim_free(c);
    c->by = (struct cgroup_job){0};
    if (!cgroups_of_peer(socket, peer->pid, peer->uid, &c->where))
        cgroups_job_of(c->where, &c->by);
}

static void say_why(const struct claim *c, const struct job *job, uid_t uid, struct text *why)
{
    if (job->uid == FD_UID_ANY)
        text_printf(why, "that job has no owner; set it again, with --user");
    else if (job->uid != uid)
        text_printf(why, "that job is uid %u's", job->uid);
    else if (c->by.scheduler && strcmp(c->by.id, job->id))
        text_printf(why, "%s has it in the cgroup of job %s", c->by.scheduler, c->by.id);
    else if (!c->where)
        text_printf(why, "its cgroup cannot be read, and that job's processes are in %s", job->cgroup);
    else
        text_printf(why, "it is not in that job's cgroup, %s", job->cgroup);
}

const struct job *claim_job(const struct claim *c, const struct jobs *j, const char *id, uid_t uid, struct text *why)
{
    const struct job *job = *id ? jobs_find(j, id) : NULL;
    if (!job)
        return NULL;
    if (job->uid != FD_UID_ANY && job->uid == uid && (!c->by.scheduler || !strcmp(c->by.id, id)) &&
        (!*job->cgroup || (c->where && cgroups_inside(c->where, job->cgroup))))
        return job;
    if (why)
        say_why(c, job, uid, why);
    return NULL;
}
