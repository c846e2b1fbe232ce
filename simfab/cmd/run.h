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

enum { SMS_MAX = 16 };

struct options {
    char topology[PATH_MAX];
    char model[PATH_MAX]; /* "": the engine's defaults */
    char **sm_hosts;      /* of the first subnet, the second, ...; then as sms_place says */
    unsigned num_sm_hosts;
    char **standby_hosts; /* the same for those that stand by */
    unsigned num_standby_hosts;
    bool opensm;
    char **sm_options; /* lines for opensm.conf */
    int num_sm_options;
    const char *trace; /* NULL: none */
    int trace_fd;
    char **command;
};

/* An opensm: there is one for each subnet, and may be a second one that stands by. */
struct sm {
    char name[32];      /* of its directory in the fabric's: opensm, opensm-2, opensm-standby, ... */
    char host[64];      /* where it runs */
    char port_guid[24]; /* the port that it serves; "": it takes the first */
    unsigned subnet;    /* from 1 */
    bool standby;       /* takes over when the other one is gone */
    pid_t pid;          /* 0: not running */
    bool expected;      /* its end is our doing */
    bool up;
    off_t log_start; /* where the log of the present process begins */
};

struct run {
    const struct options *opt;
    const char *dir;           /* the fabric's directory; in memory shared with the guardian */
    pid_t self;                /* the supervisor */
    pid_t group;               /* the guardian's process group, which CMD joins */
    int guard;                 /* from the guardian: a byte is a signal to forward, the end means that it died */
    int sigfd;                 /* SIGCHLD */
    int control;               /* requests of `simfab opensm`; -1 before */
    pid_t engine, command;     /* 0: not running */
    struct sm sm[2 * SMS_MAX]; /* those that stand by come last */
    unsigned num_sms;
    bool guardian_gone, engine_gone, command_done;
    int engine_status, command_status; /* as waitpid gives it */
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

/* place.c: where opensm runs, one for each subnet; false: complained, the command line asks for what cannot be */
bool sms_place(struct run *r);

/* opensm.c */
bool sm_start(struct run *r, struct sm *sm); /* false: complained */
void sm_stop(struct run *r, struct sm *sm, int patience_ms);
bool sm_wait_up(struct run *r, struct sm *sm); /* false: complained, unless the run is over */
void sm_ended(struct run *r, struct sm *sm, int status);
void sm_path(const struct run *r, const struct sm *sm, const char *name, char path[PATH_MAX]);
/* "was killed by signal 9 (Killed)" */
const char *how_it_ended(int status, char buf[64]);

/* control.c */
bool control_open(struct run *r);
void control_serve(struct run *r);

/* reap.c */
/* Kill every descendant (this process is a subreaper: orphans become its children) but those in the list (0 is nobody);
   sig first, SIGKILL after patience_ms. */
void kill_children(int sig, int patience_ms, const pid_t *spare, unsigned num_spare);
void remove_tree(const char *dir);

#endif
