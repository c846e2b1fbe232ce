/* SPDX-License-Identifier: BSD-3-Clause */
/* `simfab run`: the command line, and the guardian (see run.h). */
#include "simfab/cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simfab/cmd/environ.h"
#include "simfab/cmd/paths.h"
#include "simfab/cmd/reap.h"
#include "simfab/cmd/run.h"
#include "simfab/cmd/say.h"
#include "simfab/cmd/supervise.h"
#include "simfab/cmd/trace.h"

/* args is the command line with room for a program name in front. */
static bool parse_run_options(int argc, char **args, struct options *o)
{
    enum { TOPOLOGY = 1, MODEL, SM, STANDBY_SM, SM_OPTION, NO_OPENSM, TRACE };
    static const struct option longs[] = {
        {"topology", required_argument, NULL, TOPOLOGY},
        {"model", required_argument, NULL, MODEL},
        {"sm", required_argument, NULL, SM},
        {"standby-sm", required_argument, NULL, STANDBY_SM},
        {"opensm-option", required_argument, NULL, SM_OPTION},
        {"no-opensm", no_argument, NULL, NO_OPENSM},
        {"trace", required_argument, NULL, TRACE},
        {NULL, 0, NULL, 0},
    };
    const char *topology = NULL, *model = NULL;
    int c;

    args[0] = "simfab run"; /* a name for getopt */
    o->opensm = true;
    while ((c = getopt_long(argc, args, "+", longs, NULL)) != -1) {
        switch (c) {
        case TOPOLOGY:
            topology = optarg;
            break;
        case MODEL:
            model = optarg;
            break;
        case SM:
            o->sm_hosts[o->num_sm_hosts++] = optarg;
            break;
        case STANDBY_SM:
            o->standby_hosts[o->num_standby_hosts++] = optarg;
            break;
        case SM_OPTION:
            o->sm_options[o->num_sm_options++] = optarg;
            break;
        case NO_OPENSM:
            o->opensm = false;
            break;
        case TRACE:
            o->trace = optarg;
            break;
        default:
            fputs(usage_run, stderr);
            return false;
        }
    }
    o->command = args + optind;
    if (!topology || !o->command[0]) {
        complain(topology ? "no CMD given: simfab run --topology FILE -- CMD..." : "--topology FILE is required");
        return false;
    }
    return find_data("topologies", ".net", topology, o->topology) &&
           (!model || find_data("models", ".yaml", model, o->model)) &&
           (!o->trace || (o->trace_fd = trace_open(o->trace)) >= 0);
}

/* An unguessable, unused name; the supervisor makes the directory itself. */
static bool choose_dir(char *dir, size_t size)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    uint64_t r;

    if (!base || !*base || access(base, W_OK | X_OK))
        base = "/tmp";
    if (getrandom(&r, sizeof r, 0) != sizeof r) {
        complain("getrandom: %s", strerror(errno));
        return false;
    }
    if (snprintf(dir, size, "%s/simfab.%d.%08x", base, (int)getpid(), (unsigned)r) >= 80) {
        complain("%s is too long a path for a socket: set XDG_RUNTIME_DIR to a shorter one", base);
        return false;
    }
    return true;
}

static int block_signals(void)
{
    static const int handled[] = {SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        sigaddset(&set, handled[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Collect dead children; true when the supervisor is among them, its wait status in *status. */
static bool collect_children(pid_t supervisor, int *status)
{
    bool over = false;
    pid_t pid;
    int st;

    while ((pid = waitpid(-1, &st, WNOHANG)) > 0)
        if (pid == supervisor) {
            *status = st;
            over = true;
        }
    return over;
}

static int guard(pid_t supervisor, int pipe_out, int sigfd, const char *dir)
{
    struct signalfd_siginfo si;
    int status = 0;

    for (;;) {
        if (read(sigfd, &si, sizeof si) != sizeof si)
            continue;
        if (si.ssi_signo == SIGCHLD) {
            if (collect_children(supervisor, &status))
                break;
        } else if (si.ssi_code != SI_KERNEL) {
            /* CMD gets signals of the terminal itself */
            (void)!write(pipe_out, &(char){(char)si.ssi_signo}, 1);
        }
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    complain("the supervisor of %s was killed by signal %d: ending everything", dir, WTERMSIG(status));
    kill_children(SIGKILL, 0, NULL, 0);
    remove_tree(dir);
    return 1;
}

static int run_fabric(int argc, char **args, struct options *o)
{
    char *dir = mmap(NULL, PATH_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int pipes[2], sigfd;
    pid_t pid;

    if (dir == MAP_FAILED) {
        complain("%s", strerror(errno));
        return 1;
    }
    if (!parse_run_options(argc, args, o) || !check_settings())
        return EXIT_USAGE;
    if (!choose_dir(dir, PATH_MAX) || pipe2(pipes, O_CLOEXEC)) {
        complain("%s", strerror(errno));
        return 1;
    }
    fflush(NULL);
    sigfd = block_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid = fork();
    if (pid < 0 || sigfd < 0) {
        complain("%s", strerror(errno));
        return 1;
    }
    if (pid == 0) {
        close(pipes[1]);
        close(sigfd);
        _exit(supervise(o, dir, pipes[0]));
    }
    close(pipes[0]);
    return guard(pid, pipes[1], sigfd, dir);
}

const char usage_run[] =
    "usage: simfab run --topology FILE [--model FILE] [--sm HOST]... [--opensm-option \"NAME VALUE\"]... [--no-opensm] "
    "[--trace FILE] -- CMD...\n"
    "\n"
    "Starts the engine of a simulated InfiniBand subnet and opensm in it, waits until the subnet is up, runs CMD, and "
    "takes\n"
    "everything down when CMD ends. Any number may run at once; no privilege is needed; nothing is left behind.\n"
    "\n"
    "  --topology FILE       a netlist as ibnetdiscover prints it, or the name of an installed one "
    "(two-hosts-two-rails)\n"
    "  --model FILE          a timing model, or the name of an installed one (sdr-pcix, ddr-connectx,\n"
    "                        hdr); default: built-in "
    "values\n"
    "  --sm HOST             the host that opensm runs on; default: the first of the netlist. A netlist of several\n"
    "                        subnets has an opensm for each: repeated, it names their hosts in turn\n"
    "  --standby-sm HOST     a second opensm, with less priority, that takes over when the first one is gone\n"
    "  --opensm-option TEXT  one more line for opensm.conf, such as \"lmc 1\"; may be repeated\n"
    "  --no-opensm           start no opensm: ports stay in state Initialize until CMD starts a subnet manager\n"
    "  --trace FILE          write down what happens on the links: see simfab trace\n"
    "\n"
    "CMD finds SIMFAB_DIR (the fabric's directory: engine.log, opensm/opensm.conf, opensm/opensm.log, "
    "opensm/opensm.pid; opensm-2/ of a second subnet) in\n"
    "its environment and this program in its PATH. Exit status: CMD's (128+N if signal N killed it); 2 if the command "
    "line, the\n"
    "topology or the model is wrong (nothing was started); 1 if the subnet did not come up or the engine died.\n";

int cmd_run(int argc, char **argv)
{
    struct options *o = calloc(1, sizeof *o);
    char **args = calloc((size_t)argc + 2, sizeof *args), **lists = calloc((size_t)argc + 1, 3 * sizeof *lists);
    int status = 1;

    if (o && args && lists) {
        memcpy(args + 1, argv, (size_t)argc * sizeof *argv);
        o->sm_options = lists;
        o->sm_hosts = lists + argc + 1;
        o->standby_hosts = lists + 2 * (argc + 1);
        status = run_fabric(argc + 1, args, o);
    }
    free(lists);
    free(args);
    free(o);
    return status;
}
