/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a job: named, allocated, simulated or this machine. */
#include "mrrun/hosts.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrrun/allocation.h"
#include "mrrun/spawn.h"

static bool grow(struct hosts *h)
{
    size_t room = (size_t)h->count + 1;
    char **name = realloc(h->name, room * sizeof(*name));

    h->name = name ? name : h->name;
    char **devices = name ? realloc(h->devices, room * sizeof(*devices)) : NULL;
    h->devices = devices ? devices : h->devices;
    struct placement_slots *slots = devices ? realloc(h->slots, room * sizeof(*slots)) : NULL;
    h->slots = slots ? slots : h->slots;
    bool *far = slots ? realloc(h->far, room * sizeof(*far)) : NULL;
    h->far = far ? far : h->far;
    return far;
}

static int add_host(struct hosts *h, const char *name, const char *devices)
{
    if (!grow(h))
        return -1;
    h->name[h->count] = strdup(name);
    h->devices[h->count] = devices ? strdup(devices) : NULL;
    h->slots[h->count] = (struct placement_slots){0};
    h->far[h->count] = false;
    h->count++;
    return h->name[h->count - 1] && (!devices || h->devices[h->count - 1]) ? 0 : -1;
}

/* -1: none. */
static int number_of_host(const struct hosts *h, const char *name)
{
    for (int i = 0; i < h->count; i++)
        if (!strcmp(h->name[i], name))
            return i;
    return -1;
}

void hosts_clear(struct hosts *h)
{
    for (int i = 0; i < h->count; i++) {
        free(h->name[i]);
        free(h->devices[i]);
    }
    free(h->name);
    free(h->devices);
    free(h->slots);
    free(h->far);
    for (size_t i = 0; h->launcher && h->launcher[i]; i++)
        free(h->launcher[i]);
    free(h->launcher);
    free(h->here);
    free(h->simfab);
    memset(h, 0, sizeof(*h));
}

static char *find_simfab(const char *bin_dir)
{
    char *beside;

    if (asprintf(&beside, "%s/simfab", bin_dir) < 0)
        return NULL;
    if (!access(beside, X_OK))
        return beside;
    free(beside);
    return spawn_find_program("simfab", NULL);
}

/* Runs "simfab status --hosts". Returns its output. */
static FILE *ask_simfab(const char *simfab, pid_t *pid)
{
    char *argv[] = {(char *)simfab, (char *)"status", (char *)"--hosts", NULL};
    posix_spawn_file_actions_t actions;
    int fds[2];

    if (pipe(fds))
        return NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    posix_spawn_file_actions_addclose(&actions, fds[1]);
    int err = posix_spawn(pid, simfab, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    FILE *in = err ? NULL : fdopen(fds[0], "r");
    if (!in)
        close(fds[0]);
    return in;
}

static int list_simulated(struct hosts *h, char *why, size_t cap)
{
    char line[HOST_NAME_MAX + 2];
    int status = 0;
    pid_t pid;
    FILE *in = ask_simfab(h->simfab, &pid);

    if (!in) {
        snprintf(why, cap, "cannot run %s: %s", h->simfab, strerror(errno));
        return -1;
    }
    while (fgets(line, sizeof(line), in)) {
        line[strcspn(line, " \t\r\n")] = 0;
        if (line[0])
            add_host(h, line, NULL);
    }
    fclose(in);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status || !h->count) {
        snprintf(why, cap,
                 "the fabric at SIMFAB_DIR=%s does not answer ('%s status --hosts' gave no hosts); is it still up?",
                 getenv("SIMFAB_DIR"), h->simfab);
        return -1;
    }
    return 0;
}

/* Compares short and full names, and takes the names of the loopback interface. */
static bool is_this_machine(const char *name, const char *here)
{
    const char *node = getenv("SLURMD_NODENAME");
    size_t len = strcspn(here, ".");

    if (!strcmp(name, "localhost") || !strncmp(name, "localhost.", 10) || !strcmp(name, "127.0.0.1") ||
        (node && !strcmp(name, node)))
        return true;
    return strcspn(name, ".") == len && !strncmp(name, here, len) && (!name[len] || !here[len] || !strcmp(name, here));
}

static int add_allocated(void *arg, const char *name, int slots)
{
    struct hosts *h = arg;
    int at = number_of_host(h, is_this_machine(name, h->here) ? h->here : name);

    if (at < 0 && add_host(h, is_this_machine(name, h->here) ? h->here : name, NULL))
        return -1;
    h->slots[at < 0 ? h->count - 1 : at].slots += slots;
    return 0;
}

/* The hosts that a scheduler has allocated, or this machine. */
static int list_plain(struct hosts *h, char *why, size_t cap)
{
    char name[HOST_NAME_MAX + 1] = "localhost";
    int found;

    gethostname(name, sizeof(name) - 1);
    h->here = strdup(name);
    found = h->here ? allocation_list(add_allocated, h, why, cap) : -1;
    h->allocated = found > 0;
    if (!found && !add_host(h, name, NULL))
        return 0;
    if (found <= 0 && !*why)
        snprintf(why, cap, "out of memory");
    return found > 0 ? 0 : -1;
}

static void explain_unknown(const char *name, char *why, size_t cap)
{
    snprintf(why, cap, "the fabric has no host '%s' ('simfab status --hosts' lists them)", name);
}

/* Accepts only words that no launcher can take for an option or a command. */
static bool is_host_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@%:[]");

    return *name != '-' && len && !name[len] && len <= HOST_NAME_MAX;
}

/* The name of a host in the lists: this machine has one name there. */
static const char *canonical(const struct hosts *h, const struct mrrun_host *named)
{
    return h->here && !named->devices && is_this_machine(named->name, h->here) ? h->here : named->name;
}

/* Adds the slots of a host that is named twice. */
static void add_slots(struct placement_slots *to, const struct mrrun_host *named)
{
    to->slots += to->slots && !named->slots ? 1 : named->slots;
    to->max += named->max_slots;
}

static int take_named(struct hosts *h, const struct hosts *all, const struct mrrun_host *named, bool count_slots,
                      char *why, size_t cap)
{
    const char *name = canonical(h, named);
    int at = number_of_host(h, name);

    if (at >= 0 && named->devices && (!h->devices[at] || strcmp(named->devices, h->devices[at]))) {
        snprintf(why, cap, "host '%s' is named twice, with other devices", name);
        return -1;
    }
    if (h->simfab && at < 0 && number_of_host(all, name) < 0) {
        explain_unknown(name, why, cap);
        return -1;
    }
    if (!h->simfab && !is_host_name(name)) {
        snprintf(why, cap, "'%s' is no name of a host", name);
        return -1;
    }
    if (at < 0 && add_host(h, name, named->devices)) {
        snprintf(why, cap, "out of memory");
        return -1;
    }
    if (at < 0 || count_slots)
        add_slots(&h->slots[at < 0 ? h->count - 1 : at], named);
    return 0;
}

static int take_list(struct hosts *h, const struct hosts *all, const struct hostlist *list, bool count_slots, char *why,
                     size_t cap)
{
    for (int i = 0; i < list->count; i++)
        if (take_named(h, all, &list->host[i], count_slots, why, cap))
            return -1;
    return 0;
}

/*
 * Hosts of the job's list in its order, or all hosts; then hosts that only parts name. Slots of the job's list take
 * precedence over slots of parts.
 */
static int pick(struct hosts *h, const struct hosts *all, const struct mrrun_options *opts, char *why, size_t cap)
{
    bool said = opts->hosts.count, wanted = !opts->num_parts;
    int err = take_list(h, all, &opts->hosts, true, why, cap);

    for (int i = 0; i < opts->num_parts; i++)
        wanted |= !opts->parts[i].hosts.count;
    for (int i = 0; i < all->count && !said && wanted && !err; i++) {
        err = add_host(h, all->name[i], NULL);
        if (!err)
            h->slots[i] = all->slots[i];
    }
    h->allocated = all->allocated && !said;
    if (err && !*why)
        snprintf(why, cap, "out of memory");
    h->num_job = h->count;
    for (int i = 0; i < opts->num_parts && !err; i++)
        err = take_list(h, all, &opts->parts[i].hosts, !said, why, cap);
    return err;
}

/*
 * ssh has no terminal for questions. ssh gives up a host that does not answer within seconds, before the agent's own
 * signs of life begin. srun starts the agent beside running steps.
 */
#define SSH  "ssh -x -T -o BatchMode=yes -o ConnectTimeout=4 -o ServerAliveInterval=1 -o ServerAliveCountMax=3"
#define SRUN "srun -Q -N1 -n1 --overlap --mpi=none --unbuffered --kill-on-bad-exit=0 -w"

static char **split_words(const char *text)
{
    char **word = calloc(strlen(text) / 2 + 2, sizeof(*word));
    int n = 0;

    for (size_t len; word && *(text += strspn(text, " ")); text += len) {
        len = strcspn(text, " ");
        word[n] = strndup(text, len);
        if (!word[n++])
            return NULL;
    }
    return word;
}

static int find_all(struct hosts *all, const char *bin_dir, char *why, size_t cap)
{
    const char *fabric = getenv("SIMFAB_DIR");

    if (!fabric || !*fabric)
        return list_plain(all, why, cap);
    all->simfab = find_simfab(bin_dir);
    if (all->simfab)
        return list_simulated(all, why, cap);
    snprintf(why, cap, "SIMFAB_DIR is set, but there is no simfab command beside mrrun or in PATH");
    return -1;
}

void hosts_keep(struct hosts *h, const int *used, int num_used)
{
    int kept = 0;

    for (int i = 0; i < h->count; i++) {
        if (kept < num_used && used[kept] == i) {
            h->name[kept] = h->name[i];
            h->devices[kept] = h->devices[i];
            h->far[kept] = h->far[i];
            h->slots[kept++] = h->slots[i];
        } else {
            free(h->name[i]);
            free(h->devices[i]);
        }
    }
    h->count = h->num_job = kept;
}

/* Hosts are parts of this machine only if each host but the machine itself has devices, and no launcher is given. */
static int find_far(struct hosts *h, const struct hosts *all, const struct mrrun_options *opts)
{
    const char *given = opts->launcher, *slurm = getenv("SLURM_JOB_ID");
    bool others = given || all->allocated;

    for (int i = 0; i < h->count && !others && !h->simfab; i++)
        others = !h->devices[i] && strcmp(h->name[i], h->here) != 0;
    for (int i = 0; i < h->count; i++)
        h->far[i] = h->simfab ? given != NULL : others && strcmp(h->name[i], h->here);
    if (!given)
        given = slurm && *slurm ? SRUN : SSH;
    h->launcher = split_words(given);
    return h->launcher ? 0 : -1;
}

bool hosts_far(const struct hosts *h)
{
    for (int i = 0; i < h->count; i++)
        if (h->far[i])
            return true;
    return false;
}

int hosts_find(struct hosts *h, const struct mrrun_options *opts, const char *bin_dir, char *why, size_t cap)
{
    struct hosts all = {0};
    int err;

    memset(h, 0, sizeof(*h));
    *why = '\0';
    err = find_all(&all, bin_dir, why, cap);
    if (!err && all.here && !(h->here = strdup(all.here)))
        err = -1;
    h->simfab = all.simfab;
    all.simfab = NULL;
    if (!err)
        err = pick(h, &all, opts, why, cap);
    if (!err && find_far(h, &all, opts)) {
        snprintf(why, cap, "out of memory");
        err = -1;
    }
    hosts_clear(&all);
    if (err)
        hosts_clear(h);
    return err;
}

static bool has_number(const int *list, int count, int number)
{
    for (int i = 0; i < count; i++)
        if (list[i] == number)
            return true;
    return false;
}

int hosts_of_part(const struct hosts *h, const struct mrrun_part *part, int *out)
{
    int n = 0;

    for (int i = 0; i < part->hosts.count; i++) {
        int at = number_of_host(h, canonical(h, &part->hosts.host[i]));

        if (at >= 0 && !has_number(out, n, at))
            out[n++] = at;
    }
    for (int i = 0; i < h->num_job && !part->hosts.count && h->num_job < h->count; i++)
        out[n++] = i;
    return n;
}
