/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * STATE/jobs.yaml, in which jobs survive the daemon. Each change of a job is a line at its end, of which the last one
 * of a job holds; now and then the file is written anew without the lines that do not hold. It says of which boot of
 * the host it is: jobs do not survive that.
 *
 * Nothing waits for the disk when a line is written: it need not outlive the host.
 */
#ifndef FABRICD_JOBS_JOURNAL_H
#define FABRICD_JOBS_JOURNAL_H

#include "fabricd/jobs/cgroups.h"
#include "fabricd/jobs/job.h"
#include "fabricd/base/text.h"

#define JOURNAL_MAX   (64u << 20)      /* bytes */
#define JOURNAL_ITEM  "  - {id: "      /* how the line of a job begins */
#define JOURNAL_ENDED ", ended: true}" /* what follows the id of one that has ended */

struct journal {
    char path[4096 + 16];
    char boot[CGROUPS_BOOT_MAX]; /* this one; empty: not known */
    bool ours;                   /* the file is as it is written here: a line may follow */
    unsigned lines;              /* of the file */
};

/* What is done with each line that is read, in their order. False: there is no room for this job. */
typedef bool journal_take(void *arg, const struct job *job, bool ended);

/*
 * Find the file's name and read the file if there is one. False with errors in d, each with its place: what cannot be
 * read is left out, and the file is kept as jobs.yaml.corrupt-TIME. before: the file is of a boot before, and so of
 * nothing that is there.
 */
bool journal_open(struct journal *j, const char *state_dir, journal_take *take, void *arg, bool *before,
                  struct diag *d);

/* The same of a text alone; how many lines it has. */
unsigned journal_parse(const struct text *t, journal_take *take, void *arg, struct diag *d);

/* The line of a job as the file has it, and that of one that has ended. */
void journal_job(struct text *line, const struct job *job);
void journal_ended(struct text *line, const char *id);

/* Put a line at the end. A negative errno leaves the file as it was; -ESTALE: it has to be written anew first. */
int journal_append(struct journal *j, const struct text *line);

/* The file with these lines instead of what it has, at once or not at all. */
int journal_write(struct journal *j, const struct text *lines, unsigned num);

#endif
