/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that nobody ends: with its cgroup a job ends, and with its lease when none of its processes is there any more.
 * Also looks after the journal of jobs, whose file it has written anew by another thread.
 *
 * A job with a cgroup ends when that is removed; when it is empty after it was in use, at once or, with a lease, when
 * that has run out. A job with a lease alone ends when that has run out. Processes that are connected or in the cgroup
 * renew the lease. Where a scheduler's group of a job lasts as long as the job, it is found by the first process that
 * is connected. The kernel tells of many changes by inotify(7); besides, jobs are looked at one after the other, some
 * hundreds a second, so that none of that takes long.
 */
#ifndef FABRICD_JOBS_LIFE_H
#define FABRICD_JOBS_LIFE_H

#include "fabricd/daemon.h"

struct life;

/* For a daemon that has been started; leases of jobs that were there before begin anew. NULL has been logged. */
struct life *life_start(struct daemon *d);
void life_stop(struct life *l);

#endif
