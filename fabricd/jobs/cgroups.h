/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of a process and of a job: control groups, of version 1, 2 or both, from /proc and
 * /sys/fs/cgroup. A scheduler puts the processes of a job into a group that they cannot leave, unlike a variable of the
 * environment. With $FABRICD_ROOT these two directories are looked for there.
 *
 * A group is named by its directory, as /sys/fs/cgroup/system.slice/slurmstepd.scope/job_7. What a process is in
 * ("where") is the text of /proc/PID/cgroup. Nothing here owns anything.
 */
#ifndef FABRICD_JOBS_CGROUPS_H
#define FABRICD_JOBS_CGROUPS_H

#include "fabricd/proto/proto.h"

#include <sys/types.h>

#define CGROUPS_WHERE_MAX 16384 /* bytes of /proc/PID/cgroup */
#define CGROUPS_BOOT_MAX  40    /* bytes of a boot's id, with the terminating zero */

enum cgroup_state {
    CGROUP_GONE,  /* there is no such directory */
    CGROUP_EMPTY, /* no process is in it or in groups beneath it */
    CGROUP_IN_USE,
    CGROUP_THERE, /* it is not known whether there are processes */
};

/* The job that a scheduler has made a group for. */
struct cgroup_job {
    const char *scheduler; /* its name, for people */
    char id[FD_JOB_MAX];
    char path[FD_CGROUP_MAX]; /* the job's group; empty: too long, or it need not last as long as the job */
};

/*
 * Where the process at the other end of a UNIX socket is: where is to be freed. The kernel's reference to the process
 * (SO_PEERPIDFD) is asked, so that another process with its number is never taken for it; kernels before 6.5 have none,
 * and there it has to be of the socket's user and connected still. 0, or a negative errno: -ESRCH: it has ended.
 */
int cgroups_of_peer(int socket, pid_t pid, uid_t uid, char **where);

/* Is who is there in this group, or in one beneath it? */
bool cgroups_inside(const char *where, const char *path);

/* Does the name of where mean that a scheduler put it there for a job? */
bool cgroups_job_of(const char *where, struct cgroup_job *job);

enum cgroup_state cgroups_look(const char *path);

/*
 * May this name the group of a job? It is below /sys/fs/cgroup, not the root of a hierarchy, and without dots for
 * directories.
 */
bool cgroups_good_path(const char *path);

/* What is to be watched (inotify(7)) of a group: it changes when the group becomes empty or is removed. */
void cgroups_watch_path(const char *path, char *out, size_t size);

/* The id of this boot of the host; empty: not known. */
void cgroups_boot(char out[CGROUPS_BOOT_MAX]);

#endif
