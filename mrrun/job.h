/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A running job: its ranks, what is known of each, and what has been decided. job.c holds the decisions (what an end
 * means, when to kill), loop.c waits for what happens and calls them. One thread; libpmix's thread reaches it only
 * through server_event_fd().
 */
#ifndef MRRUN_JOB_H
#define MRRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "mrrun/attach.h"
#include "mrrun/processes.h"
#include "mrrun/hosts.h"
#include "mrrun/inquiry.h"
#include "mrrun/input.h"
#include "mrrun/options.h"
#include "mrrun/outfiles.h"
#include "mrrun/output.h"
#include "mrrun/placement.h"
#include "mrrun/processors.h"
#include "mrrun/program.h"
#include "mrrun/scratch.h"
#include "mrrun/server.h"
#include "mrrun/signals.h"
#include "mrrun/strangers.h"

struct rank {
    int part;  /* of the command line */
    pid_t pid; /* also its process group */
    bool running, connected, finalized;
    bool unheard;       /* it has ended with code 0, and MPI_Finalize was not heard of then */
    enum ending ending; /* when a failure was first reported, was this rank's end under way? */
    int starts;         /* how often it has started MPI */
    int pidfd;          /* -1: none */
    char state;         /* of a process on another host: its state letter, as its agent said at an inquiry */
    struct source out, err;
};

enum job_phase {
    JOB_RUNNING,
    JOB_ENDING, /* ranks were asked to end; at kill_at they are killed */
    JOB_KILLED, /* SIGKILL was sent */
};

/*
 * The failure that was reported first, until it is known to be the cause. A rank that aborts may only have noticed that
 * a peer is gone, and the news of the peer's death takes longer than the loss of a connection. But the kernel marks a
 * process that ends before anybody can notice (processes.h). So the suspect waits for the ranks that were marked when
 * it was reported, and for no others: the first of them that fails on its own takes the blame.
 */
struct suspect {
    bool set;
    bool aborts; /* it told so itself, and was alive then */
    bool killed; /* by a signal that is no answer to anything */
    bool asked;  /* agents have not said yet whose end was under way */
    int rank;
    uint64_t tell_at_ms;
    int status;
    char text[640];
};

struct agents;

struct job {
    const struct mrrun_options *opts;
    struct agents *agents; /* ranks are theirs; NULL: ranks are children of mrrun */
    struct hosts hosts;
    struct placement place;
    struct processors processors; /* set NULL: ranks are not bound */
    struct scratch scratch;
    struct inquiry inquiry;
    struct attach attach;
    char job_id[128];
    char lib_dir[512];     /* where libmpi.so.12 is; "" if not found */
    char **program;        /* [num_programs] path of what the ranks of each part run */
    enum program_mpi *mpi; /* [num_programs] */
    int num_programs;

    struct rank *ranks; /* [place.ranks] */
    int running;
    int ended_well; /* of the ranks that ended well the one that started MPI the least often, or -1 */
    int most_starts;

    enum job_phase phase;
    uint64_t kill_at_ms, timeout_at_ms; /* CLOCK_MONOTONIC; 0: never */
    uint64_t look_at_ms;                /* for other MPIs among the processes of ranks; after twice as long again */
    uint64_t look_every_ms;
    bool stranger_told;
    uint64_t absent_at_ms; /* hosts whose agents have not answered are told then; 0: never */
    uint64_t gone_at_ms;   /* killed ranks that are not gone then are left to the kernel */
    uint64_t asked_ms;     /* when the end was asked for, by a signal or --timeout */
    uint64_t ended_ms;     /* when the last rank ended */
    bool failed;           /* a culprit has been named; status is its, and stays */
    struct suspect suspect;
    struct server_event abort; /* of which the judgement waits for what agents say, if abort_held */
    bool abort_held;
    int unheard; /* a rank that ended with code 0; whether after MPI_Finalize may still be heard; or -1 */
    uint64_t unheard_until_ms;
    bool hurry; /* wait for no reader of our output */
    int status;

    struct sink out, err; /* mrrun's own */
    struct input input;
    struct outfiles outfiles;
    int exec_fd;
    int deaths_fd; /* epoll: ranks that have ended, in order */
    struct signals signals;
    struct rlimit old_files;
};

uint64_t job_now_ms(void);

/* A line of mrrun's own on stderr, in order with the ranks' lines. */
void job_say(struct job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the environments of all ranks of a part have in common; environment_free(). NULL: out of memory. */
char **job_make_environment(const struct job *job, int part);

/* Start all ranks. 0, or -1 after saying why (those already started are being ended). */
int job_start(struct job *job);

/* What happened. */
void job_on_connected(struct job *job, int rank);
void job_on_finalized(struct job *job, int rank);
/* ending[ranks]: whose end was under way while this rank was alive still; NULL: not known. */
void job_on_abort(struct job *job, int rank, int code, const char *why, const enum ending *ending);
/* What agents say of the ends that were under way when a failure was reported. */
void job_on_endings(struct job *job, const enum ending *ending);
/* A host is lost with its ranks. why NULL: of the host through which it was reached, it has been said. */
void job_on_lost_host(struct job *job, int host, const char *why);
void job_on_started(struct job *job, int rank, pid_t pid, const char *bound);
void job_on_stranger(struct job *job, const struct stranger *s);
void job_on_start_failure(struct job *job); /* job_start() said why */
/* why NULL: the program cannot be run. */
void job_on_exec_failure(struct job *job, int rank, int error, const char *why);
void job_on_end(struct job *job, int rank); /* it is about to be reaped; job_on_exit() follows */
void job_on_exit(struct job *job, int rank, int wait_status);
void job_on_signal(struct job *job, int sig);
void job_on_attach(struct job *job);
void job_on_time(struct job *job);
/* Until when a reader of our output is waited for that takes nothing; 0: as long as it is there. */
uint64_t job_output_until_ms(const struct job *job);

/* Wait until all ranks have ended and their output is out. Returns the job's status. */
int job_loop(struct job *job);

#endif
