/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which class each job has by the policy in force. A class may have so many jobs at a time, in all and of a user; so
 * what a job has depends on the others, and is decided once, when the job, what is known of its user, or the policy
 * changes. It stays until then: that another job ends moves nobody.
 *
 * A job has the class that it was given, limit or not; else the one it wishes, if the policy lets it and there is room;
 * else that of the first rule that matches and whose class has room; else the default class, which has no limit.
 */
#ifndef FABRICD_JOBS_SEATS_H
#define FABRICD_JOBS_SEATS_H

#include "fabricd/jobs/job.h"
#include "fabricd/jobs/users.h"
#include "fabricd/policy/policy.h"

/* How many jobs have which class. */
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
 * Decide what job is to have. old: what the table has of it now, whose seat it may have again, or NULL. Changes job's
 * seat, source, full and seat_class, and counts nothing.
 */
void seats_decide(struct seats *s, const struct policy *p, const struct user *user, const struct job *old,
                  struct job *job);

/*
 * By another policy, or at the start, all of the table: those first that have what they would have if there were no
 * limits, and of those the ones that have had it longest.
 */
void seats_decide_all(struct seats *s, const struct policy *p, struct users *users, struct job **job, unsigned n);

/* Is there room for the job in a class? If not, why (unless NULL) says so: a line. */
bool seats_have_room(const struct seats *s, const struct policy *p, unsigned class_index, const struct job *job,
                     struct text *why);

/* The class of a process that is of no job: by the rules, for classes without limits. */
unsigned seats_class_of_user(const struct policy *p, const struct user *user);

/* May the job have the class if its user asks for it, and there is room? */
bool seats_may_choose(const struct job *job, const struct policy *p, const struct user *user, const char *class_name);

#endif
