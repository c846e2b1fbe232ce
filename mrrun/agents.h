/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agents of a job on other hosts, as seen by mrrun: orders to agents, and their reports, queued in order as struct
 * agents_event. Output of ranks goes to their sources directly; so do the connections of ranks to the PMIx server in
 * this process, and the files of their records, which come to mrrun's scratch directory.
 *
 * If a host of a job is another machine, all hosts of the job have agents, this machine too.
 */
#ifndef MRRUN_AGENTS_H
#define MRRUN_AGENTS_H

#include "mrrun/job.h"
#include "mrrun/reports.h"

/* After this time the user is told of hosts that delay the start. */
enum { AGENTS_ABSENT_MS = 4000 };

/* Starts the agents. 0, or -1 with a message in *why. */
int agents_open(struct job *job, const char *mrrun, char *why, size_t cap);
/* The rank's environment, beside that of its part, given before. 0 or a negative errno. */
int agents_add_part(struct agents *a, int part, char *const *env);
int agents_add_rank(struct agents *a, int rank, char *const *part_env, char *const *env);
/* When all are up: start the ranks. */
void agents_run(struct agents *a);

int agents_fd(const struct agents *a);
void agents_serve(struct agents *a);
uint64_t agents_due_ms(const struct agents *a);
bool agents_next_event(struct agents *a, struct agents_event *event);
/* The hosts whose agents are not up yet, as a text; free(). */
char *agents_missing(const struct agents *a);
/* Are agents still being started? */
bool agents_starting(const struct agents *a);
bool agents_reaped(struct agents *a, pid_t pid, int status);

void agents_signal(struct agents *a, int rank, int sig); /* rank -1: to all */
void agents_kill_all(struct agents *a);
/* Call before mrrun is stopped, and when mrrun continues. */
void agents_pause(struct agents *a, bool pause);
void agents_ask(struct agents *a, uint32_t number);
/* Agents note the rank's end for the ranks of their hosts. */
void agents_tell_end(struct agents *a, int rank);
void agents_look(struct agents *a);
void agents_look_for_strangers(struct agents *a, const int *ranks, int count);

/* All ranks have ended: fetch their records if these are wanted. */
void agents_fetch(struct agents *a);
/* Lets agents clear away, and waits for them. */
void agents_close(struct agents *a);

#endif
