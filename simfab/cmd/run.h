/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `simfab run` is two processes. The guardian, started by the user, forwards signals and waits. The supervisor, its
 * child, makes the fabric's directory and starts engine, opensm and CMD. Both are subreapers, so all orphans of CMD
 * become their children. Each notices the other's death (a pipe, SIGCHLD), then kills all that is left and removes the
 * directory. So nothing survives, whichever process is killed, at any moment.
 */
#ifndef SIMFAB_CMD_RUN_H
#define SIMFAB_CMD_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { SMS_MAX = 16 };

struct options {
    char topology[PATH_MAX];
    char model[PATH_MAX]; /* "": the engine's defaults */
    char **sm_hosts;      /* of the first subnet, the second, ...; then as sms_place says */
    unsigned num_sm_hosts;
    char **standby_hosts; /* the same for standbys */
    unsigned num_standby_hosts;
    bool opensm;
    char **sm_options; /* lines for opensm.conf */
    int num_sm_options;
    const char *trace; /* NULL: none */
    int trace_fd;
    char **command;
};

/* An opensm: one for each subnet, and an optional standby. */
struct sm {
    char name[32];      /* of its directory in the fabric's: opensm, opensm-2, opensm-standby, ... */
    char host[64];      /* the host of the process */
    char port_guid[24]; /* the port to serve; "": the first */
    unsigned subnet;    /* from 1 */
    bool standby;       /* takes over when the other opensm is gone */
    pid_t pid;          /* 0: not running */
    bool expected;      /* its end is our doing */
    bool up;
    off_t log_start; /* where the log of the present process begins */
};

struct run {
    const struct options *opt;
    const char *dir;       /* the fabric's directory; in memory shared with the guardian */
    pid_t self;            /* the supervisor */
    pid_t group;           /* the guardian's process group, joined by CMD */
    int guard;             /* from the guardian: a byte is a signal to forward, the end means the guardian's death */
    int sigfd;             /* SIGCHLD */
    int control;           /* requests of `simfab opensm`; -1 before */
    pid_t engine, command; /* 0: not running */
    struct sm sm[2 * SMS_MAX]; /* standbys come last */
    unsigned num_sms;
    bool guardian_gone, engine_gone, command_done;
    int engine_status, command_status;                          /* as from waitpid */
    void (*sm_ended)(struct run *r, struct sm *sm, int status); /* called by run_pump() */
};

#endif
