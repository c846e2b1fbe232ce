/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/offspring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "started" /* the library looks for it (libmrmpi/launch/started.c) */

static char registered[PATH_MAX]; /* the own entry; "": none */

int offspring_open(const char *scratch)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/" DIRECTORY, scratch);
    return mkdir(path, S_IRWXU) ? -errno : 0;
}

/* Visits all entries with a function that takes a process. */
static int visit(const char *scratch, bool (*see)(pid_t pid, void *arg), void *arg)
{
    char path[PATH_MAX];
    struct dirent *entry;
    int n = 0;

    snprintf(path, sizeof(path), "%s/" DIRECTORY, scratch);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        pid_t pid = atoi(entry->d_name);

        if (pid <= 1)
            continue;
        if (see(pid, arg))
            n++;
        else
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Another process that has got the same number since leads no group, or hardly ever. */
static bool is_there(pid_t pid, void *arg)
{
    return getpgid(pid) == pid;
}

static bool send_signal(pid_t pid, void *sig)
{
    return is_there(pid, NULL) && !kill(pid, *(const int *)sig);
}

bool offspring_any(const char *scratch)
{
    return visit(scratch, is_there, NULL);
}

void offspring_signal(const char *scratch, int sig)
{
    visit(scratch, send_signal, &sig);
}

struct pid_list {
    pid_t *pid;
    int num, most;
};

static bool list_pid(pid_t pid, void *arg)
{
    struct pid_list *l = arg;

    if (!is_there(pid, NULL))
        return false;
    if (l->num < l->most)
        l->pid[l->num++] = pid;
    return true;
}

int offspring_list(const char *scratch, pid_t *out, int most)
{
    struct pid_list l = {.pid = out, .most = most};

    visit(scratch, list_pid, &l);
    return l.num;
}

int offspring_register(void)
{
    const char *scratch = getenv("MRMPI_INQUIRY"), *parent = getenv("MRMPI_PARENT");
    int fd;

    if (!scratch || !*scratch || !parent || !*parent || getpgrp() != getpid())
        return 0;
    snprintf(registered, sizeof(registered), "%s/" DIRECTORY "/%d", scratch, (int)getpid());
    fd = open(registered, O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR);
    if (fd >= 0)
        return close(fd);
    *registered = '\0';
    return -1;
}

void offspring_leave(void)
{
    if (*registered)
        unlink(registered);
}
