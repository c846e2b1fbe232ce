/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of an agent: environments, processes, channels, ends. */
#include "mrrun/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/base/idioms.h"
#include "mrrun/environment.h"
#include "mrrun/offspring.h"
#include "mrrun/processes.h"
#include "mrrun/processors.h"
#include "mrrun/records.h"
#include "mrrun/spawn.h"

static void say_of_ranks(struct ranks *ranks, enum wire_kind kind, int rank, struct wire_text *body)
{
    struct wire_frame f = {
        .kind = kind, .host = ranks->host, .arg = (uint32_t)rank, .body = body->bytes, .len = body->len};

    ranks->base.send(&ranks->base, &f);
    free(body->bytes);
    *body = (struct wire_text){0};
}

/* ---- before the start ---- */

static char *copy_body(const struct wire_frame *f, struct wire_frame *copy)
{
    char *body = malloc(f->len + 1);

    if (!body)
        abort();
    memcpy(body, f->body, f->len);
    *copy = *f;
    copy->body = body;
    return body;
}

bool ranks_add_part(struct ranks *ranks, const struct wire_frame *f)
{
    struct agent_part *grown, *part;
    struct wire_frame copy;

    if (ranks->started)
        return false;
    grown = realloc(ranks->part, (size_t)(ranks->num_parts + 1) * sizeof(*grown));
    if (!grown)
        abort();
    ranks->part = grown;
    part = &grown[ranks->num_parts];
    part->body = copy_body(f, &copy);
    if (f->arg == (uint32_t)ranks->num_parts && wire_get_part(&copy, &part->is)) {
        ranks->num_parts++;
        return true;
    }
    free(part->body);
    return false;
}

bool ranks_add(struct ranks *ranks, const struct wire_frame *f)
{
    struct agent_rank *grown, *r;
    struct wire_frame copy;

    if (ranks->started)
        return false;
    grown = realloc(ranks->rank, (size_t)(ranks->count + 1) * sizeof(*grown));
    if (!grown)
        abort();
    ranks->rank = grown;
    r = &grown[ranks->count];
    *r = (struct agent_rank){.rank = (int)f->arg, .pidfd = -1};
    r->body = copy_body(f, &copy);
    if (f->arg < WIRE_PMIX / 4 && (!ranks->count || r->rank > r[-1].rank) && wire_get_rank(&copy, &r->is)) {
        if (r->is.part < (uint32_t)ranks->num_parts) {
            ranks->count++;
            return true;
        }
        wire_clear_rank(&r->is);
    }
    free(r->body);
    return false;
}

int ranks_index(const struct ranks *ranks, int rank)
{
    int low = 0, high = ranks->count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (ranks->rank[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranks->count && ranks->rank[low].rank == rank ? low : -1;
}

bool ranks_have(const struct ranks *ranks, pid_t pid)
{
    for (int i = 0; i < ranks->count; i++)
        if (ranks->rank[i].running && ranks->rank[i].pid == pid)
            return true;
    return false;
}

/* ---- environments ---- */

/* Variables of a host or a login stay the host's own; others are copied from mrrun's host. */
static const char *const of_host[] = {"HOSTNAME",
                                      "HOST",
                                      "SSH_CLIENT",
                                      "SSH_CONNECTION",
                                      "SSH_TTY",
                                      "SSH_AUTH_SOCK",
                                      "XDG_RUNTIME_DIR",
                                      "XDG_SESSION_ID",
                                      "DBUS_SESSION_BUS_ADDRESS",
                                      "SLURMD_NODENAME",
                                      "SLURM_NODEID",
                                      "SLURM_LOCALID",
                                      "SLURM_GTIDS",
                                      "SLURM_PROCID",
                                      "SLURM_TOPOLOGY_ADDR",
                                      "SLURM_LAUNCH_NODE_IPADDR"};

static void unset_variable(char **env, const char *name)
{
    size_t len = strlen(name);
    char **to = env;

    for (; *env; env++) {
        if (!strncmp(*env, name, len) && (*env)[len] == '=')
            free(*env);
        else
            *to++ = *env;
    }
    *to = NULL;
}

static int set_variables_of_host(char ***env)
{
    int err = 0;

    for (size_t i = 0; i < sizeof(of_host) / sizeof(of_host[0]) && !err; i++) {
        const char *value = getenv(of_host[i]);

        if (value)
            err = environment_set(env, of_host[i], value);
        else
            unset_variable(*env, of_host[i]);
    }
    return err;
}

/* The text with each mention of one directory as another's; malloc'd. */
static char *replace_text(const char *text, const char *from, const char *to)
{
    char *out = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&out, &len);

    for (const char *hit; f && (hit = strstr(text, from)); text = hit + strlen(from))
        fprintf(f, "%.*s%s", (int)(hit - text), text, to);
    if (f)
        fputs(text, f);
    return f && !fclose(f) ? out : NULL;
}

static int set_directories(struct ranks *ranks, char **env)
{
    for (; *env; env++) {
        if (!*ranks->start->scratch || !strstr(*env, ranks->start->scratch))
            continue;
        char *own = replace_text(*env, ranks->start->scratch, ranks->scratch.path);
        if (!own)
            return -1;
        free(*env);
        *env = own;
    }
    return 0;
}

/* "...;tcp4://127.0.0.1:PORT" */
static int set_port(char **env, unsigned port)
{
    for (; *env; env++) {
        char *colon = strncmp(*env, "PMIX_SERVER_URI", 15) ? NULL : strrchr(*env, ':'), *own;

        if (!colon)
            continue;
        if (asprintf(&own, "%.*s%u", (int)(colon + 1 - *env), *env, port) < 0)
            return -1;
        free(*env);
        *env = own;
    }
    return 0;
}

static int set_library(char ***env, const char *lib_dir)
{
    const char *now = environment_get(*env, "LD_LIBRARY_PATH");
    size_t len = strlen(lib_dir);

    if (!len || (now && !strncmp(now, lib_dir, len) && (!now[len] || now[len] == ':')))
        return 0;
    return environment_prepend_path(env, "LD_LIBRARY_PATH", lib_dir);
}

static int set_pairs(char ***env, char *const *pair)
{
    int err = 0;

    for (; *pair && !err; pair++) {
        char *equals = strchr(*pair, '='), *name = equals ? strndup(*pair, (size_t)(equals - *pair)) : NULL;

        if (equals)
            err = name ? environment_set(env, name, equals + 1) : -1;
        free(name);
    }
    return err;
}

/* NULL: no memory. */
static char **make_rank_env(struct ranks *ranks, const struct agent_rank *r)
{
    char **env = environment_copy(ranks->part[r->is.part].is.env);

    if (env && !set_pairs(&env, r->is.env) && !set_variables_of_host(&env) && !set_library(&env, ranks->lib_dir) &&
        !set_directories(ranks, env) && !set_port(env, ranks->port))
        return env;
    environment_free(env);
    return NULL;
}

static void write_suppressions(const struct ranks *ranks)
{
    char name[sizeof(ranks->scratch.path) + 16];
    FILE *f;

    snprintf(name, sizeof(name), "%s/lsan.supp", ranks->scratch.path);
    f = fopen(name, "we");
    if (!f)
        return;
    fputs("leak:libpmix\n", f);
    fclose(f);
}

/* ---- starting ---- */

/* Reports a rank that could not be started, with the shell's exit code for this case. */
static void tell_unable(struct ranks *ranks, const struct agent_rank *r, int error, const char *text, bool ended)
{
    struct wire_text body = {0};

    wire_put_number(&body, (uint32_t)error);
    wire_put_string(&body, text);
    say_of_ranks(ranks, WIRE_UNABLE, r->rank, &body);
    if (!ended)
        return;
    wire_put_number(&body, 127 << 8);
    say_of_ranks(ranks, WIRE_EXIT, r->rank, &body);
}

/* The path, malloc'd, or NULL after a report. */
static char *find_program(struct ranks *ranks, const struct agent_rank *r, char *const *env)
{
    const struct wire_part *part = &ranks->part[r->is.part].is;
    const char *path = environment_get(env, "PATH");
    char why[PATH_MAX + 128], *found;
    struct stat st;
    int error;

    if (path)
        setenv("PATH", path, 1);
    error = stat(part->dir, &st) ? errno : !S_ISDIR(st.st_mode) ? ENOTDIR : access(part->dir, X_OK) ? errno : 0;
    if (error) {
        snprintf(why, sizeof(why), "cannot enter directory '%s': %s", part->dir, strerror(error));
        tell_unable(ranks, r, error, why, true);
        return NULL;
    }
    found = spawn_find_program(part->program, part->dir);
    if (found)
        return found;
    error = errno;
    snprintf(why, sizeof(why), "cannot run '%s' in %s: %s", part->program, part->dir, strerror(error));
    tell_unable(ranks, r, error, why, true);
    return NULL;
}

static char **make_agent_words(const struct ranks *ranks, const struct agent_rank *r, char *program)
{
    char **args = ranks->part[r->is.part].is.args;
    size_t count = 0, n = 0;

    while (args[count])
        count++;
    char **words = calloc(count + 6, sizeof(*words));
    if (!words)
        abort();
    if (ranks->simfab) {
        words[n++] = ranks->simfab;
        words[n++] = (char *)"exec";
        words[n++] = ranks->start->host[0];
        words[n++] = (char *)"--";
    }
    words[n++] = program;
    for (size_t i = 1; i < count; i++)
        words[n++] = args[i];
    return words;
}

static void close_open_pair(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int open_pipes(const struct agent_rank *r, int in[2], int out[2], int err[2])
{
    in[0] = in[1] = out[0] = out[1] = err[0] = err[1] = -1;
    if (r->is.reads ? pipe2(in, O_CLOEXEC) : (in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        return -errno;
    return pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) ? -errno : 0;
}

static void tell_started(struct ranks *ranks, int i)
{
    const struct agent_rank *r = &ranks->rank[i];
    struct wire_text body = {0};
    char text[512] = "";

    if (ranks->processors.set)
        processors_text(&ranks->processors, i, text, sizeof(text));
    wire_put_number(&body, (uint32_t)r->pid);
    wire_put_string(&body, text);
    say_of_ranks(ranks, WIRE_STARTED, r->rank, &body);
}

static int start_process(struct ranks *ranks, int i, char *const *words, char *const *env, int report_fd)
{
    struct agent_rank *r = &ranks->rank[i];
    const struct channel_base *b = &ranks->base;
    int in[2], out[2], err[2], error = open_pipes(r, in, out, err);
    pid_t pid = error;
    struct spawn_spec spec = {.rank = r->rank,
                              .argv = words,
                              .env = env,
                              .processors = ranks->processors.set ? ranks->processors.set[i] : NULL,
                              .processors_bytes = ranks->processors.bytes,
                              .dir = ranks->part[r->is.part].is.dir,
                              .fds = {in[0], out[1], err[1]},
                              .report_fd = report_fd,
                              .mask = &ranks->mask,
                              .files = &ranks->files,
                              .apart = !processors_are_fewer(ranks->count)};

    if (!error)
        pid = spawn_rank(&spec);
    if (pid < 0) {
        close_open_pair(in);
        close_open_pair(out);
        close_open_pair(err);
        return pid;
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    scratch_watch_group(&ranks->scratch, pid);
    r->pid = pid;
    r->pidfd = spawn_watch(ranks->deaths_fd, pid, i);
    r->running = true;
    ranks->running++;
    channel_open(&r->out, b, ranks->host, WIRE_CHANNEL(r->rank, WIRE_OUT), out[0], -1);
    channel_open(&r->err, b, ranks->host, WIRE_CHANNEL(r->rank, WIRE_ERR), err[0], -1);
    if (r->is.reads)
        channel_open(&r->in, b, ranks->host, WIRE_CHANNEL(r->rank, WIRE_IN), -1, in[1]);
    tell_started(ranks, i);
    return 0;
}

static void tell_no_output(struct ranks *ranks, int rank)
{
    struct wire_text none = {0};

    say_of_ranks(ranks, WIRE_END, (int)WIRE_CHANNEL(rank, WIRE_OUT), &none);
    say_of_ranks(ranks, WIRE_END, (int)WIRE_CHANNEL(rank, WIRE_ERR), &none);
}

static void start_agent_rank(struct ranks *ranks, int i, int report_fd)
{
    struct agent_rank *r = &ranks->rank[i];
    char **env = make_rank_env(ranks, r), *program = env ? find_program(ranks, r, env) : NULL;
    char **words = program ? make_agent_words(ranks, r, program) : NULL;
    int err = words ? start_process(ranks, i, words, env, report_fd) : env ? 0 : -ENOMEM;

    if (err)
        tell_unable(ranks, r, -err, strerror(-err), true);
    if (err || !words)
        tell_no_output(ranks, r->rank);
    free(words);
    free(program);
    environment_free(env);
}

static void start_all(struct ranks *ranks)
{
    int report[2];

    if (pipe2(report, O_CLOEXEC))
        report[0] = report[1] = -1;
    ranks->exec_fd = report[0];
    ranks->deaths_fd = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < ranks->count; i++)
        start_agent_rank(ranks, i, report[1]);
    if (report[1] >= 0)
        close(report[1]);
}

static void start_none(struct ranks *ranks, const char *why)
{
    for (int i = 0; i < ranks->count; i++) {
        tell_unable(ranks, &ranks->rank[i], EINVAL, why, true);
        tell_no_output(ranks, ranks->rank[i].rank);
    }
}

static void processors_known(struct binder *b, const char *why)
{
    struct ranks *ranks = container_of(b, struct ranks, binder);

    if (why)
        start_none(ranks, why);
    else
        start_all(ranks);
}

void ranks_start(struct ranks *ranks, const struct wire_run *run, unsigned port, const char *lib_dir)
{
    struct binding_wish wish = {.to = run->bind_to, .units = (int)run->bind_units, .map = run->bind_map};
    char **env = NULL;

    ranks->started = true;
    ranks->port = port;
    ranks->lib_dir = lib_dir;
    write_suppressions(ranks);
    if (!port) {
        start_none(ranks, "no port of the loopback interface can be opened");
    } else if (wish.to > BINDING_NONE || wish.map > BINDING_NONE || wish.units < 0 || wish.units > 4096 ||
               !binding_wanted(&wish) || ranks->simfab || !ranks->count) {
        start_all(ranks);
    } else if (!(env = make_rank_env(ranks, &ranks->rank[0]))) {
        start_none(ranks, "out of memory");
    } else {
        ranks->binder.set = ranks->base.set;
        ranks->binder.to = &ranks->processors;
        ranks->binder.done = processors_known;
        binder_start(&ranks->binder, &wish, ranks->start->host[0], env, ranks->count);
    }
    environment_free(env);
}

/* ---- while ranks run ---- */

static struct channel *channel_of(struct agent_rank *r, uint32_t which)
{
    struct channel *of[] = {[WIRE_IN] = &r->in, [WIRE_OUT] = &r->out, [WIRE_ERR] = &r->err, [WIRE_RECORD] = &r->record};

    return of[which];
}

bool ranks_take(struct ranks *ranks, const struct wire_frame *f)
{
    int i = ranks_index(ranks, (int)(f->arg / 4));

    return i >= 0 && channel_take(channel_of(&ranks->rank[i], f->arg % 4), f);
}

bool ranks_fetch(struct ranks *ranks, uint32_t rank)
{
    int i = rank < WIRE_PMIX / 4 ? ranks_index(ranks, (int)rank) : -1, fd;
    char number[16], name[sizeof(ranks->scratch.path) + 32];
    struct channel *c;

    if (i < 0 || ranks->rank[i].record.open)
        return false;
    snprintf(number, sizeof(number), "%u", rank);
    snprintf(name, sizeof(name), RECORD_FILE, ranks->scratch.path, number);
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    c = &ranks->rank[i].record;
    channel_open(c, &ranks->base, ranks->host, WIRE_CHANNEL(rank, WIRE_RECORD), fd, -1);
    channel_read_file(c);
    return true;
}

void ranks_signal(struct ranks *ranks, int rank, int sig)
{
    for (int i = 0; i < ranks->count; i++)
        if (ranks->rank[i].running && (rank < 0 || ranks->rank[i].rank == rank))
            spawn_signal(ranks->rank[i].pid, sig);
}

void ranks_kill_all(struct ranks *ranks, const pid_t *but, int num_but)
{
    enum { OFFSPRING_MOST = 1024 };
    pid_t *kept = calloc((size_t)num_but + 1 + OFFSPRING_MOST, sizeof(*kept));
    int num = num_but;

    ranks_signal(ranks, -1, SIGKILL);
    if (!kept)
        return;
    if (num_but)
        memcpy(kept, but, (size_t)num_but * sizeof(*kept));
    kept[num++] = ranks->scratch.janitor;
    if (!ranks->dismissed) {
        num += offspring_list(ranks->scratch.path, kept + num, OFFSPRING_MOST);
        offspring_signal(ranks->scratch.path, SIGTERM);
    }
    ranks->dismissed = true;
    processes_kill_descendants(kept, num);
    free(kept);
}

void ranks_endings(struct ranks *ranks, struct wire_text *out)
{
    pid_t *pid = calloc((size_t)ranks->count + 1, sizeof(*pid));
    enum ending *ending = calloc((size_t)ranks->count + 1, sizeof(*ending));

    if (!pid || !ending)
        abort();
    for (int i = 0; i < ranks->count; i++)
        pid[i] = ranks->rank[i].running ? ranks->rank[i].pid : 0;
    processes_ending(pid, ranks->count, ending);
    for (int i = 0; i < ranks->count; i++) {
        if (!pid[i] || ending[i] == ENDING_NOT)
            continue;
        wire_put_number(out, (uint32_t)ranks->rank[i].rank);
        wire_put_number(out, ending[i]);
    }
    free(ending);
    free(pid);
}

/* ---- ends ---- */

static void read_agent_exec_failures(struct ranks *ranks)
{
    struct pollfd p = {.fd = ranks->exec_fd, .events = POLLIN};
    struct spawn_failure failure;
    char why[PATH_MAX + 128];

    while (ranks->exec_fd >= 0 && poll(&p, 1, 0) > 0) {
        int i =
            read(ranks->exec_fd, &failure, sizeof(failure)) == sizeof(failure) ? ranks_index(ranks, failure.rank) : -1;

        if (i < 0) {
            close(ranks->exec_fd);
            ranks->exec_fd = -1;
            return;
        }
        snprintf(why, sizeof(why), "cannot run '%s': %s", ranks->part[ranks->rank[i].is.part].is.program,
                 strerror(failure.error));
        tell_unable(ranks, &ranks->rank[i], failure.error, why, false);
    }
}

/* As in loop.c: the group is killed while its number is the rank's, output and words to PMIx go before the end. */
static void reap_agent_rank(struct ranks *ranks, int i)
{
    struct agent_rank *r = &ranks->rank[i];
    struct wire_text body = {0};
    siginfo_t info = {0};
    int status;

    if (!r->running || waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
        return;
    kill(-r->pid, SIGKILL);
    scratch_forget_group(&ranks->scratch, r->pid);
    spawn_unwatch(r->pidfd);
    r->pidfd = -1;
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    r->running = false;
    ranks->running--;
    read_agent_exec_failures(ranks);
    ranks->drain(ranks->drain_arg);
    channel_drain(&r->out);
    channel_drain(&r->err);
    wire_put_number(&body, (uint32_t)status);
    say_of_ranks(ranks, WIRE_EXIT, r->rank, &body);
}

void ranks_reap(struct ranks *ranks)
{
    struct epoll_event dead;

    while (ranks->deaths_fd >= 0 && epoll_wait(ranks->deaths_fd, &dead, 1, 0) == 1)
        reap_agent_rank(ranks, (int)dead.data.u32);
    for (int i = 0; i < ranks->count; i++)
        reap_agent_rank(ranks, i);
}

static void finish_output(struct channel *c)
{
    struct pollfd p = {.fd = c->from.fd, .events = POLLIN};

    if (c->open && c->from.fd >= 0 && poll(&p, 1, 0) == 0)
        channel_end(c);
}

void ranks_serve(struct ranks *ranks)
{
    for (int i = 0; i < ranks->count; i++) {
        struct agent_rank *r = &ranks->rank[i];

        if (r->running || !r->pid)
            continue;
        if (!ranks->offspring) {
            finish_output(&r->out);
            finish_output(&r->err);
        }
        channel_end(&r->in);
    }
}

/* ---- life ---- */

int ranks_open(struct ranks *ranks)
{
    struct rlimit more;
    int err;

    ranks->exec_fd = ranks->deaths_fd = -1;
    getrlimit(RLIMIT_NOFILE, &ranks->files);
    more = ranks->files;
    more.rlim_cur = more.rlim_max;
    setrlimit(RLIMIT_NOFILE, &more);
    err = scratch_open(&ranks->scratch);
    return err ? err : offspring_open(ranks->scratch.path);
}

void ranks_close(struct ranks *ranks)
{
    for (int i = 0; i < ranks->count; i++) {
        struct agent_rank *r = &ranks->rank[i];
        struct channel *open[] = {&r->in, &r->out, &r->err, &r->record};

        for (size_t c = 0; c < sizeof(open) / sizeof(open[0]); c++)
            channel_end(open[c]);
        wire_clear_rank(&ranks->rank[i].is);
        free(ranks->rank[i].body);
    }
    for (int i = 0; i < ranks->num_parts; i++) {
        wire_clear_part(&ranks->part[i].is);
        free(ranks->part[i].body);
    }
    free(ranks->rank);
    free(ranks->part);
    free(ranks->simfab);
    binder_close(&ranks->binder);
    processors_clear(&ranks->processors);
    scratch_close(&ranks->scratch);
}
