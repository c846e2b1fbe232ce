/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of registered jobs, kept in a file (journal.h), and the class of each by a policy. */
#ifndef FABRICD_JOBS_JOBS_H
#define FABRICD_JOBS_JOBS_H

#include "fabricd/jobs/compact.h"
#include "fabricd/jobs/seats.h"
#include "fabricd/policy/policy.h"

#include <sys/types.h>

#define JOBS_MAX 65536

struct jobs {
    unsigned n, room;
    struct job **job; /* in no order */
    void *by_id;      /* the same as a tree (tsearch) */
    struct seats seats;
    const char *decided_by; /* text and generation of the policy that decided seats; NULL: none */
    uint64_t decided_at;
    struct journal journal;
    bool of_before; /* the file was of a boot before: its jobs are gone */

    /* The file is to be written anew: c is another's until jobs_compacted. NULL: it is done at once. */
    void (*compact)(void *arg, struct compaction *c);
    void *compact_arg;
    struct compaction *compacting;
    unsigned patience; /* further lines until the next attempt, after a failed compaction */
};

/*
 * Reads the file if there is one. False with errors in d, each with its place: unreadable jobs are left out, and the
 * file is kept as jobs.yaml.corrupt-TIME.
 */
bool jobs_open(struct jobs *j, const char *state_dir, struct diag *d);
/* No compaction runs any more; its output is given up. */
void jobs_close(struct jobs *j);

/*
 * The change is in force and in the file when 0 comes back; a negative errno leaves all as it was. job.at is the
 * table's own.
 */
int jobs_set(struct jobs *j, const struct job *job);
int jobs_delete(struct jobs *j, const char *id);

/* The compaction has run. 0, or a negative errno: the longer file stays. */
int jobs_compacted(struct jobs *j);

/* A process of the job was seen at this time (CLOCK_BOOTTIME). The job need not exist. */
void jobs_seen(struct jobs *j, const char *id, uint64_t now_us);

const struct job *jobs_find(const struct jobs *j, const char *id);

/* Gives a job of the table another seat, the seat of now. The file is not changed. */
void jobs_reseat(struct jobs *j, const struct job *job, const struct job *now);

#endif
