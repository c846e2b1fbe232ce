/* SPDX-License-Identifier: BSD-3-Clause */
/* opensm inside a fabric: started by the supervisor as on a host of the fabric, one for each subnet. */
#include "simfab/cmd/opensm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simfab/cmd/environ.h"
#include "simfab/cmd/paths.h"
#include "simfab/cmd/pump.h"
#include "simfab/cmd/query.h"
#include "simfab/cmd/say.h"
#include "terminal/progress.h"

/* Limits for an opensm to bring its subnet up: its own time, and real time on a busy machine. */
enum { SM_UP_MS = 20000, SM_UP_MOST_MS = 600000 };

enum { COUNT_EVERY_MS = 300 };

/* opensm's log messages for a subnet brought up, and for standby behind another opensm. */
static const char up_message[] = "SUBNET UP", standby_message[] = "Entering STANDBY state";

static void sm_path(const struct run *r, const struct sm *sm, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s/%s", r->dir, sm->name, name);
}

static bool write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    bool ok = f && fputs(text, f) >= 0;

    if (f && fclose(f))
        ok = false;
    if (!ok)
        complain("%s: %s", path, strerror(errno));
    return ok;
}

/* Whether the subnet has a standby too: both may find the other to be master. */
static bool of_two(const struct run *r, const struct sm *sm)
{
    for (unsigned i = 0; i < r->num_sms; i++)
        if (&r->sm[i] != sm && r->sm[i].subnet == sm->subnet)
            return true;
    return false;
}

/*
 * The first configuration, which others (fabricd, the user) may replace: settings that simfab requires are on opensm's
 * command line.
 */
static bool write_conf(const struct run *r, const struct sm *sm, const char *path)
{
    char dir[PATH_MAX];
    FILE *f;
    bool ok;

    sm_path(r, sm, "", dir);
    f = fopen(path, "we");
    if (!f) {
        complain("%s: %s", path, strerror(errno));
        return false;
    }
    fprintf(f, "force_log_flush TRUE\ndump_files_dir %s\npartition_config_file %spartitions.conf\nsm_priority %d\n",
            dir, dir, sm->standby ? 4 : 8); /* there is no such file: not this machine's, either */
    if (of_two(r, sm)) /* within a second, an opensm notices that the other is no master: gone, or standing by itself;
                          both stand by if a handover reaches an opensm that is still discovering */
        fputs("sminfo_polling_timeout 250\npolling_retry_number 3\n", f);
    if (sm->subnet > 1) /* GIDs of different subnets differ */
        fprintf(f, "subnet_prefix 0xfe80000000%06x\n", sm->subnet - 1);
    for (int i = 0; i < r->opt->num_sm_options; i++)
        fprintf(f, "%s\n", r->opt->sm_options[i]);
    ok = !ferror(f);
    return !fclose(f) && ok;
}

static void exec_opensm(const struct run *r, const struct sm *sm, const char *opensm)
{
    char conf[PATH_MAX], log[PATH_MAX], out[PATH_MAX], dir[PATH_MAX];
    int fd, null;

    run_child_setup(r);
    setpgid(0, 0);
    sm_path(r, sm, "opensm.conf", conf);
    sm_path(r, sm, "opensm.log", log);
    sm_path(r, sm, "opensm.out", out);
    sm_path(r, sm, "", dir);
    fd = open(out, O_WRONLY | O_CREAT | O_APPEND, 0600);
    null = open("/dev/null", O_RDONLY);
    if (fd < 0 || null < 0 || !enter_host(r->dir, sm->host, true) || setenv("OSM_CACHE_DIR", dir, 1) ||
        setenv("OSM_TMP_DIR", dir, 1))
        _exit(1);
    dup2(null, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    execl(opensm, "opensm", "-F", conf, "-f", log, "-d", "2", sm->port_guid[0] ? "-g" : NULL, sm->port_guid,
          (char *)NULL);
    _exit(1);
}

/* HOST.pid, since a host cannot tell from its list of processes whether opensm runs there: all hosts have the same. */
static bool name_pid_file(const struct run *r, const struct sm *sm)
{
    char name[NAME_MAX], path[PATH_MAX];

    snprintf(name, sizeof name, "%s.pid", sm->host);
    sm_path(r, sm, name, path);
    return !symlink("opensm.pid", path) || errno == EEXIST;
}

bool sm_start(struct run *r, struct sm *sm)
{
    char opensm[PATH_MAX], path[PATH_MAX], pid[16];
    struct stat st;

    sm_path(r, sm, "", path);
    if (!find_opensm(opensm) || (mkdir(path, 0700) && errno != EEXIST))
        return false;
    sm_path(r, sm, "opensm.conf", path);
    if (access(path, F_OK) && !write_conf(r, sm, path))
        return false;
    sm_path(r, sm, "opensm.log", path);
    sm->log_start = stat(path, &st) ? 0 : st.st_size;
    sm->up = false;
    sm->expected = false;
    sm->pid = fork();
    if (sm->pid == 0)
        exec_opensm(r, sm, opensm);
    if (sm->pid < 0) {
        sm->pid = 0;
        complain("%s", strerror(errno));
        return false;
    }
    snprintf(pid, sizeof pid, "%d\n", (int)sm->pid);
    sm_path(r, sm, "opensm.pid", path);
    return write_file(path, pid) && name_pid_file(r, sm);
}

/* The other opensm of the same subnet, if it runs. */
static const struct sm *sm_partner(const struct run *r, const struct sm *sm)
{
    for (unsigned i = 0; i < r->num_sms; i++)
        if (&r->sm[i] != sm && r->sm[i].subnet == sm->subnet && r->sm[i].pid)
            return &r->sm[i];
    return NULL;
}

void sm_ended(struct run *r, struct sm *sm, int status)
{
    char path[PATH_MAX], how[64];

    sm->pid = 0;
    sm->up = false;
    sm_path(r, sm, "opensm.pid", path);
    unlink(path);
    if (!sm->expected)
        complain("%s %s: the fabric goes on %s (simfab opensm restart starts one)", sm->name, how_it_ended(status, how),
                 sm_partner(r, sm) ? "with the other subnet manager" : "without a subnet manager");
}

void sm_stop(struct run *r, struct sm *sm, int patience_ms)
{
    int64_t end = now_ms() + patience_ms;

    sm->expected = true;
    if (sm->pid)
        kill(sm->pid, SIGTERM);
    while (sm->pid && now_ms() < end && run_pump(r, -1, 10) >= 0)
        ;
    if (sm->pid)
        kill(sm->pid, SIGKILL);
    while (sm->pid && !run_is_over(r))
        run_pump(r, -1, 10);
}

static bool log_says_up(const struct run *r, const struct sm *sm)
{
    char path[PATH_MAX], buf[8192];
    off_t at = sm->log_start;
    bool found = false;
    ssize_t n;
    int fd;

    sm_path(r, sm, "opensm.log", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (!found && (n = pread(fd, buf, sizeof buf, at)) > 0) {
        found = memmem(buf, (size_t)n, up_message, sizeof up_message - 1) ||
                (sm_partner(r, sm) && memmem(buf, (size_t)n, standby_message, sizeof standby_message - 1));
        if ((size_t)n < sizeof buf)
            break;
        at += n - (off_t)sizeof standby_message; /* the message may straddle two pieces */
    }
    close(fd);
    return found;
}

/* How long a process's threads have waited for a processor; 0: the kernel does not tell. */
static int64_t waited_ms(pid_t pid)
{
    char name[PATH_MAX], path[PATH_MAX];
    unsigned long long ns, all = 0;
    struct dirent *e;
    DIR *tasks;
    FILE *f;

    snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
    tasks = opendir(name);
    while (tasks && (e = readdir(tasks))) {
        if (*e->d_name == '.' || snprintf(path, sizeof path, "%s/%s/schedstat", name, e->d_name) >= (int)sizeof path)
            continue;
        f = fopen(path, "re");
        if (f && fscanf(f, "%*u %llu", &ns) == 1)
            all += ns;
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return (int64_t)(all / 1000000);
}

/* Waits of opensm, and of the answering engine, for a processor do not count. */
static bool has_time_left(const struct run *r, const struct sm *sm, int64_t begun_ms, int64_t waited_before_ms)
{
    int64_t took = now_ms() - begun_ms;

    return took < SM_UP_MS ||
           (took < SM_UP_MOST_MS && took - (waited_ms(sm->pid) + waited_ms(r->engine) - waited_before_ms) < SM_UP_MS);
}

/* Of the ports with a cable, how many any opensm has brought up so far. */
static void show_ports(const struct run *r, struct progress *p)
{
    char *text = query_soon(r->dir, SF_OP_STATUS, "");
    unsigned up = 0, all = 0;

    for (char *line = text, *next; line; line = next) { /* NODE [DEVICE] PORT STATE ... */
        if ((next = strchr(line, '\n')))
            *next++ = 0;
        bool active = strstr(line, " Active "), set_up = strstr(line, " Initialize ") || strstr(line, " Armed ");
        if (strstr(line, " 0 Active ")) /* of a switch itself */
            continue;
        up += active;
        all += active || set_up;
    }
    free(text);
    if (all)
        progress_show(p, "simfab: %u of %u ports are up", up, all);
}

bool sm_wait_up(struct run *r, struct sm *sm)
{
    int64_t begun = now_ms(), waited = waited_ms(sm->pid) + waited_ms(r->engine), count_at = begun + COUNT_EVERY_MS;
    struct progress progress = progress_begin();
    char path[PATH_MAX], events[4096];
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    sm_path(r, sm, "", path);
    if (watch < 0 || inotify_add_watch(watch, path, IN_MODIFY | IN_CREATE) < 0) {
        complain("%s: %s", path, strerror(errno));
        if (watch >= 0)
            close(watch);
        return false;
    }
    while (sm->pid && !(sm->up = log_says_up(r, sm)) && has_time_left(r, sm, begun, waited)) {
        if (run_pump(r, watch, 200) < 0)
            break;
        while (read(watch, events, sizeof events) > 0)
            ;
        if (progress.on && now_ms() >= count_at) {
            show_ports(r, &progress);
            count_at = now_ms() + COUNT_EVERY_MS;
        }
    }
    progress_erase(&progress);
    close(watch);
    if (sm->up || run_is_over(r))
        return sm->up;
    complain(sm->pid ? "%s did not bring the subnet up in %d seconds, beside what it waited for a processor"
                     : "%s ended before the subnet was up (limit %d s)",
             sm->name, SM_UP_MS / 1000);
    sm_path(r, sm, "opensm.out", path);
    show_tail(path, 0);
    sm_path(r, sm, "opensm.log", path);
    show_tail(path, sm->log_start);
    return false;
}
