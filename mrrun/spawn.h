/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting one rank: everything is prepared by the caller, so that between fork and exec only async-signal-safe calls
 * are made. */
#ifndef MRRUN_SPAWN_H
#define MRRUN_SPAWN_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct spawn_spec {
    int rank;
    char *const *argv; /* argv[0] is the path to execute */
    char *const *env;
    const char *dir;             /* where it starts; NULL: here */
    const cpu_set_t *processors; /* that it may run on; NULL: those of mrrun */
    size_t processors_bytes;
    int fds[3];
    int report_fd;        /* a struct spawn_failure is written here when exec fails; closed by exec when it does not */
    const sigset_t *mask; /* as mrrun found it */
    const struct rlimit *files; /* RLIMIT_NOFILE as mrrun found it */
    /*
     * It gets a session of its own. Some kernels share processors out among sessions (autogroup): then it has as much
     * of them as any other program, but cannot yield a core to another rank.
     */
    bool apart;
};

struct spawn_failure {
    int rank;
    int error; /* errno */
};

/* The pid, which soon is also that of its process group, and of its session if it is apart; or a negative errno. The
 * rank dies with mrrun. */
pid_t spawn_rank(const struct spawn_spec *spec);
/* To the rank and all in its process group, also before there is one. */
void spawn_signal(pid_t pid, int sig);

/*
 * Adds a rank's process to an epoll set that lists processes in the order in which they end (data.u32: the rank). A
 * descriptor for spawn_unwatch(), or -1: the kernel cannot (before Linux 5.3).
 */
int spawn_watch(int deaths_fd, pid_t pid, int rank);
void spawn_unwatch(int pidfd);

/*
 * The program's path as execvp would find it in this directory (NULL: here), malloc'd; NULL with errno when there is
 * none.
 */
char *spawn_find_program(const char *name, const char *dir);

#endif
