/* SPDX-License-Identifier: BSD-3-Clause */
/* Fork and exec of a rank. */
#include "mrrun/spawn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

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
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, spec->mask, NULL);
    execve(spec->argv[0], spec->argv, spec->env);

    failure.error = errno;
    ssize_t n = write(spec->report_fd, &failure, sizeof(failure));
    _exit(n == sizeof(failure) ? 127 : 126);
}

pid_t spawn_rank(const struct spawn_spec *spec)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (!pid)
        child(spec, parent);
    if (pid < 0)
        return -errno;
    return pid;
}

void spawn_signal(pid_t pid, int sig)
{
    if (kill(-pid, sig) && errno == ESRCH)
        kill(pid, sig);
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

char *spawn_find_program(const char *name)
{
    int error = ENOENT;

    if (strchr(name, '/'))
        return executable(name) ? NULL : strdup(name);
    const char *path = getenv("PATH");
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    for (const char *dir = path;; dir++) {
        size_t len = strcspn(dir, ":");
        char *candidate;
        if (asprintf(&candidate, "%.*s/%s", len ? (int)len : 1, len ? dir : ".", name) < 0)
            return NULL;
        if (!executable(candidate))
            return candidate;
        if (errno == EACCES)
            error = EACCES;
        free(candidate);
        dir += len;
        if (!*dir)
            break;
    }
    errno = error;
    return NULL;
}
