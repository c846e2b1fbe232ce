/* SPDX-License-Identifier: BSD-3-Clause */
/* POSIX calls on files, to their ends. */
#include "libmrmpi/io/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
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

static enum mr_err failed(const struct mr_disk *d, int system_error, const char *doing, size_t len, int64_t at)
{
    return mr_fail(mr_disk_class(system_error), "cannot %s %zu bytes at %lld of \"%s\": %s", doing, len, (long long)at,
                   d->name, strerror(system_error));
}

static void give_away(const struct mr_disk *d)
{
    if (d->freely)
        mr_unlock();
}

static void take_back(const struct mr_disk *d)
{
    if (d->freely)
        mr_lock();
}

enum mr_err mr_disk_read(const struct mr_disk *d, void *buf, size_t len, int64_t at, size_t *done)
{
    int err = 0;

    *done = 0;
    give_away(d);
    while (*done < len) {
        size_t n = len - *done < ONE_CALL ? len - *done : ONE_CALL;
        ssize_t got = pread(d->fd, (char *)buf + *done, n, at + (int64_t)*done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            err = got < 0 ? errno : 0;
            break;
        }
        *done += (size_t)got;
    }
    take_back(d);
    return err ? failed(d, err, "read", len - *done, at + (int64_t)*done) : MR_SUCCESS;
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
    take_back(d);
    return err ? failed(d, err, "write", len - *done, at + (int64_t)*done) : MR_SUCCESS;
}

enum mr_err mr_disk_size(const struct mr_disk *d, int64_t *size)
{
    struct stat st;

    if (fstat(d->fd, &st))
        return mr_disk_fail(errno, "find the size of", d->name);
    *size = st.st_size;
    return MR_SUCCESS;
}

/* Kinds whose files other machines serve (statfs(2)); of FUSE nobody knows. */
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
    take_back(d);
    return err ? mr_disk_fail(err, "lock a part of", d->name) : MR_SUCCESS;
}

/* It asks for a lock of a byte where no file has one. */
bool mr_disk_can_lock(const struct mr_disk *d)
{
    const int64_t far = INT64_MAX - 1;
    int err = set_lock(d, F_WRLCK, far, 1, F_OFD_SETLK);

    if (!err)
        mr_disk_unlock(d, far, 1);
    return !err || err == EAGAIN || err == EACCES; /* another one has it */
}

void mr_disk_unlock(const struct mr_disk *d, int64_t at, int64_t len)
{
    set_lock(d, F_UNLCK, at, len, F_OFD_SETLK);
}
