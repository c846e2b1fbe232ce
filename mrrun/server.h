/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMIx server inside mrrun. All ranks of the job are its direct clients, on any simulated host. A fence is complete
 * when this server has heard from all ranks; no other server is ever asked.
 *
 * libpmix calls back on its own thread. Each event is queued as a struct server_event, and mrrun's loop takes events in
 * order (server_event_fd is readable while the queue has events). The queue has no bound, so libpmix's thread never
 * waits for the loop. Nor does mrrun wait for that thread once ranks run, because ranks may block the thread: the
 * server is not shut down, and ends with the process.
 */
#ifndef MRRUN_SERVER_H
#define MRRUN_SERVER_H

#include <stdbool.h>

#include <sys/types.h>

#include "mrrun/processes.h"
#include "mrrun/placement.h"

/*
 * MET: this rank has seen that all ranks have published their addresses in MPI_Init. DOUBT: this rank cannot reach
 * rank `code`, and waits until one of the two is known to have ended.
 */
enum server_event_kind { SERVER_CONNECTED, SERVER_FINALIZED, SERVER_ABORT, SERVER_MET, SERVER_DOUBT };

struct server_event {
    enum server_event_kind kind;
    int rank;
    int code;            /* ABORT, DOUBT */
    char why[200];       /* ABORT; may be cut */
    enum ending *ending; /* ABORT: ends under way of all ranks, while this rank waited for our answer; or NULL. The
                            taker frees the array */
    void (*answer)(int status, void *arg); /* ABORT, DOUBT: server_answer(); NULL: already answered */
    void *answer_arg;
};

/* 0, or -1 with a message in *why. One server per process. universe: the ranks for which the hosts have room. */
int server_start(const struct placement *place, int universe, const char *job_id, const char *scratch_dir, char *why,
                 size_t cap);
/* From now on the first aborting rank waits until server_answer(): agents must be asked for ends under way. */
void server_hold_aborts(void);
void server_answer(struct server_event *event);
const char *server_namespace(void);
int server_event_fd(void);
bool server_next_event(struct server_event *event);

/*
 * Registers a rank, before the first rank is forked; *env (NULL-terminated, malloc'd, grown) gets the variables of its
 * client.
 */
int server_add_rank(int rank, const char *host, char ***env);

/* The rank's process, until reaped. */
void server_watch_process(int rank, pid_t pid);
void server_forget_process(int rank);
/* Tells all other ranks that this rank's process has ended (a PMIx event). Waits for nothing. */
void server_tell_end(int rank);

#endif
