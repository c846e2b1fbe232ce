/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scratch directory of a job and its janitor: a small child process that outlives mrrun by a moment, however mrrun
 * ends. It holds the read end of a pipe; when the pipe closes, it kills the process groups that mrrun named and did not
 * take back, and removes the directory.
 *
 * Should the janitor be killed, too, the next mrrun of this user removes the directory: mrrun and janitor hold a lock
 * of it (flock) for as long as one of them lives.
 */
#ifndef MRRUN_SCRATCH_H
#define MRRUN_SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct scratch {
    char path[256];
    int pipe_fd, lock_fd;
    pid_t janitor; /* -1: it has been reaped */
};

/* Make the directory and fork the janitor; remove what dead ones have left. Call it while the process has one thread,
 * with SIGCHLD blocked. 0 or a negative errno. */
int scratch_open(struct scratch *s);

/* Is this the path of a scratch directory, by its last part? */
bool scratch_is_name(const char *path);

/* A process group to kill should mrrun die; and the same, taken back. */
void scratch_watch_group(struct scratch *s, pid_t pgid);
void scratch_forget_group(struct scratch *s, pid_t pgid);

/*
 * From the first call on the janitor wants one every second: when none comes for SCRATCH_SILENCE_S it takes this
 * process for stopped for good, and ends it as well.
 */
enum { SCRATCH_SILENCE_S = 10 };
void scratch_beat(struct scratch *s);

/* Let the janitor do its work, and wait for it, for some seconds at most: it goes on without mrrun. */
void scratch_close(struct scratch *s);

#endif
