/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving nothing behind: ending descendants and removing the fabric's directory. */
#include "simfab/cmd/reap.h"

#include <stdbool.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "simfab/cmd/say.h"

/* The parent of a living process; 0 for a zombie, or when there is none of that id. */
static pid_t parent_of(const char *pid)
{
    char path[64], line[512], state = 'Z';
    pid_t parent = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (fgets(line, sizeof line, f)) {
        char *end = strrchr(line, ')'); /* the name in parentheses may hold anything */

        if (end)
            sscanf(end + 1, " %c %d", &state, &parent);
    }
    fclose(f);
    return state == 'Z' ? 0 : parent;
}

static bool is_one_of(pid_t pid, const pid_t *list, unsigned n)
{
    while (n--)
        if (list[n] == pid)
            return true;
    return false;
}

/* Send sig (0: nothing) to every child; how many there are. */
static int signal_children(int sig, const pid_t *spare, unsigned num_spare)
{
    DIR *proc = opendir("/proc");
    int n = 0;

    if (!proc)
        return 0;
    for (struct dirent *e; (e = readdir(proc));) {
        pid_t pid = (pid_t)atoi(e->d_name);

        if (pid <= 1 || is_one_of(pid, spare, num_spare) || parent_of(e->d_name) != getpid())
            continue;
        if (sig)
            kill(pid, sig);
        if (sig == SIGTERM)
            kill(pid, SIGCONT);
        n++;
    }
    closedir(proc);
    return n;
}

void kill_children(int sig, int patience_ms, const pid_t *spare, unsigned num_spare)
{
    const struct timespec step = {.tv_nsec = 2000000};
    int64_t end = now_ms() + patience_ms, give_up = end + 3000;

    signal_children(sig, spare, num_spare);
    while (now_ms() < give_up && signal_children(now_ms() >= end ? SIGKILL : 0, spare, num_spare))
        nanosleep(&step, NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    if (remove(path) && errno != ENOENT)
        complain("cannot remove %s", path);
    return 0;
}

void remove_tree(const char *dir)
{
    if (access(dir, F_OK) == 0)
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
