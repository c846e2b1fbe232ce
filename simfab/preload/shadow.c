/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated paths, and their shadow: the tree of a host's devices as real directories with empty files, so the C
 * library's directory functions, shells and globs work there. The tree is made at the first need, under another name,
 * and renamed when complete. The names in the tree never change while the fabric lives.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "simfab/preload/connect.h"
#include "simfab/preload/devices.h"

static const char *const roots[] = {"/sys/class/infiniband", "/sys/class/infiniband_mad", "/sys/class/infiniband_verbs",
                                    "/dev/infiniband"};

static pthread_mutex_t make_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- paths ---------------------------------------------------------------------------------------------------- */

static size_t shadow_root(char out[PATH_MAX])
{
    return (size_t)snprintf(out, PATH_MAX, "%s/tree/%s", sfp_dir(), sfp_host());
}

/* Adds path's components to out (of *len bytes), without empty components, "." and "..". False: too long. */
static bool append(char out[PATH_MAX], size_t *len, const char *path)
{
    while (*path) {
        size_t n = strcspn(path, "/");

        if (n == 2 && path[0] == '.' && path[1] == '.') {
            while (*len && out[--*len] != '/')
                ;
        } else if (n && !(n == 1 && *path == '.')) {
            if (*len + 1 + n >= PATH_MAX)
                return false;
            out[(*len)++] = '/';
            memcpy(out + *len, path, n);
            *len += n;
        }
        path += n;
        path += *path == '/';
    }
    out[*len] = 0;
    return true;
}

static bool below_a_root(const char *path)
{
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        size_t n = strlen(roots[i]);

        if (!strncmp(path, roots[i], n) && (path[n] == 0 || path[n] == '/'))
            return true;
    }
    return false;
}

/* The virtual path of an open (or current) directory in the shadow. Returns its length; 0: not in the shadow. */
static size_t virtual_of_dir(int dirfd, char out[PATH_MAX])
{
    char link[64], root[PATH_MAX];
    size_t len = shadow_root(root);
    int e = errno;
    ssize_t n;

    snprintf(link, sizeof link, dirfd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", dirfd);
    n = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
    errno = e;
    if (n <= (ssize_t)len || memcmp(out, root, len) || out[len] != '/')
        return 0;
    out[n] = 0;
    memmove(out, out + len, (size_t)n - len + 1);
    return (size_t)n - len;
}

bool sfp_path_is_ours(int dirfd, const char *path, char virtual[PATH_MAX])
{
    size_t len = 0;

    if (!path || !sfp_enabled() || !*path)
        return false;
    if (*path == '/') {
        const char *p = path + strspn(path, "/");

        if (strncmp(p, "sys", 3) && strncmp(p, "dev", 3))
            return false;
    } else {
        len = virtual_of_dir(dirfd, virtual);
        if (!len)
            return false;
    }
    return append(virtual, &len, path) && below_a_root(virtual);
}

uint64_t sfp_path_number(const char *virtual)
{
    uint64_t hash = 14695981039346656037u;

    for (const char *c = virtual; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    return hash;
}

/* ---- making the shadow ---------------------------------------------------------------------------------------- */

static int make_dir(const char *path)
{
    return syscall(SYS_mkdirat, AT_FDCWD, path, 0755) && errno != EEXIST ? -1 : 0;
}

static int make_file(const char *path)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0444);

    return fd < 0 ? -1 : sfp_sys_close(fd);
}

/*
 * One file with many names, where the file system supports hard links: some file systems take ten times as long to make
 * and remove so many files. Programs see separate files (sysfs.c).
 */
static int name_empty_file(const char *base, const char *path)
{
    char empty[PATH_MAX];

    snprintf(empty, sizeof empty, "%.4000s/empty", base);
    return syscall(SYS_linkat, AT_FDCWD, empty, AT_FDCWD, path, 0) ? make_file(path) : 0;
}

/* Make the directory virtual, with all below it, under the shadow root base. */
static int make_tree(const char *base, const char *virtual)
{
    char path[PATH_MAX], *name, *next;
    struct sf_sysfs head;
    size_t len;
    void *rep;
    int err = sfp_query(SF_OP_SYSFS, virtual, strlen(virtual), &rep, &len);

    if (err) {
        errno = err;
        return -1;
    }
    if (len < sizeof head) {
        free(rep);
        errno = EPROTO;
        return -1;
    }
    memcpy(&head, rep, sizeof head);
    snprintf(path, sizeof path, "%.2000s%.2000s", base, virtual);
    err = head.kind == SF_SYSFS_DIR ? make_dir(path) : 0;
    for (name = (char *)rep + sizeof head; !err && head.kind == SF_SYSFS_DIR && *name; name = next) {
        size_t n = strcspn(name, "\n");

        next = name + n + (name[n] == '\n');
        name[n] = 0;
        if (n && name[n - 1] == '/') {
            name[n - 1] = 0;
            snprintf(path, sizeof path, "%.2000s/%.2000s", virtual, name);
            err = make_tree(base, path);
        } else if (n) {
            snprintf(path, sizeof path, "%.2000s%.1000s/%.1000s", base, virtual, name);
            err = name_empty_file(base, path);
        }
    }
    free(rep);
    return err;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    return remove(path);
}

static int make_shadow(const char *root)
{
    char base[PATH_MAX], path[PATH_MAX];
    int err = 0;

    snprintf(path, sizeof path, "%s/tree", sfp_dir());
    snprintf(base, sizeof base, "%.2000s.%d", root, (int)getpid());
    if (make_dir(path) || make_dir(base))
        return -1;
    for (size_t i = 0; i < 3 && !err; i++) {
        static const char *const parents[] = {"/sys", "/sys/class", "/dev"};

        snprintf(path, sizeof path, "%.2000s%s", base, parents[i]);
        err = make_dir(path);
    }
    if (!err) {
        snprintf(path, sizeof path, "%.4000s/empty", base);
        err = make_file(path);
    }
    for (size_t i = 0; i < sizeof roots / sizeof *roots && !err; i++)
        err = make_tree(base, roots[i]);
    if (!err)
        err = (int)syscall(SYS_renameat, AT_FDCWD, base, AT_FDCWD, root);
    if (err) {
        int e = errno;

        nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        errno = e;
        return e == EEXIST || e == ENOTEMPTY ? 0 : -1; /* another process was faster */
    }
    return 0;
}

static bool exists(const char *path)
{
    return !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
}

bool sfp_path_shadow(const char *virtual, char shadow[PATH_MAX])
{
    char root[PATH_MAX];
    size_t len = shadow_root(root);
    bool ok = true;
    int e = errno;

    if (!exists(root)) {
        pthread_mutex_lock(&make_lock);
        ok = exists(root) || !make_shadow(root);
        pthread_mutex_unlock(&make_lock);
    }
    if (!ok || len + strlen(virtual) >= PATH_MAX) {
        errno = ENOENT;
        return false;
    }
    memcpy(shadow, root, len);
    strcpy(shadow + len, virtual);
    errno = e;
    return true;
}
