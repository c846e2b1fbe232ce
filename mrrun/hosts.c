/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts a job may use. */
#include "mrrun/hosts.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrrun/spawn.h"

extern char **environ;

/* Make room for one more in a list. */
static int grow(char ***list, int count)
{
    char **grown = realloc(*list, (count + 1) * sizeof(*grown));

    if (!grown)
        return -1;
    *list = grown;
    return 0;
}

static int add_host(struct hosts *h, const char *name, const char *devices)
{
    if (grow(&h->name, h->count) || grow(&h->devices, h->count))
        return -1;
    h->name[h->count] = strdup(name);
    h->devices[h->count] = devices ? strdup(devices) : NULL;
    h->count++;
    return h->name[h->count - 1] && (!devices || h->devices[h->count - 1]) ? 0 : -1;
}

static bool has_name(const struct hosts *h, const char *name)
{
    for (int i = 0; i < h->count; i++)
        if (!strcmp(h->name[i], name))
            return true;
    return false;
}

void hosts_clear(struct hosts *h)
{
    for (int i = 0; i < h->count; i++) {
        free(h->name[i]);
        free(h->devices[i]);
    }
    free(h->name);
    free(h->devices);
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
    return spawn_find_program("simfab");
}

/* "simfab status --hosts" with its output in a pipe. */
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

static int list_this_machine(struct hosts *h, char *why, size_t cap)
{
    char name[HOST_NAME_MAX + 1] = "localhost";

    gethostname(name, sizeof(name) - 1);
    if (add_host(h, name, NULL)) {
        snprintf(why, cap, "out of memory");
        return -1;
    }
    return 0;
}

static void explain_unknown(const struct hosts *h, const char *name, char *why, size_t cap)
{
    if (h->simfab)
        snprintf(why, cap, "the fabric has no host '%s' ('simfab status --hosts' lists them)", name);
    else
        snprintf(why, cap,
                 "'%s' is not this machine (%s): mrrun starts ranks here, on parts of this machine with HCAs of their "
                 "own (--hosts %s=DEVICE,...), or on simulated hosts under 'simfab run'; on a cluster, use the "
                 "scheduler's launcher",
                 name, h->name[0], name);
}

/* Keep the wanted hosts, in the order wanted. */
static int pick(struct hosts *h, const struct mrrun_host *wanted, int num_wanted, char *why, size_t cap)
{
    struct hosts picked = {0};

    for (int i = 0; i < num_wanted; i++) {
        const struct mrrun_host *w = &wanted[i];
        bool here = !h->simfab && !strcmp(w->name, "localhost") && !w->devices;
        bool part = !h->simfab && w->devices;

        if (!here && !part && !has_name(h, w->name)) {
            explain_unknown(h, w->name, why, cap);
            hosts_clear(&picked);
            return -1;
        }
        if (add_host(&picked, here ? h->name[0] : w->name, w->devices)) {
            snprintf(why, cap, "out of memory");
            hosts_clear(&picked);
            return -1;
        }
    }
    picked.simfab = h->simfab;
    h->simfab = NULL;
    hosts_clear(h);
    *h = picked;
    return 0;
}

int hosts_find(struct hosts *h, const struct mrrun_host *wanted, int num_wanted, const char *bin_dir, char *why,
               size_t cap)
{
    const char *fabric = getenv("SIMFAB_DIR");
    int err;

    memset(h, 0, sizeof(*h));
    if (fabric && *fabric) {
        h->simfab = find_simfab(bin_dir);
        if (!h->simfab) {
            snprintf(why, cap, "SIMFAB_DIR is set, but there is no simfab command beside mrrun or in PATH");
            return -1;
        }
        err = list_simulated(h, why, cap);
    } else {
        err = list_this_machine(h, why, cap);
    }
    if (!err && num_wanted)
        err = pick(h, wanted, num_wanted, why, cap);
    if (err)
        hosts_clear(h);
    return err;
}
