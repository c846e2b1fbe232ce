/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * STATE/jobs.yaml, the jobs across restarts of the daemon. Each change of a job is a line at the end; the last line of
 * a job is valid. Now and then the file is written anew without outdated lines. The file names its boot of the host:
 * jobs do not survive a boot.
 *
 * Nothing waits for the disk when a line is written: the file need not outlive the host.
 */
#ifndef FABRICD_JOBS_JOURNAL_H
#define FABRICD_JOBS_JOURNAL_H

#include "fabricd/jobs/cgroups.h"
#include "fabricd/jobs/job.h"
#include "fabricd/base/text.h"

#define JOURNAL_MAX   (64u << 20)      /* bytes */
#define JOURNAL_ITEM  "  - {id: "      /* how the line of a job begins */
#define JOURNAL_ENDED ", ended: true}" /* follows the id of an ended job */

struct journal {
    char path[4096 + 16];
    char boot[CGROUPS_BOOT_MAX]; /* the present boot; empty: unknown */
    bool ours;                   /* the file is as it is written here: a line may follow */
    unsigned lines;              /* of the file */
};

/* Takes each line read, in order. False: there is no room for this job. */
typedef bool journal_take(void *arg, const struct job *job, bool ended);

/*
 * Finds the file's name and reads the file if there is one. False with errors in d, each with its place: unreadable
 * lines are left out, and the file is kept as jobs.yaml.corrupt-TIME. before: the file is of an earlier boot, so its
 * jobs are gone.
 */
bool journal_open(struct journal *j, const char *state_dir, journal_take *take, void *arg, bool *before,
                  struct diag *d);

/* The same of a text alone; how many lines it has. */
unsigned journal_parse(const struct text *t, journal_take *take, void *arg, struct diag *d);

/* The line of a job in the file, and the line of an ended job. */
void journal_job(struct text *line, const struct job *job);
void journal_ended(struct text *line, const char *id);

/* Appends a line. A negative errno leaves the file unchanged; -ESTALE: the file has to be written anew first. */
int journal_append(struct journal *j, const struct text *line);

/* Replaces the file by these lines, as a whole or not at all. */
int journal_write(struct journal *j, const struct text *lines, unsigned num);

#endif
