/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A running job: its ranks, what is known of each, and what has been decided. job.c holds the decisions (what an end
 * means, when to kill), loop.c waits for what happens and calls them. One thread; libpmix's thread reaches it only
 * through server_event_fd().
 */
#ifndef MRRUN_JOB_H
#define MRRUN_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "mrrun/hosts.h"
#include "mrrun/options.h"
#include "mrrun/output.h"
#include "mrrun/placement.h"
#include "mrrun/scratch.h"

struct rank {
    pid_t pid; /* also its process group */
    bool running, connected, finalized;
    bool unheard; /* it has ended with code 0, and MPI_Finalize was not heard of then */
    int starts; /* how often it has started MPI */
    struct source out, err;
};

enum job_phase {
    JOB_RUNNING,
    JOB_ENDING, /* ranks were asked to end; at kill_at they are killed */
    JOB_KILLED, /* SIGKILL was sent */
};

/*
 * A rank that aborted or ended with an error may only have noticed that another one died: news of a death by a signal
 * takes longer (the kernel tears the process down first) than the loss of a connection. So its failure waits a moment
 * before it is told and acted upon, and a rank killed by a signal takes the blame from it.
 */
struct suspect {
    bool set;
    int rank;
    uint64_t tell_at_ms;
    int status;
    bool aborted; /* MPI_Abort: the status is what it asked for, whatever the others' are */
    bool unheard; /* nothing but that MPI_Finalize was not heard of, which may still come */
    char text[640];
};

struct job {
    const struct mrrun_options *opts;
    struct hosts hosts;
    struct placement place;
    struct scratch scratch;
    char job_id[128];
    char lib_dir[512]; /* where libmpi.so.12 is; "" if not found */
    char *program;     /* path of what is run */

    struct rank *ranks; /* [opts->ranks] */
    int running;
    int ended_well; /* of the ranks that ended well the one that started MPI the least often, or -1 */
    int most_starts;

    enum job_phase phase;
    uint64_t kill_at_ms, timeout_at_ms; /* CLOCK_MONOTONIC; 0: never */
    uint64_t end_signal_ms;             /* when somebody last asked for the end */
    bool failed;                        /* a culprit has been named; status is its */
    bool status_fixed;                  /* by abort or timeout: later exits do not change it */
    struct suspect suspect;             /* who failed, as far as is known yet */
    bool hurry;                         /* the user wants out: wait for no reader of our output */
    int status;

    struct sink out, err; /* mrrun's own */
    struct sink to_rank0; /* only when stdin is a terminal; fd -1: none */
    int signal_fd, exec_fd;
    sigset_t old_mask;
    struct rlimit old_files;
};

uint64_t job_now_ms(void);

/* A line of mrrun's own on stderr, in order with the ranks' lines. */
void job_say(struct job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the environments of all ranks have in common; environment_free(). NULL: out of memory. */
char **job_make_environment(const struct job *job);

/* Start all ranks. 0, or -1 after saying why (those already started are being ended). */
int job_start(struct job *job);

/* What happened. */
void job_on_connected(struct job *job, int rank);
void job_on_finalized(struct job *job, int rank);
void job_on_abort(struct job *job, int rank, int code, const char *why);
void job_on_start_failure(struct job *job); /* job_start() said why */
void job_on_exec_failure(struct job *job, int rank, int error);
void job_on_exit(struct job *job, int rank, int wait_status);
void job_on_signal(struct job *job, int sig);
void job_on_time(struct job *job);

/* Wait until all ranks have ended and their output is out. Returns the job's status. */
int job_loop(struct job *job);

#endif
