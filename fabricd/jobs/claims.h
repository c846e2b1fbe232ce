/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a process is of the job that it says it is of. Its user is known from its socket and its control groups from
 * the kernel; that it says so is only a variable of its environment.
 */
#ifndef FABRICD_JOBS_CLAIMS_H
#define FABRICD_JOBS_CLAIMS_H

#include "fabricd/jobs/jobs.h"

#include <sys/socket.h>

/* Of a connection: what the kernel said of the process when it said of which job it is. */
struct claim {
    char *where;          /* its control groups (cgroups.h); NULL: not known. Freed with claim_free */
    struct cgroup_job by; /* the job that a scheduler's names of these mean; no scheduler: none */
    bool told;            /* that it was not believed is in the journal */
};

/* Ask the kernel, again if it has been asked before. */
void claim_look(struct claim *c, int socket, const struct ucred *peer);
void claim_free(struct claim *c);

/*
 * The job with this id, if a process of this user with this claim is of it: the user owns it, no scheduler has put the
 * process into another job's groups, and it is in the job's control group, if that is known. NULL: it is not, and why
 * (unless NULL) says so; it stays as it is if there is no such job.
 */
const struct job *claim_job(const struct claim *c, const struct jobs *j, const char *id, uid_t uid, struct text *why);

#endif
