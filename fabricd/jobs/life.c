/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs without an end of their own: see life.h. */
#include "fabricd/jobs/life.h"
#include "fabricd/jobs/helper.h"
#include "fabricd/jobs/orders.h"
#include "fabricd/base/log.h"
#include "fabricd/server.h"
#include "fabricd/subscribers.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#define EVERY_US   1000000u
#define JOBS_EACH  4096      /* jobs examined each time, */
#define FILES_EACH 256       /* and cgroups, each a file to be read */
#define RETRY_US   60000000u /* after a job that has ended could not be struck out of the file */

/* The cgroup of a job, watched by inotify. A job that is set anew has another watch. */
struct watch {
    char id[FD_JOB_MAX];
    char cgroup[FD_CGROUP_MAX];
    struct life *life;
    sd_event_source *source;
};

struct life {
    struct daemon *d;
    struct helper *helper;
    sd_event_source *timer;
    void *watches; /* by id (tsearch) */
    unsigned at;   /* the next job in the table */
    uint64_t not_before_us;
};

/* ---- watches ----------------------------------------------------------------------------------------------------- */

static int compare_paths(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void unwatch(struct life *l, struct watch *w)
{
    tdelete(w->id, &l->watches, compare_paths);
    sd_event_source_disable_unref(w->source);
    free(w);
}

static bool end_if_over(struct life *l, const struct job *job, uint64_t now_us);

static int on_cgroup_change(sd_event_source *source, const struct inotify_event *event, void *arg)
{
    struct watch *w = arg;
    struct life *l = w->life;
    const struct job *job = jobs_find(&l->d->jobs, w->id);
    bool of = job && !strcmp(job->cgroup, w->cgroup);
    if (!of || event->mask & (IN_IGNORED | IN_DELETE_SELF))
        unwatch(l, w);
    if (of && end_if_over(l, job, orders_now_us()))
        subscribers_publish(l->d);
    return 0;
}

/* There may be too few watches, or none on this file system; then the timer alone finds out. */
static void watch(struct life *l, const struct job *job)
{
    struct watch **found = tfind(job->id, &l->watches, compare_paths), *w = found ? *found : NULL;
    char path[4096];
    if (w && !strcmp(w->cgroup, job->cgroup))
        return;
    if (w)
        unwatch(l, w);
    w = calloc(1, sizeof(*w));
    if (!w)
        return;
    memcpy(w->id, job->id, sizeof(w->id));
    memcpy(w->cgroup, job->cgroup, sizeof(w->cgroup));
    w->life = l;
    cgroups_watch_path(job->cgroup, path, sizeof(path));
    if (sd_event_add_inotify(l->d->event, &w->source, path, IN_MODIFY | IN_DELETE_SELF, on_cgroup_change, w) < 0) {
        free(w);
        return;
    }
    if (!tsearch(w, &l->watches, compare_paths)) {
        sd_event_source_disable_unref(w->source);
        free(w);
    }
}

/* ---- one job ----------------------------------------------------------------------------------------------------- */

/* Clients are many and leases long: whether one is of the job is asked when the lease has run out. */
static bool has_client(const struct daemon *d, const struct job *job)
{
    for (const struct client *c = server_clients(d->server); c; c = c->next)
        if (subscribers_job(d, c) == job)
            return true;
    return false;
}

/* True if its lease has run out. */
static bool ran_out(const struct daemon *d, struct job *job, uint64_t now_us)
{
    if (!job->lease_s || now_us - job->alive_us < (uint64_t)job->lease_s * 1000000)
        return false;
    if (!has_client(d, job))
        return true;
    job->alive_us = now_us;
    return false;
}

/* The reason of its end, or NULL: the job continues. */
static const char *end_of(struct life *l, struct job *job, uint64_t now_us)
{
    enum cgroup_state is = *job->cgroup ? cgroups_look(job->cgroup) : CGROUP_THERE;
    if (is == CGROUP_GONE)
        return "its cgroup has gone";
    if (is == CGROUP_IN_USE) {
        job->peopled = true;
        job->alive_us = now_us;
        return NULL;
    }
    if (is == CGROUP_EMPTY && job->peopled && !job->lease_s)
        return "its cgroup has no process any more";
    return ran_out(l->d, job, now_us) ? "its lease has run out" : NULL;
}

/* True: it has ended, and clients are to be told. */
static bool end_if_over(struct life *l, const struct job *job, uint64_t now_us)
{
    const char *why = end_of(l, (struct job *)job, now_us);
    if (!why)
        return false;
    int rc = orders_job_over(l->d, job->id, why);
    if (rc && rc != -ENOENT)
        l->not_before_us = now_us + RETRY_US;
    return !rc;
}

/*
 * A process in a scheduler's group for its job shows the place of the job's group. From then on the job ends with the
 * group, and processes elsewhere do not belong to the job: true.
 */
static bool adopt_cgroup(struct life *l)
{
    bool any = false;
    for (struct client *c = server_clients(l->d->server); c; c = c->next) {
        struct claim *claim = &c->subscriber.claim;
        const struct job *job = *claim->by.path ? subscribers_job(l->d, c) : NULL;
        /* an earlier run may have had a group of this name, which is gone: irrelevant for this run */
        if (job && !*job->cgroup && !strcmp(job->id, claim->by.id) && cgroups_look(claim->by.path) != CGROUP_GONE)
            any |= !orders_job_adopt(l->d, job->id, claim->by.path);
        if (job)
            *claim->by.path = 0;
    }
    return any;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    struct life *l = arg;
    struct jobs *j = &l->d->jobs;
    uint64_t now_us = orders_now_us();
    unsigned files = FILES_EACH, n = j->n < JOBS_EACH ? j->n : JOBS_EACH;
    bool changed = adopt_cgroup(l);
    for (; n && files && j->n && now_us >= l->not_before_us; n--) {
        if (l->at >= j->n)
            l->at = 0;
        const struct job *job = j->job[l->at];
        if (*job->cgroup) {
            files--;
            watch(l, job);
        }
        if ((*job->cgroup || job->lease_s) && end_if_over(l, job, now_us))
            changed = true; /* another job has moved to its place */
        else
            l->at++;
    }
    if (changed)
        subscribers_publish(l->d);
    sd_event_source_set_time_relative(source, EVERY_US);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- the journal ------------------------------------------------------------------------------------------------- */

static void run_compaction(void *arg)
{
    compact_run(arg);
}

static void compaction_done(void *arg)
{
    struct life *l = ((struct compaction *)arg)->owner;
    int rc = jobs_compacted(&l->d->jobs);
    if (rc && rc != -ESTALE)
        log_warn("%s: %s: it could not be written anew, and stays as long as it is", l->d->jobs.journal.path,
                 strerror(-rc));
}

static void compact_aside(void *arg, struct compaction *c)
{
    struct life *l = arg;
    c->owner = l;
    if (!helper_do(l->helper, run_compaction, compaction_done, c)) {
        c->rc = -ENOMEM;
        compaction_done(c);
    }
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

struct life *life_start(struct daemon *d)
{
    struct life *l = calloc(1, sizeof(*l));
    int rc = 0;
    if (!l)
        return NULL;
    l->d = d;
    if (d->jobs.of_before)
        log_info("%s is of a boot before: its jobs are gone", d->jobs.journal.path);
    for (unsigned i = 0; i < d->jobs.n; i++)
        d->jobs.job[i]->alive_us = orders_now_us();
    l->helper = helper_start(d->event);
    if (!l->helper)
        rc = -errno;
    else
        rc = sd_event_add_time_relative(d->event, &l->timer, CLOCK_MONOTONIC, EVERY_US, 0, on_timer, l);
    if (rc < 0) {
        log_error("jobs that nobody ends stay: %s", strerror(-rc));
        helper_stop(l->helper, NULL);
        free(l);
        return NULL;
    }
    d->jobs.compact = compact_aside;
    d->jobs.compact_arg = l;
    return l;
}

void life_stop(struct life *l)
{
    if (!l)
        return;
    while (l->watches)
        unwatch(l, *(struct watch **)l->watches);
    sd_event_source_unref(l->timer);
    if (!helper_stop(l->helper, NULL))
        l->d->jobs.compacting = NULL; /* the disk hangs; the file beside is removed at the next start */
    l->d->jobs.compact = NULL;
    free(l);
}
