/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a rank. The caller prepares everything, so only async-signal-safe calls are made between vfork and exec. */
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
    const char *dir;             /* working directory; NULL: mrrun's */
    const cpu_set_t *processors; /* allowed processors; NULL: mrrun's */
    size_t processors_bytes;
    int fds[3];
    int report_fd;        /* a struct spawn_failure is written here when exec fails; closed by exec when it does not */
    const sigset_t *mask; /* mrrun's initial mask */
    const struct rlimit *files; /* mrrun's initial RLIMIT_NOFILE */
    /*
     * The rank gets a session of its own. Some kernels share processors out among sessions (autogroup): then the rank
     * gets as much as any other program, but cannot yield a core to another rank.
     */
    bool apart;
};

struct spawn_failure {
    int rank;
    int error; /* errno */
};

/*
 * The pid, which soon is also the rank's process group, and its session if apart; or a negative errno. The rank dies
 * with mrrun.
 */
pid_t spawn_rank(const struct spawn_spec *spec);
/* To the rank and all in its process group, also before there is one. */
void spawn_signal(pid_t pid, int sig);

/*
 * Adds a rank's process to an epoll set that lists processes in the order of their ends (data.u32: the rank). Returns a
 * descriptor for spawn_unwatch(), or -1: not supported (before Linux 5.3).
 */
int spawn_watch(int deaths_fd, pid_t pid, int rank);
void spawn_unwatch(int pidfd);

/*
 * The program's path as execvp would find it in this directory (NULL: here), malloc'd; NULL with errno when there is
 * none.
 */
char *spawn_find_program(const char *name, const char *dir);

#endif
