/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's facts about a process and a job: control groups, of version 1, 2 or both, from /proc and /sys/fs/cgroup.
 * A scheduler puts the processes of a job into a group that they cannot leave, unlike a variable of the environment.
 * With $FABRICD_ROOT the two directories are read below that root.
 *
 * A group is named by its directory, as /sys/fs/cgroup/system.slice/slurmstepd.scope/job_7. The groups of a process
 * ("where") are the text of /proc/PID/cgroup. Nothing here owns anything.
 */
#ifndef FABRICD_JOBS_CGROUPS_H
#define FABRICD_JOBS_CGROUPS_H

#include "fabricd/proto/proto.h"

#include <sys/types.h>

#define CGROUPS_WHERE_MAX 16384 /* bytes of /proc/PID/cgroup */
#define CGROUPS_BOOT_MAX  40    /* bytes of a boot's id, with the terminating zero */

enum cgroup_state {
    CGROUP_GONE,  /* there is no such directory */
    CGROUP_EMPTY, /* neither the group nor groups beneath have a process */
    CGROUP_IN_USE,
    CGROUP_THERE, /* the group exists, its processes are unknown */
};

/* The job that a scheduler has made a group for. */
struct cgroup_job {
    const char *scheduler; /* the scheduler's name, for people */
    char id[FD_JOB_MAX];
    char path[FD_CGROUP_MAX]; /* the job's group; empty: too long, or it need not last as long as the job */
};

/*
 * The groups of the process at the other end of a UNIX socket: free where. The kernel's reference to the process
 * (SO_PEERPIDFD) is used, so another process with the same number is never taken for it. Kernels before 6.5 have no
 * such reference; there the process must belong to the socket's user and be connected still. 0, or a negative errno:
 * -ESRCH: the process has ended.
 */
int cgroups_of_peer(int socket, pid_t pid, uid_t uid, char **where);

/* True if the process is in this group, or in a group beneath. */
bool cgroups_inside(const char *where, const char *path);

/* True if the name of where shows that a scheduler put the process there for a job. */
bool cgroups_job_of(const char *where, struct cgroup_job *job);

enum cgroup_state cgroups_look(const char *path);

/*
 * May this name the group of a job? It is below /sys/fs/cgroup, not the root of a hierarchy, and without dots for
 * directories.
 */
bool cgroups_good_path(const char *path);

/* The file of a group to watch (inotify(7)): it changes when the group becomes empty or is removed. */
void cgroups_watch_path(const char *path, char *out, size_t size);

/* The id of this boot of the host; empty: not known. */
void cgroups_boot(char out[CGROUPS_BOOT_MAX]);

#endif
