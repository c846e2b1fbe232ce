/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agents of a job on other hosts, as mrrun sees them: what it tells them, and what it hears, queued in order as
 * struct agents_event. Output of ranks goes to their sources by itself; so do the connections of ranks to the PMIx
 * server in this process, and the files of their records, which come to mrrun's scratch directory.
 *
 * Where one host of a job is another machine, all its hosts have agents, this one too.
 */
#ifndef MRRUN_AGENTS_H
#define MRRUN_AGENTS_H

#include "mrrun/job.h"
#include "mrrun/reports.h"

/* After this time the user hears which hosts the start waits for. */
enum { AGENTS_ABSENT_MS = 4000 };

/* Starts the agents. 0, or -1 with a message in *why. */
int agents_open(struct job *job, const char *mrrun, char *why, size_t cap);
/* The rank's environment, beside that of its part, which was given before. 0 or a negative errno. */
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
/* Before mrrun is stopped, and when it goes on. */
void agents_pause(struct agents *a, bool pause);
void agents_ask(struct agents *a, uint32_t number);
void agents_look(struct agents *a);
void agents_look_for_strangers(struct agents *a, const int *ranks, int count);

/* All ranks have ended: fetch their records if these are wanted. */
void agents_fetch(struct agents *a);
/* Have agents clear away, and wait until they have. */
void agents_close(struct agents *a);

#endif
