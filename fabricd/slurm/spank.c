/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrmpi_fabric.so: Slurm's side of fabricd, as a SPANK plugin (spank(8)), in one line of plugstack.conf:
 *
 *     optional /usr/lib/mrmpi_fabric.so [job=PATH] [socket=PATH]
 *
 * srun, sbatch and salloc get --fabric-class and --fabric-small-ratio. On each node of a job, before its first process
 * and after its last, root runs the script fabric-job (job=, else the script beside this file), which registers the job
 * with the node's fabricd. The script also runs before a step if the daemon does not know the job, because a node may
 * have been without a daemon when the job began. Before the batch script of a requeued job the script informs all of
 * the job's nodes, because slurmd may have run no prolog there (fabric-job has the conditions). The first process of
 * each step informs a user whose requested class the policy does not offer. A job never fails, and a node never drains,
 * because of fabricd's answer or silence.
 */
#include "fabricd/ctl/ctl.h"
#include "fabricd/proto/ratio.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <slurm/spank.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/fabricd/fabricd.sock"
#define BATCH_SCRIPT   0xfffffffbu /* the step that is the batch script: SLURM_BATCH_SCRIPT of slurm.h */
#define PATIENCE_S     10          /* the script's: Slurm starts no process of the job before it has ended */

SPANK_PLUGIN(mrmpi_fabric, 1)

static char wish[FD_NAME_MAX], small_ratio[FD_RATIO_MAX], order[1024];

/* As a class of the policy may be named. */
static int on_class(int value, const char *arg, int remote)
{
    static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t n = arg ? strlen(arg) : 0;

    (void)value;
    if (!n || n >= sizeof(wish) || strspn(arg, chars) != n) {
        if (!remote)
            slurm_error("--fabric-class: 1 to %zu letters, digits and _.-", sizeof(wish) - 1);
        return -1;
    }
    memcpy(wish, arg, n + 1);
    return 0;
}

static int on_ratio_option(int value, const char *arg, int remote)
{
    struct ratio r;

    (void)value;
    if (!arg || !ratio_parse(arg, &r)) {
        if (!remote)
            slurm_error("--fabric-small-ratio: SMALL:LARGE, 0 to 1000 and 1 to 1000, as 1:99");
        return -1;
    }
    ratio_text(&r, small_ratio);
    return 0;
}

/* Letters, digits and the characters of base64 and its frame. */
static int on_order(int value, const char *arg, int remote)
{
    size_t n = arg ? strlen(arg) : 0;

    (void)value;
    (void)remote;
    if (n >= sizeof(order) || strspn(arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=:") != n)
        return -1;
    memcpy(order, arg, n + 1);
    return 0;
}

static struct spank_option signed_order = {
    "fabric-order", "ORDER", "what root has signed for this job (used by fabricctl job set --cluster)", 1, 0, on_order};

static struct spank_option option = {
    "fabric-class", "CLASS", "the class of the fabric's policy that the job shall have, if the policy offers it", 1, 0,
    on_class};

static struct spank_option ratio_option = {
    "fabric-small-ratio",
    "SMALL:LARGE",
    "of what the job sends over a rail, SMALL of SMALL + LARGE may go ahead of its bulk as small messages",
    1,
    0,
    on_ratio_option};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_SLURMD)
        return 0;
    if (spank_option_register(spank, &option) || spank_option_register(spank, &ratio_option))
        return -1;
    return spank_context() == S_CTX_JOB_SCRIPT || !spank_option_register(spank, &signed_order) ? 0 : -1;
}

/* The value of an argument of plugstack.conf's line, or NULL. */
static const char *argument(int argc, char **argv, const char *name)
{
    size_t n = strlen(name);

    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], name, n) && argv[i][n] == '=')
            return argv[i] + n + 1;
    return NULL;
}

/* The daemon's socket; "%n" in it is the name of the node, if known, else from slurmd's environment. */
static void find_socket(int argc, char **argv, const char *node, char *out, size_t size)
{
    const char *path = argument(argc, argv, "socket"), *n = path ? strstr(path, "%n") : NULL;

    if (!path || (n && (!node || !*node)))
        path = getenv("FABRICD_SOCKET");
    if (path && n && node && *node)
        snprintf(out, size, "%.*s%s%s", (int)(n - path), path, node, n + 2);
    else
        snprintf(out, size, "%s", path ? path : DEFAULT_SOCKET);
}

static void find_script(int argc, char **argv, char *out, size_t size)
{
    const char *path = argument(argc, argv, "job"), *slash;
    Dl_info here;

    if (!path && dladdr(&option, &here) && here.dli_fname && (slash = strrchr(here.dli_fname, '/')))
        snprintf(out, size, "%.*s/fabric-job", (int)(slash - here.dli_fname), here.dli_fname);
    else
        snprintf(out, size, "%s", path ? path : "fabric-job");
}

/* Its exit status, or -1: the wait has a bound. */
static int wait_for_script(pid_t pid)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int status;

    for (unsigned i = 0; i < PATIENCE_S * 200; i++) {
        pid_t got = waitpid(pid, &status, WNOHANG);

        if (got == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (got < 0 && errno != EINTR)
            return -1;
        nanosleep(&pause, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

/* fabric-job WHAT JOB ARGUMENT...: true on success. As root. arg: user, class and ratio, or an order. */
static bool run_job_script(int argc, char **argv, const char *node, const char *what, uint32_t id,
                           const char *const arg[3])
{
    char script[PATH_MAX], socket[PATH_MAX], job[16];
    pid_t pid;

    find_script(argc, argv, script, sizeof(script));
    find_socket(argc, argv, node, socket, sizeof(socket));
    snprintf(job, sizeof(job), "%u", id);
    setenv("FABRICD_SOCKET", socket, 1);
    char *const words[] = {script, (char *)what, job, (char *)arg[0], (char *)arg[1], (char *)arg[2], NULL};
    int rc = posix_spawnp(&pid, script, NULL, NULL, words, environ);
    if (rc)
        slurm_error("mrmpi_fabric: %s: %s", script, strerror(rc));
    else if ((rc = wait_for_script(pid)))
        slurm_error("mrmpi_fabric: %s %s %s failed", script, what, job);
    return !rc;
}

/* In slurmd's script context. */
static int tell_job(spank_t spank, int argc, char **argv, const char *what)
{
    char uid_text[16], *class_name = NULL, *ratio = NULL;
    uint32_t id;
    uid_t uid;

    if (spank_get_item(spank, S_JOB_ID, &id) || spank_get_item(spank, S_JOB_UID, &uid))
        return 0;
    if (spank_option_getopt(spank, &option, &class_name))
        class_name = NULL;
    if (spank_option_getopt(spank, &ratio_option, &ratio))
        ratio = NULL;
    snprintf(uid_text, sizeof(uid_text), "%u", (unsigned)uid);
    run_job_script(argc, argv, getenv("SLURMD_NODENAME"), what, id,
                   (const char *[]){uid_text, class_name ? class_name : "", ratio ? ratio : ""});
    return 0;
}

/* From slurmstepd's own environment; the step's, used otherwise, may be another node's. */
static void find_node(spank_t spank, char *out, size_t size)
{
    const char *node = getenv("SLURMD_NODENAME");

    if (node)
        snprintf(out, size, "%s", node);
    else if (spank_getenv(spank, "SLURMD_NODENAME", out, (int)size))
        *out = 0;
}

/* A connection that gives up on a silent daemon, or a negative errno. */
static int find_daemon(int argc, char **argv, const char *node)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    char socket[PATH_MAX];
    int fd;

    find_socket(argc, argv, node, socket, sizeof(socket));
    fd = ctl_connect(socket);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

/*
 * Registers a job that the daemon does not know. The question is to renew the job. Before the batch script its first
 * run is renewed: with another run, all nodes are informed. (The script's environment has no run yet.)
 */
static void make_known(spank_t spank, int argc, char **argv, const char *node, uint32_t id, bool batch)
{
    struct fd_job m = {.flags = FD_JOB_RENEW | (batch ? FD_JOB_RUN : 0), .uid = FD_UID_ANY};
    char uid_text[16];
    uid_t uid;
    int fd = find_daemon(argc, argv, node), rc = fd;
    FILE *nowhere = fd < 0 ? NULL : fopen("/dev/null", "w");

    snprintf(m.job, sizeof(m.job), "%u", id);
    if (nowhere) {
        rc = ctl_request(fd, FD_JOB_SET, &m, sizeof(m), nowhere, NULL);
        fclose(nowhere);
        if (rc == -ENOENT && !spank_get_item(spank, S_JOB_UID, &uid)) {
            snprintf(uid_text, sizeof(uid_text), "%u", (unsigned)uid);
            run_job_script(argc, argv, node, batch ? "again" : "late", id,
                           (const char *[]){uid_text, wish, small_ratio});
        }
    }
    if (fd >= 0)
        close(fd);
}

/*
 * On each node of a step with an order, as root, in the later first process of the step: the process does not run if
 * the order is refused. (An optional plugin could not say so otherwise.)
 */
int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv)
{
    char node[256];
    uint32_t id, step;
    int task;

    if (spank_get_item(spank, S_TASK_ID, &task) || task || spank_get_item(spank, S_JOB_ID, &id))
        return 0;
    find_node(spank, node, sizeof(node));
    bool batch = !spank_get_item(spank, S_JOB_STEPID, &step) && step == BATCH_SCRIPT;
    if (!*order)
        make_known(spank, argc, argv, node, id, batch);
    else if (!run_job_script(argc, argv, node, "order", id, (const char *[]){order, "", ""}))
        _exit(1);
    return 0;
}

int slurm_spank_job_prolog(spank_t spank, int argc, char **argv)
{
    return tell_job(spank, argc, argv, "begin");
}

int slurm_spank_job_epilog(spank_t spank, int argc, char **argv)
{
    return tell_job(spank, argc, argv, "end");
}

/* Before the first process of a step, as the job's user: whether he got the class is asked as the library will ask. */
int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
    char node[256], job[16];
    struct fd_state_long s;
    uint32_t id, task;

    if (!*wish || spank_get_item(spank, S_TASK_GLOBAL_ID, &task) || task || spank_get_item(spank, S_JOB_ID, &id))
        return 0;
    find_node(spank, node, sizeof(node));
    snprintf(job, sizeof(job), "%u", id);
    int fd = find_daemon(argc, argv, node), rc = fd < 0 ? fd : ctl_hello(fd, job, &s);
    if (fd >= 0)
        close(fd);
    if (rc)
        slurm_spank_log("--fabric-class=%s has no effect: this node's fabricd does not answer (%s)", wish,
                        strerror(-rc));
    else if (s.s.status)
        slurm_spank_log("--fabric-class=%s has no effect: no policy is in force", wish);
    else if (strcmp(s.s.class_name, wish))
        slurm_spank_log("--fabric-class=%s has no effect: the job has class %s", wish, s.s.class_name);
    return 0;
}
