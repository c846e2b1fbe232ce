/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting the ranks of a job: pipes, environments, words. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mrrun/agents.h"
#include "mrrun/environment.h"
#include "mrrun/job.h"
#include "mrrun/processors.h"
#include "mrrun/report.h"
#include "mrrun/server.h"
#include "mrrun/spawn.h"

/* Events kept by a rank for a timeline: 3 MiB. */
#define RECORD_EVENTS "65536"

/* In the scratch directory, where mrrun finds them when the job has ended. */
static int ask_for_records(const struct job *job, char ***env)
{
    char name[sizeof job->scratch.path + 32];

    if (!job_wants_records(job->opts))
        return 0;
    if (job->opts->trace && !environment_get(*env, "MRMPI_RECORD_EVENTS") &&
        environment_set(env, "MRMPI_RECORD_EVENTS", RECORD_EVENTS))
        return -1;
    if (!job->scratch.path[0]) /* nothing is started */
        return 0;
    snprintf(name, sizeof name, RECORD_FILE, job->scratch.path, "%r");
    return environment_set(env, "MRMPI_RECORD", name);
}

/*
 * A program with the address sanitizer would end with an error for memory not freed by libpmix. Other programs ignore
 * the variable; the user's suppressions stay.
 */
static int suppress_leaks_of_libpmix(const struct job *job, char ***env)
{
    const char *old = environment_get(*env, "LSAN_OPTIONS");
    char name[sizeof job->scratch.path + 16], *options;
    FILE *f;
    int err;

    if (!job->scratch.path[0] || (old && strstr(old, "suppressions=")))
        return 0;
    snprintf(name, sizeof name, "%s/lsan.supp", job->scratch.path);
    f = fopen(name, "we");
    if (!f)
        return 0; /* its reports name libpmix */
    fputs("leak:libpmix\n", f);
    fclose(f);
    err = asprintf(&options, "suppressions=%s:print_suppressions=0%s%s", name, old ? ":" : "", old ? old : "");
    if (err < 0)
        return -1;
    err = environment_set(env, "LSAN_OPTIONS", options);
    free(options);
    return err;
}

/* NAME alone means the present value, which was already copied. */
static int set_variables(char ***env, const struct mrrun_env *list)
{
    int err = 0;

    for (int i = 0; i < list->count && !err; i++) {
        char *equals = strchr(list->text[i], '=');
        char *name = equals ? strndup(list->text[i], (size_t)(equals - list->text[i])) : NULL;

        if (equals)
            err = name ? environment_set(env, name, equals + 1) : -1;
        free(name);
    }
    return err;
}

/* Programs that ask PWD for their directory must not be told mrrun's. */
static int set_directory(char ***env, const char *dir)
{
    char path[PATH_MAX];

    return dir && realpath(dir, path) ? environment_set(env, "PWD", path) : 0;
}

/* The common environment of all ranks of a part. */
char **job_make_environment(const struct job *job, int part)
{
    char **env = environment_copy(environ);
    int err = env ? 0 : -1;

    if (!err)
        err = set_directory(&env, job->opts->parts[part].wdir);
    if (!err)
        err = set_variables(&env, &job->opts->env);
    if (!err)
        err = set_variables(&env, &job->opts->parts[part].env);
    if (!err)
        err = environment_set(&env, "MRMPI_JOBID", job->job_id);
    if (!err && job->opts->stats && !job->opts->stats_as)
        err = environment_set(&env, "MRMPI_STATS", "1");
    if (!err && job->opts->check)
        err = environment_set(&env, "MRMPI_CHECK", "1") || environment_set(&env, "MRMPI_CHECK_ARGS", "1") ? -1 : 0;
    if (!err)
        err = ask_for_records(job, &env);
    if (!err && job->scratch.path[0])
        err = environment_set(&env, "MRMPI_INQUIRY", job->scratch.path);
    if (!err && job->opts->recover)
        err = environment_set(&env, "MRMPI_RECOVER", "1");
    if (!err)
        err = suppress_leaks_of_libpmix(job, &env);
    /* A simulated host has a core for each rank: this machine's have nothing to do with it. */
    if (!err && job->hosts.simfab && !environment_get(env, "MRMPI_OVERSUBSCRIBED"))
        err = environment_set(&env, "MRMPI_OVERSUBSCRIBED", "0");
    if (!err && job->lib_dir[0])
        err = environment_prepend_path(&env, "LD_LIBRARY_PATH", job->lib_dir);
    if (err) {
        environment_free(env);
        return NULL;
    }
    return env;
}

/* PROGRAM ARGS, or "simfab exec HOST -- PROGRAM ARGS". The strings stay the caller's. */
static char **make_local_words(const struct job *job, int rank)
{
    int part = job->ranks[rank].part;
    char **program = job->opts->parts[part].program;
    size_t args = 0, n = 0;

    while (program[args])
        args++;
    char **words = calloc(args + 5, sizeof(*words));
    if (!words)
        return NULL;
    if (job->hosts.simfab) {
        words[n++] = job->hosts.simfab;
        words[n++] = (char *)"exec";
        words[n++] = job->hosts.name[job->place.host_of[rank]];
        words[n++] = (char *)"--";
    }
    words[n++] = job->program[part];
    for (size_t i = 1; i < args; i++)
        words[n++] = program[i];
    return words;
}

struct rank_fds {
    int in, out[2], err[2];
};

static void close_rank_fds(struct rank_fds *f, bool also_ours)
{
    int theirs[] = {f->in, f->out[1], f->err[1]};

    for (int i = 0; i < 3; i++)
        if (theirs[i] > 2)
            close(theirs[i]);
    if (also_ours) {
        close(f->out[0]);
        close(f->err[0]);
    }
}

static bool one_reads(const struct job *job)
{
    int readers = 0;

    for (int r = 0; r < job->place.ranks && readers < 2; r++)
        readers += mrrun_options_reads(job->opts, r);
    return readers == 1;
}

/* A single rank gets mrrun's stdin itself, unless a terminal. Ranks that do not read stdin get /dev/null. */
static int open_stdin(struct job *job, int rank)
{
    if (!mrrun_options_reads(job->opts, rank) || fcntl(0, F_GETFD) < 0)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    return one_reads(job) && !isatty(0) ? 0 : input_add(&job->input, rank);
}

static int open_rank_fds(struct job *job, int rank, struct rank_fds *f)
{
    f->in = open_stdin(job, rank);
    if (f->in < 0)
        return -errno;
    if (pipe2(f->out, O_CLOEXEC)) {
        int err = -errno;
        if (f->in > 2)
            close(f->in);
        return err;
    }
    if (pipe2(f->err, O_CLOEXEC)) {
        int err = -errno;
        close(f->out[0]);
        close(f->out[1]);
        if (f->in > 2)
            close(f->in);
        return err;
    }
    return 0;
}

static void watch_output(struct job *job, int rank, const struct rank_fds *f)
{
    struct rank *r = &job->ranks[rank];

    r->out.fd = f->out[0];
    r->err.fd = f->err[0];
}

static void label_output(struct job *job)
{
    for (int r = 0; r < job->place.ranks && job->opts->label; r++) {
        struct rank *rank = &job->ranks[r];

        snprintf(rank->out.label, sizeof(rank->out.label), "[%d] ", r);
        snprintf(rank->err.label, sizeof(rank->err.label), "[%d] ", r);
    }
}

/*
 * Variables that programs and their scripts read before MPI_Init, under the names of Hydra, Intel MPI and Open MPI.
 * Only information: no variable by which a client of PMI would look for a launcher (PMI_FD, PMI_PORT, PMI_ID).
 */
static int set_numbers(const struct job *job, int rank, char ***env)
{
    const struct placement *place = &job->place;
    const int host = place->host_of[rank];
    const struct {
        const char *name;
        int value;
    } numbers[] = {
        {"PMI_RANK", rank},
        {"PMI_SIZE", place->ranks},
        {"MPI_LOCALRANKID", place->local_rank[rank]},
        {"MPI_LOCALNRANKS", place->ranks_of[host]},
        {"OMPI_COMM_WORLD_RANK", rank},
        {"OMPI_COMM_WORLD_SIZE", place->ranks},
        {"OMPI_COMM_WORLD_LOCAL_RANK", place->local_rank[rank]},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", place->ranks_of[host]},
        {"OMPI_COMM_WORLD_NODE_RANK", place->local_rank[rank]},
    };
    char text[16];
    int err = 0;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && !err; i++) {
        snprintf(text, sizeof(text), "%d", numbers[i].value);
        err = environment_set(env, numbers[i].name, text);
    }
    return err;
}

/* Its environment goes to *out, also after an error. */
static int introduce_rank(struct job *job, int rank, char *const *job_env, char ***out)
{
    const char *host = job->hosts.name[job->place.host_of[rank]];
    const char *devices = job->hosts.devices[job->place.host_of[rank]];

    *out = environment_copy(job_env);
    if (!*out || (devices && environment_set(out, "MRMPI_DEVICES", devices)) || set_numbers(job, rank, out))
        return -ENOMEM;
    return server_add_rank(rank, host, out) ? -EIO : 0;
}

/* known counts ranks with an environment, also after an error. */
static int introduce_part(struct job *job, int part, char ***env, int *known)
{
    char **part_env = job_make_environment(job, part);
    int err = part_env ? 0 : -ENOMEM;

    while (!err && *known < job->place.part_first[part + 1]) {
        err = introduce_rank(job, *known, part_env, &env[*known]);
        ++*known;
    }
    environment_free(part_env);
    return err;
}

/* Agents keep the data of their ranks until the order to start. */
static int introduce_to_agents(struct job *job, int part)
{
    char **part_env = job_make_environment(job, part);
    int err = part_env ? agents_add_part(job->agents, part, part_env) : -ENOMEM;

    for (int r = job->place.part_first[part]; !err && r < job->place.part_first[part + 1]; r++) {
        char **env = NULL;

        err = introduce_rank(job, r, part_env, &env);
        if (!err)
            err = agents_add_rank(job->agents, r, part_env, env);
        environment_free(env);
    }
    environment_free(part_env);
    return err;
}

static int prepare_agents(struct job *job)
{
    int err = 0;

    for (int part = 0; part < job->place.num_parts && !err; part++)
        err = introduce_to_agents(job, part);
    if (err == -E2BIG)
        job_say(job, "the environment and the arguments of a part are too long for agents (4 MiB)");
    else if (err && !signals_end_asked())
        job_say(job, "cannot prepare the job: %s", strerror(-err));
    return err;
}

static void report_binding(struct job *job, int rank)
{
    const struct binding_wish *wish = &job->opts->binding;
    char text[512];

    if (job->processors.set && (wish->report || job->opts->verbose)) {
        processors_text(&job->processors, rank, text, sizeof(text));
        job_say(job, "rank %d is bound to %s: processors %s", rank, binding_object_name(binding_target(wish)), text);
    } else if (wish->report) {
        job_say(job, "rank %d is not bound", rank);
    }
}

static int start_local_rank(struct job *job, int rank, char *const *env, int report_fd)
{
    struct rank_fds fds;
    char **words = make_local_words(job, rank);
    const char *host = job->hosts.name[job->place.host_of[rank]];
    int err = -ENOMEM;

    if (!words)
        goto out;
    err = open_rank_fds(job, rank, &fds);
    if (err)
        goto out;

    struct spawn_spec spec = {.rank = rank,
                              .argv = words,
                              .env = env,
                              .processors = job->processors.set ? job->processors.set[rank] : NULL,
                              .processors_bytes = job->processors.bytes,
                              .dir = job->opts->parts[job->ranks[rank].part].wdir,
                              .fds = {fds.in, fds.out[1], fds.err[1]},
                              .report_fd = report_fd,
                              .mask = &job->signals.old,
                              .files = &job->old_files,
                              .apart = !processors_are_fewer(job->place.ranks)};
    pid_t pid = spawn_rank(&spec);
    close_rank_fds(&fds, pid < 0);
    err = pid < 0 ? pid : 0;
    if (pid < 0)
        goto out;
    scratch_watch_group(&job->scratch, pid);
    server_watch_process(rank, pid);
    job->ranks[rank].pid = pid;
    job->ranks[rank].pidfd = spawn_watch(job->deaths_fd, pid, rank);
    job->ranks[rank].running = true;
    job->running++;
    watch_output(job, rank, &fds);
    if (job->opts->verbose)
        job_say(job, "rank %d started on host %s, pid %d", rank, host, (int)pid);
    report_binding(job, rank);
out:
    free(words);
    return err;
}

/* A further descriptor per rank; without them ranks that end together have no order. */
static void watch_deaths(struct job *job)
{
    struct rlimit files;

    if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur >= 4 * (rlim_t)job->place.ranks + 64)
        job->deaths_fd = epoll_create1(EPOLL_CLOEXEC);
}

/*
 * The server registers all ranks before a rank can block the server. After a request to end, no more ranks are started:
 * the loop ends the others.
 */
int job_start(struct job *job)
{
    label_output(job);
    if (job->agents)
        return prepare_agents(job) ? -1 : 0;
    int ranks = job->place.ranks, report[2];
    char ***env = calloc(ranks, sizeof(*env));
    int err = env ? 0 : -ENOMEM;
    int known = 0, started = 0;

    if (!err && pipe2(report, O_CLOEXEC))
        err = -errno;
    if (err) {
        job_say(job, "cannot start the job: %s", strerror(-err));
        goto out;
    }
    job->exec_fd = report[0];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    watch_deaths(job);
    for (int part = 0; part < job->place.num_parts && !err; part++)
        err = introduce_part(job, part, env, &known);
    while (!err && started < ranks && !signals_end_asked()) {
        err = start_local_rank(job, started, env[started], report[1]);
        started++;
    }
    close(report[1]);
    if (err && !signals_end_asked())
        job_say(job, "cannot start rank %d: %s", (started ? started : known) - 1, strerror(-err));
    else if (!started)
        err = -EINTR;
out:
    for (int r = 0; r < known; r++)
        environment_free(env[r]);
    free(env);
    return err ? -1 : 0;
}
