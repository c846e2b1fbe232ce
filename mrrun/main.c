/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun: start the ranks of an MPI job on this machine or on simulated hosts, and stay with them to the end. main()
 * puts the parts together in the order they need: signals are blocked before libpmix starts its thread, the janitor is
 * forked before that too.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mrrun/environment.h"
#include "mrrun/explain.h"
#include "mrrun/job.h"
#include "mrrun/rails.h"
#include "mrrun/report.h"
#include "mrrun/server.h"
#include "mrrun/spawn.h"

enum { STATUS_USAGE = 2, STATUS_FAILED = 1, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

extern char **environ;

static void print_help(void)
{
    printf("Usage: mrrun -n N [OPTIONS] PROGRAM [ARGS]\n\n"
           "Start N ranks of an MPI program: on this machine, or inside 'simfab run' on the hosts of\n"
           "the simulated fabric.\n\n");
    for (size_t i = 0; mrrun_options_help(i); i++)
        printf("  %s\n", mrrun_options_help(i));
    printf("\nThe status is that of the rank that failed first, or the largest of the ranks' exit codes; 128 + N\n"
           "if a rank was killed by signal N; 124 after --timeout; 126 or 127 if the program cannot be run.\n"
           "See mrrun(1).\n");
}

static int complain(int status, const char *what)
{
    fprintf(stderr, "mrrun: %s\n", what);
    return status;
}

/* Whether a variable is what an outer launcher told its rank; libpmix's parameters are the user's. */
static bool is_outer(const char *name, size_t len)
{
    static const char *const prefixes[] = {"PMIX_", "PMI_", "OMPI_COMM_WORLD_"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (len > strlen(prefixes[i]) && !strncmp(name, prefixes[i], strlen(prefixes[i])))
            return strncmp(name, "PMIX_MCA_", 9) != 0;
    return len == 15 && !strncmp(name, "HYDI_CONTROL_FD", len);
}

/* A launcher inside another one's job is not that job's rank: what the outer one told its rank must not reach libpmix
 * here, nor the ranks. */
static void forget_outer_launcher(void)
{
    char name[128];

    for (char **e = environ; *e;) {
        size_t len = strcspn(*e, "=");
        if (is_outer(*e, len) && len < sizeof(name)) {
            memcpy(name, *e, len);
            name[len] = 0;
            unsetenv(name);
        } else {
            e++;
        }
    }
}

static void find_bin_dir(char *dir, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", dir, cap - 1);

    dir[n > 0 ? n : 0] = 0;
    char *slash = strrchr(dir, '/');
    if (slash)
        *slash = 0;
}

/* The library lies beside the programs, in the build tree as when installed, or where a distribution put it. */
static void find_lib_dir(struct job *job, const char *bin_dir)
{
    char beside[PATH_MAX + 16], path[PATH_MAX], probe[PATH_MAX + 16];

    snprintf(beside, sizeof(beside), "%s/../lib", bin_dir);
    const char *candidates[] = {beside, MRMPI_LIBDIR};
    for (int i = 0; i < 2; i++) {
        if (!realpath(candidates[i], path) || strlen(path) >= sizeof(job->lib_dir))
            continue;
        snprintf(probe, sizeof(probe), "%s/libmpi.so.12", path);
        if (access(probe, R_OK))
            continue;
        strcpy(job->lib_dir, path);
        return;
    }
}

static int choose_job_id(struct job *job, char *why, size_t cap)
{
    const char *given[] = {job->opts->job_id, getenv("MRMPI_JOBID"), getenv("SLURM_JOB_ID")};

    snprintf(job->job_id, sizeof(job->job_id), "mrrun-%d", (int)getpid());
    for (int i = 0; i < 3; i++) {
        if (!given[i] || !*given[i])
            continue;
        if (strlen(given[i]) >= 64) {
            snprintf(why, cap, "the job id '%s' is too long (63 characters at most)", given[i]);
            return -1;
        }
        for (const char *c = given[i]; *c; c++) {
            if (!isalnum((unsigned char)*c) && !strchr("-_.:@+", *c)) {
                snprintf(why, cap, "the job id '%s' may have letters, digits and - _ . : @ + only", given[i]);
                return -1;
            }
        }
        snprintf(job->job_id, sizeof(job->job_id), "%s", given[i]);
        break;
    }
    return 0;
}

/* Two pipes and a connection per rank, and some for mrrun. Ranks get the limit as it was. */
static int raise_file_limit(struct job *job, char *why, size_t cap)
{
    rlim_t need = 3 * (rlim_t)job->opts->ranks + 64;

    getrlimit(RLIMIT_NOFILE, &job->old_files);
    struct rlimit more = job->old_files;
    more.rlim_cur = more.rlim_max;
    setrlimit(RLIMIT_NOFILE, &more);
    if (more.rlim_max >= need)
        return 0;
    snprintf(why, cap, "%d ranks need about %llu open files, and the hard limit is %llu (ulimit -Hn)", job->opts->ranks,
             (unsigned long long)need, (unsigned long long)more.rlim_max);
    return -1;
}

/* Descriptors 0-2 must exist, or pipes would take their numbers. */
static void fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

static int prepare(struct job *job, char *why, size_t cap)
{
    char bin_dir[PATH_MAX];

    find_bin_dir(bin_dir, sizeof(bin_dir));
    find_lib_dir(job, bin_dir);
    if (choose_job_id(job, why, cap))
        return STATUS_USAGE;
    job->program = spawn_find_program(job->opts->program[0]);
    if (!job->program) {
        snprintf(why, cap, "cannot run '%s': %s", job->opts->program[0], strerror(errno));
        return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
    }
    if (hosts_find(&job->hosts, job->opts->hosts, job->opts->num_hosts, bin_dir, why, cap))
        return STATUS_USAGE;
    if (placement_make(&job->place, job->opts->ranks, job->hosts.count, job->opts->ppn, why, cap))
        return STATUS_USAGE;
    job->ranks = calloc(job->opts->ranks, sizeof(*job->ranks));
    if (!job->ranks) {
        snprintf(why, cap, "out of memory");
        return STATUS_FAILED;
    }
    if (raise_file_limit(job, why, cap))
        return STATUS_USAGE;
    for (int r = 0; r < job->opts->ranks; r++)
        job->ranks[r].out.fd = job->ranks[r].err.fd = job->ranks[r].pidfd = -1;
    return 0;
}

static int run(struct job *job, struct report *report, char *why, size_t cap)
{
    int err = scratch_open(&job->scratch);
    if (err) {
        snprintf(why, cap, "cannot make a scratch directory in %s: %s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                 strerror(-err));
        return STATUS_FAILED;
    }
    if (server_start(&job->place, job->job_id, job->scratch.path, why, cap)) {
        scratch_close(&job->scratch);
        return STATUS_FAILED;
    }
    if (job->opts->timeout_s)
        job->timeout_at_ms = job_now_ms() + job->opts->timeout_s * 1000ull;
    if (job_start(job))
        job_on_start_failure(job);
    int status = job_loop(job);
    if (report_write(report, job) && !status)
        status = STATUS_FAILED;
    scratch_close(&job->scratch);
    return status;
}

/* Which hosts the job would run on, if that can be known here. */
static void find_hosts_to_explain(struct explain *e, struct hosts *hosts, char *why, size_t cap)
{
    struct placement place = {.num_hosts = 0};
    char bin_dir[PATH_MAX];

    find_bin_dir(bin_dir, sizeof bin_dir);
    e->why_no_hosts = why;
    if (hosts_find(hosts, e->opts->hosts, e->opts->num_hosts, bin_dir, why, cap))
        return;
    e->num_used = hosts->count;
    if (e->opts->ranks) {
        if (placement_make(&place, e->opts->ranks, hosts->count, e->opts->ppn, why, cap))
            return;
        e->num_used = place.num_hosts;
        placement_clear(&place);
    }
    e->hosts = hosts;
}

/* A fabric that does not answer is no reason to say nothing. */
static int explain_job(struct job *job, char *why, size_t cap)
{
    struct hosts hosts = {.count = 0};
    char no_hosts[512] = "";
    char simulated[] = "simfab";
    char **outer = environ;
    int status = STATUS_FAILED;

    if (choose_job_id(job, why, cap))
        return STATUS_USAGE;
    job->hosts.simfab = getenv("SIMFAB_DIR") ? simulated : NULL;
    struct explain e = {.opts = job->opts,
                        .job_id = job->job_id,
                        .simulated = job->hosts.simfab,
                        .outer = outer,
                        .env = job_make_environment(job)};
    find_hosts_to_explain(&e, &hosts, no_hosts, sizeof no_hosts);
    if (e.env)
        status = explain(&e);
    else
        snprintf(why, cap, "out of memory");
    environ = outer;
    environment_free(e.env);
    hosts_clear(&hosts);
    job->hosts.simfab = NULL;
    return status;
}

static void clear(struct job *job)
{
    for (int r = 0; job->ranks && r < job->opts->ranks; r++) {
        source_close(&job->ranks[r].out);
        source_close(&job->ranks[r].err);
    }
    if (job->deaths_fd >= 0)
        close(job->deaths_fd);
    free(job->ranks);
    free(job->program);
    sink_clear(&job->out);
    sink_clear(&job->err);
    placement_clear(&job->place);
    hosts_clear(&job->hosts);
}

int main(int argc, char **argv)
{
    struct mrrun_options opts;
    struct job job = {.opts = &opts, .ended_well = -1, .unheard = -1, .exec_fd = -1, .deaths_fd = -1};
    struct report report = {.stats = NULL};
    char why[512] = "";

    fill_standard_fds();
    if (mrrun_options_parse(&opts, argc, argv, why, sizeof(why))) {
        mrrun_options_clear(&opts);
        return complain(STATUS_USAGE, why);
    }
    if (opts.help) {
        print_help();
        mrrun_options_clear(&opts);
        return 0;
    }
    if (opts.version) {
        printf("mrrun %s\n", MRMPI_VERSION);
        mrrun_options_clear(&opts);
        return 0;
    }
    if (opts.rails) {
        mrrun_options_clear(&opts);
        return rails_print();
    }
    if (mrrun_options_timeout(&opts, getenv("MPIEXEC_TIMEOUT"), why, sizeof(why))) {
        mrrun_options_clear(&opts);
        return complain(STATUS_USAGE, why);
    }
    forget_outer_launcher();
    sink_init(&job.out, 1);
    sink_init(&job.err, 2);
    sink_init(&job.to_rank0, -1);
    int status = opts.explain ? explain_job(&job, why, sizeof(why)) : prepare(&job, why, sizeof(why));
    if (opts.explain) {
        if (why[0])
            complain(status, why);
        mrrun_options_clear(&opts);
        return status;
    }
    if (!status && report_open(&report, &opts, why, sizeof(why)))
        status = STATUS_USAGE;
    if (!status && signals_take(&job.signals)) {
        snprintf(why, sizeof(why), "cannot take signals: %s", strerror(errno));
        status = STATUS_FAILED;
    }
    if (!status)
        status = run(&job, &report, why, sizeof(why));
    if (why[0])
        complain(status, why);
    report_close(&report);
    clear(&job);
    mrrun_options_clear(&opts);
    return status;
}
