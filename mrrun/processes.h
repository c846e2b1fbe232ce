/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of this machine, by the kernel's word (/proc/PID/stat).
 *
 * A process that ends is marked before its memory, files and sockets are given up. So whatever its peers notice of its
 * end, they notice later: a rank that is not marked when another one reports a failure is not the cause of that
 * failure.
 */
#ifndef MRRUN_PROCESSES_H
#define MRRUN_PROCESSES_H

#include <sys/types.h>

enum ending {
    ENDING_NOT,
    ENDING_PART, /* a process of its group ends: the program, perhaps, of which the rank itself is a wrapper */
    ENDING_SELF, /* the process ends, dumps its core, or has ended and was not reaped */
};

/* pid[count] are leaders of process groups, 0: none. how[count] is the result; all ENDING_NOT where /proc is not there.
 */
void processes_ending(const pid_t *pid, int count, enum ending *how);

/* Each process of the groups of these leaders, whose index is told. */
typedef void process_fn(int index, pid_t pid, void *arg);
void processes_of_groups(const pid_t *leader, int count, process_fn *fn, void *arg);

/* 0: there is no such process. */
pid_t processes_parent(pid_t pid);

/*
 * SIGKILL to all descendants of this process but these and theirs, whatever groups and sessions they have gone to.
 */
void processes_kill_descendants(const pid_t *but, int num_but);

#endif
