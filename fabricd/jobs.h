/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The jobs that somebody has told the daemon about, kept in STATE/jobs.yaml and rewritten with every change, so that
 * they survive the daemon. A job's class is the one it was given, else what the policy's rules say.
 */
#ifndef FABRICD_JOBS_H
#define FABRICD_JOBS_H

#include "fabricd/policy.h"
#include "fabricd/proto.h"

#include <sys/types.h>

#define JOBS_MAX 4096

struct job {
    char id[FD_JOB_MAX];
    char class_name[FD_NAME_MAX]; /* empty: by the rules */
    char account[FD_JOB_MAX], name[FD_JOB_MAX];
    uint32_t uid; /* FD_UID_ANY: whoever says that he is of the job */
};

struct jobs {
    char path[4096 + 16];
    unsigned n;
    struct job *job;
};

/*
 * Read the file if there is one. False with errors in d, each with its place: jobs that cannot be read are left out,
 * and the file is kept as jobs.yaml.damaged.
 */
bool jobs_open(struct jobs *j, const char *state_dir, struct diag *d);
void jobs_close(struct jobs *j);

/* The change is in force and on disk when 0 comes back; a negative errno leaves all as it was. */
int jobs_set(struct jobs *j, const struct job *job);
int jobs_delete(struct jobs *j, const char *id);

const struct job *jobs_find(const struct jobs *j, const char *id);

/* The class of a process of user uid, by name user, that says it belongs to job id (which may be empty). */
unsigned jobs_class(const struct jobs *j, const struct policy *p, const char *id, uid_t uid, const char *user);

/* The jobs that uid may see (FD_UID_ANY: all), one line of YAML each. */
void jobs_text(struct text *out, const struct jobs *j, const struct policy *p, const char *indent, uint32_t uid);

#endif
