/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that ranks have started (MPI_Comm_spawn): each an mrrun in a process group of its own, so that it may go on when
 * its rank has ended. It registers with the mrrun or the agent of that rank, in a directory of the latter's scratch
 * directory, where the janitor finds it, too. An agent passes on its output as that of the rank, and does not say that
 * the rank's output is over while it is there: so mrrun waits for it, too.
 */
#ifndef MRRUN_OFFSPRING_H
#define MRRUN_OFFSPRING_H

#include <stdbool.h>
#include <sys/types.h>

int offspring_open(const char *scratch); /* 0 or a negative errno */
/* Those that are there. Forgets others. */
bool offspring_any(const char *scratch);
void offspring_signal(const char *scratch, int sig);
int offspring_list(const char *scratch, pid_t *out, int most); /* their mrruns; the number */

/* For an mrrun that a rank may have started. 0, or -1: the rank's mrrun is gone. */
int offspring_register(void);
void offspring_leave(void);

#endif
