/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory shared by processes: see memfile.h. */
#include "libmrmpi/base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NAMELESS_AT "/dev/shm"

static int close_refused(int fd, int why)
{
    close(fd);
    errno = why;
    return -1;
}

/*
 * A write without room in the file system kills the process, so room is checked first. A memfd is limited by memory
 * alone.
 */
static int make_nameless(size_t bytes)
{
    int fd = open(NAMELESS_AT, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    struct statvfs fs;

    if (fd < 0)
        return -1;
    if (fstatvfs(fd, &fs))
        return close_refused(fd, errno);
    return (uint64_t)fs.f_bavail * fs.f_frsize < bytes ? close_refused(fd, ENOSPC) : fd;
}

int mr_memfile_make(const char *name, size_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC), why = errno;

    if (fd < 0 && (fd = make_nameless(bytes)) < 0) {
        errno = errno == ENOSPC ? ENOSPC : why;
        return -1;
    }
    return ftruncate(fd, (off_t)bytes) ? close_refused(fd, errno) : fd;
}

int mr_memfile_open(int pid, int fd, size_t bytes)
{
    struct stat st;
    char path[64];
    int own;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    own = open(path, O_RDWR | O_CLOEXEC);
    if (own < 0)
        return -1;
    if (fstat(own, &st))
        return close_refused(own, errno);
    return (uint64_t)st.st_size == bytes ? own : close_refused(own, EPROTO);
}
