/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries in a process's memory, and its last launcher: /proc/PID/maps and /proc/PID/environ. */
#include "mrrun/strangers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrrun/others.h"
#include "mrrun/processes.h"

struct search {
    const char *nspace, *lib_dir;
    struct stranger *found;
    bool done;
};

static FILE *open_proc(pid_t pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

/* A launcher inside of a rank tells its own ranks otherwise: by another namespace, or by PMI. */
static bool is_of_job(pid_t pid, const char *nspace)
{
    static const char name[] = "PMIX_NAMESPACE=";
    FILE *in = open_proc(pid, "environ");
    char *entry = NULL;
    size_t size = 0;
    bool ours = false, pmi = false;

    while (in && getdelim(&entry, &size, '\0', in) > 0) {
        ours |= !strncmp(entry, name, sizeof(name) - 1) && !strcmp(entry + sizeof(name) - 1, nspace);
        pmi |= !strncmp(entry, "PMI_FD=", 7) || !strncmp(entry, "PMI_PORT=", 9);
    }
    free(entry);
    if (in)
        fclose(in);
    return ours && !pmi;
}

/* Of all files in a process's memory. A preloaded library of our interfaces comes before ours, which is there, too. */
static bool has_strange_library(pid_t pid, const char *lib_dir, struct stranger *out)
{
    FILE *in = open_proc(pid, "maps");
    char *line = NULL;
    size_t size = 0;
    bool strange = false, ours = false;

    while (in && getline(&line, &size, in) > 0) {
        char *path = strchr(line, '/'), *base = path ? strrchr(path, '/') : NULL;

        if (!base)
            continue;
        line[strcspn(line, "\n")] = '\0';
        *base++ = '\0';
        const char *whose = others_library(base);
        bool like_ours = !whose && others_has_our_name(base), is_ours = like_ours && !strcmp(path, lib_dir);
        ours |= is_ours;
        if (strange || is_ours || !(whose || (like_ours && *lib_dir)))
            continue;
        strange = true;
        out->whose = whose;
        snprintf(out->library, sizeof(out->library), "%s", base);
    }
    free(line);
    if (in)
        fclose(in);
    return strange && !ours;
}

static void read_name(pid_t pid, char *name, size_t cap)
{
    FILE *in = open_proc(pid, "comm");

    snprintf(name, cap, "?");
    if (in && fgets(name, (int)cap, in))
        name[strcspn(name, "\n")] = '\0';
    if (in)
        fclose(in);
}

static void look_at_process(int index, pid_t pid, void *arg)
{
    struct search *s = arg;

    if (s->done || !has_strange_library(pid, s->lib_dir, s->found) || !is_of_job(pid, s->nspace))
        return;
    s->done = true;
    s->found->index = index;
    s->found->pid = pid;
    read_name(pid, s->found->program, sizeof(s->found->program));
}

bool strangers_find(const pid_t *leader, int count, const char *nspace, const char *lib_dir, struct stranger *out)
{
    struct search s = {.nspace = nspace, .lib_dir = lib_dir, .found = out};

    processes_of_groups(leader, count, look_at_process, &s);
    return s.done;
}
