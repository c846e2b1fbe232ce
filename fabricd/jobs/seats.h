/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The class of each job by the policy in force. A class may limit its jobs at a time, in all and per user. A job's
 * class thus depends on other jobs, and is decided once, when the job, the known facts of its user, or the policy
 * changes. The class stays until then: the end of another job moves no job.
 *
 * A job has its assigned class, limit or not; else its wish, if the policy offers the class and there is room; else the
 * class of the first matching rule whose class has room; else the default class, which has no limit.
 */
#ifndef FABRICD_JOBS_SEATS_H
#define FABRICD_JOBS_SEATS_H

#include "fabricd/jobs/job.h"
#include "fabricd/jobs/users.h"
#include "fabricd/policy/policy.h"

/* The number of jobs in each class. */
struct seats {
    unsigned held[POLICY_CLASSES_MAX];
    void *by_uid; /* the same for each user (tsearch) */
};

/* The seat of a job in the table is counted, or is not any more. */
void seats_take(struct seats *s, const struct job *job);
void seats_leave(struct seats *s, const struct job *job);

/* How many jobs have the class, of all users (FD_UID_ANY) or of one. */
unsigned seats_held(const struct seats *s, uint32_t uid, unsigned class_index);

/*
 * Decides the seat of job. old: its entry in the table now, whose seat it may have again, or NULL. Changes job's seat,
 * source, full and seat_class, and counts nothing.
 */
void seats_decide(struct seats *s, const struct policy *p, const struct user *user, const struct job *old,
                  struct job *job);

/*
 * Decides the whole table by another policy, or at the start: first the jobs that have their class without limits, and
 * among these the jobs with the longest tenure.
 */
void seats_decide_all(struct seats *s, const struct policy *p, struct users *users, struct job **job, unsigned n);

/* Is there room for the job in a class? If not, why (unless NULL) says so: a line. */
bool seats_have_room(const struct seats *s, const struct policy *p, unsigned class_index, const struct job *job,
                     struct text *why);

/* The class of a process that is of no job: by the rules, for classes without limits. */
unsigned seats_class_of_user(const struct policy *p, const struct user *user);

/* The partition of a job with this class, or (job NULL) of a process that is of no job. */
const struct policy_partition *seats_partition(const struct policy *p, const struct user *user, const struct job *job,
                                               unsigned class_index);

/* True if the job may have the class by its user's wish, and there is room. */
bool seats_may_choose(const struct job *job, const struct policy *p, const struct user *user, const char *class_name);

#endif
