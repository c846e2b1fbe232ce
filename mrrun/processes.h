/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of this machine, according to the kernel (/proc/PID/stat).
 *
 * An ending process is marked before its memory, files and sockets are released, so its peers notice later: a rank not
 * marked when another rank reports a failure is not the cause of that failure.
 */
#ifndef MRRUN_PROCESSES_H
#define MRRUN_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum ending {
    ENDING_NOT,
    ENDING_PART, /* a process of its group ends: perhaps the program of a rank that is a wrapper */
    ENDING_SELF, /* the process ends, dumps its core, or has ended and was not reaped */
};

/* pid[count] are leaders of process groups, 0: none. how[count] is the result; all ENDING_NOT where /proc is not there.
 */
void processes_ending(const pid_t *pid, int count, enum ending *how);

/* Groups in which a process ends or has ended: the leaders may be wrappers of these programs, and end next. */
struct aftermath {
    bool ending;     /* a process is not through with its end, or a leader has ended and was not reaped */
    bool ready;      /* a leader, or a parent of an ended process, runs, or waits for a processor, a disk or a page */
    uint64_t cpu_ms; /* processor time of leaders and such parents so far */
};

/* leader as in processes_ending(). */
struct aftermath processes_aftermath(const pid_t *leader, int count);

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
