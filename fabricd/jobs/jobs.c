/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs and their classes: see jobs.h. */
#include "fabricd/jobs/jobs.h"

#include <errno.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MORE 1024 /* than twice as many as there are jobs: then they are too many */

/* ---- the table --------------------------------------------------------------------------------------------------- */

_Static_assert(offsetof(struct job, id) == 0, "the tree compares ids");

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

const struct job *jobs_find(const struct jobs *j, const char *id)
{
    const struct job *const *found = tfind(id, (void *const *)&j->by_id, compare_ids);
    return found ? *found : NULL;
}

static int room_for_job(struct jobs *j)
{
    unsigned room = j->room ? 2 * j->room : 64;
    struct job **all;
    if (j->n < j->room)
        return 0;
    if (j->n == JOBS_MAX)
        return -ENOSPC;
    all = realloc(j->job, room * sizeof(struct job *));
    if (!all)
        return -ENOMEM;
    j->job = all;
    j->room = room;
    return 0;
}

/* Replaces the job with this id, if there is one. 0, -ENOSPC, -ENOMEM. */
static int put_job(struct jobs *j, const struct job *job)
{
    struct job *own = (struct job *)jobs_find(j, job->id);
    int rc = own ? 0 : room_for_job(j);
    if (rc)
        return rc;
    if (!own) {
        own = calloc(1, sizeof(*own));
        if (!own)
            return -ENOMEM;
        strcpy(own->id, job->id);
        if (!tsearch(own, &j->by_id, compare_ids)) {
            free(own);
            return -ENOMEM;
        }
        j->job[own->at = j->n++] = own;
    }
    unsigned at = own->at;
    seats_leave(&j->seats, own);
    *own = *job;
    own->at = at;
    seats_take(&j->seats, own);
    return 0;
}

/* If present. */
static void take_out(struct jobs *j, const char *id)
{
    struct job *old = (struct job *)jobs_find(j, id);
    if (!old)
        return;
    seats_leave(&j->seats, old);
    tdelete(id, &j->by_id, compare_ids);
    j->job[old->at] = j->job[--j->n];
    j->job[old->at]->at = old->at;
    free(old);
}

static bool take_entry(void *arg, const struct job *job, bool ended)
{
    if (ended)
        take_out(arg, job->id);
    return ended || !put_job(arg, job);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int write_anew(struct jobs *j)
{
    struct text t = {0};
    for (unsigned i = 0; i < j->n; i++)
        journal_job(&t, j->job[i]);
    int rc = journal_write(&j->journal, &t, j->n);
    text_free(&t);
    return rc;
}

bool jobs_open(struct jobs *j, const char *state_dir, struct diag *d)
{
    *j = (struct jobs){0};
    bool good = journal_open(&j->journal, state_dir, take_entry, j, &j->of_before, d);
    if (!j->journal.ours && (j->n || j->of_before))
        write_anew(j); /* while nobody waits; after a failure, the next change does it, or is refused */
    return good;
}

int jobs_compacted(struct jobs *j)
{
    int rc = compact_end(&j->journal, j->compacting);
    free(j->compacting);
    j->compacting = NULL;
    j->patience = rc ? j->journal.lines : 0;
    return rc;
}

/* The file is getting long. A failure is no reason to refuse a change. */
static void begin_compaction(struct jobs *j)
{
    bool now = !j->compacting && j->journal.lines >= 2 * j->n + LINES_MORE + j->patience;
    struct compaction *c = now ? malloc(sizeof(*c)) : NULL;
    if (!c || compact_begin(&j->journal, c)) {
        free(c);
        j->patience = now ? j->journal.lines : j->patience;
        return;
    }
    j->compacting = c;
    if (j->compact) {
        j->compact(j->compact_arg, c);
        return;
    }
    compact_run(c);
    jobs_compacted(j);
}

void jobs_close(struct jobs *j)
{
    if (j->compacting) {
        j->compacting->rc = -ECANCELED;
        jobs_compacted(j);
    }
    while (j->n)
        take_out(j, j->job[j->n - 1]->id);
    free(j->job);
    *j = (struct jobs){0};
}

/* Saves a finished change, in a line of its own: a file of thousands of jobs is not written anew for each. */
static int save(struct jobs *j, const struct text *line)
{
    int rc = journal_append(&j->journal, line);
    if (rc == -ESTALE)
        return write_anew(j);
    if (!rc)
        begin_compaction(j);
    return rc;
}

int jobs_set(struct jobs *j, const struct job *job)
{
    const struct job *old = jobs_find(j, job->id);
    struct job before = old ? *old : (struct job){0};
    struct text line = {0};
    int rc = put_job(j, job);
    if (rc)
        return rc;
    journal_job(&line, job);
    rc = save(j, &line);
    text_free(&line);
    if (rc && old)
        put_job(j, &before);
    else if (rc)
        take_out(j, job->id);
    return rc;
}

int jobs_delete(struct jobs *j, const char *id)
{
    const struct job *old = jobs_find(j, id);
    struct text line = {0};
    if (!old)
        return -ENOENT;
    struct job before = *old;
    journal_ended(&line, before.id);
    take_out(j, before.id);
    int rc = save(j, &line);
    text_free(&line);
    if (rc)
        put_job(j, &before); /* room was there before */
    return rc;
}

void jobs_seen(struct jobs *j, const char *id, uint64_t now_us)
{
    struct job *job = (struct job *)jobs_find(j, id);
    if (job)
        job->alive_us = now_us;
}

void jobs_reseat(struct jobs *j, const struct job *job, const struct job *now)
{
    struct job *own = (struct job *)job;
    seats_leave(&j->seats, own);
    memcpy(own->seat_class, now->seat_class, sizeof(own->seat_class));
    own->seat = now->seat;
    own->source = now->source;
    own->full = now->full;
    own->since = now->since;
    seats_take(&j->seats, own);
}
