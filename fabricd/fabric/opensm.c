/* SPDX-License-Identifier: BSD-3-Clause */
/* opensm's configuration file, and its process: see opensm.h. */
#include "fabricd/fabric/opensm.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char BEGIN[] = "# ---- written by fabricd from its policy: changes between these lines are lost ----";
static const char END[] = "# ---- end of what fabricd writes ----";

static bool managed_key(const char *key, size_t n)
{
    static const char *const whole[] = {"qos", "lmc", "max_op_vls", "use_optimized_slvl", NULL};
    static const char *const sets[] = {"qos_ca_", "qos_sw0_", "qos_swe_", "qos_rtr_", "qos_", NULL};
    static const char *const options[] = {"max_vls", "high_limit", "vlarb_high", "vlarb_low", "sl2vl", NULL};
    for (int i = 0; whole[i]; i++)
        if (n == strlen(whole[i]) && !strncmp(key, whole[i], n))
            return true;
    for (int s = 0; sets[s]; s++) {
        size_t prefix = strlen(sets[s]);
        for (int o = 0; n > prefix && !strncmp(key, sets[s], prefix) && options[o]; o++)
            if (n - prefix == strlen(options[o]) && !strncmp(key + prefix, options[o], n - prefix))
                return true;
    }
    return false;
}

static bool managed_line(const char *line, size_t len)
{
    size_t i = 0;
    while (i < len && isspace((unsigned char)line[i]))
        i++;
    size_t start = i;
    while (i < len && !isspace((unsigned char)line[i]) && line[i] != '#')
        i++;
    return managed_key(line + start, i - start);
}

static void put_tables(const struct qos_tables *t, struct text *out)
{
    text_printf(out, "%s\n", BEGIN);
    /*
     * A capable switch takes its SLtoVLMappingTables of all pairs of ports in one packet, instead of one packet each.
     */
    text_printf(out, "qos TRUE\nuse_optimized_slvl TRUE\nlmc %u\nmax_op_vls %u\nqos_high_limit %u\nqos_vlarb_high ",
                t->lmc, t->op_vls_code, t->high_limit);
    /* An empty list would mean opensm's default, which has every lane. */
    if (t->num_high)
        tables_vlarb_text(out, t->high, t->num_high);
    else
        text_printf(out, "0:0");
    text_printf(out, "\nqos_vlarb_low ");
    tables_vlarb_text(out, t->low, t->num_low);
    text_printf(out, "\nqos_sl2vl ");
    tables_sl2vl_text(out, t->sl2vl);
    text_printf(out, "\n%s\n", END);
}

void opensm_conf_merge(const char *old, const struct qos_tables *t, struct text *out)
{
    for (const char *p = old; *p;) {
        const char *nl = strchr(p, '\n');
        size_t len = nl ? (size_t)(nl - p) : strlen(p);
        bool marker = (len == strlen(BEGIN) && !memcmp(p, BEGIN, len)) || (len == strlen(END) && !memcmp(p, END, len));
        if (!marker && !managed_line(p, len))
            text_printf(out, "%.*s\n", (int)len, p);
        p += len + (nl != NULL);
    }
    put_tables(t, out);
}

bool opensm_conf_get(const char *text, const char *key, char *value, size_t size)
{
    bool found = false;
    size_t key_len = strlen(key);
    for (const char *p = text; *p;) {
        const char *end = p + strcspn(p, "\n");
        const char *next = *end ? end + 1 : end;
        const char *hash = memchr(p, '#', (size_t)(end - p));
        if (hash)
            end = hash;
        while (p < end && isspace((unsigned char)*p))
            p++;
        if ((size_t)(end - p) > key_len && !strncmp(p, key, key_len) && isspace((unsigned char)p[key_len])) {
            p += key_len;
            while (p < end && isspace((unsigned char)*p))
                p++;
            while (end > p && isspace((unsigned char)end[-1]))
                end--;
            size_t n = (size_t)(end - p) < size ? (size_t)(end - p) : size - 1;
            memcpy(value, p, n);
            value[n] = 0;
            found = true;
        }
        p = next;
    }
    return found;
}

static bool has_name(int pid, const char *wanted)
{
    char path[64], name[32] = "";
    struct text t = {0};
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    bool ok = !text_read_file(&t, path, 4096);
    if (ok)
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(t.s, "\n"), t.s);
    text_free(&t);
    return ok && !strcmp(name, wanted);
}

/*
 * True if the process runs a program of that name, perhaps since replaced by an update. Any process may give itself a
 * name. Without permission to look, the name is believed.
 */
static bool runs_program(int pid, const char *wanted)
{
    char path[64], exe[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    ssize_t len = readlink(path, exe, sizeof(exe) - 1);
    if (len < 0)
        return errno == EACCES || errno == EPERM;
    exe[len] = 0;
    const char *base = strrchr(exe, '/');
    base = base ? base + 1 : exe;
    size_t n = strlen(wanted);
    return !strncmp(base, wanted, n) && (!base[n] || !strcmp(base + n, " (deleted)"));
}

/* The value of an option of a command line, as getopt_long() takes it: "-F X", "-FX", "--config X", "--config=X". */
static const char *option_value(const struct text *cmdline, const char *brief, const char *name)
{
    const char *end = cmdline->s + cmdline->len, *value = NULL;
    size_t n = strlen(name);
    for (const char *arg = cmdline->s; arg < end; arg += strlen(arg) + 1) {
        const char *next = arg + strlen(arg) + 1;
        if (!strcmp(arg, brief) || !strcmp(arg, name))
            value = next < end ? next : value;
        else if (!strncmp(arg, brief, 2) && strncmp(arg, "--", 2))
            value = arg + 2;
        else if (!strncmp(arg, name, n) && arg[n] == '=')
            value = arg + n + 1;
    }
    return value;
}

static bool read_cmdline(int pid, struct text *cmdline)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    return !text_read_file(cmdline, path, 1u << 20) && cmdline->len;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (!strcmp(a, b))
        return true;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/*
 * True if the process reads this configuration. Its command line names the file; without the option, opensm's default.
 */
static bool reads_config(int pid, const char *config)
{
    char at[PATH_MAX];
    struct text cmdline = {0};
    if (!read_cmdline(pid, &cmdline)) {
        text_free(&cmdline);
        return false;
    }
    const char *given = option_value(&cmdline, "-F", "--config");
    if (!given)
        given = OPENSM_DEFAULT_CONF;
    snprintf(at, sizeof(at), "/proc/%d/cwd/%s", pid, given); /* for a relative path */
    bool same = same_file(*given == '/' ? given : at, config);
    text_free(&cmdline);
    return same;
}

/* A user may give a process of his any name and any command line. */
static bool is_trusted(int pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d", pid);
    return !stat(path, &st) && (st.st_uid == 0 || st.st_uid == geteuid());
}

static bool is_opensm(const struct opensm *o, int pid)
{
    return has_name(pid, "opensm") && is_trusted(pid) && runs_program(pid, "opensm") &&
           (o->pid_file || reads_config(pid, o->config));
}

static int pid_in_file(const struct opensm *o)
{
    struct text t = {0};
    int rc = text_read_file(&t, o->pid_file, 64);
    char *end = NULL;
    long pid = rc ? 0 : strtol(text_str(&t), &end, 10);
    if (!rc && (end == t.s || pid <= 1 || pid > 1 << 22))
        rc = -EINVAL;
    text_free(&t);
    return rc ? rc : (int)pid;
}

/* One signal to the examined process, not to a later process with the same number. */
static int signal_hangup(const struct opensm *o, int pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (!is_opensm(o, pid)) {
        if (fd >= 0)
            close(fd);
        return -ESRCH;
    }
    if (fd < 0) /* a kernel before 5.3 */
        return kill(pid, SIGHUP) ? -errno : 0;
    int rc = syscall(SYS_pidfd_send_signal, fd, SIGHUP, NULL, 0) ? -errno : 0;
    close(fd);
    return rc;
}

int opensm_pids(const struct opensm *o, int pid[OPENSM_PORTS_MAX])
{
    int n = 0;
    if (o->pid_file) {
        pid[0] = pid_in_file(o);
        return pid[0] < 0 ? pid[0] : is_opensm(o, pid[0]) ? 1 : -ESRCH;
    }
    DIR *proc = opendir("/proc");
    if (!proc)
        return -errno;
    for (struct dirent *e; n < OPENSM_PORTS_MAX && (e = readdir(proc));) {
        pid[n] = atoi(e->d_name);
        n += pid[n] > 1 && is_opensm(o, pid[n]);
    }
    closedir(proc);
    return n ? n : -ESRCH;
}

void opensm_partitions(const struct opensm *o, const char *conf, char path[PATH_MAX])
{
    int pid[OPENSM_PORTS_MAX], n = opensm_pids(o, pid);
    struct text cmdline = {0};
    const char *given = n > 0 && read_cmdline(pid[0], &cmdline) ? option_value(&cmdline, "-P", "--Pconfig") : NULL;
    if (given && *given == '/')
        snprintf(path, PATH_MAX, "%s", given);
    else if (!opensm_conf_get(conf, "partition_config_file", path, PATH_MAX) || *path != '/')
        snprintf(path, PATH_MAX, "%s", OPENSM_DEFAULT_PARTITIONS);
    text_free(&cmdline);
}

bool opensm_is_gone(const struct opensm *o)
{
    int pid[OPENSM_PORTS_MAX], rc = opensm_pids(o, pid);
    if (rc == -ENOENT && o->pid_file)
        rc = opensm_pids(&(struct opensm){.config = o->config}, pid);
    return rc == -ESRCH;
}

int opensm_running(const struct opensm *o, uint64_t guid[OPENSM_PORTS_MAX])
{
    int pid[OPENSM_PORTS_MAX], n = opensm_pids(o, pid);
    char value[64];
    struct text conf = {0};
    text_read_file(&conf, o->config, OPENSM_CONF_MAX);
    bool configured = opensm_conf_get(text_str(&conf), "guid", value, sizeof(value));
    for (int i = 0; i < n; i++) {
        struct text cmdline = {0};
        const char *given = read_cmdline(pid[i], &cmdline) ? option_value(&cmdline, "-g", "--guid") : NULL;
        guid[i] = given ? strtoull(given, NULL, 16) : configured ? strtoull(value, NULL, 16) : 0;
        text_free(&cmdline);
    }
    text_free(&conf);
    return n;
}

/* Is a thread of the process ready to run? Adds its ticks of the processor (proc(5), stat). */
static bool thread_is_ready(int pid, const char *tid, unsigned long *ticks)
{
    char path[PATH_MAX], state = 0;
    unsigned long user, system;
    struct text t = {0};
    snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, tid);
    const char *p = text_read_file(&t, path, 4096) || !t.len ? NULL : strrchr(t.s, ')');
    if (p && sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user, &system) == 3)
        *ticks += user + system;
    text_free(&t);
    return state == 'R';
}

bool opensm_is_ready(const struct opensm *o, uint64_t *cpu_ms)
{
    int pid[OPENSM_PORTS_MAX];
    int n = opensm_pids(o, pid);
    unsigned long ticks = 0;
    bool ready = false;
    for (int i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/task", pid[i]);
        DIR *threads = opendir(path);
        for (struct dirent *e; threads && (e = readdir(threads));)
            if (isdigit((unsigned char)*e->d_name))
                ready |= thread_is_ready(pid[i], e->d_name, &ticks);
        if (threads)
            closedir(threads);
    }
    *cpu_ms = ticks * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
    return ready;
}

static uint64_t turns_of(int pid, const char *tid)
{
    char path[PATH_MAX];
    uint64_t sum = 0;
    struct text t = {0};
    snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, tid);
    if (!text_read_file(&t, path, 1u << 16))
        for (const char *p = text_str(&t); (p = strstr(p, "voluntary_ctxt_switches:")); p++)
            sum += strtoull(p + strlen("voluntary_ctxt_switches:"), NULL, 10);
    text_free(&t);
    return sum;
}

uint64_t opensm_turns(const struct opensm *o)
{
    int pid[OPENSM_PORTS_MAX], n = opensm_pids(o, pid);
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/task", pid[i]);
        DIR *threads = opendir(path);
        for (struct dirent *e; threads && (e = readdir(threads));)
            sum += isdigit((unsigned char)*e->d_name) ? turns_of(pid[i], e->d_name) : 0;
        if (threads)
            closedir(threads);
    }
    return sum;
}

bool opensm_is_stopped(const struct opensm *o)
{
    int pid[OPENSM_PORTS_MAX], n = opensm_pids(o, pid);
    bool stopped = false;
    for (int i = 0; i < n; i++) {
        char path[64];
        struct text t = {0};
        snprintf(path, sizeof(path), "/proc/%d/stat", pid[i]);
        const char *p = text_read_file(&t, path, 4096) || !t.len ? NULL : strrchr(t.s, ')');
        stopped = stopped || (p && (!strncmp(p, ") T", 3) || !strncmp(p, ") t", 3)));
        text_free(&t);
    }
    return stopped;
}

int opensm_reload(const struct opensm *o)
{
    int pid[OPENSM_PORTS_MAX], n = opensm_pids(o, pid), told = 0;
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++) {
        int rc = signal_hangup(o, pid[i]);
        if (rc && rc != -ESRCH) /* ended meanwhile */
            return rc;
        told += !rc;
    }
    return told ? 0 : -ESRCH;
}

int opensm_restart(const struct opensm *o, int timeout_ms)
{
    if (!o->restart)
        return -ENOTSUP;
    char *argv[] = {"sh", "-c", (char *)o->restart, NULL};
    posix_spawnattr_t attr;
    sigset_t none;
    pid_t pid;
    int status = 0;
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    /* The daemon blocks signals for its loop; the command must not inherit the mask. */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attr, &none);
    int rc = -posix_spawn(&pid, "/bin/sh", NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    if (rc)
        return rc;
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (p.fd >= 0) {
        if (poll(&p, 1, timeout_ms) == 0) {
            rc = -ETIMEDOUT;
            kill(-pid, SIGKILL);
        }
        close(p.fd);
    }
    if (waitpid(pid, &status, 0) < 0)
        return -errno;
    if (rc)
        return rc;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
