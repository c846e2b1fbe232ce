/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of this machine, according to the kernel (/proc/PID/stat).
 *
 * An ending process is marked before its memory, files and sockets are released, so its peers notice later: a rank not
 * marked when another rank reports a failure is not the cause of that failure.
 */
#ifndef MRRUN_PROCESSES_H
#define MRRUN_PROCESSES_H

#include <sys/types.h>

enum ending {
    ENDING_NOT,
    ENDING_PART, /* a process of its group ends: perhaps the program of a rank that is a wrapper */
    ENDING_SELF, /* the process ends, dumps its core, or has ended and was not reaped */
};

/* pid[count] are leaders of process groups, 0: none. how[count] is the result; all ENDING_NOT where /proc is not there.
 */
void processes_ending(const pid_t *pid, int count, enum ending *how);

/* Calls fn for each process in the groups of these leaders, with the leader's index. */
typedef void process_fn(int index, pid_t pid, void *arg);
void processes_of_groups(const pid_t *leader, int count, process_fn *fn, void *arg);

/* 0: there is no such process. */
pid_t processes_parent(pid_t pid);

/*
 * SIGKILL to all descendants of this process but these and theirs, whatever groups and sessions they have gone to.
 */
void processes_kill_descendants(const pid_t *but, int num_but);

#endif
