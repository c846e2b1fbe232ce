/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scratch directory of a job and its janitor: a small child process that outlives mrrun by a moment, however mrrun
 * ends. The janitor holds the read end of a pipe. When the pipe closes, the janitor kills the process groups that mrrun
 * named and did not take back, and removes the directory.
 *
 * If the janitor is killed, too, the next mrrun of this user removes the directory: mrrun and janitor hold a lock on
 * the directory (flock) as long as either lives.
 */
#ifndef MRRUN_SCRATCH_H
#define MRRUN_SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct scratch {
    char path[256];
    int pipe_fd, lock_fd;
    pid_t janitor; /* -1: reaped */
};

/*
 * Makes the directory and forks the janitor; removes directories of dead jobs. Call while the process has one thread,
 * with SIGCHLD blocked. 0 or a negative errno.
 */
int scratch_open(struct scratch *s);

/* Is this the path of a scratch directory, by its last part? */
bool scratch_is_name(const char *path);

/* A process group to kill should mrrun die; and the same, taken back. */
void scratch_watch_group(struct scratch *s, pid_t pgid);
void scratch_forget_group(struct scratch *s, pid_t pgid);

/*
 * From the first call on, the janitor expects a call every second. After SCRATCH_SILENCE_S without a call, the janitor
 * takes this process for stopped for good, and kills it as well.
 */
enum { SCRATCH_SILENCE_S = 10 };
void scratch_beat(struct scratch *s);

/* Lets the janitor do its work, and waits a few seconds at most: the janitor continues without mrrun. */
void scratch_close(struct scratch *s);

#endif
