/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting other programs: the time stamp counter must be readable again before an exec (see tsc.c). The C library's
 * own functions call each other without passing by here, so each is taken.
 */
#include "simfab/preload/preload.h"

#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/tsc.h"

#define RELEASED(expr)                                                                                                 \
    ({                                                                                                                 \
        bool released_ = sfp_tsc_release();                                                                            \
        sfp_actor_lends_cpu();                                                                                         \
        __typeof__(expr) result_ = (expr);                                                                             \
        sfp_tsc_restore(released_);                                                                                    \
        result_;                                                                                                       \
    })

SFP_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    return RELEASED(SFP_REAL(execve)(path, argv, envp));
}

SFP_EXPORT int execv(const char *path, char *const argv[])
{
    return RELEASED(SFP_REAL(execv)(path, argv));
}

SFP_EXPORT int execvp(const char *file, char *const argv[])
{
    return RELEASED(SFP_REAL(execvp)(file, argv));
}

SFP_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    return RELEASED(SFP_REAL(execvpe)(file, argv, envp));
}

SFP_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    return RELEASED(SFP_REAL(fexecve)(fd, argv, envp));
}

/* The arguments of execl and its kin, as an array in the caller's frame (no malloc: this may be a vfork child). */
#define COLLECT(first, argv, envp)                                                                                     \
    va_list ap_;                                                                                                       \
    size_t n_ = 1;                                                                                                     \
    va_start(ap_, first);                                                                                              \
    while (va_arg(ap_, char *))                                                                                        \
        n_++;                                                                                                          \
    va_end(ap_);                                                                                                       \
    char *argv[n_ + 1];                                                                                                \
    va_start(ap_, first);                                                                                              \
    argv[0] = (char *)first;                                                                                           \
    for (size_t i_ = 1; i_ <= n_; i_++)                                                                                \
        argv[i_] = va_arg(ap_, char *);                                                                                \
    envp;                                                                                                              \
    va_end(ap_)

SFP_EXPORT int execl(const char *path, const char *arg, ...)
{
    COLLECT(arg, argv, (void)0);
    return execv(path, argv);
}

SFP_EXPORT int execlp(const char *file, const char *arg, ...)
{
    COLLECT(arg, argv, (void)0);
    return execvp(file, argv);
}

SFP_EXPORT int execle(const char *path, const char *arg, ...)
{
    char *const *envp;

    COLLECT(arg, argv, envp = va_arg(ap_, char *const *));
    return execve(path, argv, envp);
}

SFP_EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *restrict attr, char *const argv[restrict],
                           char *const envp[restrict])
{
    return RELEASED(SFP_REAL(posix_spawn)(pid, path, actions, attr, argv, envp));
}

SFP_EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file, const posix_spawn_file_actions_t *actions,
                            const posix_spawnattr_t *restrict attr, char *const argv[restrict],
                            char *const envp[restrict])
{
    return RELEASED(SFP_REAL(posix_spawnp)(pid, file, actions, attr, argv, envp));
}

SFP_EXPORT int system(const char *command)
{
    int status;

    sfp_block_begin();
    status = RELEASED(SFP_REAL(system)(command));
    sfp_block_end();
    return status;
}

SFP_EXPORT FILE *popen(const char *command, const char *type)
{
    return RELEASED(SFP_REAL(popen)(command, type));
}
