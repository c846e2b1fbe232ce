/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that this process has started: each an mrrun, a child of this process. Where the mrrun of this process, or its
 * agent, keeps account of them (mrrun/offspring.h) they have process groups of their own, and go on when this process
 * ends; mrrun ends them if it ends the job. Elsewhere they are in the group of this process, so that a launcher that
 * ends this process ends these jobs too. posix_spawn() leaves registered memory alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/launch/triplets.h"

struct started {
    struct started *next;
    pid_t pid;
    bool awaited; /* a thread waits for the first process of the job */
};

static struct started *started;

/* ---- mrrun's command line ---- */

struct command_line {
    char **word; /* [num], NULL behind */
    int num, room;
    bool no_memory;
};

static void free_words(struct command_line *l)
{
    for (int i = 0; i < l->num; i++)
        free(l->word[i]);
    free(l->word);
}

/* Takes the text over; NULL: there was no memory for it. */
static void own_word(struct command_line *l, char *text)
{
    if (text && l->num + 1 >= l->room) {
        int room = 2 * l->room + 16;
        char **more = realloc(l->word, (size_t)room * sizeof(*more));

        if (more) {
            l->word = more;
            l->room = room;
        }
    }
    if (!text || l->num + 1 >= l->room) {
        free(text);
        l->no_memory = true;
        return;
    }
    l->word[l->num++] = text;
    l->word[l->num] = NULL;
}

static void add_word(struct command_line *l, const char *text)
{
    own_word(l, strdup(text));
}

static void add_option(struct command_line *l, const char *option, const char *value)
{
    if (!value)
        return;
    add_word(l, option);
    add_word(l, value);
}

const char *mr_launch_program(const struct mr_launch_part *p, char *path, size_t cap)
{
    for (const char *dir = p->path; dir && *dir && *p->program != '/';) {
        size_t len = strcspn(dir, ": ");
        int n = snprintf(path, cap, "%.*s/%s", (int)len, dir, p->program);

        if (len && n < (int)cap && !access(path, X_OK))
            return path;
        dir += len + strspn(dir + len, ": ");
    }
    return p->program;
}

static void add_variables(struct command_line *l, const char *lines)
{
    for (size_t len; lines && *(lines += strspn(lines, "\n")); lines += len) {
        len = strcspn(lines, "\n");
        add_word(l, "-x");
        own_word(l, strndup(lines, len));
    }
}

/* 0, or an error that names the info key: a file that this process, like mrrun, cannot read. NULL: no such key. */
static int check_key_file(const char *key, const char *path, int how)
{
    if (!path || !access(path, how))
        return 0;
    return mr_launch_fail(-EINVAL, "the info key %s: cannot %s \"%.200s\": %s", key, how == R_OK ? "read" : "enter",
                          path, strerror(errno));
}

/* What mrrun would say on its standard error only. mrrun starts here: files are the same. */
static int check_key_files(const struct mr_launch_part *p)
{
    bool elsewhere = p->host || p->add_host || p->hostfile || p->add_hostfile;
    int err = check_key_file("hostfile", p->hostfile, R_OK);

    if (!err)
        err = check_key_file("add-hostfile", p->add_hostfile, R_OK);
    if (!err && !elsewhere)
        err = check_key_file("wdir", p->wdir, X_OK);
    return err;
}

/* In a word ":" alone mrrun would see the next program. */
static int add_part(struct command_line *l, const struct mr_launch_part *p)
{
    char number[16], path[4096];
    int err = check_key_files(p);

    if (err)
        return err;
    if (l->num > 1)
        add_word(l, ":");
    snprintf(number, sizeof(number), "%d", p->ranks);
    add_option(l, "-n", number);
    add_option(l, "-soft", p->soft);
    add_option(l, "-wdir", p->wdir);
    add_option(l, "--host", p->host);
    add_option(l, "--add-host", p->add_host);
    add_option(l, "--add-hostfile", p->hostfile);
    add_option(l, "--add-hostfile", p->add_hostfile);
    add_variables(l, p->env);
    add_word(l, mr_launch_program(p, path, sizeof(path)));
    for (char *const *a = p->argv; a && *a; a++) {
        if (!strcmp(*a, ":"))
            return mr_launch_fail(-EINVAL, "an argument of a program may not be \":\"");
        add_word(l, *a);
    }
    return 0;
}

/* ---- mrrun ---- */

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

#define CHOICE "MRMPI_LAUNCHER="

/*
 * The environment with that variable in place of its present value, and without the choice of this process's launcher:
 * the new processes have another one. NULL: no memory. The caller frees the array.
 */
static char **environment_with(char *variable)
{
    size_t name = strcspn(variable, "=") + 1;
    int n = 0, k = 0;
    char **out;

    while (environ[n])
        n++;
    out = malloc(((size_t)n + 2) * sizeof(*out));
    for (int i = 0; out && i < n; i++)
        if (strncmp(environ[i], variable, name) && strncmp(environ[i], CHOICE, strlen(CHOICE)))
            out[k++] = environ[i];
    if (out) {
        out[k++] = variable;
        out[k] = NULL;
    }
    return out;
}

static bool mrrun_keeps_account(void)
{
    char path[4096];
    int len = snprintf(path, sizeof(path), "%s/started", mr_config.inquiry);

    return *mr_config.inquiry && len < (int)sizeof(path) && !access(path, W_OK | X_OK);
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
    posix_spawnattr_setflags(how, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                          (mrrun_keeps_account() ? POSIX_SPAWN_SETPGROUP : 0)));
    err = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", 0, 0);
    if (err) {
        posix_spawnattr_destroy(how);
        posix_spawn_file_actions_destroy(files);
    }
    return err;
}

static int start_mrrun(char **words, char *variable)
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
        return mr_launch_fail(-err, "mrrun cannot be started: %s", strerror(err));
    }
    s->awaited = true;
    s->next = started;
    started = s;
    return s->pid;
}

/* ---- orders ---- */

static int check_launch_part(const struct mr_launch_part *p)
{
    struct utsname own;
    int least, largest;

    if (p->arch && !uname(&own) && strcmp(p->arch, own.machine))
        return mr_launch_fail(-EINVAL, "the info key arch asks for \"%.60s\", and the hosts are %s", p->arch,
                              own.machine);
    if (!*p->program || *p->program == '-')
        return mr_launch_fail(-EINVAL, "\"%s\" is no program", p->program);
    if (!p->soft)
        return 0;
    if (!mr_triplets_read(p->soft, p->ranks, &least, &largest))
        return mr_launch_fail(-EINVAL, "the info key soft is no list of A, A:B and A:B:STEP: \"%.60s\"", p->soft);
    return largest
               ? 0
               : mr_launch_fail(-EINVAL, "the info key soft has no number from 1 to %d: \"%.60s\"", p->ranks, p->soft);
}

int mr_launch_check(const struct mr_launch_order *order)
{
    int err = 0;

    for (int i = 0; i < order->parts && !err; i++)
        err = check_launch_part(&order->part[i]);
    return err;
}

static int check_program(const struct mr_launch_part *p)
{
    char path[4096], found[4096];
    const char *program = mr_launch_program(p, path, sizeof(path)), *dirs = mr_config_foreign("PATH");
    bool named = p->host || p->add_host || p->hostfile || p->add_hostfile;
    bool slash = strchr(program, '/');

    for (const char *dir = dirs; !named && !slash && dir && *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
        snprintf(found, sizeof(found), "%.*s/%s", (int)strcspn(dir, ":"), dir, program);
        if (!access(found, X_OK))
            return 0;
    }
    snprintf(found, sizeof(found), "%s/%s", *program != '/' && p->wdir ? p->wdir : *program != '/' ? "." : "", program);
    if (named || (slash && !access(found, X_OK)))
        return 0;
    return mr_launch_fail(-EINVAL, "cannot run '%s': %s", program, slash ? strerror(errno) : "it is not in PATH");
}

int mr_launch_check_programs(const struct mr_launch_order *order)
{
    int err = 0;

    for (int i = 0; i < order->parts && !err; i++)
        err = check_program(&order->part[i]);
    return err;
}

int mr_launch_most(const struct mr_launch_part *p)
{
    int least, largest;

    return p->soft && mr_triplets_read(p->soft, p->ranks, &least, &largest) ? largest : p->ranks;
}

int mr_launch_start_mrrun(const struct mr_launch_order *order)
{
    struct command_line l = {0};
    char *variable = NULL;
    int err = 0;

    add_word(&l, "mrrun");
    for (int i = 0; i < order->parts && !err; i++)
        err = add_part(&l, &order->part[i]);
    if (!err && asprintf(&variable, "%s=%s", MR_PARENT_VARIABLE, order->parent) < 0)
        variable = NULL;
    if (!err && (l.no_memory || !variable))
        err = mr_launch_fail(-ENOMEM, "no memory for a command line");
    else if (!err)
        err = start_mrrun(l.word, variable);
    free(variable);
    free_words(&l);
    return err;
}

int mr_launch_processors(void)
{
    cpu_set_t own;

    return sched_getaffinity(0, sizeof(own), &own) ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&own);
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

        if ((s->awaited && s->pid != pid) || !has_ended(s, WNOHANG, &how)) {
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

void mr_launch_started_lives(int pid)
{
    for (struct started *s = started; s; s = s->next)
        if (s->pid == pid)
            s->awaited = false;
}

void mr_launch_started_leave(bool alone)
{
    const bool go_on = alone || mrrun_keeps_account();

    while (started) {
        struct started *s = started;
        int status;

        has_ended(s, go_on ? WNOHANG : 0, &status);
        started = s->next;
        free(s);
    }
}
