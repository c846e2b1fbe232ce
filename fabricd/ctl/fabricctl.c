/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabricctl: the administrator's command. See fabricctl(1).
 *
 * Exit status: 0 done; 1 the fabric or the daemon did not do it; 2 the command line or the policy is wrong; more of
 * changes of the policy are in answer.c.
 */
#include "fabricd/ctl/answer.h"
#include "fabricd/ctl/cluster.h"
#include "fabricd/ctl/cluster_status.h"
#include "fabricd/policy/compile.h"
#include "fabricd/ctl/ctl.h"
#include "fabricd/jobs/ask.h"
#include "fabricd/base/keys.h"
#include "fabricd/fabric/opensm.h"
#include "fabricd/ctl/plan_command.h"
#include "fabricd/policy/schema.h"
#include "fabricd/ctl/takes.h"
#include "fabricd/ctl/top.h"
#include "fabricd/base/ydoc.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: fabricctl [--socket PATH] COMMAND\n"
    "\n"
    "  status                     the policy in force, whether the ports have it, rails, jobs\n"
    "  policy check FILE          is the policy right? (no daemon needed); '-' is standard input\n"
    "  policy schema              the format as a JSON schema, for editors (no daemon needed)\n"
    "  policy plan FILE           the tables that it would become, and what each class would get (no daemon needed)\n"
    "      [--load NAME|FILE]     under this load; bulk, small, many-to-one, 'aggressor CLASS/SIZE'; again for more\n"
    "      [--fabric KEY=N,...]   what the fabric is: vls, low, high, mtu, rate, hops, bus_read, bus_write\n"
    "  policy diff FILE           which ports apply would change, and how\n"
    "  policy apply FILE          put it in force: opensm, then every port is read back; else all is rolled back\n"
    "      [--dry-run]            only say what would be changed, or refused\n"
    "      [--partial]            also if a plane has no subnet manager: exit status 5\n"
    "      [--force]              another policy than the one that other hosts follow\n"
    "  policy rollback [N]        the policy of generation N, or of the one before; 0: before the first policy\n"
    "      [--partial]            as above\n"
    "  policy history             the generations: what was put in force, when, and how that ended\n"
    "  policy show N              one of them: its policy, its lock, what was read back\n"
    "  policy verify              read the tables of every port now\n"
    "  policy lock                the service levels given out, as they are kept beside a policy\n"
    "  policy forget CLASS        the service levels of a class that is gone may be given out again\n"
    "  job list                   the jobs that the daemon was told of\n"
    "  job set JOB CLASS          give a job a class; '-': let the policy's rules decide\n"
    "      [--user U] [--account A] [--qos Q] [--partition P] [--name N]    what the rules look at\n"
    "      [--wish CLASS]         the class that its user asked for\n"
    "      [--cgroup DIRECTORY]   its processes are in this cgroup, and it ends with it\n"
    "      [--lease SECONDS]      it ends when none of its processes was there for so long\n"
    "      [--small-ratio S:L]    of what it sends over a rail, S of S + L may go ahead as small messages; 'none'\n"
    "      [--run N]              which run of the job it is, as its scheduler counts them\n"
    "      [--renew]              only what is given changes, the lease begins anew: the job is there\n"
    "      [--cluster]            of a running job of Slurm, on all of its nodes: nothing else of it changes\n"
    "  job give JOB [CLASS]       another class for a job that is there; '-': what its user or the rules say\n"
    "  job choose JOB [CLASS]     ask for another class for a job of mine; '-': what the rules give it\n"
    "      [--small-ratio S:L]    as above, with both; without CLASS nothing else changes\n"
    "  job show JOB               the class and service levels that processes of the job have\n"
    "  job del JOB                forget a job\n"
    "      [--run N]              unless it is in a later run than this by now\n"
    "  job join JOB CLASS HOST... on the host that manages the subnet: the hosts are members of the job's partition,\n"
    "                             as node[001-128],login1; done when all ports have it; CLASS '-': the rules' class\n"
    "      [--user U] [--account A] [--qos Q] [--partition P] [--name N] [--wish CLASS] [--run N]    as above\n"
    "      [--lease SECONDS]      they leave after so long in any case\n"
    "  job leave JOB              they are members no more\n"
    "      [--run N]              unless it is in a later run than this by now\n"
    "  job joined                 the jobs whose hosts have joined, with their P_Keys\n"
    "  rail list                  the ports of this host, and their health\n"
    "  rail show RAIL             all that is known of the health of one, DEVICE/PORT: reasons, counters, history\n"
    "  rail drain RAIL            running jobs leave it without losing a message, and new ones do not use it\n"
    "  rail undrain RAIL          they may use it again; its health is judged anew\n"
    "  paths HOST HOST            which switches the LID paths between two hosts cross, and which share no cable; HOST "
    "or\n"
    "                             'HOST DEVICE', as ibhosts names it\n"
    "  top [--interval S] [--count N]    rails with their rates, classes and jobs, every S (2) seconds, N times\n"
    "  metrics                    what the daemon knows, as OpenMetrics text for monitoring\n"
    "      [--output FILE]        into this file, at once or not at all: for node-exporter's textfile collector\n"
    "  cluster status [HOST...]   which hosts have which policy; without HOST: the hosts of Slurm\n"
    "      [--launcher COMMAND]   what runs a command on a host: COMMAND HOST fabricctl status (default ssh)\n"
    "      [--timeout S]          a host that has not answered within S (10) seconds is unreachable\n"
    "      [--parallel N]         ask N (64) hosts at a time\n"
    "\n"
    "  -j, --json         answer in JSON, for programs: every command; of policy plan what is predicted, of orders "
    "how\n"
    "                     they ended\n"
    "  -s, --socket PATH  the daemon's socket (default $FABRICD_SOCKET or /run/fabricd/fabricd.sock)\n"
    "  -h, --help         show this\n"
    "  -V, --version      show the version\n"
    "\n"
    "Exit status: 0 done, 1 it could not be done, 2 the command or the policy is wrong, and nothing was changed;\n"
    "3 changed and rolled back, 4 changed and not rolled back yet, 5 in force, but for a plane (--partial);\n"
    "6 (cluster status) hosts that answered have the policy, others did not answer.\n";

#define NO_COMMAND (-1) /* the command line has too few or too many words */

struct args {
    struct answer_to to;
    struct ask_options job;
    struct plan_options plan;
    struct top_options top;
    struct cluster_options hosts;
    const char *output;
    bool cluster;
    uint32_t change; /* FD_CHANGE_ */
    int num;         /* words of the command line */
    char **word;
};

/* ---- commands: type is that of the row of the table ---- */

static int simple_request(const struct args *a, enum fd_type type)
{
    struct fd_header h;
    return answer_request(&a->to, type, &h, sizeof(h));
}

static int print_schema(const struct args *a, enum fd_type type)
{
    struct text t = {0};
    schema_text(&t, &policy_keys, "mrmpi-policy(5): the quality-of-service policy of a fabric");
    fputs(text_str(&t), stdout);
    text_free(&t);
    return 0;
}

/* A policy file, the lock beside it, and the resulting tables. */
struct plan {
    const char *name;            /* of the file, for messages */
    char lock_path[PATH_MAX];    /* empty: standard input has none */
    struct text text, lock_text; /* the latter is empty if there is no lock */
    struct policy policy;
    struct policy_lock lock;
    struct qos_tables tables;
    struct text messages; /* errors and warnings */
};

static bool readable(struct plan *l, const char *name, const char *what, size_t max, int rc)
{
    struct text why = {0};
    if (rc == -EFBIG)
        text_printf(&why, "%s: longer than a %s may be (%zu KiB)\n", name, what, max / 1024);
    else if (rc)
        text_printf(&why, "%s: %s%s\n", name, text_read_error(rc),
                    rc == -EMEDIUMTYPE ? "; '-' reads standard input" : "");
    if (rc)
        fprintf(stderr, "fabricctl: %s", text_str(&why));
    text_put(&l->messages, text_str(&why), why.len);
    text_free(&why);
    return !rc;
}

static bool read_files(const char *path, struct plan *l)
{
    if (!strcmp(path, "-"))
        return readable(l, l->name, "policy", FD_POLICY_MAX, text_read_fd(&l->text, STDIN_FILENO, FD_POLICY_MAX));
    if (!lock_path(path, l->lock_path, sizeof(l->lock_path)))
        return readable(l, path, "path", PATH_MAX, -ENAMETOOLONG);
    if (!readable(l, path, "policy", FD_POLICY_MAX, text_read_file(&l->text, path, FD_POLICY_MAX)))
        return false;
    int rc = text_read_file(&l->lock_text, l->lock_path, FD_LOCK_MAX);
    return rc == -ENOENT || readable(l, l->lock_path, "lock", FD_LOCK_MAX, rc);
}

/*
 * Reads, parses and compiles; all that is wrong is printed. 0, or the exit status. quiet: no warnings, which the daemon
 * gives with its own.
 */
static int load_plan(const struct args *a, const char *path, bool quiet, struct plan *l)
{
    l->name = strcmp(path, "-") ? path : "<stdin>";
    struct diag d = {.file = l->name}, of_lock = {.file = l->lock_path};
    struct policy_lock given;
    if (!read_files(path, l))
        return 2;
    bool ok = lock_parse(&given, text_str(&l->lock_text), l->lock_text.len, &of_lock) &&
              plan_caps(a->plan.fabric, &given.fabric) &&
              policy_parse(&l->policy, text_str(&l->text), l->text.len, &d) &&
              lock_next(&l->policy, &given, NULL, &l->lock, &d) && policy_compile(&l->policy, &l->lock, &l->tables, &d);
    if (!ok || !quiet)
        fprintf(stderr, "%s%s", text_str(&of_lock.out), text_str(&d.out));
    text_put(&l->messages, text_str(&of_lock.out), of_lock.out.len);
    text_put(&l->messages, text_str(&d.out), d.out.len);
    text_free(&of_lock.out);
    text_free(&d.out);
    return ok ? 0 : 2;
}

static int send_policy(const struct args *a, const struct plan *l)
{
    size_t len = sizeof(struct fd_apply) + l->text.len + l->lock_text.len;
    struct fd_apply *m = calloc(1, len);
    if (!m)
        abort();
    snprintf(m->name, sizeof(m->name), "%s", l->name);
    m->lock_length = (uint32_t)l->lock_text.len;
    memcpy(m + 1, text_str(&l->text), l->text.len);
    memcpy((char *)(m + 1) + l->text.len, text_str(&l->lock_text), l->lock_text.len);
    int rc = answer_request(&a->to, FD_DIFF, m, len);
    free(m);
    return rc;
}

/* The daemon continues with its task. */
static void on_interrupt(int sig)
{
    static const char said[] = "\nfabricctl: the daemon goes on with it; fabricctl status tells how far it is\n";
    if (write(STDERR_FILENO, said, sizeof(said) - 1) < 0)
        _exit(1);
    _exit(130);
}

static int send_change(const struct args *a, struct fd_change *m, size_t len)
{
    if (progress_begin().on)
        m->flags |= FD_CHANGE_COUNT;
    signal(SIGINT, on_interrupt);
    int rc = answer_request(&a->to, FD_CHANGE, m, len);
    signal(SIGINT, SIG_DFL);
    return rc;
}

static bool generation_of(const char *s, uint64_t *out)
{
    bool good = ydoc_uint_of(s, out) && *out != FD_PREVIOUS;
    if (!good)
        fprintf(stderr, "fabricctl: the generation is '%s'; allowed: a number of 'fabricctl policy history', or 0\n",
                s);
    return good;
}

static int policy_rollback(const struct args *a, enum fd_type type)
{
    const char *number = a->num > 2 ? a->word[2] : NULL;
    struct fd_change m = {.flags = a->change | FD_CHANGE_ROLLBACK, .generation = FD_PREVIOUS};
    if (number && !generation_of(number, &m.generation))
        return 2;
    snprintf(m.name, sizeof(m.name), "%s", number ? number : "previous");
    return send_change(a, &m, sizeof(m));
}

static int policy_show(const struct args *a, enum fd_type type)
{
    struct fd_show m = {0};
    return generation_of(a->word[2], &m.generation) ? answer_request(&a->to, type, &m, sizeof(m)) : 2;
}

/* Writes the lock in force beside the policy's file: the next plan uses it, also on other nodes. */
static void write_lock_beside(const struct args *a, const struct plan *l)
{
    struct fd_header h;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    int fd = out ? ctl_connect(a->to.socket) : -1;
    int rc = fd < 0 ? -EIO : ctl_request(fd, FD_LOCK, &h, sizeof(h), out, NULL);
    if (fd >= 0)
        close(fd);
    if (out)
        fclose(out);
    if (!rc && (len != l->lock_text.len || memcmp(text, text_str(&l->lock_text), len)))
        rc = text_write_file(l->lock_path, text, len);
    if (rc)
        fprintf(stderr, "fabricctl: warning: the policy is in force, but %s could not be written: %s\n", l->lock_path,
                strerror(-rc));
    free(text);
}

static int send_apply(const struct args *a, const struct plan *l)
{
    size_t len = sizeof(struct fd_change) + l->text.len + l->lock_text.len;
    struct fd_change *m = calloc(1, len);
    if (!m)
        abort();
    snprintf(m->name, sizeof(m->name), "%s", l->name);
    m->flags = a->change;
    m->lock_length = (uint32_t)l->lock_text.len;
    memcpy(m + 1, text_str(&l->text), l->text.len);
    memcpy((char *)(m + 1) + l->text.len, text_str(&l->lock_text), l->lock_text.len);
    int rc = send_change(a, m, len);
    free(m);
    if ((!rc || rc == 5) && !(a->change & FD_CHANGE_DRY) && *l->lock_path)
        write_lock_beside(a, l);
    return rc;
}

static int print_plan(const struct args *a, const struct plan *l)
{
    if (!lock_knows_fabric(&l->lock))
        fprintf(stderr, "fabricctl: %s does not tell what the fabric can do: planned for tables of 8 entries\n",
                *l->lock_path ? l->lock_path : l->name);
    return plan_command(&a->plan, l->name, &l->policy, &l->tables, &l->lock.fabric);
}

/* Errors have been printed. */
static int tell_check(const struct args *a, const struct plan *l, int status)
{
    struct text found = {0};
    if (!status) {
        text_printf(&found, "classes: %u\nvls: %u\nlmc: %u\n", l->policy.num_classes, l->policy.vls, l->policy.lmc);
        if (!a->to.json)
            printf("%s: good: %u classes, %u data VLs, lmc %u\n", a->word[2], l->policy.num_classes, l->policy.vls,
                   l->policy.lmc);
    }
    answer_outcome(&a->to, status, status ? "the policy is wrong" : NULL, text_str(&l->messages), text_str(&found));
    text_free(&found);
    return status;
}

/* Read the file, then do it if the policy is right. asks: the daemon, who reads it again. */
static int with_file(const struct args *a, bool asks, int (*do_it)(const struct args *a, const struct plan *l))
{
    static struct plan l;
    int rc = load_plan(a, a->word[2], asks, &l);
    rc = rc || !do_it ? tell_check(a, &l, rc) : do_it(a, &l);
    text_free(&l.text);
    text_free(&l.lock_text);
    text_free(&l.messages);
    return rc;
}

static int policy_check(const struct args *a, enum fd_type type)
{
    return with_file(a, false, NULL);
}

static int policy_plan(const struct args *a, enum fd_type type)
{
    return with_file(a, false, print_plan);
}

static int policy_diff(const struct args *a, enum fd_type type)
{
    return with_file(a, true, send_policy);
}

static int policy_apply(const struct args *a, enum fd_type type)
{
    return with_file(a, true, send_apply);
}

static int policy_forget(const struct args *a, enum fd_type type)
{
    struct fd_class m = {0};
    if (!ask_text(m.class_name, sizeof(m.class_name), a->word[2], "class name"))
        return 2;
    return answer_request(&a->to, type, &m, sizeof(m));
}

/* The answer for the library, by the library's own question. */
static int job_show(const struct args *a, enum fd_type type)
{
    const char *job = a->word[2];
    struct fd_job checked = {0};
    struct fd_state_long answer;
    char *text = NULL;
    size_t len = 0;
    if (!ask_text(checked.job, sizeof(checked.job), job, "job id"))
        return 2;
    int fd = ctl_connect(a->to.socket);
    int rc = fd < 0 ? fd : ctl_hello(fd, job, &answer);
    if (fd >= 0)
        close(fd);
    FILE *out = rc ? NULL : open_memstream(&text, &len);
    if (!out)
        return answer_fail(&a->to, rc ? rc : -ENOMEM);
    ctl_show_state(out, job, &answer.s);
    fclose(out);
    return answer_document(&a->to, text, len) ? 0 : answer_fail(&a->to, -EPROTO);
}

static int job_list(const struct args *a, enum fd_type type)
{
    return answer_request(&a->to, type, NULL, 0);
}

/* set, give, choose and del. */
static int job_order(const struct args *a, enum fd_type type)
{
    struct fd_job m = {0};
    bool same = type != FD_JOB_DEL && a->num == 3; /* its class */
    if (same && !a->job.small_ratio)
        return NO_COMMAND;
    const char *class = a->num == 4 && strcmp(a->word[3], "-") ? a->word[3] : NULL;
    if (!ask_job(&a->job, type, a->word[2], class, same, &m))
        return 2;
    if (a->cluster)
        return cluster_give(&a->to, a->word[2], same ? "=" : a->word[3], a->job.small_ratio);
    return answer_request(&a->to, type, &m, sizeof(m));
}

static int job_join(const struct args *a, enum fd_type type)
{
    struct text hosts = {0};
    struct fd_job job;
    const char *class = strcmp(a->word[3], "-") ? a->word[3] : NULL;
    bool good = ask_job(&a->job, type, a->word[2], class, false, &job);
    for (int i = 4; i < a->num && good; i++) {
        good = hosts_expand(a->word[i], FD_HOSTS_MAX, &hosts) && hosts.len <= FD_HOSTS_MAX;
        if (!good)
            fprintf(stderr,
                    "fabricctl: the hosts are '%s'; allowed: names of up to %d characters and ranges, as "
                    "node[001-128,200],login1; in all up to %u characters\n",
                    a->word[i], HOST_MAX - 1, FD_HOSTS_MAX);
    }
    size_t len = sizeof(struct fd_join) + (hosts.len ? hosts.len - 1 : 0);
    struct fd_join *m = good ? calloc(1, len) : NULL;
    if (m) {
        m->job = job;
        memcpy(m + 1, hosts.s + 1, hosts.len - 1); /* each begins with a space */
    }
    int rc = m ? answer_request(&a->to, type, m, len) : 2;
    free(m);
    text_free(&hosts);
    return rc;
}

static int job_leave(const struct args *a, enum fd_type type)
{
    struct fd_job m;
    return ask_job(&a->job, type, a->word[2], NULL, false, &m) ? answer_request(&a->to, type, &m, sizeof(m)) : 2;
}

/* DEVICE/PORT, or the device alone for its first port. */
static bool ask_rail(const char *s, struct fd_rail_order *m)
{
    size_t len = strcspn(s, "/");
    uint64_t port = 1;
    if (!len || len >= sizeof(m->device) || (s[len] && (!ydoc_uint_of(s + len + 1, &port) || !port || port > 254))) {
        fprintf(stderr, "fabricctl: the rail is '%s'; allowed: DEVICE/PORT as 'fabricctl top' shows it\n", s);
        return false;
    }
    memcpy(m->device, s, len);
    m->port = (uint8_t)port;
    return true;
}

static int rail_order(const struct args *a, enum fd_type type)
{
    struct fd_rail_order m = {0};
    return ask_rail(a->word[2], &m) ? answer_request(&a->to, type, &m, sizeof(m)) : 2;
}

static int show_paths(const struct args *a, enum fd_type type)
{
    struct fd_ends m = {0};
    if (!ask_text(m.from, sizeof(m.from), a->word[1], "host") || !ask_text(m.to, sizeof(m.to), a->word[2], "host"))
        return 2;
    return answer_request(&a->to, type, &m, sizeof(m));
}

static int top(const struct args *a, enum fd_type type)
{
    int rc = top_run(a->to.socket, &a->top);
    return rc < 0 ? answer_fail(&a->to, rc) : 0;
}

/* Without a daemon the file says so: old contents would be believed. */
static int write_metrics(const struct args *a)
{
    static const char down[] = "# TYPE fabricd_up gauge\nfabricd_up 0\n# EOF\n";
    struct fd_header h;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    int fd = out ? ctl_connect(a->to.socket) : -ENOMEM;
    int rc = fd < 0 ? fd : ctl_request(fd, FD_METRICS, &h, sizeof(h), out, NULL);
    if (fd >= 0)
        close(fd);
    if (out)
        fclose(out);
    int written = text_write_file(a->output, rc ? down : text, rc ? sizeof(down) - 1 : len);
    free(text);
    if (rc)
        return answer_fail(&a->to, rc);
    if (written)
        fprintf(stderr, "fabricctl: %s could not be written: %s\n", a->output, strerror(-written));
    return answer_outcome(&a->to, written ? 1 : 0, written ? strerror(-written) : NULL, "", "");
}

static int metrics(const struct args *a, enum fd_type type)
{
    return a->output ? write_metrics(a) : simple_request(a, type);
}

static int cluster_command(const struct args *a, enum fd_type type)
{
    return cluster_status(&a->to, &a->hosts, (unsigned)(a->num - 2), a->word + 2);
}

/* words: how many the command line has, its own included. */
static const struct command {
    const char *name;
    int least, most;
    int (*run)(const struct args *a, enum fd_type type); /* the exit status, or NO_COMMAND */
    enum fd_type type;
} commands[] = {
    {"status", 1, 1, simple_request, FD_STATUS},
    {"policy check", 3, 3, policy_check, 0},
    {"policy schema", 2, 2, print_schema, 0},
    {"policy plan", 3, 3, policy_plan, 0},
    {"policy diff", 3, 3, policy_diff, FD_DIFF},
    {"policy apply", 3, 3, policy_apply, FD_CHANGE},
    {"policy rollback", 2, 3, policy_rollback, FD_CHANGE},
    {"policy history", 2, 2, simple_request, FD_HISTORY},
    {"policy show", 3, 3, policy_show, FD_SHOW},
    {"policy verify", 2, 2, simple_request, FD_VERIFY},
    {"policy lock", 2, 2, simple_request, FD_LOCK},
    {"policy forget", 3, 3, policy_forget, FD_FORGET},
    {"job list", 2, 2, job_list, FD_JOB_LIST},
    {"job set", 4, 4, job_order, FD_JOB_SET},
    {"job give", 3, 4, job_order, FD_JOB_GIVE},
    {"job choose", 3, 4, job_order, FD_JOB_CHOOSE},
    {"job show", 3, 3, job_show, 0},
    {"job del", 3, 3, job_order, FD_JOB_DEL},
    {"job join", 5, INT_MAX, job_join, FD_JOIN},
    {"job leave", 3, 3, job_leave, FD_LEAVE},
    {"job joined", 2, 2, job_list, FD_JOIN_LIST},
    {"rail list", 2, 2, simple_request, FD_RAIL_LIST},
    {"rail show", 3, 3, rail_order, FD_RAIL_SHOW},
    {"rail drain", 3, 3, rail_order, FD_RAIL_DRAIN},
    {"rail undrain", 3, 3, rail_order, FD_RAIL_UNDRAIN},
    {"paths", 3, 3, show_paths, FD_PATHS_SHOW},
    {"top", 1, 1, top, 0},
    {"metrics", 1, 1, metrics, FD_METRICS},
    {"cluster status", 2, INT_MAX, cluster_command, 0},
};

/* By its one or two words. NULL: unknown. */
static const struct command *find_command(const struct args *a)
{
    for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const char *name = commands[i].name;
        size_t noun = strcspn(name, " ");
        if (!a->num || strncmp(a->word[0], name, noun) || a->word[0][noun])
            continue;
        if (!name[noun] || (a->num > 1 && !strcmp(a->word[1], name + noun + 1)))
            return &commands[i];
    }
    return NULL;
}

/* Refuses the words: c is NULL, or their number is wrong. Returns the exit status. */
static int refuse_command(const struct args *a, const struct command *c)
{
    enum { NUM = sizeof(commands) / sizeof(commands[0]) };
    const char *names[NUM + 1] = {NULL};
    for (unsigned i = 0; i < NUM; i++)
        names[i] = commands[i].name;
    return takes_refuse(names, (unsigned)a->num, a->word, c ? c->name : NULL);
}

/* ---- options ---- */

static bool parse_seconds(const char *what, const char *s, uint32_t least, uint32_t *out)
{
    uint64_t v;
    if (!ydoc_uint_of(s, &v) || v < least || v > 86400) {
        fprintf(stderr, "fabricctl: the %s is '%s'; allowed: %u to 86400\n", what, s, least);
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

/* Options whose value is kept unchanged. */
static const struct {
    int option;
    size_t at; /* in struct args, a const char * */
} texts[] = {
    {'s', offsetof(struct args, to.socket)},   {'u', offsetof(struct args, job.user)},
    {'a', offsetof(struct args, job.account)}, {'n', offsetof(struct args, job.name)},
    {'q', offsetof(struct args, job.qos)},     {'p', offsetof(struct args, job.partition)},
    {'w', offsetof(struct args, job.wish)},    {'g', offsetof(struct args, job.cgroup)},
    {'t', offsetof(struct args, job.lease)},   {'R', offsetof(struct args, job.small_ratio)},
    {'U', offsetof(struct args, job.run)},     {'f', offsetof(struct args, plan.fabric)},
    {'o', offsetof(struct args, output)},      {'L', offsetof(struct args, hosts.launcher)},
};

static bool keep_text(struct args *a, int option)
{
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].option == option) {
            *(const char **)((char *)a + texts[i].at) = optarg;
            return true;
        }
    return false;
}

static bool add_load(struct args *a)
{
    bool room = a->plan.num_loads < PLAN_LOADS_MAX;
    if (room)
        a->plan.load[a->plan.num_loads++] = optarg;
    else
        fprintf(stderr, "fabricctl: more than %d loads\n", PLAN_LOADS_MAX);
    return room;
}

/* An option outside of texts. False: wrong, and the error was printed. */
static bool take_option(struct args *a, int option)
{
    switch (option) {
    case 'i':
        return parse_seconds("interval", optarg, 1, &a->top.interval_s);
    case 'N':
        return parse_seconds("count", optarg, 0, &a->top.count);
    case 'T':
        return parse_seconds("timeout", optarg, 1, &a->hosts.timeout_s);
    case 'M':
        return parse_seconds("number of hosts at a time", optarg, 1, &a->hosts.parallel);
    case 'c':
        a->cluster = true;
        return true;
    case 'r':
        a->job.renew = true;
        return true;
    case 'd':
        a->change |= FD_CHANGE_DRY;
        return true;
    case 'P':
        a->change |= FD_CHANGE_PARTIAL;
        return true;
    case 'F':
        a->change |= FD_CHANGE_FORCE;
        return true;
    case 'l':
        return add_load(a);
    case 'j':
        a->to.json = a->plan.json = a->top.json = true;
        return true;
    default:
        fputs("Try 'fabricctl --help'.\n", stderr);
        return false;
    }
}

int main(int argc, char **argv)
{
    const char *env = getenv("FABRICD_SOCKET");
    struct args a = {.to.socket = env && *env ? env : "/run/fabricd/fabricd.sock",
                     .top.interval_s = 2,
                     .hosts = {.launcher = CLUSTER_LAUNCHER, .timeout_s = 10, .parallel = 64}};
    char given[TAKES_OPTIONS_MAX] = "";
    for (int o; (o = getopt_long(argc, argv, "s:jhV", takes_options, NULL)) != -1;) {
        if (o == 'h' || o == 'V') {
            printf("%s%s%s", o == 'h' ? usage : "fabricctl ", o == 'h' ? "" : MRMPI_VERSION, o == 'h' ? "" : "\n");
            return 0;
        }
        if (o != '?' && !strchr(given, o))
            given[strlen(given)] = (char)o;
        if (!keep_text(&a, o) && !take_option(&a, o))
            return 2;
    }
    a.num = argc - optind;
    a.word = argv + optind;
    const struct command *c = find_command(&a);
    if (c && !takes_all(c->name, a.cluster, given))
        return 2;
    int rc = c && a.num >= c->least && a.num <= c->most ? c->run(&a, c->type) : NO_COMMAND;
    return rc == NO_COMMAND ? refuse_command(&a, c) : rc;
}
