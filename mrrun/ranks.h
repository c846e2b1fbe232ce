/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of an agent's host: their descriptions before the start, their processes, and the channels of their output
 * and input. Events are sent as frames through the base.
 */
#ifndef MRRUN_RANKS_H
#define MRRUN_RANKS_H

#include <signal.h>
#include <sys/resource.h>

#include "mrrun/binder.h"
#include "mrrun/channel.h"
#include "mrrun/scratch.h"

struct agent_part {
    char *body; /* of its frame */
    struct wire_part is;
};

struct agent_rank {
    int rank;
    char *body; /* of its frame */
    struct wire_rank is;
    pid_t pid;
    int pidfd;
    bool running;
    bool asked; /* and has not answered */
    struct channel in, out, err, record;
};

struct ranks {
    struct channel_base base;
    unsigned host;
    const struct wire_start *start;
    char *simfab; /* path of the command; NULL: hosts are not simulated */
    struct agent_part *part;
    int num_parts;
    struct agent_rank *rank; /* by rank, ascending */
    int count, running;
    bool started; /* no more ranks: channels keep their addresses */
    int exec_fd, deaths_fd;
    struct binder binder;
    struct processors processors;
    unsigned port; /* where ranks find the PMIx server */
    const char *lib_dir;
    struct scratch scratch;
    bool offspring; /* jobs that ranks have started are there, as of the last end of a process; */
    bool dismissed; /* and were asked to end */
    struct rlimit files;
    sigset_t mask;
    void (*drain)(void *arg); /* before a rank's end is told */
    void *drain_arg;
};

/* 0 or a negative errno: no directory can be made. */
int ranks_open(struct ranks *ranks);
/* Frames. False: invalid. */
bool ranks_add_part(struct ranks *ranks, const struct wire_frame *f);
bool ranks_add(struct ranks *ranks, const struct wire_frame *f);
bool ranks_take(struct ranks *ranks, const struct wire_frame *f);
bool ranks_fetch(struct ranks *ranks, uint32_t rank);
/* Starts all, or tells why not. port: where they find the PMIx server. */
void ranks_start(struct ranks *ranks, const struct wire_run *run, unsigned port, const char *lib_dir);
/* Its place in the array; -1: none. */
int ranks_index(const struct ranks *ranks, int rank);
bool ranks_have(const struct ranks *ranks, pid_t pid);
void ranks_signal(struct ranks *ranks, int rank, int sig); /* rank -1: to all */
/* All and their descendants, but not these processes and theirs. Jobs that ranks have started are asked to end first.
 */
void ranks_kill_all(struct ranks *ranks, const pid_t *but, int num_but);
/* Pairs of rank and enum ending. */
void ranks_endings(struct ranks *ranks, struct wire_text *out);
/* Reports ended ranks. */
void ranks_reap(struct ranks *ranks);
/* Finishes empty pipes of ranks that are gone. */
void ranks_serve(struct ranks *ranks);
void ranks_close(struct ranks *ranks);

#endif
