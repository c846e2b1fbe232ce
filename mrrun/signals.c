/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers, a pipe and a signalfd. */
#include "mrrun/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/*
 * One Ctrl-C may come from the terminal and from a parent that passes it on: requests so close together count as one.
 */
enum { SAME_REQUEST_MS = 100 };
/* As long the loop has to come to the second request, and ranks to be gone after SIGKILL. */
enum { LAST_S = 5 };

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
enum { NUM_ENDS = sizeof(ends) / sizeof(ends[0]) };

static struct {
    int pipe_fd;
    struct sigaction old[NUM_ENDS];
    atomic_int requests, last;
    _Atomic uint64_t last_ms;
} taken = {.pipe_fd = -1};

static void leave(int sig)
{
    _exit(128 + (sig == SIGALRM ? taken.last : sig));
}

static void on_end(int sig)
{
    unsigned char word = (unsigned char)sig;
    int saved = errno;
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
    if (!taken.requests || now - taken.last_ms >= SAME_REQUEST_MS) {
        taken.last_ms = now;
        taken.last = sig;
        if (++taken.requests == 2)
            alarm(LAST_S);
        else if (taken.requests > 2)
            leave(sig);
        while (write(taken.pipe_fd, &word, 1) < 0 && errno == EINTR)
            continue;
    }
    errno = saved;
}

static void handle(int sig, void (*handler)(int), struct sigaction *old)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigemptyset(&act.sa_mask);
    for (int i = 0; i < NUM_ENDS; i++)
        sigaddset(&act.sa_mask, ends[i]);
    sigaction(sig, &act, old);
}

int signals_take(struct signals *s)
{
    static const int read_by_loop[] = {SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH, SIGCHLD};
    sigset_t set, held, open;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
        return -1;
    s->end_fd = fds[0];
    taken.pipe_fd = fds[1];
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* a parent may have ignored the signal, and the ranks' status would be lost */
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(read_by_loop) / sizeof(read_by_loop[0]); i++)
        sigaddset(&set, read_by_loop[i]);
    held = set;
    sigaddset(&held, SIGCONT); /* signals_continued() sees a pending one; the process goes on all the same */
    sigprocmask(SIG_BLOCK, &held, &s->old);
    sigemptyset(&open);
    sigaddset(&open, SIGALRM);
    handle(SIGALRM, leave, NULL);
    for (int i = 0; i < NUM_ENDS; i++) {
        sigaddset(&open, ends[i]);
        handle(ends[i], on_end, &taken.old[i]);
    }
    sigprocmask(SIG_UNBLOCK, &open, NULL);
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->fd < 0 ? -1 : 0;
}

void signals_give_back(const sigset_t *old)
{
    for (int i = 0; i < NUM_ENDS; i++)
        sigaction(ends[i], &taken.old[i], NULL);
    signal(SIGALRM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, old, NULL);
}

bool signals_continued(void)
{
    sigset_t pending;

    return !sigpending(&pending) && sigismember(&pending, SIGCONT) == 1;
}

bool signals_end_asked(void)
{
    return taken.requests > 0;
}

int signals_end_status(void)
{
    return 128 + taken.last;
}
