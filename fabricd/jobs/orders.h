/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders about jobs, from whatever side they come: the socket (requests.h), or the system bus (dbus/). Whether somebody
 * may give them has been decided there. Subscribers hear of the change by the caller's subscribers_publish, which may
 * free clients; who listens to the daemon (daemon.h) hears of it here.
 */
#ifndef FABRICD_JOBS_ORDERS_H
#define FABRICD_JOBS_ORDERS_H

#include "fabricd/daemon.h"

/*
 * The class that a job has by the policy in force; NULL: none is. source (unless NULL): how it came to that,
 * "scheduler", "user" or "rule", or "" without a policy.
 */
const struct policy_class *orders_class_of(const struct daemon *d, const struct job *job, const char **source);

/* How many jobs have a class of the policy in force, which there is; uid: of this user only, FD_UID_ANY: of all. */
unsigned orders_jobs_of_class(const struct daemon *d, uint32_t uid, unsigned class_index);

/*
 * The job is new, or has what is given here instead of what it had: nothing is left of a job before with this id. by
 * is who says so. since is set here. -EINVAL: the policy in force has no such class; -EBADR: it has no owner, or its
 * cgroup is none or not there; why says so in a line; another negative errno: the change could not be kept. All is then
 * as it was.
 */
int orders_job_set(struct daemon *d, const struct job *job, uint32_t by, struct text *why);

/*
 * What is given here of a job that is there is another now; texts that are empty, uid FD_UID_ANY and lease_s 0 are not
 * given, a small_ratio of RATIO_NONE is none, and class_name and wish are not looked at. Its lease begins anew.
 * -ENOENT: there is no such job, or it is in another run than the one given; -EBADR as above, for its cgroup.
 */
int orders_job_renew(struct daemon *d, const struct job *job, uint32_t by, struct text *why);

/*
 * A job that is there is given another class, or ("") none: then its wish or the rules decide. All else of it stays.
 * -ENOENT: there is no such job; else as above.
 */
int orders_job_give(struct daemon *d, const char *id, const char *class_name, uint32_t by, struct text *why);

/*
 * The job's user asks for another class, or ("") for that which the rules give it. uid is who asks; FD_UID_ANY:
 * somebody who may give orders, and so for other users' jobs, too. -ENOENT: there is no such job of his; -EPERM: the
 * policy does not let it have this class, the class is full, or the job was given one, and why says so (a line).
 */
int orders_job_choose(struct daemon *d, const char *id, const char *wish, uint32_t uid, struct text *why);

/*
 * The small ratio of a job that is there: as ratio.h has it, or RATIO_NONE. It lets the job do less than its class
 * does, so its user may, too: uid as above. -ENOENT, or a negative errno as above.
 */
int orders_job_ratio(struct daemon *d, const char *id, const char *small_ratio, uint32_t uid);

/*
 * The run of the job (as struct job has it; 0: whichever it is in) is over, and with it those before. -ENOENT: there is
 * no such job, or it is in a later run, which goes on; or another negative errno. All is as it was then.
 */
int orders_job_end(struct daemon *d, const char *id, uint32_t run, uint32_t by);
/* The same, since the daemon has seen that it is (why: for the journal). */
int orders_job_over(struct daemon *d, const char *id, const char *why);

/* A job that has no cgroup is found to have this one. As orders_job_end. */
int orders_job_adopt(struct daemon *d, const char *id, const char *cgroup);

/* Something else is known of a user than before; who listens to the daemon hears of his jobs. */
void orders_user_known(struct daemon *d, uint32_t uid);

/* The clock that leases go by: CLOCK_BOOTTIME, so a host that was asleep has used them up. */
uint64_t orders_now_us(void);

#endif
