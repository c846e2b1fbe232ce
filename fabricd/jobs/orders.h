/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders about jobs, from the socket (requests.h) or the system bus (dbus/), which decide permissions. The caller
 * informs subscribers by subscribers_publish, which may free clients; the daemon's listener (daemon.h) is informed
 * here.
 */
#ifndef FABRICD_JOBS_ORDERS_H
#define FABRICD_JOBS_ORDERS_H

#include "fabricd/daemon.h"

/*
 * The class of a job by the policy in force; NULL: no policy. source (unless NULL): the source of the class,
 * "scheduler", "user" or "rule", or "" without a policy.
 */
const struct policy_class *orders_class_of(const struct daemon *d, const struct job *job, const char **source);

/* The number of jobs with a class of the policy in force, which exists; uid: of this user only, FD_UID_ANY: of all. */
unsigned orders_jobs_of_class(const struct daemon *d, uint32_t uid, unsigned class_index);

/*
 * Registers a job, or replaces all facts of an earlier job with this id. by is the author. since is set here. -EINVAL:
 * the policy in force has no such class; -EBADR: the job has no owner, or its cgroup is no cgroup or missing; why has
 * the reason, a line; another negative errno: the change could not be kept. All is then as before.
 */
int orders_job_set(struct daemon *d, const struct job *job, uint32_t by, struct text *why);

/*
 * Changes the given facts of an existing job; empty texts, uid FD_UID_ANY and lease_s 0 are not given, a small_ratio of
 * RATIO_NONE is none, and class_name and wish are ignored. Its lease begins anew. -ENOENT: no such job, or the job is
 * in another run than given; -EBADR as above, for its cgroup.
 */
int orders_job_renew(struct daemon *d, const struct job *job, uint32_t by, struct text *why);

/*
 * Gives an existing job another class, or ("") none: then its wish or the rules decide. All else stays. -ENOENT: no
 * such job; else as above.
 */
int orders_job_give(struct daemon *d, const char *id, const char *class_name, uint32_t by, struct text *why);

/*
 * The job's user asks for another class, or ("") for the class by the rules. uid is the asking user; FD_UID_ANY: a user
 * who may give orders, also for other users' jobs. -ENOENT: the user has no such job; -EPERM: the policy does not offer
 * this class to the job, the class is full, or the job was given a class, and why has the reason (a line).
 */
int orders_job_choose(struct daemon *d, const char *id, const char *wish, uint32_t uid, struct text *why);

/*
 * The small ratio of an existing job: in the form of ratio.h, or RATIO_NONE. A ratio lets the job do less than its
 * class, so its user may give this order too: uid as above. -ENOENT, or a negative errno as above.
 */
int orders_job_ratio(struct daemon *d, const char *id, const char *small_ratio, uint32_t uid);

/*
 * Ends a run of the job (in the form of struct job; 0: any run), and all runs before. -ENOENT: no such job, or the job
 * is in a later run, which goes on; or another negative errno. All is then as before.
 */
int orders_job_end(struct daemon *d, const char *id, uint32_t run, uint32_t by);
/* The same by the daemon's own observation (why: for the journal). */
int orders_job_over(struct daemon *d, const char *id, const char *why);

/* Gives a job without a cgroup this cgroup. As orders_job_end. */
int orders_job_adopt(struct daemon *d, const char *id, const char *cgroup);

/* New facts of a user are known; the daemon's listener hears of the user's jobs. */
void orders_user_known(struct daemon *d, uint32_t uid);

/* The clock of leases: CLOCK_BOOTTIME, so leases run while the host sleeps. */
uint64_t orders_now_us(void);

#endif
