/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an open file of the simulated sysfs says of itself. It is a memory with the contents of the moment of opening;
 * its name says which path it stands for, and whoever asks is told what stat() says of that path: cp and others
 * compare.
 */
#include "simfab/preload/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_PREFIX "/memfd:" SFP_CONTENT_NAME
#define LINK_SUFFIX " (deleted)"

/* The path that a descriptor stands for; false: it is none of ours. */
static bool virtual_of_fd(int fd, char virtual[PATH_MAX])
{
    char proc[64], link[PATH_MAX];
    size_t prefix = strlen(LINK_PREFIX), suffix = strlen(LINK_SUFFIX);
    int e = errno;
    ssize_t n;

    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    n = syscall(SYS_readlinkat, AT_FDCWD, proc, link, sizeof link - 1);
    errno = e;
    if (n <= (ssize_t)(prefix + suffix) || memcmp(link, LINK_PREFIX, prefix))
        return false;
    link[(size_t)n - suffix] = 0;
    return sfp_path_is_ours(AT_FDCWD, link + prefix, virtual);
}

/*
 * A memory without a name in any directory: only those are asked further. Its size stays that of what is there, since
 * copying programs look for holes up to it, which files of a real sysfs do not have.
 */
#define FSTAT(call, other)                                                                                             \
    do {                                                                                                               \
        char virtual[PATH_MAX];                                                                                        \
        __typeof__(*st) own_;                                                                                          \
        int result_ = call;                                                                                            \
        if (result_ || !S_ISREG(st->st_mode) || st->st_nlink || !virtual_of_fd(fd, virtual))                           \
            return result_;                                                                                            \
        own_ = *st;                                                                                                    \
        result_ = other(virtual, st);                                                                                  \
        st->st_size = own_.st_size;                                                                                    \
        st->st_blocks = own_.st_blocks;                                                                                \
        return result_;                                                                                                \
    } while (0)

SFP_EXPORT int fstat(int fd, struct stat *st)
{
    FSTAT(SFP_REAL(fstat)(fd, st), stat);
}

SFP_EXPORT int fstat64(int fd, struct stat64 *st)
{
    FSTAT(SFP_REAL(fstat64)(fd, st), stat64);
}

int __fxstat(int ver, int fd, struct stat *st);
int __fxstat64(int ver, int fd, struct stat64 *st);

SFP_EXPORT int __fxstat(int ver, int fd, struct stat *st)
{
    return fstat(fd, st);
}

SFP_EXPORT int __fxstat64(int ver, int fd, struct stat64 *st)
{
    return fstat64(fd, st);
}
