/* SPDX-License-Identifier: BSD-3-Clause */
/* POSIX calls on files, to their ends. */
#include "libmrmpi/io/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "libmrmpi/base/lock.h"

#define ONE_CALL (1ull << 30) /* bytes; Linux takes 2 GiB less a page at most */

enum mr_err mr_disk_class(int system_error)
{
    switch (system_error) {
    case 0:
        return MR_SUCCESS;
    case ENOENT:
        return MR_ERR_NO_SUCH_FILE;
    case EEXIST:
        return MR_ERR_FILE_EXISTS;
    case EACCES:
    case EPERM:
        return MR_ERR_ACCESS;
    case EROFS:
        return MR_ERR_READ_ONLY;
    case ENOSPC:
    case EFBIG:
        return MR_ERR_NO_SPACE;
    case EDQUOT:
        return MR_ERR_QUOTA;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return MR_ERR_BAD_FILE;
    case ETXTBSY:
        return MR_ERR_FILE_IN_USE;
    case ENOMEM:
        return MR_ERR_NO_MEM;
    default:
        return MR_ERR_IO;
    }
}

enum mr_err mr_disk_fail(int system_error, const char *doing, const char *name)
{
    return mr_fail(mr_disk_class(system_error), "cannot %s \"%s\": %s", doing, name, strerror(system_error));
}

static enum mr_err disk_failed(const struct mr_disk *d, int system_error, const char *doing, size_t len, int64_t at)
{
    return mr_fail(mr_disk_class(system_error), "cannot %s %zu bytes at %lld of \"%s\": %s", doing, len, (long long)at,
                   d->name, strerror(system_error));
}

static void give_away(const struct mr_disk *d)
{
    if (d->freely)
        mr_unlock();
}

static void retake_lock(const struct mr_disk *d)
{
    if (d->freely)
        mr_lock();
}

/* From the file's place at; to the end of the file, or an error of the system. */
static int read_all(int fd, char *buf, size_t len, int64_t at, size_t *done)
{
    *done = 0;
    while (*done < len) {
        size_t n = len - *done < ONE_CALL ? len - *done : ONE_CALL;
        ssize_t got = pread(fd, buf + *done, n, at + (int64_t)*done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : 0;
        *done += (size_t)got;
    }
    return 0;
}

/*
 * Some processors copy eight times slower to an address slightly above the source's, modulo 4096 (AMD Zen 3: 64 KiB in
 * 25 us instead of 2.4), and malloc places large blocks 16 bytes behind the beginning of a page. A buffer on the way,
 * at another distance to both, costs 3.9 us.
 */
#define PAGE_BYTES   4096
#define NEAR_BYTES   64
#define BUFFER_BYTES 65536
#define WORTH_BYTES  4096
#define TRIALS       3
enum mr_disk_mode mr_disk_mode;

static bool is_near(const char *buf, int64_t at)
{
    const size_t ahead = ((uintptr_t)buf - (uintptr_t)at) & (PAGE_BYTES - 1);

    return ahead && ahead < NEAR_BYTES;
}

static int read_buffered(int fd, char *buf, size_t len, int64_t at, char *room, size_t *done)
{
    *done = 0;
    while (*done < len) {
        const int64_t from = at + (int64_t)*done;
        char *via = room + ((size_t)(from + PAGE_BYTES / 2) & (PAGE_BYTES - 1));
        size_t n = len - *done < BUFFER_BYTES ? len - *done : BUFFER_BYTES, got;
        int err = read_all(fd, via, n, from, &got);

        memcpy(buf + *done, via, got);
        *done += got;
        if (err || got < n)
            return err;
    }
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Both ways, from a file in memory, the faster of a few times each. */
static void try_modes(char *room)
{
    char *buf = aligned_alloc(PAGE_BYTES, BUFFER_BYTES + PAGE_BYTES);
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX};
    int fd = memfd_create("mrmpi-trial", MFD_CLOEXEC);
    size_t n;

    mr_disk_mode = MR_DISK_DIRECT;
    if (!buf || fd < 0 || ftruncate(fd, BUFFER_BYTES))
        goto out;
    for (int i = 0; i < 2 * TRIALS; i++) {
        const uint64_t begin = now_ns();

        if (i % 2)
            read_buffered(fd, buf + NEAR_BYTES / 4, BUFFER_BYTES, 0, room, &n);
        else
            read_all(fd, buf + NEAR_BYTES / 4, BUFFER_BYTES, 0, &n);
        if (n == BUFFER_BYTES && now_ns() - begin < least[i % 2])
            least[i % 2] = now_ns() - begin;
    }
    if (least[1] < least[0] / 2)
        mr_disk_mode = MR_DISK_BUFFERED;
out:
    if (fd >= 0)
        close(fd);
    free(buf);
}

enum mr_err mr_disk_read(const struct mr_disk *d, void *buf, size_t len, int64_t at, size_t *done)
{
    char *room = NULL;
    int err;

    if (len >= WORTH_BYTES && mr_disk_mode != MR_DISK_DIRECT && is_near(buf, at))
        room = aligned_alloc(PAGE_BYTES, BUFFER_BYTES + PAGE_BYTES);
    if (room && mr_disk_mode == MR_DISK_UNTRIED)
        try_modes(room);
    give_away(d);
    if (room && mr_disk_mode == MR_DISK_BUFFERED)
        err = read_buffered(d->fd, buf, len, at, room, done);
    else
        err = read_all(d->fd, buf, len, at, done);
    retake_lock(d);
    free(room);
    return err ? disk_failed(d, err, "read", len - *done, at + (int64_t)*done) : MR_SUCCESS;
}

enum mr_err mr_disk_write(const struct mr_disk *d, const void *buf, size_t len, int64_t at, size_t *done)
{
    int err = 0;

    *done = 0;
    give_away(d);
    while (*done < len) {
        size_t n = len - *done < ONE_CALL ? len - *done : ONE_CALL;
        ssize_t put = pwrite(d->fd, (const char *)buf + *done, n, at + (int64_t)*done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            err = put < 0 ? errno : ENOSPC;
            break;
        }
        *done += (size_t)put;
    }
    retake_lock(d);
    return err ? disk_failed(d, err, "write", len - *done, at + (int64_t)*done) : MR_SUCCESS;
}

enum mr_err mr_disk_size(const struct mr_disk *d, int64_t *size)
{
    struct stat st;

    if (fstat(d->fd, &st))
        return mr_disk_fail(errno, "find the size of", d->name);
    *size = st.st_size;
    return MR_SUCCESS;
}

/* Kinds of file systems served by other machines (statfs(2)); FUSE is unknown. */
bool mr_disk_is_local(const struct mr_disk *d)
{
    static const uint32_t far[] = {0x6969 /* NFS */,       0x0bd00bd0 /* Lustre */,
                                   0x47504653 /* GPFS */,  0x65735546 /* FUSE */,
                                   0xff534d42 /* CIFS */,  0xfe534d42 /* SMB2 */,
                                   0x00c36400 /* Ceph */,  0x19830326 /* BeeGFS */,
                                   0xaad7aaea /* PanFS */, 0x20030528 /* OrangeFS */,
                                   0x5346414f /* AFS */,   0x01021997 /* 9P */,
                                   0x01161970 /* GFS2 */,  0x7461636f /* OCFS2 */};
    struct statfs st;

    if (fstatfs(d->fd, &st))
        return false;
    for (size_t i = 0; i < sizeof(far) / sizeof(*far); i++)
        if ((uint32_t)st.f_type == far[i])
            return false;
    return true;
}

static int set_lock(const struct mr_disk *d, short type, int64_t at, int64_t len, int how)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = len};
    int rc;

    while ((rc = fcntl(d->fd, how, &l)) && errno == EINTR)
        ;
    return rc ? errno : 0;
}

/* Locks of open file descriptions exclude other handles of the same process, too. */
enum mr_err mr_disk_lock(const struct mr_disk *d, bool exclusive, int64_t at, int64_t len)
{
    int err;

    give_away(d);
    err = set_lock(d, exclusive ? F_WRLCK : F_RDLCK, at, len, F_OFD_SETLKW);
    retake_lock(d);
    return err ? mr_disk_fail(err, "lock a part of", d->name) : MR_SUCCESS;
}

/* Asks for a lock of a byte beyond all files. */
bool mr_disk_can_lock(const struct mr_disk *d)
{
    const int64_t far = INT64_MAX - 1;
    int err = set_lock(d, F_WRLCK, far, 1, F_OFD_SETLK);

    if (!err)
        mr_disk_unlock(d, far, 1);
    return !err || err == EAGAIN || err == EACCES; /* another process has the lock */
}

void mr_disk_unlock(const struct mr_disk *d, int64_t at, int64_t len)
{
    set_lock(d, F_UNLCK, at, len, F_OFD_SETLK);
}
