/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun --attach PID: the report of a running job (inquiry.h) for another terminal. mrrun listens on a UNIX socket in
 * its scratch directory. The attached mrrun finds the directory among the open files of the process (/proc/PID/fd),
 * connects, and gets the report as the descriptor of a file in memory, so a slow reader cannot delay the job. Both
 * /proc and the socket accept the job's user and root only.
 */
#ifndef MRRUN_ATTACH_H
#define MRRUN_ATTACH_H

#include <stdbool.h>
#include <sys/types.h>

enum { ATTACH_ASKERS = 16 };

/* The job's side. */
struct attach {
    int fd; /* listens; -1: no attaching */
    int asker[ATTACH_ASKERS];
    int num_askers; /* connections waiting for a report */
};

/* dir_fd: the scratch directory. Without a socket the job runs as well. */
void attach_open(struct attach *a, int dir_fd);
/* Accepts connections. True: an asker waits for a report. */
bool attach_take(struct attach *a);
/* Send the report to all connections that wait, and close them. */
void attach_answer(struct attach *a, const char *report);
void attach_close(struct attach *a);

/* The other side: prints the report of the job of pid, its mrrun or a local rank. Returns the exit status. */
int attach_print(pid_t pid);

#endif
