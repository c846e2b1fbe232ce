/* SPDX-License-Identifier: BSD-3-Clause */
/* The scratch directory and its janitor. */
#include "mrrun/scratch.h"

#include "mrrun/offspring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A word in the pipe: a process group, negative to take the group back. One write each, so never torn. */
static void tell(struct scratch *s, pid_t word)
{
    ssize_t n;

    do
        n = write(s->pipe_fd, &word, sizeof(word));
    while (n < 0 && errno == EINTR);
}

void scratch_watch_group(struct scratch *s, pid_t pgid)
{
    tell(s, pgid);
}

void scratch_forget_group(struct scratch *s, pid_t pgid)
{
    tell(s, -pgid);
}

void scratch_beat(struct scratch *s)
{
    tell(s, 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    remove(path);
    return 0;
}

struct group_list {
    pid_t *pgid;
    size_t count, room;
};

static void note_group(struct group_list *list, pid_t word)
{
    for (size_t i = 0; word < 0 && i < list->count; i++) {
        if (list->pgid[i] == -word) {
            list->pgid[i] = list->pgid[--list->count];
            return;
        }
    }
    if (word <= 1) /* never 0, 1 or an unknown group: kill() would take them for more than one */
        return;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        pid_t *grown = realloc(list->pgid, room * sizeof(pid_t));
        if (!grown)
            return;
        list->pgid = grown;
        list->room = room;
    }
    list->pgid[list->count++] = word;
}

/* Waits for a word. False: the sender, which had sent a word each second, has been silent. */
static bool await_heartbeat(int fd, bool beats)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (int silent = 0; beats && poll(&p, 1, 1000) == 0;
         silent++) /* in steps: time in which this process does not run does not count */
        if (silent >= SCRATCH_SILENCE_S)
            return false;
    return true;
}

static _Noreturn void janitor(const char *path, int fd, pid_t parent)
{
    struct group_list list = {0};
    bool beats = false, silent;
    pid_t word;
    ssize_t n;

    /* Standard descriptors belong to others. */
    setsid();
    prctl(PR_SET_NAME, "mr-janitor"); /* not "mrrun...", which pkill would match */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    if (chdir("/"))
        _exit(1);

    while (!(silent = !await_heartbeat(fd, beats)) && (n = read(fd, &word, sizeof(word))) != 0) {
        beats |= n == sizeof(word) && word == 0;
        if (n == sizeof(word))
            note_group(&list, word);
        else if (n > 0 || errno != EINTR)
            break;
    }
    if (silent && getppid() == parent)
        kill(parent, SIGKILL);
    for (size_t i = 0; i < list.count; i++)
        kill(-list.pgid[i], SIGKILL);
    free(list.pgid);
    offspring_signal(path, SIGTERM);
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    _exit(0);
}

#define NAME   "mrrun-scratch."
#define MARKER "of-mrrun" /* nothing else is removed by a stranger */

bool scratch_is_name(const char *path)
{
    const char *base = strrchr(path, '/');

    return base && !strncmp(base + 1, NAME, strlen(NAME)) && strlen(base + 1) == strlen(NAME "XXXXXX");
}

enum held { HELD, NOT_HELD, NO_LOCKS };

/* Takes the lock of an open directory, if that still is where its path says. */
static enum held hold_directory(int fd, const char *path)
{
    struct stat open, there;

    if (flock(fd, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK ? NOT_HELD : NO_LOCKS;
    return !fstat(fd, &open) && !lstat(path, &there) && open.st_dev == there.st_dev && open.st_ino == there.st_ino
               ? HELD
               : NOT_HELD;
}

/* A directory without a marker may be empty, because its maker died early. */
static void remove_dead(int fd, const char *path)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 07777) != S_IRWXU || hold_directory(fd, path) != HELD)
        return;
    if (faccessat(fd, MARKER, F_OK, AT_SYMLINK_NOFOLLOW))
        rmdir(path);
    else
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/*
 * Removes directories of this user without a holder. A new directory is not held yet: its maker notices the removal and
 * makes another.
 */
static void sweep(const char *parent)
{
    DIR *dir = opendir(parent);
    struct dirent *entry;
    char path[PATH_MAX];

    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, NAME, strlen(NAME)) || strlen(entry->d_name) != strlen(NAME "XXXXXX") ||
            snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) >= (int)sizeof(path))
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        remove_dead(fd, path);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

/* 0 and *s has an open directory that is held, if the file system has locks. */
static int make_one(struct scratch *s, const char *parent)
{
    int len = snprintf(s->path, sizeof(s->path), "%s/" NAME "XXXXXX", parent);

    if (len < 0 || (size_t)len >= sizeof(s->path))
        return -ENAMETOOLONG;
    if (!mkdtemp(s->path))
        return -errno;
    s->lock_fd = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->lock_fd >= 0 && hold_directory(s->lock_fd, s->path) != NOT_HELD) {
        int marker = openat(s->lock_fd, MARKER, O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR);
        if (marker >= 0) {
            close(marker);
            return 0;
        }
    }
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    return -EAGAIN;
}

static int make_directory(struct scratch *s, const char *parent)
{
    enum { TRIES = 100 }; /* sweepers may take a new directory for a dead one */
    int err = -EAGAIN;

    sweep(parent);
    for (int i = 0; i < TRIES && err == -EAGAIN; i++)
        err = make_one(s, parent);
    return err;
}

/*
 * Inside a simulated fabric, its directory is the place: when the fabric is killed, so is the janitor, and then the
 * directory goes with the fabric's.
 */
static int make_directory_somewhere(struct scratch *s)
{
    const char *fabric = getenv("SIMFAB_DIR"), *tmp = getenv("TMPDIR");

    if (fabric && fabric[0] == '/' && make_directory(s, fabric) == 0)
        return 0;
    return make_directory(s, tmp && tmp[0] == '/' ? tmp : "/tmp");
}

int scratch_open(struct scratch *s)
{
    int fds[2];
    sigset_t all, before;
    int err = make_directory_somewhere(s);
    pid_t parent = getpid();

    if (err)
        return err;
    if (pipe2(fds, O_CLOEXEC))
        goto remove_dir;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all,
                &before); /* the janitor keeps signals blocked: a signal that ends mrrun must not end the janitor */
    s->janitor = fork();
    if (!s->janitor) {
        close(fds[1]);
        janitor(s->path, fds[0], parent);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (s->janitor < 0)
        goto close_pipe;
    close(fds[0]);
    s->pipe_fd = fds[1];
    return 0;

close_pipe:
    close(fds[0]);
    close(fds[1]);
remove_dir:
    err = -errno;
    unlinkat(s->lock_fd, MARKER, 0);
    rmdir(s->path);
    close(s->lock_fd);
    return err;
}

/* Where the janitor hangs, in a file system that does not answer, say, mrrun need not. */
void scratch_close(struct scratch *s)
{
    const struct timespec patience = {.tv_sec = 10};
    sigset_t child;

    close(s->pipe_fd);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (s->janitor > 0 && waitpid(s->janitor, NULL, WNOHANG) == 0)
        if (sigtimedwait(&child, NULL, &patience) < 0 && errno == EAGAIN)
            break;
    close(s->lock_fd);
}
