/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A running job: its ranks, their states, and decisions. job.c has the decisions (the meaning of an end, the time to
 * kill); loop.c waits for events and calls job.c. One thread; libpmix's thread reaches the job only through
 * server_event_fd().
 */
#ifndef MRRUN_JOB_H
#define MRRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "mrrun/attach.h"
#include "mrrun/doubts.h"
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
    bool unheard;       /* ended with code 0, and MPI_Finalize was not heard of then */
    bool expelled;      /* killed, because others could not reach it any more */
    enum ending ending; /* state of this rank's end when a failure was first reported */
    int starts;         /* number of starts of MPI */
    int pidfd;          /* -1: none */
    char state;         /* of a process on another host: its state letter, from its agent at an inquiry */
    struct source out, err;
};

enum job_phase {
    JOB_RUNNING,
    JOB_ENDING, /* ranks were asked to end; at kill_at they are killed */
    JOB_KILLED, /* SIGKILL was sent */
};

/*
 * The failure reported first, until its cause is known. A rank that aborts may only have noticed the loss of a peer,
 * and the news of the peer's death takes longer than the loss of a connection. But the kernel marks an ending process
 * before any peer can notice (processes.h). So the suspect waits for the ranks marked at the time of the report, and
 * for no others: the first of them that fails on its own takes the blame.
 */
struct suspect {
    bool set;
    bool aborts; /* an abort reported by the rank itself, alive then */
    bool killed; /* by a signal that is no reaction to a failure */
    bool asked;  /* agents have not reported ends under way yet */
    int rank;
    uint64_t tell_at_ms, latest_ms; /* latest: for wrappers without a processor */
    uint64_t wrappers_cpu_ms;       /* of wrappers that may end, at the last look */
    int status;
    char text[640];
};

struct agents;

struct job {
    const struct mrrun_options *opts;
    struct agents *agents; /* ranks are theirs; NULL: ranks are children of mrrun */
    struct hosts hosts;
    struct placement place;
    int universe;                 /* ranks for which the hosts have room (MPI_UNIVERSE_SIZE) */
    struct processors processors; /* set NULL: ranks are not bound */
    struct scratch scratch;
    struct inquiry inquiry;
    struct attach attach;
    char job_id[128];
    char lib_dir[512];     /* directory of libmpi.so.12; "" if not found */
    char **program;        /* [num_programs] path of each part's program */
    enum program_mpi *mpi; /* [num_programs] */
    int num_programs;

    struct rank *ranks; /* [place.ranks] */
    int running;
    int ended_well; /* of the ranks that ended well, the rank with the fewest starts of MPI, or -1 */
    int most_starts;
    bool met;        /* all ranks have started MPI: from then on --recover holds */
    int lost_status; /* of the first rank that the job went on without; 0: none */
    struct doubts doubts;
    struct server_event *doubters; /* [num_doubters] not answered yet */
    int num_doubters;
    uint64_t doubts_until_ms; /* time to judge the doubts; 0: there are none */

    enum job_phase phase;
    uint64_t kill_at_ms, timeout_at_ms; /* CLOCK_MONOTONIC; 0: never */
    uint64_t look_at_ms;                /* for other MPIs among the processes of ranks; after twice as long again */
    uint64_t look_every_ms;
    bool stranger_told;
    uint64_t absent_at_ms; /* time to report hosts whose agents have not answered; 0: never */
    uint64_t gone_at_ms;   /* killed ranks that are not gone then are left to the kernel */
    uint64_t asked_ms;     /* when the end was asked for, by a signal or --timeout */
    uint64_t ended_ms;     /* when the last rank ended */
    bool failed;           /* a culprit has been named; status is its, and stays */
    struct suspect suspect;
    struct server_event abort; /* if abort_held: the abort whose judgement waits for the agents */
    bool abort_held;
    bool offspring;                /* jobs that ranks have started are there, as of the last end of a process */
    uint64_t offspring_kill_at_ms; /* they were asked to end; 0: not so */
    int unheard; /* a rank that ended with code 0; whether after MPI_Finalize may still be heard; or -1 */
    uint64_t unheard_until_ms;
    bool hurry; /* wait for no reader of our output */
    int status;

    struct sink out, err; /* mrrun's own */
    struct input input;
    struct outfiles outfiles;
    int exec_fd;
    int deaths_fd; /* epoll: ended ranks, in order */
    struct signals signals;
    struct rlimit old_files;
};

uint64_t job_now_ms(void);

/* A line of mrrun's own on stderr, in order with the ranks' lines. */
void job_say(struct job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The common environment of all ranks of a part; environment_free(). NULL: out of memory. */
char **job_make_environment(const struct job *job, int part);

/* Starts all ranks. 0, or -1 with a message (started ranks are being ended). */
int job_start(struct job *job);

/* Events. */
void job_on_connected(struct job *job, int rank);
void job_on_finalized(struct job *job, int rank);
/* ending[ranks]: ends under way while this rank was still alive; NULL: not known. */
void job_on_abort(struct job *job, int rank, int code, const char *why, const enum ending *ending);
/* The agents' report of the ends under way when a failure was reported. */
void job_on_endings(struct job *job, const enum ending *ending);
/* A rank cannot reach another one, and waits for an answer: with --recover one of the two has to go. */
void job_on_doubt(struct job *job, const struct server_event *event);
/* A host is lost with its ranks. why NULL: the host on the route to it was lost, and reported. */
void job_on_lost_host(struct job *job, int host, const char *why);
void job_on_started(struct job *job, int rank, pid_t pid, const char *bound);
void job_on_stranger(struct job *job, const struct stranger *s);
void job_on_start_failure(struct job *job); /* job_start() said why */
/* why NULL: the program cannot be run. */
void job_on_exec_failure(struct job *job, int rank, int error, const char *why);
void job_on_end(struct job *job, int rank); /* it is about to be reaped; job_on_exit() follows */
void job_on_exit(struct job *job, int rank, int wait_status);
void job_on_signal(struct job *job, int sig);
/* Some output of ranks comes from agents still. */
bool job_output_is_far(const struct job *job);
void job_on_attach(struct job *job);
void job_on_time(struct job *job);
/* Time until which a reader of our output that takes nothing is waited for; 0: while the reader is there. */
uint64_t job_output_until_ms(const struct job *job);

/* Wait until all ranks have ended and their output is out. Returns the job's status. */
int job_loop(struct job *job);

#endif
