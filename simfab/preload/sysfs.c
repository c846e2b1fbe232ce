/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that programs call on the paths of InfiniBand devices. Directories, existence and metadata come from the
 * shadow (shadow.c) by replacing the path. Opening a file asks the engine for the present contents. The C library's own
 * functions call each other by internal names, so each public entry is interposed. Every other path goes straight on.
 */
#include "simfab/preload/preload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "simfab/preload/connect.h"
#include "simfab/preload/devices.h"

/* ---- opening -------------------------------------------------------------------------------------------------- */

static int content_fd(const char *virtual, const char *data, size_t bytes, int flags)
{
    char name[200]; /* the kernel takes 249 bytes; our paths are shorter */
    size_t at = 0;
    int fd;

    snprintf(name, sizeof name, SFP_CONTENT_NAME "%s", virtual);
    fd = memfd_create(name, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

    while (fd >= 0 && at < bytes) {
        ssize_t n = sfp_sys_write(fd, data + at, bytes - at);

        if (n <= 0) {
            sfp_sys_close(fd);
            return -1;
        }
        at += (size_t)n;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

static int open_device(const char *name, int flags)
{
    unsigned n;
    char end;

    if (sscanf(name, "umad%u%c", &n, &end) == 1)
        return sfp_umad_open(n, flags);
    if (sscanf(name, "issm%u%c", &n, &end) == 1)
        return sfp_issm_open(n, flags);
    errno = ENXIO; /* uverbs: verbs calls do not go through the device here */
    return -1;
}

/* An adapter's writable file: the descriptor is a socket to the engine, so any call writes to the engine. */
static int open_node_desc(const char *virtual, int flags)
{
    char name[SF_DEV_MAX], rest;
    int fd;

    if (sscanf(virtual, "/sys/class/infiniband/%63[^/]/node_des%c", name, &rest) != 2 || rest != 'c' ||
        (flags & O_ACCMODE) != O_WRONLY) {
        errno = EACCES;
        return -1;
    }
    fd = sfp_connect(SF_CONN_DESC, 0, NULL, NULL);
    if (fd < 0)
        return -1;
    if (sfp_sys_write(fd, name, strlen(name)) < 0) {
        sfp_sys_close(fd);
        return -1;
    }
    if (!(flags & O_CLOEXEC))
        syscall(SYS_fcntl, fd, F_SETFD, 0);
    return fd;
}

int sfp_path_open(const char *virtual, int flags)
{
    char shadow[PATH_MAX];
    struct sf_sysfs head;
    size_t len;
    void *rep;
    int fd = -1, err = sfp_query(SF_OP_SYSFS, virtual, strlen(virtual), &rep, &len);

    if (err) {
        errno = ENOENT;
        return -1;
    }
    if (len < sizeof head) {
        free(rep);
        errno = EIO;
        return -1;
    }
    memcpy(&head, rep, sizeof head);
    switch (head.kind) {
    case SF_SYSFS_FILE:
        if ((flags & O_ACCMODE) != O_RDONLY)
            fd = open_node_desc(virtual, flags);
        else if (flags & O_DIRECTORY)
            errno = ENOTDIR;
        else
            fd = content_fd(virtual, (char *)rep + sizeof head, len - sizeof head, flags);
        break;
    case SF_SYSFS_DIR:
        if (sfp_path_shadow(virtual, shadow))
            fd = (int)syscall(SYS_openat, AT_FDCWD, shadow, flags, 0);
        break;
    case SF_SYSFS_DEV:
        fd = open_device(strrchr(virtual, '/') + 1, flags);
        break;
    default:
        errno = ENOENT;
    }
    free(rep);
    return fd;
}

#define OPEN_MODE(flags)                                                                                               \
    ({                                                                                                                 \
        mode_t mode_ = 0;                                                                                              \
        if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                                       \
            va_list ap_;                                                                                               \
            va_start(ap_, flags);                                                                                      \
            mode_ = va_arg(ap_, mode_t);                                                                               \
            va_end(ap_);                                                                                               \
        }                                                                                                              \
        mode_;                                                                                                         \
    })

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

SFP_EXPORT int open(const char *path, int flags, ...)
{
    char virtual[PATH_MAX];
    mode_t mode = OPEN_MODE(flags);

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? sfp_path_open(virtual, flags)
                                                     : SFP_REAL(open)(path, flags, mode);
}

SFP_EXPORT int open64(const char *path, int flags, ...)
{
    char virtual[PATH_MAX];
    mode_t mode = OPEN_MODE(flags);

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? sfp_path_open(virtual, flags)
                                                     : SFP_REAL(open64)(path, flags, mode);
}

SFP_EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
    char virtual[PATH_MAX];
    mode_t mode = OPEN_MODE(flags);

    return sfp_path_is_ours(dirfd, path, virtual) ? sfp_path_open(virtual, flags)
                                                  : SFP_REAL(openat)(dirfd, path, flags, mode);
}

SFP_EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
    char virtual[PATH_MAX];
    mode_t mode = OPEN_MODE(flags);

    return sfp_path_is_ours(dirfd, path, virtual) ? sfp_path_open(virtual, flags)
                                                  : SFP_REAL(openat64)(dirfd, path, flags, mode);
}

/* A function of a path: on the shadow of ours, on the path itself otherwise. */
#define ON_PATH(dirfd, path, fail, ours, other)                                                                        \
    do {                                                                                                               \
        char virtual[PATH_MAX], shadow[PATH_MAX];                                                                      \
        if (!sfp_path_is_ours((dirfd), (path), virtual))                                                               \
            return other;                                                                                              \
        if (!sfp_path_shadow(virtual, shadow))                                                                         \
            return fail;                                                                                               \
        return ours;                                                                                                   \
    } while (0)

SFP_EXPORT int __open_2(const char *path, int flags)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? sfp_path_open(virtual, flags) : SFP_REAL(__open_2)(path, flags);
}

SFP_EXPORT int __open64_2(const char *path, int flags)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? sfp_path_open(virtual, flags)
                                                     : SFP_REAL(__open64_2)(path, flags);
}

SFP_EXPORT int __openat_2(int dirfd, const char *path, int flags)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(dirfd, path, virtual) ? sfp_path_open(virtual, flags)
                                                  : SFP_REAL(__openat_2)(dirfd, path, flags);
}

SFP_EXPORT int __openat64_2(int dirfd, const char *path, int flags)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(dirfd, path, virtual) ? sfp_path_open(virtual, flags)
                                                  : SFP_REAL(__openat64_2)(dirfd, path, flags);
}

static FILE *open_stream(const char *virtual, const char *mode)
{
    int flags = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
    int fd = sfp_path_open(virtual, flags | (strchr(mode, 'e') ? O_CLOEXEC : 0));
    FILE *f;

    if (fd < 0)
        return NULL;
    f = fdopen(fd, mode);
    if (!f)
        sfp_sys_close(fd);
    return f;
}

SFP_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? open_stream(virtual, mode) : SFP_REAL(fopen)(path, mode);
}

SFP_EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? open_stream(virtual, mode) : SFP_REAL(fopen64)(path, mode);
}

/* ---- directories ---------------------------------------------------------------------------------------------- */

SFP_EXPORT DIR *opendir(const char *path)
{
    ON_PATH(AT_FDCWD, path, NULL, sfp_dir_sorted(SFP_REAL(opendir)(shadow)), SFP_REAL(opendir)(path));
}

SFP_EXPORT int scandir(const char *restrict path, struct dirent ***restrict list, int (*filter)(const struct dirent *),
                       int (*order)(const struct dirent **, const struct dirent **))
{
    ON_PATH(AT_FDCWD, path, -1, SFP_REAL(scandir)(shadow, list, filter, order),
            SFP_REAL(scandir)(path, list, filter, order));
}

SFP_EXPORT int scandir64(const char *restrict path, struct dirent64 ***restrict list,
                         int (*filter)(const struct dirent64 *),
                         int (*order)(const struct dirent64 **, const struct dirent64 **))
{
    ON_PATH(AT_FDCWD, path, -1, SFP_REAL(scandir64)(shadow, list, filter, order),
            SFP_REAL(scandir64)(path, list, filter, order));
}

SFP_EXPORT int chdir(const char *path)
{
    ON_PATH(AT_FDCWD, path, -1, SFP_REAL(chdir)(shadow), SFP_REAL(chdir)(path));
}

static void close_dir(void *dir)
{
    closedir(dir);
}

/* The C library's glob, made to look through the functions of this file. */
SFP_EXPORT int glob(const char *restrict pattern, int flags, int (*errfunc)(const char *, int), glob_t *restrict g)
{
    char virtual[PATH_MAX];

    if (!(flags & GLOB_ALTDIRFUNC) && sfp_path_is_ours(AT_FDCWD, pattern, virtual)) {
        g->gl_opendir = (void *(*)(const char *))opendir;
        g->gl_readdir = (struct dirent * (*)(void *)) readdir;
        g->gl_closedir = close_dir;
        g->gl_stat = stat;
        g->gl_lstat = lstat;
        flags |= GLOB_ALTDIRFUNC;
    }
    return SFP_REAL(glob)(pattern, flags, errfunc, g);
}

/* ---- existence and metadata ----------------------------------------------------------------------------------- */

SFP_EXPORT int access(const char *path, int mode)
{
    ON_PATH(AT_FDCWD, path, -1, SFP_REAL(access)(shadow, mode & ~W_OK), SFP_REAL(access)(path, mode));
}

SFP_EXPORT int euidaccess(const char *path, int mode)
{
    ON_PATH(AT_FDCWD, path, -1, SFP_REAL(euidaccess)(shadow, mode & ~W_OK), SFP_REAL(euidaccess)(path, mode));
}

SFP_EXPORT int eaccess(const char *path, int mode)
{
    ON_PATH(AT_FDCWD, path, -1, SFP_REAL(eaccess)(shadow, mode & ~W_OK), SFP_REAL(eaccess)(path, mode));
}

SFP_EXPORT int faccessat(int dirfd, const char *path, int mode, int flags)
{
    ON_PATH(dirfd, path, -1, SFP_REAL(faccessat)(AT_FDCWD, shadow, mode & ~W_OK, flags),
            SFP_REAL(faccessat)(dirfd, path, mode, flags));
}

/* Shadows of device files are plain files: replaces the mode by the mode of a device. */
static bool is_device(const char *virtual)
{
    return !strncmp(virtual, "/dev/", 5) && strlen(virtual) > strlen("/dev/infiniband");
}

#define DRESS(st)                                                                                                      \
    do {                                                                                                               \
        if (!result_ && S_ISREG((st)->st_mode)) {                                                                      \
            (st)->st_ino = sfp_path_number(virtual);                                                                   \
            (st)->st_nlink = 1;                                                                                        \
            if (is_device(virtual))                                                                                    \
                (st)->st_mode = S_IFCHR | 0666;                                                                        \
            else                                                                                                       \
                (st)->st_size = 4096; /* like sysfs */                                                                 \
        }                                                                                                              \
    } while (0)

#define STAT(dirfd, path, st, ours, other)                                                                             \
    do {                                                                                                               \
        char virtual[PATH_MAX], shadow[PATH_MAX];                                                                      \
        int result_;                                                                                                   \
        if (!sfp_path_is_ours((dirfd), (path), virtual))                                                               \
            return other;                                                                                              \
        if (!sfp_path_shadow(virtual, shadow))                                                                         \
            return -1;                                                                                                 \
        result_ = ours;                                                                                                \
        DRESS(st);                                                                                                     \
        return result_;                                                                                                \
    } while (0)

SFP_EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
    STAT(AT_FDCWD, path, st, SFP_REAL(stat)(shadow, st), SFP_REAL(stat)(path, st));
}

SFP_EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
    STAT(AT_FDCWD, path, st, SFP_REAL(stat64)(shadow, st), SFP_REAL(stat64)(path, st));
}

SFP_EXPORT int lstat(const char *restrict path, struct stat *restrict st)
{
    STAT(AT_FDCWD, path, st, SFP_REAL(lstat)(shadow, st), SFP_REAL(lstat)(path, st));
}

SFP_EXPORT int lstat64(const char *restrict path, struct stat64 *restrict st)
{
    STAT(AT_FDCWD, path, st, SFP_REAL(lstat64)(shadow, st), SFP_REAL(lstat64)(path, st));
}

SFP_EXPORT int fstatat(int dirfd, const char *restrict path, struct stat *restrict st, int flags)
{
    STAT(dirfd, path, st, SFP_REAL(fstatat)(AT_FDCWD, shadow, st, flags), SFP_REAL(fstatat)(dirfd, path, st, flags));
}

SFP_EXPORT int fstatat64(int dirfd, const char *restrict path, struct stat64 *restrict st, int flags)
{
    STAT(dirfd, path, st, SFP_REAL(fstatat64)(AT_FDCWD, shadow, st, flags),
         SFP_REAL(fstatat64)(dirfd, path, st, flags));
}

/* programs built against an older C library */
int __xstat(int ver, const char *path, struct stat *st);
int __lxstat(int ver, const char *path, struct stat *st);
int __xstat64(int ver, const char *path, struct stat64 *st);
int __lxstat64(int ver, const char *path, struct stat64 *st);
int __fxstatat(int ver, int dirfd, const char *path, struct stat *st, int flags);
int __fxstatat64(int ver, int dirfd, const char *path, struct stat64 *st, int flags);

SFP_EXPORT int __fxstatat(int ver, int dirfd, const char *path, struct stat *st, int flags)
{
    return fstatat(dirfd, path, st, flags);
}

SFP_EXPORT int __fxstatat64(int ver, int dirfd, const char *path, struct stat64 *st, int flags)
{
    return fstatat64(dirfd, path, st, flags);
}

SFP_EXPORT int __xstat(int ver, const char *path, struct stat *st)
{
    return stat(path, st);
}

SFP_EXPORT int __lxstat(int ver, const char *path, struct stat *st)
{
    return lstat(path, st);
}

SFP_EXPORT int __xstat64(int ver, const char *path, struct stat64 *st)
{
    return stat64(path, st);
}

SFP_EXPORT int __lxstat64(int ver, const char *path, struct stat64 *st)
{
    return lstat64(path, st);
}

SFP_EXPORT int statx(int dirfd, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
    char virtual[PATH_MAX], shadow[PATH_MAX];
    int rc;

    if (!sfp_path_is_ours(dirfd, path, virtual))
        return SFP_REAL(statx)(dirfd, path, flags, mask, st);
    if (!sfp_path_shadow(virtual, shadow))
        return -1;
    rc = SFP_REAL(statx)(AT_FDCWD, shadow, flags, mask, st);
    if (!rc && S_ISREG(st->stx_mode)) {
        st->stx_ino = sfp_path_number(virtual);
        st->stx_nlink = 1;
        if (is_device(virtual))
            st->stx_mode = S_IFCHR | 0666;
        else
            st->stx_size = 4096;
    }
    return rc;
}

/* ---- links ---------------------------------------------------------------------------------------------------- */

/* There are none in the simulated tree. */
SFP_EXPORT ssize_t readlink(const char *restrict path, char *restrict buf, size_t size)
{
    ON_PATH(AT_FDCWD, path, -1, SFP_REAL(readlink)(shadow, buf, size), SFP_REAL(readlink)(path, buf, size));
}

SFP_EXPORT ssize_t readlinkat(int dirfd, const char *restrict path, char *restrict buf, size_t size)
{
    ON_PATH(dirfd, path, -1, SFP_REAL(readlinkat)(AT_FDCWD, shadow, buf, size),
            SFP_REAL(readlinkat)(dirfd, path, buf, size));
}

SFP_EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
    char virtual[PATH_MAX], shadow[PATH_MAX];

    if (!sfp_path_is_ours(AT_FDCWD, path, virtual))
        return SFP_REAL(realpath)(path, resolved);
    if (!sfp_path_shadow(virtual, shadow) || SFP_REAL(access)(shadow, F_OK))
        return NULL;
    return resolved ? strcpy(resolved, virtual) : strdup(virtual);
}

/* ---- extended attributes: none (ls -l looks for access lists) ------------------------------------------------- */

static ssize_t no_attributes(void)
{
    errno = ENOTSUP;
    return -1;
}

SFP_EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? no_attributes() : SFP_REAL(getxattr)(path, name, value, size);
}

SFP_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? no_attributes() : SFP_REAL(lgetxattr)(path, name, value, size);
}

SFP_EXPORT ssize_t listxattr(const char *path, char *list, size_t size)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? no_attributes() : SFP_REAL(listxattr)(path, list, size);
}

SFP_EXPORT ssize_t llistxattr(const char *path, char *list, size_t size)
{
    char virtual[PATH_MAX];

    return sfp_path_is_ours(AT_FDCWD, path, virtual) ? no_attributes() : SFP_REAL(llistxattr)(path, list, size);
}
