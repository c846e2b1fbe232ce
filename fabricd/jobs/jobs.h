/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The jobs that somebody has told the daemon about, kept in STATE/jobs.yaml, so that they survive the daemon. Each
 * change is a line at its end, of which the last one of a job holds, and now and then it is written anew.
 */
#ifndef FABRICD_JOBS_JOBS_H
#define FABRICD_JOBS_JOBS_H

#include "fabricd/policy.h"
#include "fabricd/proto.h"

#include <sys/types.h>

#define JOBS_MAX 65536

struct job {
    char id[FD_JOB_MAX];
    char class_name[FD_NAME_MAX]; /* that it was given; empty: by wish, or by the rules */
    char wish[FD_NAME_MAX];       /* the class that its user asks for; empty: none */
    char account[FD_JOB_MAX], qos[FD_JOB_MAX], partition[FD_JOB_MAX], name[FD_JOB_MAX];
    uint32_t uid;   /* its owner; FD_UID_ANY: a file of before jobs had owners does not say. Nobody is of it then */
    uint32_t since; /* that it has its class: seconds of the epoch; 0: not known */
    unsigned at;    /* where it is in struct jobs */
};

struct jobs {
    char path[4096 + 16];
    unsigned n, room;
    struct job **job; /* in no order */
    void *by_id;      /* the same as a tree (tsearch) */
    unsigned lines;   /* of the file; far too many: it is to be written anew */
};

/*
 * Read the file if there is one. False with errors in d, each with its place: jobs that cannot be read are left out,
 * and the file is kept as jobs.yaml.damaged.
 */
bool jobs_open(struct jobs *j, const char *state_dir, struct diag *d);
void jobs_close(struct jobs *j);

/*
 * The change is in force and in the file when 0 comes back; a negative errno leaves all as it was. job.at is the
 * table's own.
 */
int jobs_set(struct jobs *j, const struct job *job);
int jobs_delete(struct jobs *j, const char *id);

const struct job *jobs_find(const struct jobs *j, const char *id);

/*
 * The class of a job, whose user has this name, by a policy: the one it was given, else the one it wishes if the policy
 * lets it have that, else what the rules say. source: "scheduler", "user" or "rule"; NULL: not asked for.
 */
unsigned jobs_class_of(const struct job *job, const struct policy *p, const char *user, const char **source);
/* May it have the class if its user asks for it? */
bool jobs_may_choose(const struct job *job, const struct policy *p, const char *user, const char *class_name);

/* The class of a process of user uid, by name user, that says it belongs to job id (which may be empty). */
unsigned jobs_class(const struct jobs *j, const struct policy *p, const char *id, uid_t uid, const char *user);

#endif
