/* SPDX-License-Identifier: BSD-3-Clause */
/* Start of a rank: vfork and exec. */
#include "mrrun/spawn.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mrrun/signals.h"

/* Runs in mrrun's memory, which is not changed here, while mrrun's thread waits (vfork). */
static _Noreturn void child(const struct spawn_spec *spec, pid_t parent)
{
    struct spawn_failure failure = {.rank = spec->rank};

    /* A group of its own, for kill(). */
    if (spec->apart)
        setsid();
    else
        setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* mrrun died before the line above */
        _exit(1);
    for (int i = 0; i < 3; i++)
        dup2(spec->fds[i], i); /* the copies survive exec, the originals do not */
    setrlimit(RLIMIT_NOFILE, spec->files);
    signals_give_back(spec->mask);
    if ((!spec->processors || !sched_setaffinity(0, spec->processors_bytes, spec->processors)) &&
        (!spec->dir || !chdir(spec->dir)))
        execve(spec->argv[0], spec->argv, spec->env);

    failure.error = errno;
    ssize_t n = write(spec->report_fd, &failure, sizeof(failure));
    _exit(n == sizeof(failure) ? 127 : 126);
}

pid_t spawn_rank(const struct spawn_spec *spec)
{
    pid_t parent = getpid();
    sigset_t all, before;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* mrrun's handlers are not the child's */
    pid_t pid = vfork(); /* no copy of the page tables, and no copies of pages that helper threads write meanwhile */
    if (!pid)
        child(spec, parent);
    int err = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? -err : pid;
}

void spawn_signal(pid_t pid, int sig)
{
    if (kill(-pid, sig) && errno == ESRCH)
        kill(pid, sig);
}

int spawn_watch(int deaths_fd, pid_t pid, int rank)
{
    struct epoll_event when = {.events = EPOLLIN, .data.u32 = (uint32_t)rank};
    int fd = deaths_fd < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0); /* closed on exec */

    if (fd >= 0 && epoll_ctl(deaths_fd, EPOLL_CTL_ADD, fd, &when)) {
        close(fd);
        return -1;
    }
    return fd;
}

void spawn_unwatch(int pidfd)
{
    if (pidfd >= 0)
        close(pidfd);
}

static int executable(const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return -1;
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    return access(path, X_OK);
}

/* NULL with errno: it cannot be run. The path is as seen from here. */
static char *executable_in(const char *dir, const char *name)
{
    char *path;

    if (*name == '/' || !dir)
        return executable(name) ? NULL : strdup(name);
    if (asprintf(&path, "%s/%s", dir, name) < 0)
        return NULL;
    if (!executable(path))
        return path;
    int error = errno;
    free(path);
    errno = error;
    return NULL;
}

char *spawn_find_program(const char *name, const char *dir)
{
    int error = ENOENT;

    if (strchr(name, '/'))
        return executable_in(dir, name);
    const char *path = getenv("PATH");
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    for (const char *entry = path;; entry++) {
        size_t len = strcspn(entry, ":");
        char *candidate, *found;
        if (asprintf(&candidate, "%.*s/%s", len ? (int)len : 1, len ? entry : ".", name) < 0)
            return NULL;
        found = executable_in(dir, candidate);
        free(candidate);
        if (found)
            return found;
        if (errno == EACCES)
            error = EACCES;
        entry += len;
        if (!*entry)
            break;
    }
    errno = error;
    return NULL;
}
