/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun: starts the ranks of an MPI job on this machine, on other or on simulated hosts, and stays to the end. main()
 * calls the parts in their required order: signals are blocked before libpmix starts its thread, and the janitor is
 * forked before that too.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libmrmpi/launch/triplets.h"
#include "mrrun/agent.h"
#include "mrrun/agents.h"
#include "mrrun/attach.h"
#include "mrrun/environment.h"
#include "mrrun/explain.h"
#include "mrrun/job.h"
#include "mrrun/offspring.h"
#include "mrrun/program.h"
#include "mrrun/rails.h"
#include "mrrun/report.h"
#include "mrrun/server.h"
#include "mrrun/spawn.h"

enum { STATUS_USAGE = 2, STATUS_FAILED = 1, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

static void print_help(void)
{
    char text[512];

    printf("Usage: mrrun -n N [OPTIONS] PROGRAM [ARGS] [: -n N [OPTIONS] PROGRAM [ARGS] ...]\n\n"
           "Start N ranks of an MPI program, or of several: on this machine, on other hosts (--hosts), or\n"
           "inside 'simfab run' on the hosts of the simulated fabric.\n\n");
    for (size_t i = 0; mrrun_options_help(i, text, sizeof text); i++)
        puts(text);
    printf("\nThe status is that of the rank that failed first, or the largest of the ranks' exit codes; 128 + N\n"
           "if a rank was killed by signal N; 124 after --timeout; 126 or 127 if the program cannot be run.\n"
           "See mrrun(1).\n");
}

static int complain(int status, const char *what)
{
    fprintf(stderr, "mrrun: %s\n", what);
    return status;
}

/* True for a variable set by an outer launcher for its rank; libpmix's parameters are the user's. */
static bool is_outer(const char *name, size_t len)
{
    static const char *const prefixes[] = {"PMIX_", "PMI_", "OMPI_COMM_WORLD_"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (len > strlen(prefixes[i]) && !strncmp(name, prefixes[i], strlen(prefixes[i])))
            return strncmp(name, "PMIX_MCA_", 9) != 0;
    return len == 15 && !strncmp(name, "HYDI_CONTROL_FD", len);
}

/*
 * A launcher inside another job is no rank of that job: variables of the outer launcher must not reach libpmix here,
 * nor the ranks.
 */
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

static void find_self(char *path, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", path, cap - 1);

    path[n > 0 ? n : 0] = 0;
}

static void find_bin_dir(char *dir, size_t cap)
{
    find_self(dir, cap);
    char *slash = strrchr(dir, '/');
    if (slash)
        *slash = 0;
}

/*
 * libexec/mrmpi/lib leads to the library, in the build tree as after any installation (packaging/install). Without our
 * library first in LD_LIBRARY_PATH, a program linked with MPICH would load MPICH's library: N jobs of one rank.
 */
static int find_lib_dir(struct job *job, const char *bin_dir, char *why, size_t cap)
{
    char link[PATH_MAX + 32], path[PATH_MAX], probe[PATH_MAX + 16];

    snprintf(link, sizeof(link), "%s/../libexec/mrmpi/lib", bin_dir);
    if (realpath(link, path) && strlen(path) < sizeof(job->lib_dir)) {
        snprintf(probe, sizeof(probe), "%s/libmpi.so.12", path);
        if (!access(probe, R_OK)) {
            strcpy(job->lib_dir, path);
            return 0;
        }
    }
    snprintf(why, cap, "there is no libmpi.so.12 in %.300s: run make or make install", link);
    return STATUS_FAILED;
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

/*
 * A generated name differs from those of other machines' jobs, which may share hosts with this job. A missing launcher
 * is reported before anything is started.
 */
static int name_far_job(struct job *job, char *why, size_t cap)
{
    const char *command = job->hosts.launcher[0] ? job->hosts.launcher[0] : "";
    char made[64], *launcher = spawn_find_program(command, NULL);

    if (!launcher) {
        snprintf(why, cap, "cannot run '%s' to start agents on other hosts: %s", command, strerror(errno));
        return -1;
    }
    free(launcher);
    snprintf(made, sizeof(made), "mrrun-%d", (int)getpid());
    if (!strcmp(job->job_id, made) && job->hosts.here)
        snprintf(job->job_id, sizeof(job->job_id), "mrrun-%.40s-%d", job->hosts.here, (int)getpid());
    return 0;
}

static int choose_outputs(struct job *job, char *why, size_t cap)
{
    const struct mrrun_options *o = job->opts;
    bool reads = o->stdin_ranks && !strcmp(o->stdin_ranks, "none");

    for (int r = 0; r < job->place.ranks; r++) {
        struct rank *rank = &job->ranks[r];
        const int host = job->place.host_of[r];
        const struct outfile_rank as = {r, job->hosts.name[host], host};

        rank->out.sink = o->out_pattern ? outfiles_sink(&job->outfiles, o->out_pattern, &as, why, cap) : &job->out;
        rank->err.sink = !rank->out.sink  ? NULL
                         : o->err_pattern ? outfiles_sink(&job->outfiles, o->err_pattern, &as, why, cap)
                                          : &job->err;
        if (!rank->err.sink)
            return -1;
        reads |= mrrun_options_reads(o, r);
    }
    if (!reads)
        snprintf(why, cap, "option --stdin: '%s' names none of the %d ranks", o->stdin_ranks, job->place.ranks);
    return reads ? 0 : -1;
}

/* Two pipes and a connection per rank, and some for mrrun. Ranks get the limit as it was. */
static int raise_file_limit(struct job *job, char *why, size_t cap)
{
    const struct mrrun_options *o = job->opts;
    const int files = !!o->out_pattern + !!o->err_pattern + (o->stdin_ranks && strcmp(o->stdin_ranks, "none"));
    rlim_t need = (3 + files) * (rlim_t)job->place.ranks + 64;

    getrlimit(RLIMIT_NOFILE, &job->old_files);
    struct rlimit more = job->old_files;
    more.rlim_cur = more.rlim_max;
    setrlimit(RLIMIT_NOFILE, &more);
    if (more.rlim_max >= need)
        return 0;
    snprintf(why, cap, "%d ranks need about %llu open files, and the hard limit is %llu (ulimit -Hn)", job->place.ranks,
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

/* A file that the command line names, whole. NULL: *why says why. */
static char *read_file(const char *option, const char *name, char *why, size_t cap)
{
    FILE *in = fopen(name, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t len = in ? getdelim(&text, &size, '\0', in) : -1;

    if (len < 0 && in && feof(in) && !ferror(in)) { /* empty */
        free(text);
        text = strdup("");
    } else if (len < 0) {
        snprintf(why, cap, "option %s: cannot read '%s': %s", option, name, strerror(errno));
        free(text);
        text = NULL;
    }
    if (in)
        fclose(in);
    return text;
}

static int read_files(struct mrrun_options *opts, char *why, size_t cap)
{
    char *text = NULL;
    int err = 0;

    if (opts->config_file) {
        text = read_file("--configfile", opts->config_file, why, cap);
        err = text ? mrrun_options_config(opts, text, why, cap) : -1;
        free(text);
    }
    if (!err && opts->host_file) {
        text = read_file("--hostfile", opts->host_file, why, cap);
        err = text ? mrrun_options_hosts(opts, text, why, cap) : -1;
        free(text);
    }
    for (int i = 0; i < opts->num_parts; i++)
        for (int k = 0; k < opts->parts[i].num_host_files && !err; k++) {
            text = read_file("--add-hostfile", opts->parts[i].host_file[k], why, cap);
            err = text ? mrrun_options_part_hosts(&opts->parts[i], k, text, why, cap) : -1;
            free(text);
        }
    return err ? err : mrrun_options_check(opts, why, cap);
}

static void complain_of_unset(const struct mrrun_env *env)
{
    for (int i = 0; i < env->count; i++)
        if (!strchr(env->text[i], '=') && !getenv(env->text[i]))
            fprintf(stderr, "mrrun: %s is not set here, so that ranks do not have it\n", env->text[i]);
}

/* Ranks of a part without -n: the capacity of its hosts. */
static int count_ranks(const struct hosts *h, const struct placement_part *part, int ppn)
{
    int num = part->hosts ? part->num_hosts : h->count;
    long long ranks = 0;

    for (int i = 0; i < num; i++) {
        int slots = h->slots[part->hosts ? part->hosts[i] : i].slots;

        ranks += ppn ? ppn : slots ? slots : 1;
    }
    return ranks < MRRUN_RANKS_MAX ? (int)ranks : MRRUN_RANKS_MAX;
}

/* Tries so many ranks of a part, and the present numbers of the others. */
static bool has_place(struct placement_wish *wish, struct placement_part *part, int ranks)
{
    struct placement place;
    char why[256];

    part->ranks = ranks;
    if (placement_make(&place, wish, why, sizeof(why)))
        return false;
    placement_clear(&place);
    return true;
}

/* Of the part's numbers up to its present one, the largest for which there is room; the least has. */
static void shrink_part(struct placement_wish *wish, struct placement_part *part, const char *soft)
{
    int least, full, most = part->ranks, any;

    mr_triplets_read(soft, most, &least, &full);
    most = least;
    for (int step = full - least; step > 0; step = step / 2) /* room for some ranks is room for fewer */
        while (most + step <= full && has_place(wish, part, most + step))
            most += step;
    mr_triplets_read(soft, most, &any, &part->ranks);
}

/* Parts with -soft get as many ranks as there is room for, the first parts first. */
static int place_softly(struct placement *place, const struct placement_wish *given, struct placement_part *part,
                        const struct mrrun_options *opts, char *why, size_t cap)
{
    struct placement_wish wish = *given;
    bool soft = false;
    int least, largest;

    for (int i = 0; i < opts->num_parts; i++) {
        if (!opts->parts[i].soft)
            continue;
        mr_triplets_read(opts->parts[i].soft, part[i].ranks, &least, &largest);
        if (!largest) {
            snprintf(why, cap, "option -soft: '%s' has no number from 1 to %d", opts->parts[i].soft, part[i].ranks);
            return -1;
        }
        part[i].ranks = largest;
        soft = true;
    }
    if (!soft || !placement_make(place, &wish, why, cap))
        return soft ? 0 : placement_make(place, &wish, why, cap);
    for (int i = 0; i < opts->num_parts; i++)
        if (opts->parts[i].soft) {
            mr_triplets_read(opts->parts[i].soft, part[i].ranks, &least, &largest);
            part[i].ranks = least;
        }
    for (int i = 0; i < opts->num_parts; i++)
        if (opts->parts[i].soft && has_place(&wish, &part[i], part[i].ranks)) {
            part[i].ranks = opts->parts[i].ranks;
            shrink_part(&wish, &part[i], opts->parts[i].soft);
        }
    *why = '\0';
    return placement_make(place, &wish, why, cap);
}

/*
 * MPI_UNIVERSE_SIZE: for how many ranks the hosts have room, those included that are not used. A host without slots:
 * this machine has its processors; of others only the ranks placed there are known, or one.
 */
static int count_universe(const struct hosts *h, const struct placement *place, int ppn)
{
    long long room = 0;
    cpu_set_t own;
    int used = 0;

    for (int i = 0; i < h->count; i++) {
        bool here = !h->simfab && !h->devices[i] && h->here && !strcmp(h->name[i], h->here);
        bool takes_some = used < place->num_hosts && place->used[used] == i;
        int ranks = takes_some ? place->ranks_of[used++] : 1;
        int slots = ppn                                                ? ppn
                    : h->slots[i].slots                                ? h->slots[i].slots
                    : here && !sched_getaffinity(0, sizeof(own), &own) ? CPU_COUNT(&own)
                                                                       : 1;

        room += slots > ranks ? slots : ranks;
    }
    return room < INT_MAX ? (int)room : INT_MAX;
}

static int place_ranks(struct placement *place, struct hosts *hosts, const struct mrrun_options *opts, int *universe,
                       char *why, size_t cap)
{
    struct placement_part *part = calloc((size_t)opts->num_parts, sizeof(*part));
    int *numbers = calloc((size_t)opts->num_parts * (size_t)hosts->count, sizeof(*numbers));
    struct placement_wish wish = {.part = part,
                                  .num_parts = opts->num_parts,
                                  .num_hosts = hosts->count,
                                  .slots = hosts->slots,
                                  .ppn = opts->ppn,
                                  .by_node = opts->by_node,
                                  .oversubscribe = opts->oversubscribe || hosts->allocated};
    int err = part && numbers ? 0 : -1;

    if (err)
        snprintf(why, cap, "out of memory");
    for (int i = 0; i < opts->num_parts && !err; i++) {
        int *list = numbers + (size_t)i * (size_t)hosts->count;

        part[i].num_hosts = hosts_of_part(hosts, &opts->parts[i], list);
        part[i].hosts = part[i].num_hosts ? list : NULL;
        part[i].ranks = opts->parts[i].ranks ? opts->parts[i].ranks : count_ranks(hosts, &part[i], opts->ppn);
    }
    if (!err)
        err = place_softly(place, &wish, part, opts, why, cap);
    if (!err)
        *universe = count_universe(hosts, place, opts->ppn);
    if (!err)
        hosts_keep(hosts, place->used, place->num_hosts);
    free(part);
    free(numbers);
    return err;
}

static int check_directory(const char *dir, char path[PATH_MAX], char *why, size_t cap)
{
    struct stat st;
    int error = !realpath(dir, path) || stat(dir, &st) ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;

    if (!error && access(dir, X_OK))
        error = errno;
    if (error)
        snprintf(why, cap, "option -wdir: cannot enter '%s': %s", dir, strerror(error));
    return error ? -1 : 0;
}

/* Whatever keeps a part's program from being started, before any rank is. */
static int find_programs(struct job *job, char *why, size_t cap)
{
    const struct mrrun_options *opts = job->opts;

    job->program = calloc((size_t)opts->num_parts + 1, sizeof(*job->program));
    job->mpi = calloc((size_t)opts->num_parts + 1, sizeof(*job->mpi));
    job->num_programs = job->program && job->mpi ? opts->num_parts : 0;
    if (!job->num_programs) {
        snprintf(why, cap, "out of memory");
        return STATUS_FAILED;
    }
    for (int i = 0; i < job->num_programs; i++) {
        const struct mrrun_part *part = &opts->parts[i];
        char dir[PATH_MAX];

        if (part->wdir && check_directory(part->wdir, dir, why, cap)) {
            if (!hosts_far(&job->hosts))
                return STATUS_USAGE;
            *why = '\0';
            job->program[i] = strdup(part->program[0]);
            continue;
        }
        job->program[i] = spawn_find_program(part->program[0], part->wdir ? dir : NULL);
        if (!job->program[i] && hosts_far(&job->hosts)) /* the program may be on the hosts of its ranks */
            job->program[i] = strdup(part->program[0]);
        if (!job->program[i]) {
            int error = errno;

            snprintf(why, cap, "cannot run '%s'%s%s: %s", part->program[0], part->wdir ? " in " : "",
                     part->wdir ? part->wdir : "", strerror(error));
            return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
        }
    }
    return 0;
}

/* Ranks of another MPI would not find each other: each would run alone, and the job would seem to end well. */
static int check_mpi(struct job *job, char *why, size_t cap)
{
    char text[256];

    for (int i = 0; i < job->num_programs; i++) {
        char **env = access(job->program[i], R_OK) ? NULL : job_make_environment(job, i);

        if (env)
            job->mpi[i] = program_find_mpi(job->program[i], env, job->lib_dir, text, sizeof(text));
        environment_free(env);
        if (job->mpi[i] != PROGRAM_WITH_OTHER)
            continue;
        snprintf(why, cap,
                 "'%.100s' %s: its ranks would not find each other. Compile it with mrcc, or start it with the "
                 "launcher of its own MPI",
                 job->opts->parts[i].program[0], text);
        return STATUS_NOT_EXECUTABLE;
    }
    return 0;
}

/* Ranks of all hosts share this machine, where hosts are parts of it. */
static int bind_ranks_near(struct job *job, char *why, size_t cap)
{
    const int num = job->hosts.count;
    struct host_rails *rails = calloc((size_t)num, sizeof(*rails));
    char **env = job_make_environment(job, 0), **adapters = calloc((size_t)num, sizeof(*adapters));
    const char **of_rank = calloc((size_t)job->place.ranks, sizeof(*of_rank));
    int err = -1;

    snprintf(why, cap, "out of memory");
    if (rails && env && adapters && of_rank) {
        rails_ask(&job->hosts, num, env, rails);
        for (int h = 0; h < num; h++)
            adapters[h] = rails_adapters(&rails[h], job->hosts.devices[h]);
        for (int r = 0; r < job->place.ranks; r++)
            of_rank[r] = adapters[job->place.host_of[r]];
        err = processors_choose(&job->processors, &job->opts->binding, job->place.ranks, of_rank, why, cap);
    }
    for (int h = 0; adapters && h < num; h++)
        free(adapters[h]);
    free(adapters);
    free(of_rank);
    free(rails);
    environment_free(env);
    *why = err ? *why : '\0';
    return err;
}

static int bind_ranks(struct job *job, char *why, size_t cap)
{
    if (!binding_wanted(&job->opts->binding))
        return 0;
    if (hosts_far(&job->hosts) && !job->hosts.simfab) /* agents do */
        return 0;
    if (!job->hosts.simfab)
        return bind_ranks_near(job, why, cap);
    fprintf(stderr, "mrrun: ranks on simulated hosts are not bound: they have cores of their own\n");
    return 0;
}

static int prepare(struct job *job, char *why, size_t cap)
{
    char bin_dir[PATH_MAX];
    int status;

    find_bin_dir(bin_dir, sizeof(bin_dir));
    status = find_lib_dir(job, bin_dir, why, cap);
    if (status)
        return status;
    if (choose_job_id(job, why, cap))
        return STATUS_USAGE;
    complain_of_unset(&job->opts->env);
    for (int i = 0; i < job->opts->num_parts; i++)
        complain_of_unset(&job->opts->parts[i].env);
    if (hosts_find(&job->hosts, job->opts, bin_dir, why, cap) ||
        place_ranks(&job->place, &job->hosts, job->opts, &job->universe, why, cap))
        return STATUS_USAGE;
    if (hosts_far(&job->hosts) && name_far_job(job, why, cap))
        return STATUS_USAGE;
    status = find_programs(job, why, cap);
    if (status)
        return status;
    status = check_mpi(job, why, cap);
    if (status)
        return status;
    if (bind_ranks(job, why, cap))
        return STATUS_USAGE;
    job->ranks = calloc(job->place.ranks, sizeof(*job->ranks));
    if (!job->ranks) {
        snprintf(why, cap, "out of memory");
        return STATUS_FAILED;
    }
    for (int r = 0; r < job->place.ranks; r++) {
        job->ranks[r].out.fd = job->ranks[r].err.fd = job->ranks[r].pidfd = -1;
        job->ranks[r].part = placement_part_of(&job->place, r);
    }
    return raise_file_limit(job, why, cap) || choose_outputs(job, why, cap) ? STATUS_USAGE : 0;
}

/* Before ranks are started. A signal ends waits for the server: a failure then is none of the server's. */
static int end_unstarted(struct job *job, char *why)
{
    scratch_close(&job->scratch);
    if (!signals_end_asked())
        return STATUS_FAILED;
    why[0] = '\0';
    return signals_end_status();
}

static int run(struct job *job, struct report *report, char *why, size_t cap)
{
    int err = scratch_open(&job->scratch);
    if (err) {
        snprintf(why, cap, "cannot make a scratch directory in %s: %s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                 strerror(-err));
        return STATUS_FAILED;
    }
    if (!hosts_far(&job->hosts) && (err = offspring_open(job->scratch.path))) {
        snprintf(why, cap, "cannot make a directory in %s: %s", job->scratch.path, strerror(-err));
        return end_unstarted(job, why);
    }
    if (server_start(&job->place, job->universe, job->job_id, job->scratch.path, why, cap))
        return end_unstarted(job, why);
    if (hosts_far(&job->hosts)) {
        char self[PATH_MAX];

        server_hold_aborts();
        find_self(self, sizeof(self));
        if (agents_open(job, self, why, cap)) {
            agents_close(job->agents);
            return end_unstarted(job, why);
        }
        job->absent_at_ms = job_now_ms() + AGENTS_ABSENT_MS;
    }
    inquiry_open(&job->inquiry, job->scratch.path, job->hosts.simfab, job->place.ranks);
    attach_open(&job->attach, job->scratch.lock_fd);
    if (job->opts->timeout_s)
        job->timeout_at_ms = job_now_ms() + job->opts->timeout_s * 1000ull;
    job->look_at_ms = job_now_ms();
    if (job_start(job))
        job_on_start_failure(job);
    int status = job_loop(job);
    attach_close(&job->attach);
    agents_fetch(job->agents);
    if (report_write(report, job) && !status)
        status = STATUS_FAILED;
    inquiry_close(&job->inquiry);
    agents_close(job->agents);
    scratch_close(&job->scratch);
    return status;
}

/* How many ranks the fullest and the emptiest host would have, if the options alone tell it. */
static void count_to_explain(struct explain *e, const struct placement *place)
{
    e->fullest = e->emptiest = place->ranks_of[0];
    for (int h = 1; h < place->num_hosts; h++) {
        e->fullest = place->ranks_of[h] > e->fullest ? place->ranks_of[h] : e->fullest;
        e->emptiest = place->ranks_of[h] < e->emptiest ? place->ranks_of[h] : e->emptiest;
    }
}

/* Hosts that are named need not be there to be counted. */
static void place_to_explain(struct explain *e)
{
    struct placement_part all = {.ranks = e->opts->ranks};
    struct placement_wish wish = {.part = &all, .num_parts = 1, .num_hosts = e->opts->hosts.count, .ppn = e->opts->ppn};
    struct placement place = {.num_hosts = 0};
    char why[256];

    if (e->opts->ranks && wish.num_hosts && !placement_make(&place, &wish, why, sizeof why))
        count_to_explain(e, &place);
    placement_clear(&place);
}

/* The hosts of the job, if they can be known here. */
static void find_hosts_to_explain(struct explain *e, struct hosts *hosts, char *why, size_t cap)
{
    struct placement place = {.num_hosts = 0};
    char bin_dir[PATH_MAX];
    int universe;

    find_bin_dir(bin_dir, sizeof bin_dir);
    e->why_no_hosts = why;
    place_to_explain(e);
    if (hosts_find(hosts, e->opts, bin_dir, why, cap))
        return;
    if (e->opts->ranks) {
        if (place_ranks(&place, hosts, e->opts, &universe, why, cap))
            return;
        count_to_explain(e, &place);
        placement_clear(&place);
    }
    e->num_used = hosts->count;
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
                        .env = job_make_environment(job, 0)};
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
    for (int r = 0; job->ranks && r < job->place.ranks; r++) {
        source_close(&job->ranks[r].out);
        source_close(&job->ranks[r].err);
    }
    if (job->deaths_fd >= 0)
        close(job->deaths_fd);
    free(job->ranks);
    for (int i = 0; i < job->num_programs; i++)
        free(job->program[i]);
    free(job->program);
    free(job->mpi);
    sink_clear(&job->out);
    sink_clear(&job->err);
    processors_clear(&job->processors);
    outfiles_close(&job->outfiles);
    input_clear(&job->input);
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
    if (opts.agent) {
        char bin_dir[PATH_MAX];

        mrrun_options_clear(&opts);
        find_bin_dir(bin_dir, sizeof(bin_dir));
        if (find_lib_dir(&job, bin_dir, why, sizeof(why)))
            return complain(STATUS_FAILED, why);
        return agent_main(job.lib_dir);
    }
    if (opts.attach) {
        pid_t pid = opts.attach;

        mrrun_options_clear(&opts);
        return attach_print(pid);
    }
    if (opts.rails) {
        mrrun_options_clear(&opts);
        return rails_print();
    }
    if (opts.rail_paths) {
        int rc = rails_print_paths(opts.rail_paths);

        mrrun_options_clear(&opts);
        return rc;
    }
    if (read_files(&opts, why, sizeof(why)) ||
        mrrun_options_timeout(&opts, getenv("MPIEXEC_TIMEOUT"), why, sizeof(why))) {
        mrrun_options_clear(&opts);
        return complain(STATUS_USAGE, why);
    }
    if (offspring_register()) {
        mrrun_options_clear(&opts);
        return complain(STATUS_FAILED, "the mrrun of the program that has started this job is gone");
    }
    forget_outer_launcher();
    sink_init(&job.out, 1);
    sink_init(&job.err, 2);
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
    offspring_leave();
    mrrun_options_clear(&opts);
    return status;
}
