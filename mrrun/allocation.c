/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's compressed lists, and files of PBS. */
#include "mrrun/allocation.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256, HOSTS_MAX = 4096, SLOTS_MAX = 65536 };

struct list {
    allocation_fn *fn;
    void *arg;
    const char *tasks; /* the rest of SLURM_TASKS_PER_NODE; NULL: one each */
    int slots, left;   /* of the next hosts, and how many these are */
    int count;
    const char *fault; /* the error; NULL: none */
};

/* "2(x3),1": three hosts of two, one of one. */
static void next_slots(struct list *l)
{
    char *end;
    long n = l->tasks && isdigit((unsigned char)*l->tasks) ? strtol(l->tasks, &end, 10) : 0, times = 1;

    if (n < 1 || n > SLOTS_MAX) {
        l->fault = "SLURM_TASKS_PER_NODE";
        return;
    }
    if (end[0] == '(' && end[1] == 'x' && isdigit((unsigned char)end[2])) {
        times = strtol(end + 2, &end, 10);
        l->fault = *end == ')' ? NULL : "SLURM_TASKS_PER_NODE";
        end += *end == ')';
    }
    l->slots = (int)n;
    l->left = times < 1 || times > HOSTS_MAX ? HOSTS_MAX : (int)times;
    l->tasks = *end == ',' ? end + 1 : end;
}

static void add_item(struct list *l, const char *name)
{
    if (l->tasks && !l->left)
        next_slots(l);
    if (l->fault)
        return;
    if (l->tasks)
        l->left--;
    if (++l->count > HOSTS_MAX || !*name)
        l->fault = "SLURM_JOB_NODELIST";
    else if (l->fn(l->arg, name, l->tasks ? l->slots : 1))
        l->fault = "memory";
}

static void expand_item(struct list *l, char *name, size_t len, const char *text, size_t text_len);

/* "[1-3,07]", with the text after the brackets. Numbers keep their leading zeros. */
static void expand_range(struct list *l, char *name, size_t len, const char *text, const char *close, size_t rest)
{
    while (text < close && !l->fault) {
        char *end;
        long first = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1, last = first;
        int width = first < 0 ? 0 : (int)(end - text);

        if (first >= 0 && *end == '-')
            last = isdigit((unsigned char)end[1]) ? strtol(end + 1, &end, 10) : -1;
        if (first < 0 || last < first || last - first >= HOSTS_MAX || width > 9 || (end != close && *end != ',')) {
            l->fault = "SLURM_JOB_NODELIST";
            return;
        }
        for (long i = first; i <= last && !l->fault; i++) {
            int n = snprintf(name + len, NAME - len, "%0*ld", width, i);

            if (n < 0 || (size_t)n >= NAME - len)
                l->fault = "SLURM_JOB_NODELIST";
            else
                expand_item(l, name, len + (size_t)n, close + 1, rest);
        }
        text = end + (end < close);
    }
}

/* A name with ranges in brackets; the text before them is already in name. */
static void expand_item(struct list *l, char *name, size_t len, const char *text, size_t text_len)
{
    const char *open = memchr(text, '[', text_len), *close;
    size_t plain = open ? (size_t)(open - text) : text_len;

    if (len + plain >= NAME) {
        l->fault = "SLURM_JOB_NODELIST";
        return;
    }
    memcpy(name + len, text, plain);
    name[len + plain] = '\0';
    if (!open) {
        add_item(l, name);
        return;
    }
    close = memchr(open, ']', text_len - plain);
    if (close && close > open + 1)
        expand_range(l, name, len + plain, open + 1, close, text_len - (size_t)(close + 1 - text));
    else
        l->fault = "SLURM_JOB_NODELIST";
}

/* Length up to a comma outside brackets. */
static size_t item_length(const char *text)
{
    size_t n = 0;
    int depth = 0;

    for (; text[n] && (text[n] != ',' || depth); n++)
        depth += text[n] == '[' ? 1 : text[n] == ']' ? -1 : 0;
    return n;
}

int allocation_of_slurm(const char *nodes, const char *tasks, allocation_fn *fn, void *arg, char *why, size_t cap)
{
    struct list l = {.fn = fn, .arg = arg, .tasks = tasks};
    char name[NAME];

    for (const char *at = nodes; *at && !l.fault;) {
        size_t len = item_length(at);

        expand_item(&l, name, 0, at, len);
        at += len;
        at += *at == ',';
    }
    if (!l.fault && l.count)
        return l.count;
    snprintf(why, cap, "%s%s: this is no list of Slurm's (SLURM_JOB_NODELIST='%.200s')", l.fault ? l.fault : "no hosts",
             l.fault ? " cannot be understood" : "", nodes);
    return -1;
}

static int list_file(const char *path, allocation_fn *fn, void *arg, char *why, size_t cap)
{
    FILE *in = fopen(path, "re");
    char line[NAME];
    int count = 0;

    if (!in) {
        snprintf(why, cap, "PBS_NODEFILE: cannot read '%s': %s", path, strerror(errno));
        return -1;
    }
    while (fgets(line, sizeof(line), in) && count < SLOTS_MAX) {
        line[strcspn(line, " \t\r\n")] = '\0';
        if (!*line)
            continue;
        if (fn(arg, line, 1))
            break;
        count++;
    }
    fclose(in);
    if (!count)
        snprintf(why, cap, "PBS_NODEFILE: '%s' names no hosts", path);
    return count ? count : -1;
}

/*
 * A task of srun does not take the whole job for itself. The steps of a batch script or of salloc's shell have the last
 * numbers there are.
 */
static bool is_task(const char *step)
{
    return step && *step && strtoul(step, NULL, 10) < 0xfffffff0ul;
}

int allocation_list(allocation_fn *fn, void *arg, char *why, size_t cap)
{
    const char *nodes = getenv("SLURM_JOB_NODELIST"), *tasks = getenv("SLURM_TASKS_PER_NODE"),
               *file = getenv("PBS_NODEFILE");

    if (nodes && *nodes && !is_task(getenv("SLURM_STEP_ID")))
        return allocation_of_slurm(nodes, tasks && *tasks ? tasks : NULL, fn, arg, why, cap);
    return file && *file ? list_file(file, fn, arg, why, cap) : 0;
}
