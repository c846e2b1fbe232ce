/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metadata of open files of the simulated sysfs. Such a file is a memfd with the contents at opening. Its name holds
 * the path, and fstat returns the result of stat() on the path, because cp and others compare the two.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simfab/preload/devices.h"

#define LINK_PREFIX "/memfd:" SFP_CONTENT_NAME
#define LINK_SUFFIX " (deleted)"

/* Finds the path of a descriptor; false: not a simulated file. */
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
 * Only memory without a name in any directory is examined further. The size stays the real size: copying programs look
 * for holes up to the size, and files of a real sysfs have none.
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
