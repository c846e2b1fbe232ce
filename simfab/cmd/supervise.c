/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor of `simfab run`: brings the fabric up, runs CMD, takes all down (see run.h). */
#include "simfab/cmd/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "simfab/cmd/cmd.h"
#include "simfab/cmd/control.h"
#include "simfab/cmd/opensm.h"
#include "simfab/cmd/paths.h"
#include "simfab/cmd/place.h"
#include "simfab/cmd/pump.h"
#include "simfab/cmd/reap.h"
#include "simfab/cmd/say.h"
#include "simfab/cmd/trace.h"

enum { ENGINE_START_MS = 20000, GRACE_MS = 800 };

/* ---- engine ---------------------------------------------------------------------------------------------------- */

static void exec_engine(struct run *r, int ready)
{
    char path[PATH_MAX], log[PATH_MAX], fd[16], notices[16];
    const char *args[16];
    int n = 0, out, null;

    run_child_setup(r);
    setpgid(0, 0); /* a terminal's Ctrl-C is for CMD */
    snprintf(log, sizeof log, "%s/engine.log", r->dir);
    out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    null = open("/dev/null", O_RDONLY);
    if (!find_engine(path) || out < 0 || null < 0)
        _exit(1);
    snprintf(notices, sizeof notices, "%d", fcntl(2, F_DUPFD, 3)); /* notices more urgent than the log */
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    fcntl(ready, F_SETFD, 0);
    snprintf(fd, sizeof fd, "%d", ready);
    args[n++] = path;
    args[n++] = "--topology";
    args[n++] = r->opt->topology;
    if (r->opt->model[0]) {
        args[n++] = "--model";
        args[n++] = r->opt->model;
    }
    args[n++] = "--dir";
    args[n++] = r->dir;
    args[n++] = "--ready-fd";
    args[n++] = fd;
    args[n++] = "--notice-fd";
    args[n++] = notices;
    args[n] = NULL;
    execv(path, (char *const *)args);
    _exit(1);
}

/*
 * Starts the engine and waits until the engine listens. 0, or the exit status: the engine reports "ready", or the
 * error.
 */
static int start_engine(struct run *r)
{
    char text[4096], log[PATH_MAX], how[64];
    size_t got = 0;
    int ready[2];

    snprintf(log, sizeof log, "%s/engine.log", r->dir);
    if (pipe2(ready, O_CLOEXEC)) {
        complain("%s", strerror(errno));
        return 1;
    }
    r->engine = fork();
    if (r->engine == 0)
        exec_engine(r, ready[1]);
    close(ready[1]);
    while (r->engine > 0 && got < sizeof text - 1) {
        struct pollfd p = {.fd = ready[0], .events = POLLIN};
        int st = run_pump(r, ready[0], ENGINE_START_MS);
        ssize_t n;

        if (st == 0 || (st < 0 && poll(&p, 1, 0) <= 0)) /* the text may arrive together with the engine's end */
            break;
        n = read(ready[0], text + got, sizeof text - 1 - got);
        if (n <= 0)
            break;
        got += (size_t)n;
        text[got] = 0;
        if (!strncmp(text, "ready", 5)) {
            close(ready[0]);
            return 0;
        }
    }
    close(ready[0]);
    if (r->guardian_gone || r->command_done)
        return 1;
    text[got] = 0;
    if (got) {
        fprintf(stderr, "%s%s", text, text[got - 1] == '\n' ? "" : "\n");
        return EXIT_USAGE;
    }
    complain("the engine did not start: it %s", r->engine_gone ? how_it_ended(r->engine_status, how) : "said nothing");
    show_tail(log, 0);
    return 1;
}

/* ---- CMD ------------------------------------------------------------------------------------------------------- */

static void exec_command(struct run *r)
{
    const char *path = getenv("PATH");
    char own[PATH_MAX], *longer;
    int e;

    run_child_setup(r);
    setpgid(0, r->group); /* CMD is the terminal's foreground, as if the user had started it */
    unsetenv("SIM_HOST");
    setenv("SIMFAB_DIR", r->dir, 1);
    if (find_own_dir(own) && asprintf(&longer, "%s:%s", own, path ? path : "/usr/local/bin:/usr/bin:/bin") > 0)
        setenv("PATH", longer, 1);
    execvp(r->opt->command[0], r->opt->command);
    e = errno;
    complain("%s: %s", r->opt->command[0], strerror(e));
    _exit(e == ENOENT ? EXIT_NOT_FOUND : 126);
}

static int run_command(struct run *r)
{
    char log[PATH_MAX], how[64];

    fflush(NULL);
    r->command = fork();
    if (r->command == 0)
        exec_command(r);
    if (r->command < 0) {
        r->command = 0;
        complain("%s", strerror(errno));
        return 1;
    }
    for (int st; (st = run_pump(r, r->control, -1)) >= 0;)
        if (st > 0)
            control_serve(r);
    if (r->engine_gone && !r->command_done) {
        snprintf(log, sizeof log, "%s/engine.log", r->dir);
        complain("the engine %s: ending the run", how_it_ended(r->engine_status, how));
        show_tail(log, 0);
        return 1;
    }
    if (!r->command_done)
        return 1;
    return WIFEXITED(r->command_status) ? WEXITSTATUS(r->command_status) : 128 + WTERMSIG(r->command_status);
}

/* ---- up and down ----------------------------------------------------------------------------------------------- */

static void take_down(struct run *r)
{
    pid_t last[1 + SMS_MAX] = {r->engine};

    for (unsigned i = 0; i < r->num_sms; i++)
        last[1 + i] = r->sm[i].pid;
    if (!r->guardian_gone) {
        kill_children(SIGTERM, GRACE_MS, last, 1 + r->num_sms);
        kill_children(SIGTERM, 200, last, 1);
        kill_children(SIGTERM, 300, NULL, 0);
    }
    kill_children(SIGKILL, 0, NULL, 0);
    remove_tree(r->dir);
}

/* All at once, so many take no longer than one. */
static bool start_sms(struct run *r, bool standby)
{
    for (unsigned i = 0; i < r->num_sms; i++)
        if (r->sm[i].standby == standby && !sm_start(r, &r->sm[i]))
            return false;
    for (unsigned i = 0; i < r->num_sms; i++)
        if (r->sm[i].standby == standby && !sm_wait_up(r, &r->sm[i]))
            return false;
    return true;
}

static int bring_up_and_run(struct run *r)
{
    int status;

    if (mkdir(r->dir, 0700)) {
        complain("%s: %s", r->dir, strerror(errno));
        return 1;
    }
    status = start_engine(r);
    if (status)
        return status;
    if (!sms_place(r))
        return EXIT_USAGE;
    if (r->opt->trace && !trace_begin(r->dir, r->opt->trace, r->opt->trace_fd, TRACE_LIMIT_DEFAULT, ""))
        return 1;
    if (!control_open(r) || (r->opt->opensm && (!start_sms(r, false) || !start_sms(r, true))))
        return r->command_done ? 128 + r->command_status : 1;
    return run_command(r);
}

int supervise(const struct options *opt, const char *dir, int guard)
{
    struct run r = {.opt = opt, .dir = dir, .guard = guard, .control = -1, .self = getpid(), .sm_ended = sm_ended};
    sigset_t all, chld;
    int status;

    prctl(PR_SET_NAME, "simfab-run");
    r.group = getpgrp();
    setpgid(0, 0); /* a signal to the user's process group must not end guardian and supervisor at once */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    r.sigfd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r.sigfd < 0) {
        complain("signalfd: %s", strerror(errno));
        return 1;
    }
    status = bring_up_and_run(&r);
    take_down(&r);
    return status;
}
