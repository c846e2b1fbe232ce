/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders about jobs: see orders.h. */
#include "fabricd/jobs/orders.h"
#include "fabricd/proto/ratio.h"
#include "fabricd/base/log.h"
#include "fabricd/jobs/users.h"

#include <errno.h>
#include <stdio.h>
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

static bool cgroup_is_there(const struct job *job, struct text *why)
{
    const char *path = job->cgroup;
    bool good = !*path || cgroups_good_path(path);
    if (!good)
        text_printf(why,
                    "'%s' is not the directory of a job's cgroup; allowed: below /sys/fs/cgroup, and not the root "
                    "of a hierarchy\n",
                    path);
    else if (*path && cgroups_look(path) == CGROUP_GONE)
        text_printf(why, "there is no cgroup %s: the job would have ended already\n", path);
    else
        return true;
    return false;
}

uint64_t orders_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void announce_job(struct daemon *d, const struct job *job, enum job_news news)
{
    if (d->listener)
        d->listener->job(d->listener_arg, job, news);
}

static bool may_choose(const struct daemon *d, const struct job *job, const char *class_name)
{
    return d->current.valid && seats_may_choose(job, &d->current.policy, users_get(d->users, job->uid), class_name);
}

/* ---- which class a job has --------------------------------------------------------------------------------------- */

/* The policy in force may be another than when the seats were given: then its text is elsewhere. */
static void follow_policy(struct daemon *d)
{
    const struct in_force *f = &d->current;
    struct jobs *j = &d->jobs;
    if (!f->valid || (j->decided_by == f->text.s && j->decided_at == d->generation))
        return;
    j->decided_by = f->text.s;
    j->decided_at = d->generation;
    seats_decide_all(&j->seats, &f->policy, d->users, j->job, j->n);
}

const struct policy_class *orders_class_of(const struct daemon *d, const struct job *job, const char **source)
{
    static const char *const sources[] = {
        [SOURCE_RULE] = "rule", [SOURCE_USER] = "user", [SOURCE_SCHEDULER] = "scheduler"};
    follow_policy((struct daemon *)d); /* remembered for the next time */
    bool is = d->current.valid && job->seat;
    if (source)
        *source = is ? sources[job->source] : "";
    return is ? &d->current.policy.classes[job->seat - 1] : NULL;
}

unsigned orders_jobs_of_class(const struct daemon *d, uint32_t uid, unsigned class_index)
{
    follow_policy((struct daemon *)d);
    return seats_held(&d->jobs.seats, uid, class_index);
}

/* Decides the class of now, and its time. old: the entry in the table, or NULL. */
static void decide(struct daemon *d, const struct job *old, struct job *now)
{
    now->since = old ? old->since : (uint32_t)time(NULL);
    if (d->current.valid) {
        follow_policy(d);
        seats_decide(&d->jobs.seats, &d->current.policy, users_get(d->users, now->uid), old, now);
        if (old && old->seat != now->seat)
            now->since = (uint32_t)time(NULL);
    } else {
        now->seat = 0;
        if (old && strcmp(old->class_name, now->class_name))
            now->since = (uint32_t)time(NULL);
    }
}

void orders_user_known(struct daemon *d, uint32_t uid)
{
    for (unsigned i = 0; d->current.valid && i < d->jobs.n; i++) {
        const struct job *old = d->jobs.job[i];
        struct job now = *old;
        if (old->uid != uid)
            continue;
        decide(d, old, &now);
        bool changed = now.seat != old->seat || now.source != old->source;
        jobs_reseat(&d->jobs, old, &now);
        if (changed)
            announce_job(d, old, JOB_CHANGED);
    }
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static int keep_job(struct daemon *d, const struct job *now)
{
    int rc = jobs_set(&d->jobs, now);
    if (rc)
        log_error("%s: %s", d->jobs.journal.path, strerror(-rc));
    return rc;
}

/* Replaces the job by now; its class may change. */
static int set(struct daemon *d, struct job *now, uint32_t by)
{
    const struct job *old = jobs_find(&d->jobs, now->id);
    bool is_new = !old;
    decide(d, old, now);
    int rc = keep_job(d, now);
    if (rc)
        return rc;
    const struct policy_class *c = orders_class_of(d, now, NULL);
    const char *class_name = c ? c->name : *now->class_name ? now->class_name : "by the rules";
    log_by_uid(by, SD_INFO, "job %s: class %s (set by uid %u)", now->id, class_name, by);
    announce_job(d, jobs_find(&d->jobs, now->id), is_new ? JOB_NEW : JOB_CHANGED);
    return 0;
}

int orders_job_set(struct daemon *d, const struct job *job, uint32_t by, struct text *why)
{
    struct job now = *job;
    if (job->uid == FD_UID_ANY) {
        text_printf(why, "job %s has no owner, and so anybody could say that he is of it: --user says whose it is\n",
                    job->id);
        return -EBADR;
    }
    if (!class_is_there(d, job->class_name, why))
        return -EINVAL;
    if (!cgroup_is_there(job, why))
        return -EBADR;
    if (!strcmp(now.small_ratio, RATIO_NONE))
        memset(now.small_ratio, 0, sizeof(now.small_ratio));
    now.alive_us = orders_now_us();
    return set(d, &now, by);
}

static bool same_but_for_time(const struct job *a, const struct job *b)
{
    return !strcmp(a->account, b->account) && !strcmp(a->qos, b->qos) && !strcmp(a->partition, b->partition) &&
           !strcmp(a->name, b->name) && !strcmp(a->cgroup, b->cgroup) && a->uid == b->uid && a->lease_s == b->lease_s &&
           a->run == b->run && !strcmp(a->small_ratio, b->small_ratio);
}

/* empty: not given. */
static void take_ratio(struct job *to, const char *small_ratio)
{
    if (!*small_ratio)
        return;
    memset(to->small_ratio, 0, sizeof(to->small_ratio));
    if (strcmp(small_ratio, RATIO_NONE))
        snprintf(to->small_ratio, sizeof(to->small_ratio), "%s", small_ratio);
}

static void take_given(char *to, const char *from, size_t size)
{
    if (*from)
        memcpy(to, from, size);
}

int orders_job_renew(struct daemon *d, const struct job *job, uint32_t by, struct text *why)
{
    const struct job *old = jobs_find(&d->jobs, job->id);
    if (!old || (job->run && old->run && job->run != old->run))
        return -ENOENT;
    struct job now = *old;
    if (!cgroup_is_there(job, why))
        return -EBADR;
    take_given(now.account, job->account, sizeof(now.account));
    take_given(now.qos, job->qos, sizeof(now.qos));
    take_given(now.partition, job->partition, sizeof(now.partition));
    take_given(now.name, job->name, sizeof(now.name));
    if (*job->cgroup && strcmp(job->cgroup, old->cgroup))
        now.peopled = false;
    take_given(now.cgroup, job->cgroup, sizeof(now.cgroup));
    if (job->uid != FD_UID_ANY)
        now.uid = job->uid;
    if (job->lease_s)
        now.lease_s = job->lease_s;
    if (job->run)
        now.run = job->run;
    take_ratio(&now, job->small_ratio);
    if (same_but_for_time(&now, old)) { /* nothing to write or report */
        jobs_seen(&d->jobs, job->id, orders_now_us());
        return 0;
    }
    now.alive_us = orders_now_us();
    return set(d, &now, by);
}

int orders_job_give(struct daemon *d, const char *id, const char *class_name, uint32_t by, struct text *why)
{
    const struct job *old = jobs_find(&d->jobs, id);
    if (!old)
        return -ENOENT;
    struct job now = *old;
    memset(now.class_name, 0, sizeof(now.class_name));
    memcpy(now.class_name, class_name, strlen(class_name));
    return class_is_there(d, class_name, why) ? set(d, &now, by) : -EINVAL;
}

/* The alternatives for the user, as text. */
static void explain(const struct daemon *d, const struct job *job, const char *wish, struct text *why)
{
    const struct policy *p = &d->current.policy;
    unsigned n = 0;
    text_printf(why, "job %s may not choose class '%s'; allowed:", job->id, wish);
    for (unsigned i = 0; d->current.valid && i < p->num_classes; i++)
        if (may_choose(d, job, p->classes[i].name)) {
            text_printf(why, " %s", p->classes[i].name);
            n++;
        }
    text_printf(why, n ? "" : " none");
    if (job->uid != FD_UID_ANY && !users_get(d->users, job->uid)->known)
        text_printf(why, ". The groups of uid %u are not known yet: try again later", job->uid);
    text_put(why, "\n", 1);
}

/* Why not, else. */
static void check_seats(struct daemon *d, const struct job *job, const char *wish, struct text *why)
{
    const struct policy *p = &d->current.policy;
    follow_policy(d);
    seats_have_room(&d->jobs.seats, p, (unsigned)policy_class_by_name(p, wish), job, why);
}

int orders_job_choose(struct daemon *d, const char *id, const char *wish, uint32_t uid, struct text *why)
{
    const struct job *old = jobs_find(&d->jobs, id);
    if (!old || (uid != FD_UID_ANY && old->uid != uid))
        return -ENOENT;
    struct job now = *old;
    if (*old->class_name)
        text_printf(why, "job %s was given class '%s' by the scheduler\n", id, old->class_name);
    else if (*wish && !may_choose(d, old, wish))
        explain(d, old, wish, why);
    else if (*wish)
        check_seats(d, old, wish, why);
    if (why->len)
        return -EPERM;
    memset(now.wish, 0, sizeof(now.wish));
    memcpy(now.wish, wish, strlen(wish));
    return set(d, &now, uid == FD_UID_ANY ? 0 : uid);
}

int orders_job_ratio(struct daemon *d, const char *id, const char *small_ratio, uint32_t uid)
{
    const struct job *old = jobs_find(&d->jobs, id);
    if (!old || (uid != FD_UID_ANY && old->uid != uid))
        return -ENOENT;
    struct job now = *old;
    take_ratio(&now, small_ratio);
    return strcmp(now.small_ratio, old->small_ratio) ? set(d, &now, uid == FD_UID_ANY ? 0 : uid) : 0;
}

int orders_job_adopt(struct daemon *d, const char *id, const char *cgroup)
{
    const struct job *old = jobs_find(&d->jobs, id);
    if (!old)
        return -ENOENT;
    struct job now = *old;
    snprintf(now.cgroup, sizeof(now.cgroup), "%s", cgroup);
    int rc = keep_job(d, &now);
    if (rc)
        return rc;
    log_info("job %s: ends with %s", now.id, cgroup);
    announce_job(d, jobs_find(&d->jobs, id), JOB_CHANGED);
    return 0;
}

/* how: for the journal. */
static int end(struct daemon *d, const char *id, const char *how)
{
    const struct job *old = jobs_find(&d->jobs, id);
    if (!old)
        return -ENOENT;
    struct job was = *old;
    int rc = jobs_delete(&d->jobs, was.id);
    if (rc) {
        log_error("%s: %s", d->jobs.journal.path, strerror(-rc));
        return rc;
    }
    log_info("job %s: ended (%s)", was.id, how);
    announce_job(d, &was, JOB_ENDED);
    return 0;
}

int orders_job_end(struct daemon *d, const char *id, uint32_t run, uint32_t by)
{
    const struct job *job = jobs_find(&d->jobs, id);
    char how[32];
    if (job && run && job->run > run) {
        log_info("job %s: run %u has ended, and it is in run %u: it goes on", id, run - 1, job->run - 1);
        return -ENOENT;
    }
    snprintf(how, sizeof(how), "by uid %u", by);
    return end(d, id, how);
}

int orders_job_over(struct daemon *d, const char *id, const char *why)
{
    return end(d, id, why);
}
