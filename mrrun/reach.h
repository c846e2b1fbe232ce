/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions of mrrun on all ranks of a job: its own children, or those of agents on other hosts. */
#ifndef MRRUN_REACH_H
#define MRRUN_REACH_H

#include "mrrun/job.h"

void reach_signal(struct job *job, int sig);
void reach_signal_rank(struct job *job, int rank, int sig);
/* SIGKILL to descendants of ranks, including those outside their groups. */
void reach_kill_strays(struct job *job);
/* Stops mrrun until continued. */
void reach_stop(struct job *job);
/* The state of each rank for an inquiry; free(). */
struct inquiry_rank *reach_ranks(const struct job *job);
/* Asks ranks for the calls they wait in. False: no rank can answer. */
bool reach_ask(struct job *job);

/* Notes the rank's end in the file that the ranks of each host map (libmrmpi/api/inquiry.h). */
void reach_tell_end(struct job *job, int rank);

enum { REACH_ENDING_LATER = 1 };
/* Finds ends under way. 0: in ending[ranks]; REACH_ENDING_LATER: agents will answer. */
int reach_endings(struct job *job, enum ending *ending);

#endif
