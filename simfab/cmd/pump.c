/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting in the supervisor (pump.h). */
#include "simfab/cmd/pump.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simfab/cmd/say.h"

void run_child_setup(const struct run *r)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != r->self)
        _exit(1);
}

static void collect_dead(struct run *r)
{
    struct signalfd_siginfo si;
    pid_t pid;
    int st;

    while (read(r->sigfd, &si, sizeof si) == sizeof si)
        ;
    while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
        if (pid == r->engine) {
            r->engine = 0;
            r->engine_gone = true;
            r->engine_status = st;
        } else if (pid == r->command) {
            r->command = 0;
            r->command_done = true;
            r->command_status = st;
        }
        for (unsigned i = 0; i < r->num_sms; i++)
            if (pid == r->sm[i].pid)
                r->sm_ended(r, &r->sm[i], st);
    }
}

static void hear_guardian(struct run *r)
{
    char sigs[16];
    ssize_t n = read(r->guard, sigs, sizeof sigs);

    if (n == 0)
        r->guardian_gone = true;
    for (ssize_t i = 0; i < n; i++) {
        if (r->command)
            kill(r->command, sigs[i]);
        else if (!r->command_done && (sigs[i] == SIGTERM || sigs[i] == SIGINT || sigs[i] == SIGHUP)) {
            r->command_done = true; /* told to stop before CMD began */
            r->command_status = sigs[i];
        }
    }
}

int run_pump(struct run *r, int fd, int timeout_ms)
{
    int64_t end = now_ms() + timeout_ms;

    for (;;) {
        struct pollfd p[] = {
            {.fd = r->guard, .events = POLLIN},
            {.fd = r->sigfd, .events = POLLIN},
            {.fd = fd, .events = POLLIN},
        };
        int64_t left = end - now_ms();

        if (run_is_over(r))
            return -1;
        if (poll(p, 3, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0) < 0 && errno != EINTR)
            return -1;
        if (p[0].revents)
            hear_guardian(r);
        if (p[1].revents)
            collect_dead(r);
        if (p[2].revents)
            return run_is_over(r) ? -1 : 1;
        if (timeout_ms >= 0 && now_ms() >= end)
            return run_is_over(r) ? -1 : 0;
    }
}
