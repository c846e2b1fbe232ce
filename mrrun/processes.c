/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are about to end, and descendants: /proc, read once. */
#include "mrrun/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of include/linux/sched.h. The kernel shows these flags in the ninth field of /proc/PID/stat. */
enum { PF_EXITING = 0x4, PF_SIGNALED = 0x400 };

struct process {
    pid_t pid, parent, group;
    char state;
    bool ends;
    unsigned long ticks; /* of processor time */
};

/* The command's name, in parentheses, may hold anything; the fields follow its last parenthesis. */
static bool read_process(int proc, const char *name, struct process *p)
{
    char path[300], text[512], state;
    unsigned flags;
    unsigned long user, system;
    int parent, group;

    snprintf(path, sizeof(path), "%s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1, " %c %d %d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu", &state, &parent, &group, &flags,
                        &user, &system) != 6)
        return false;
    *p = (struct process){.pid = atoi(name),
                          .parent = parent,
                          .group = group,
                          .state = state,
                          .ticks = user + system,
                          .ends = state == 'Z' || state == 'X' || (flags & (PF_EXITING | PF_SIGNALED))};
    return true;
}

pid_t processes_parent(pid_t pid)
{
    char name[32];
    struct process p;

    snprintf(name, sizeof(name), "/proc/%d", (int)pid);
    return read_process(AT_FDCWD, name, &p) ? p.parent : 0;
}

/* The next process of an open /proc. */
static bool next_process(DIR *dir, struct process *p)
{
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(dirfd(dir), entry->d_name, p))
            return true;
    if (dir)
        closedir(dir);
    return false;
}

void processes_ending(const pid_t *pid, int count, enum ending *how)
{
    DIR *dir = opendir("/proc");
    struct process p;

    for (int r = 0; r < count; r++)
        how[r] = ENDING_NOT;
    while (next_process(dir, &p)) {
        for (int r = 0; r < count && p.ends; r++) {
            if (!pid[r] || (pid[r] != p.pid && pid[r] != p.group))
                continue;
            if (how[r] != ENDING_SELF)
                how[r] = pid[r] == p.pid ? ENDING_SELF : ENDING_PART;
        }
    }
}

void processes_of_groups(const pid_t *leader, int count, process_fn *fn, void *arg)
{
    DIR *dir = opendir("/proc");
    struct process p;

    while (next_process(dir, &p))
        for (int i = 0; i < count; i++)
            if (leader[i] && leader[i] == p.group)
                fn(i, p.pid, arg);
}

static struct process *read_all(size_t *count)
{
    DIR *dir = opendir("/proc");
    struct process p, *all = NULL;
    size_t room = 0;

    *count = 0;
    while (next_process(dir, &p)) {
        if (*count == room) {
            room = room ? 2 * room : 256;
            struct process *grown = realloc(all, room * sizeof(*all));
            if (!grown)
                abort();
            all = grown;
        }
        all[(*count)++] = p;
    }
    return all;
}

static bool has_pid(const pid_t *list, int count, pid_t pid)
{
    for (int i = 0; i < count; i++)
        if (list[i] == pid)
            return true;
    return false;
}

static bool is_dead(const struct process *p)
{
    return p->state == 'Z' || p->state == 'X';
}

static bool has_dead_child(const struct process *all, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].parent == pid && is_dead(&all[i]))
            return true;
    return false;
}

struct aftermath processes_aftermath(const pid_t *leader, int count)
{
    size_t found;
    struct process *all = read_all(&found);
    struct aftermath a = {0};
    unsigned long ticks = 0;

    for (size_t i = 0; i < found; i++) {
        const struct process *p = &all[i];
        bool leads = has_pid(leader, count, p->pid);

        if (!p->group || !has_pid(leader, count, p->group))
            continue;
        if (p->ends) {
            a.ending |= leads || !is_dead(p);
        } else if (leads || has_dead_child(all, found, p->pid)) {
            a.ready |= p->state == 'R' || p->state == 'D';
            ticks += p->ticks;
        }
    }
    free(all);
    a.cpu_ms = ticks * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
    return a;
}

void processes_kill_descendants(const pid_t *but, int num_but)
{
    size_t count, num_found = 1;
    struct process *all = read_all(&count);
    pid_t *found = calloc(count + 1, sizeof(*found));

    if (!found)
        abort();
    found[0] = getpid();
    for (size_t f = 0; f < num_found; f++)
        for (size_t i = 0; i < count; i++)
            if (all[i].parent == found[f] && !has_pid(but, num_but, all[i].pid) && num_found <= count)
                found[num_found++] = all[i].pid;
    for (size_t f = 1; f < num_found; f++)
        kill(found[f], SIGKILL);
    free(found);
    free(all);
}
