/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `simfab run` is two processes. The guardian is the one that the user started: it forwards signals and waits. The
 * supervisor, its child, makes the fabric's directory and starts engine, opensm and CMD. Both are subreapers, so
 * whatever CMD leaves behind becomes their child; each notices the other's death (a pipe, SIGCHLD) and then kills all
 * that is left and removes the directory. So nothing survives, whoever is killed, at whatever moment.
 */
#ifndef SIMFAB_CMD_RUN_H
#define SIMFAB_CMD_RUN_H

#include "simfab/cmd/cmd.h"

struct options {
    char topology[PATH_MAX];
    char model[PATH_MAX]; /* "": the engine's defaults */
    const char *sm_host;  /* NULL: the first host */
    bool opensm;
    char **sm_options; /* lines for opensm.conf */
    int num_sm_options;
    char **command;
};

struct run {
    const struct options *opt;
    const char *dir;           /* the fabric's directory; in memory shared with the guardian */
    pid_t self;                /* the supervisor */
    pid_t group;               /* the guardian's process group, which CMD joins */
    int guard;                 /* from the guardian: a byte is a signal to forward, the end means that it died */
    int sigfd;                 /* SIGCHLD */
    int control;               /* requests of `simfab opensm`; -1 before */
    pid_t engine, sm, command; /* 0: not running */
    bool guardian_gone, engine_gone, command_done;
    int engine_status, sm_status, command_status; /* as waitpid gives it */
    bool sm_expected;                             /* its end is our doing */
    bool sm_up;
    off_t sm_log_start; /* where the log of the present opensm begins */
};

/* True when the run cannot go on: guardian or engine gone, or CMD done. */
static inline bool run_is_over(const struct run *r)
{
    return r->guardian_gone || r->engine_gone || r->command_done;
}

/* supervise.c */
int supervise(const struct options *opt, const char *dir, int guard);
/* Wait for fd (or -1) to be readable, doing what falls due meanwhile: 1 readable, 0 time is up, -1 the run is over. */
int run_pump(struct run *r, int fd, int timeout_ms);
/* In a forked child: ordinary signals again, and die with the supervisor. */
void run_child_setup(const struct run *r);
int64_t now_ms(void);
/* A file's last lines, on stderr. */
void show_tail(const char *path, off_t from);

/* opensm.c */
bool sm_start(struct run *r); /* false: complained */
void sm_stop(struct run *r, int patience_ms);
bool sm_wait_up(struct run *r); /* false: complained, unless the run is over */
bool control_open(struct run *r);
void control_serve(struct run *r);

/* reap.c */
/* Kill every descendant (this process is a subreaper: orphans become its children) but spare up to two; sig first,
   SIGKILL after patience_ms. */
void kill_children(int sig, int patience_ms, pid_t spare1, pid_t spare2);
void remove_tree(const char *dir);

#endif
