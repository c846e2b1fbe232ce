/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMIx server inside mrrun. All ranks of the job are its direct clients, whichever simulated host they live on, so
 * that a fence is complete when this server has heard from all of them, and nothing is ever asked of another server.
 *
 * libpmix calls back on its own thread. What happened is queued as one struct server_event, and taken from there in
 * order by mrrun's loop (server_event_fd is readable while there is something). The queue has no bound, so that
 * libpmix's thread never waits for the loop. Nor does mrrun wait for that thread once ranks run, which may stop it: the
 * server is not shut down, it ends with the process.
 */
#ifndef MRRUN_SERVER_H
#define MRRUN_SERVER_H

#include <stdbool.h>

#include <sys/types.h>

#include "mrrun/processes.h"
#include "mrrun/placement.h"

enum server_event_kind { SERVER_CONNECTED, SERVER_FINALIZED, SERVER_ABORT };

struct server_event {
    enum server_event_kind kind;
    int rank;
    int code;      /* ABORT */
    char why[200]; /* ABORT; may be cut */
    enum ending
        *ending; /* ABORT: of all ranks, as it was while this rank waited for our answer; or NULL. The taker frees it */
    void (*answer)(int status, void *arg); /* ABORT: server_answer(); NULL: it has been answered */
    void *answer_arg;
};

/* 0, or -1 with a message in *why. One server per process. */
int server_start(const struct placement *place, const char *job_id, const char *scratch_dir, char *why, size_t cap);
/* The job as PMIx names it. */
/* From now on the first rank that aborts waits until server_answer(): others must be asked whose end is under way. */
void server_hold_aborts(void);
void server_answer(struct server_event *event);
const char *server_namespace(void);
int server_event_fd(void);
bool server_next_event(struct server_event *event);

/* Register a rank, before the first one is forked; *env (NULL-terminated, malloc'd, grown) gets what its client needs.
 */
int server_add_rank(int rank, const char *host, char ***env);

/* The rank's process, until it is reaped. */
void server_watch_process(int rank, pid_t pid);
void server_forget_process(int rank);

#endif
