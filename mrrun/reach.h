/* SPDX-License-Identifier: BSD-3-Clause */
/* What mrrun does to all ranks of a job: its own children, or those of agents on other hosts. */
#ifndef MRRUN_REACH_H
#define MRRUN_REACH_H

#include "mrrun/job.h"

void reach_signal(struct job *job, int sig);
/* SIGKILL to what ranks have started, also to what has left their groups. */
void reach_kill_strays(struct job *job);
/* Stop mrrun, until somebody has it continue. */
void reach_stop(struct job *job);
/* What the inquiry must know of each; free(). */
struct inquiry_rank *reach_ranks(const struct job *job);
/* Ask ranks what they wait for. False: none can say. */
bool reach_ask(struct job *job);

enum { REACH_ENDING_LATER = 1 };
/* Whose end is under way? 0: in ending[ranks]; REACH_ENDING_LATER: agents will say. */
int reach_endings(struct job *job, enum ending *ending);

#endif
