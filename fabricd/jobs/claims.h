/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verifies that a process belongs to its claimed job. The socket shows the process's user, the kernel its control
 * groups; the claim itself is only a variable of the environment.
 */
#ifndef FABRICD_JOBS_CLAIMS_H
#define FABRICD_JOBS_CLAIMS_H

#include "fabricd/jobs/jobs.h"

#include <sys/socket.h>

/* Of a connection: the kernel's facts about the process at the time of its claim. */
struct claim {
    char *where;          /* its control groups (cgroups.h); NULL: not known. Freed with claim_free */
    struct cgroup_job by; /* the job that a scheduler's names of these mean; no scheduler: none */
    bool told;            /* the refusal is in the journal */
};

/* Ask the kernel, again if it has been asked before. */
void claim_look(struct claim *c, int socket, const struct ucred *peer);
void claim_free(struct claim *c);

/*
 * The job with this id, if a process of this user with this claim belongs to the job: the user owns the job, no
 * scheduler has put the process into another job's groups, and the process is in the job's control group, if known.
 * NULL: not so, and why (unless NULL) has the reason; why is unchanged if no such job exists.
 */
const struct job *claim_job(const struct claim *c, const struct jobs *j, const char *id, uid_t uid, struct text *why);

#endif
