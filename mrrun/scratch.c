/* SPDX-License-Identifier: BSD-3-Clause */
/* The scratch directory and the janitor that removes it. */
#include "mrrun/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What goes through the pipe: the group, negative when it is taken back. One write each, so never torn. */
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

static _Noreturn void janitor(const char *path, int fd)
{
    struct group_list list = {0};
    sigset_t all;
    pid_t word;
    ssize_t n;

    /* A session of its own and no signals: what ends mrrun must not end the janitor. Standard descriptors belong to
     * others. */
    setsid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "mrrun-janitor");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    if (chdir("/"))
        _exit(1);

    while ((n = read(fd, &word, sizeof(word))) != 0) {
        if (n == sizeof(word))
            note_group(&list, word);
        else if (n > 0 || errno != EINTR)
            break;
    }
    for (size_t i = 0; i < list.count; i++)
        kill(-list.pgid[i], SIGKILL);
    free(list.pgid);
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    _exit(0);
}

static int make_directory(struct scratch *s, const char *parent)
{
    int len = snprintf(s->path, sizeof(s->path), "%s/mrrun.XXXXXX", parent);

    if (len < 0 || (size_t)len >= sizeof(s->path))
        return -ENAMETOOLONG;
    return mkdtemp(s->path) ? 0 : -errno;
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
    int err = make_directory_somewhere(s);

    if (err)
        return err;
    if (pipe2(fds, O_CLOEXEC))
        goto remove_dir;
    s->janitor = fork();
    if (s->janitor < 0)
        goto close_pipe;
    if (!s->janitor) {
        close(fds[1]);
        janitor(s->path, fds[0]);
    }
    close(fds[0]);
    s->pipe_fd = fds[1];
    return 0;

close_pipe:
    close(fds[0]);
    close(fds[1]);
remove_dir:
    err = -errno;
    rmdir(s->path);
    return err;
}

void scratch_close(struct scratch *s)
{
    close(s->pipe_fd);
    while (waitpid(s->janitor, NULL, 0) < 0 && errno == EINTR)
        continue;
}
