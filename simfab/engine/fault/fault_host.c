/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host crashes: every process on the host is gone at once. Attached processes are known by their connections. Shells,
 * launchers and daemons that never touched the fabric are found by variables that `simfab exec` put into their
 * environment.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fault/fault.h"

#define ENVIRON_MAX (1u << 20)

/* A descriptor of the process, so that the process id cannot come to mean another process. */
static int open_pid(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void kill_pidfd(int fd)
{
    syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

/* Is "NAME=value" among the zero-terminated strings? */
static bool has_variable(const char *env, size_t bytes, const char *name, const char *value)
{
    size_t n = strlen(name);

    for (const char *p = env; p < env + bytes; p += strlen(p) + 1)
        if (!strncmp(p, name, n) && p[n] == '=' && !strcmp(p + n + 1, value))
            return true;
    return false;
}

static bool is_on(const char *pid, const char *dir, const char *host, char *env)
{
    char path[64];
    size_t got = 0;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (got < ENVIRON_MAX && (n = read(fd, env + got, ENVIRON_MAX - got)) > 0)
        got += (size_t)n;
    close(fd);
    env[got] = 0;
    return has_variable(env, got, "SIMFAB_DIR", dir) && has_variable(env, got, "SIM_HOST", host);
}

static void kill_by_environment(const char *dir, const char *host)
{
    char *env = xcalloc(1, ENVIRON_MAX + 1);
    DIR *proc = opendir("/proc");

    for (struct dirent *e; proc && (e = readdir(proc));) {
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)atoi(e->d_name) : 0;
        int fd = pid > 1 && pid != getpid() ? open_pid(pid) : -1;

        if (fd < 0)
            continue;
        if (is_on(e->d_name, dir, host, env))
            kill_pidfd(fd);
        close(fd);
    }
    if (proc)
        closedir(proc);
    free(env);
}

/* The process's connection is open, so its process id is still valid. */
static void kill_attached(struct proc *p)
{
    struct pollfd io = {.fd = p->sock, .events = 0};
    int fd = p->pid > 1 && p->pid != getpid() ? open_pid(p->pid) : -1;

    if (fd >= 0 && poll(&io, 1, 0) == 0)
        kill_pidfd(fd);
    if (fd >= 0)
        close(fd);
    p->dead = true;
}

void fault_kill_processes(struct sim *s, const struct host *h)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        if (s->procs[i]->host == h)
            kill_attached(s->procs[i]);
    if (s->dir)
        kill_by_environment(s->dir, h->name);
}
