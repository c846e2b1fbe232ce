/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library loaded before fabricd (LD_PRELOAD) that makes one fault happen at one changing call, of files, directories
 * or signals. The product does not know the library.
 *
 * $FAULTS_DIR/plan has one line, and takes effect at once; calls are counted from then on:
 *
 *   count                      no fault
 *   kill-before N              the process is killed instead of the Nth call
 *   kill-after N               the process is killed when the Nth call has returned
 *   fail N ERRNO               the Nth call is not done and fails
 *   signal N PID SIGNAL        before the Nth call a signal goes to another process
 *
 * $FAULTS_DIR/durable has the files after a power cut: f-INODE is a file's content at its last fsync, d-INODE a
 * directory's entries ("TYPE INODE NAME TARGET") at its own.
 *
 * A fault happens once: the plan is removed first. $FAULTS_DIR/calls gets a line for each call: its number, name and
 * file.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ino_t plan_inode;
static struct timespec plan_time;
static struct {
    char what[32];
    unsigned at, now;
    int a, b;
} plan;

static bool read_plan(const char *path)
{
    struct stat st;
    char text[128] = "";
    if (stat(path, &st))
        return false;
    if (st.st_ino == plan_inode && !memcmp(&st.st_mtim, &plan_time, sizeof(plan_time)))
        return true;
    int fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        abort();
    close(fd);
    memset(&plan, 0, sizeof(plan));
    sscanf(text, "%31s %u %d %d", plan.what, &plan.at, &plan.a, &plan.b);
    plan_inode = st.st_ino;
    plan_time = st.st_mtim;
    return true;
}

static void note(const char *dir, unsigned n, const char *name, const char *file)
{
    char path[PATH_MAX], line[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/calls", dir);
    int len = snprintf(line, sizeof(line), "%u %s %s\n", n, name, file);
    int fd = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || REAL(write)(fd, line, (size_t)len) < 0)
        abort();
    close(fd);
}

/* ---- durable state on disk ---- */

static FILE *durable(const char *kind, ino_t inode, const char *mode)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/durable/%s-%llu", getenv("FAULTS_DIR"), kind, (unsigned long long)inode);
    if (mode)
        return fopen(path, mode);
    REAL(unlink)(path);
    return NULL;
}

/* A new file: nothing of it is on disk, whatever file had its inode number before. */
static void is_new(int fd)
{
    struct stat st;
    if (getenv("FAULTS_DIR") && fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_size)
        durable("f", st.st_ino, NULL);
}

static void list_directory(int fd, FILE *out)
{
    DIR *dir = fdopendir(REAL(openat)(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char to[PATH_MAX] = "-";
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        ssize_t n = S_ISLNK(st.st_mode) ? readlinkat(fd, e->d_name, to, sizeof(to) - 1) : 1;
        to[n < 0 ? 0 : n] = 0;
        fprintf(out, "%c %llu %s %s\n",
                S_ISDIR(st.st_mode)   ? 'd'
                : S_ISLNK(st.st_mode) ? 'l'
                                      : 'f',
                (unsigned long long)st.st_ino, e->d_name, to);
    }
    if (dir)
        closedir(dir);
}

static void is_synced(int fd)
{
    char path[PATH_MAX], link[64], buf[8192];
    struct stat st;
    if (!getenv("FAULTS_DIR") || fstat(fd, &st) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return;
    FILE *out = durable(S_ISDIR(st.st_mode) ? "d" : "f", st.st_ino, "w");
    if (!out)
        return;
    if (S_ISDIR(st.st_mode)) {
        list_directory(fd, out);
    } else {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        snprintf(path, sizeof(path), "%s", link);
        FILE *in = fopen(path, "r");
        for (size_t n; in && (n = fread(buf, 1, sizeof(buf), in));)
            fwrite(buf, 1, n, out);
        if (in)
            fclose(in);
    }
    fclose(out);
}

enum { NOTHING, FAIL, KILL_AFTER };

/* The plan for this call. FAIL: errno is set. */
static int before(const char *name, const char *file)
{
    char path[PATH_MAX];
    const char *dir = getenv("FAULTS_DIR");
    int what = NOTHING, kept = errno;
    if (!dir)
        return NOTHING;
    snprintf(path, sizeof(path), "%s/plan", dir);
    pthread_mutex_lock(&lock);
    bool planned = read_plan(path);
    if (planned)
        note(dir, ++plan.now, name, file);
    bool here = planned && strcmp(plan.what, "count") && plan.now == plan.at;
    if (here)
        REAL(unlink)(path);
    pthread_mutex_unlock(&lock);
    errno = kept;
    if (!here)
        return NOTHING;
    if (!strcmp(plan.what, "kill-before"))
        REAL(kill)(getpid(), SIGKILL);
    if (!strcmp(plan.what, "signal"))
        REAL(kill)(plan.a, plan.b);
    if (!strcmp(plan.what, "kill-after"))
        what = KILL_AFTER;
    if (!strcmp(plan.what, "fail")) {
        what = FAIL;
        errno = plan.a;
    }
    return what;
}

static void after(int what)
{
    if (what == KILL_AFTER)
        REAL(kill)(getpid(), SIGKILL);
}

/* The file of a descriptor. */
static const char *file_of(int fd, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n < 0 ? 0 : n] = 0;
    return path;
}

static bool is_file(int fd)
{
    struct stat st;
    return fd > 2 && !fstat(fd, &st) && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

#define CHANGING(flags) ((flags) & (O_CREAT | O_WRONLY | O_RDWR | O_DIRECTORY))

/* Devices and process files are excluded. */
static bool is_system(const char *path)
{
    return !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5);
}

/* The call, or its failure: returned from the function that this stands in. */
#define DO(type, name, file, call)                                                                                     \
    int what = before(name, file);                                                                                     \
    if (what == FAIL)                                                                                                  \
        return (type)-1;                                                                                               \
    type rc = call;                                                                                                    \
    int kept = errno;                                                                                                  \
    after(what);                                                                                                       \
    errno = kept;                                                                                                      \
    return rc

static int created(int fd, int flags)
{
    int kept = errno;
    if (flags & O_CREAT)
        is_new(fd);
    errno = kept;
    return fd;
}

static int synced(int fd, int rc)
{
    int kept = errno;
    if (!rc)
        is_synced(fd);
    errno = kept;
    return rc;
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (!CHANGING(flags) || is_system(path))
        return REAL(open)(path, flags, mode);
    DO(int, "open", path, created(REAL(open)(path, flags, mode), flags));
}

int openat(int at, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (!CHANGING(flags) || is_system(path))
        return REAL(openat)(at, path, flags, mode);
    DO(int, "openat", path, created(REAL(openat)(at, path, flags, mode), flags));
}

int mkostemp(char *path, int flags)
{
    DO(int, "mkostemp", path, created(REAL(mkostemp)(path, flags), O_CREAT));
}

ssize_t write(int fd, const void *data, size_t len)
{
    char path[PATH_MAX];
    if (!is_file(fd))
        return REAL(write)(fd, data, len);
    DO(ssize_t, "write", file_of(fd, path), REAL(write)(fd, data, len));
}

int fsync(int fd)
{
    char path[PATH_MAX];
    DO(int, "fsync", file_of(fd, path), synced(fd, REAL(fsync)(fd)));
}

int ftruncate(int fd, off_t len)
{
    char path[PATH_MAX];
    if (!is_file(fd))
        return REAL(ftruncate)(fd, len);
    DO(int, "ftruncate", file_of(fd, path), REAL(ftruncate)(fd, len));
}

int fchmod(int fd, mode_t mode)
{
    char path[PATH_MAX];
    DO(int, "fchmod", file_of(fd, path), REAL(fchmod)(fd, mode));
}

int fchown(int fd, uid_t uid, gid_t gid)
{
    char path[PATH_MAX];
    DO(int, "fchown", file_of(fd, path), REAL(fchown)(fd, uid, gid));
}

int rename(const char *from, const char *to)
{
    DO(int, "rename", to, REAL(rename)(from, to));
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    DO(int, "renameat", to, REAL(renameat)(from_at, from, to_at, to));
}

int unlink(const char *path)
{
    DO(int, "unlink", path, REAL(unlink)(path));
}

int unlinkat(int at, const char *path, int flags)
{
    DO(int, "unlinkat", path, REAL(unlinkat)(at, path, flags));
}

int mkdir(const char *path, mode_t mode)
{
    DO(int, "mkdir", path, REAL(mkdir)(path, mode));
}

int mkdirat(int at, const char *path, mode_t mode)
{
    DO(int, "mkdirat", path, REAL(mkdirat)(at, path, mode));
}

int symlink(const char *to, const char *path)
{
    DO(int, "symlink", path, REAL(symlink)(to, path));
}

int symlinkat(const char *to, int at, const char *path)
{
    DO(int, "symlinkat", path, REAL(symlinkat)(to, at, path));
}

int kill(pid_t pid, int sig)
{
    if (!sig)
        return REAL(kill)(pid, sig);
    DO(int, "kill", "", REAL(kill)(pid, sig));
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
                char *const argv[], char *const envp[])
{
    int what = before("posix_spawn", argv[2] ? argv[2] : path);
    if (what == FAIL)
        return errno;
    int rc = REAL(posix_spawn)(pid, path, actions, attr, argv, envp);
    after(what);
    return rc;
}

long syscall(long number, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number != SYS_pidfd_send_signal)
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    DO(long, "pidfd_send_signal", "", REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}
