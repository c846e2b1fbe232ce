/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends jobs without an end of their own: with its cgroup, or with its lease when none of its processes exists any more.
 * Another thread rewrites the journal of jobs on behalf of this file.
 *
 * A job with a cgroup ends when the cgroup is removed. When the cgroup is empty after use, the job ends at once or,
 * with a lease, when the lease has run out. A job with a lease alone ends with the lease. Processes that are connected
 * or in the cgroup renew the lease. A scheduler's group that lasts as long as its job is found by the first connected
 * process. The kernel reports many changes by inotify(7). Besides, jobs are examined in turn, some hundreds a second,
 * so that no step takes long.
 */
#ifndef FABRICD_JOBS_LIFE_H
#define FABRICD_JOBS_LIFE_H

#include "fabricd/daemon.h"

struct life;

/* For a started daemon; leases of earlier jobs begin anew. NULL has been logged. */
struct life *life_start(struct daemon *d);
void life_stop(struct life *l);

#endif
