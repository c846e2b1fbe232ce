/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that this process has started: each an mrrun, a child of this process in its process group, so that a launcher
 * that ends this process ends these jobs too. posix_spawn() leaves registered memory alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/launch.h"

struct started {
    struct started *next;
    pid_t pid;
};

static struct started *started;

/* mrrun of this library's installation; "mrrun" of PATH, if the library lies elsewhere. */
static void find_mrrun(char *path, size_t cap)
{
    static const char *const from_lib[] = {"../bin/mrrun", "../../bin/mrrun"};
    Dl_info own;
    const char *end;

    if (dladdr((void *)find_mrrun, &own) && own.dli_fname && (end = strrchr(own.dli_fname, '/')))
        for (int i = 0; i < 2; i++) {
            int len = snprintf(path, cap, "%.*s/%s", (int)(end - own.dli_fname), own.dli_fname, from_lib[i]);

            if (len < (int)cap && !access(path, X_OK))
                return;
        }
    snprintf(path, cap, "mrrun");
}

/* The environment with that variable in place of its present value. NULL: no memory. The caller frees the array. */
static char **environment_with(char *variable)
{
    size_t name = strcspn(variable, "=") + 1;
    int n = 0, k = 0;
    char **out;

    while (environ[n])
        n++;
    out = malloc(((size_t)n + 2) * sizeof(*out));
    for (int i = 0; out && i < n; i++)
        if (strncmp(environ[i], variable, name))
            out[k++] = environ[i];
    if (out) {
        out[k++] = variable;
        out[k] = NULL;
    }
    return out;
}

static int prepare(posix_spawnattr_t *how, posix_spawn_file_actions_t *files)
{
    sigset_t none, all;
    int err = posix_spawnattr_init(how);

    if (err)
        return err;
    err = posix_spawn_file_actions_init(files);
    if (err) {
        posix_spawnattr_destroy(how);
        return err;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(how, &none);
    posix_spawnattr_setsigdefault(how, &all);
    posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    err = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", 0, 0);
    if (err) {
        posix_spawnattr_destroy(how);
        posix_spawn_file_actions_destroy(files);
    }
    return err;
}

int mr_launch_start(char **words, char *variable)
{
    char path[4096], **env = environment_with(variable);
    struct started *s = malloc(sizeof(*s));
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    int err = env && s ? prepare(&how, &files) : ENOMEM;

    if (!err) {
        char *first = words[0];

        find_mrrun(path, sizeof(path));
        words[0] = path;
        err = posix_spawnp(&s->pid, path, &files, &how, words, env);
        words[0] = first;
        posix_spawnattr_destroy(&how);
        posix_spawn_file_actions_destroy(&files);
    }
    free(env);
    if (err) {
        free(s);
        return -err;
    }
    s->next = started;
    started = s;
    return s->pid;
}

/* True: it has ended, and is not a child any more. A program that waits for all of its children may have its status. */
static bool has_ended(struct started *s, int options, int *status)
{
    int how, pid;

    do
        pid = waitpid(s->pid, &how, options);
    while (pid < 0 && errno == EINTR);
    if (pid == 0)
        return false;
    *status = pid < 0 ? -1 : WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return true;
}

bool mr_launch_started_ended(int pid, int *status)
{
    struct started **at = &started, *next;
    bool found = false;

    while (*at) {
        struct started *s = *at;
        int how;

        if (!has_ended(s, WNOHANG, &how)) {
            at = &s->next;
            continue;
        }
        if (s->pid == pid) {
            *status = how;
            found = true;
        }
        next = s->next;
        free(s);
        *at = next;
    }
    return found;
}

void mr_launch_started_wait(void)
{
    while (started) {
        struct started *s = started;
        int status;

        has_ended(s, 0, &status);
        started = s->next;
        free(s);
    }
}
