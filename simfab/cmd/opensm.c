/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opensm inside a fabric: started by the supervisor as on a host of the fabric, restarted on request. `simfab opensm`
 * talks to the supervisor over $SIMFAB_DIR/control.sock: one request ("restart", "wait"), one answer ("ok", or what is
 * wrong).
 */
#include "simfab/cmd/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SM_UP_MS = 20000, SM_STOP_MS = 5000 };

static const char up_message[] = "SUBNET UP";

static void sm_path(const struct run *r, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/opensm/%s", r->dir, name);
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

/* The first configuration. Others (fabricd, the user) may replace it: what opensm needs of us is on its command line.
 */
static bool write_conf(const struct run *r, const char *path)
{
    char dir[PATH_MAX];
    FILE *f;
    bool ok;

    sm_path(r, "", dir);
    f = fopen(path, "we");
    if (!f) {
        complain("%s: %s", path, strerror(errno));
        return false;
    }
    fprintf(f, "force_log_flush TRUE\ndump_files_dir %s\nsm_priority 8\n", dir);
    for (int i = 0; i < r->opt->num_sm_options; i++)
        fprintf(f, "%s\n", r->opt->sm_options[i]);
    ok = !ferror(f);
    return !fclose(f) && ok;
}

/* The host that opensm runs on, to be freed. */
static char *sm_host(const struct run *r)
{
    char *hosts;

    if (r->opt->sm_host)
        return check_host(r->dir, r->opt->sm_host) ? strdup(r->opt->sm_host) : NULL;
    hosts = query_text(r->dir, "", SF_OP_STATUS, "hosts");
    if (!hosts) {
        complain("the engine does not tell its hosts: %s", strerror(errno));
        return NULL;
    }
    hosts[strcspn(hosts, "\n")] = 0;
    if (!hosts[0]) {
        complain("%s has no host to run opensm on: use --no-opensm", r->opt->topology);
        free(hosts);
        return NULL;
    }
    return hosts;
}

static void exec_opensm(const struct run *r, const char *opensm, const char *host)
{
    char conf[PATH_MAX], log[PATH_MAX], out[PATH_MAX], dir[PATH_MAX];
    int fd, null;

    run_child_setup(r);
    setpgid(0, 0);
    sm_path(r, "opensm.conf", conf);
    sm_path(r, "opensm.log", log);
    sm_path(r, "opensm.out", out);
    sm_path(r, "", dir);
    fd = open(out, O_WRONLY | O_CREAT | O_APPEND, 0600);
    null = open("/dev/null", O_RDONLY);
    if (fd < 0 || null < 0 || !enter_host(r->dir, host, true) || setenv("OSM_CACHE_DIR", dir, 1) ||
        setenv("OSM_TMP_DIR", dir, 1))
        _exit(1);
    dup2(null, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    execl(opensm, "opensm", "-F", conf, "-f", log, "-d", "2", (char *)NULL);
    _exit(1);
}

bool sm_start(struct run *r)
{
    char opensm[PATH_MAX], path[PATH_MAX], pid[16];
    struct stat st;
    char *host;

    sm_path(r, "", path);
    if (!find_opensm(opensm) || (mkdir(path, 0700) && errno != EEXIST))
        return false;
    sm_path(r, "opensm.conf", path);
    if (access(path, F_OK) && !write_conf(r, path))
        return false;
    host = sm_host(r);
    if (!host)
        return false;
    sm_path(r, "opensm.log", path);
    r->sm_log_start = stat(path, &st) ? 0 : st.st_size;
    r->sm_up = false;
    r->sm_expected = false;
    r->sm = fork();
    if (r->sm == 0)
        exec_opensm(r, opensm, host);
    free(host);
    if (r->sm < 0) {
        r->sm = 0;
        complain("%s", strerror(errno));
        return false;
    }
    snprintf(pid, sizeof pid, "%d\n", (int)r->sm);
    sm_path(r, "opensm.pid", path);
    return write_file(path, pid);
}

void sm_stop(struct run *r, int patience_ms)
{
    int64_t end = now_ms() + patience_ms;

    r->sm_expected = true;
    if (r->sm)
        kill(r->sm, SIGTERM);
    while (r->sm && now_ms() < end && run_pump(r, -1, 10) >= 0)
        ;
    if (r->sm)
        kill(r->sm, SIGKILL);
    while (r->sm && !run_is_over(r))
        run_pump(r, -1, 10);
}

static bool log_says_up(const struct run *r)
{
    char path[PATH_MAX], buf[8192];
    off_t at = r->sm_log_start;
    bool found = false;
    ssize_t n;
    int fd;

    sm_path(r, "opensm.log", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (!found && (n = pread(fd, buf, sizeof buf, at)) > 0) {
        found = memmem(buf, (size_t)n, up_message, sizeof up_message - 1) != NULL;
        if ((size_t)n < sizeof buf)
            break;
        at += n - (off_t)sizeof up_message; /* it may straddle two pieces */
    }
    close(fd);
    return found;
}

bool sm_wait_up(struct run *r)
{
    char path[PATH_MAX], events[4096];
    int64_t end = now_ms() + SM_UP_MS;
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    sm_path(r, "", path);
    if (watch < 0 || inotify_add_watch(watch, path, IN_MODIFY | IN_CREATE) < 0) {
        complain("%s: %s", path, strerror(errno));
        if (watch >= 0)
            close(watch);
        return false;
    }
    while (r->sm && !(r->sm_up = log_says_up(r)) && now_ms() < end) {
        if (run_pump(r, watch, 200) < 0)
            break;
        while (read(watch, events, sizeof events) > 0)
            ;
    }
    close(watch);
    if (r->sm_up || run_is_over(r))
        return r->sm_up;
    complain(r->sm ? "opensm did not bring the subnet up in %d seconds"
                   : "opensm ended before the subnet was up (limit %d s)",
             SM_UP_MS / 1000);
    sm_path(r, "opensm.out", path);
    show_tail(path, 0);
    sm_path(r, "opensm.log", path);
    show_tail(path, r->sm_log_start);
    return false;
}

/* ---- the control socket ---------------------------------------------------------------------------------------- */

static bool control_address(const char *dir, struct sockaddr_un *addr)
{
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(addr->sun_path, sizeof addr->sun_path, "%s/control.sock", dir) < (int)sizeof addr->sun_path;
}

bool control_open(struct run *r)
{
    struct sockaddr_un addr;

    r->control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->control < 0 || !control_address(r->dir, &addr) || bind(r->control, (struct sockaddr *)&addr, sizeof addr) ||
        listen(r->control, 8)) {
        complain("%s/control.sock: %s", r->dir, strerror(errno));
        return false;
    }
    return true;
}

static const char *serve_request(struct run *r, const char *request)
{
    if (!strcmp(request, "restart")) {
        sm_stop(r, SM_STOP_MS);
        if (!sm_start(r))
            return "opensm could not be started: see the output of simfab run";
    } else if (strcmp(request, "wait")) {
        return "unknown request";
    } else if (!r->sm) {
        return "no opensm is running (simfab opensm restart starts one)";
    }
    return r->sm_up || sm_wait_up(r) ? "ok" : "the subnet did not come up: see $SIMFAB_DIR/opensm/opensm.log";
}

void control_serve(struct run *r)
{
    char request[32];
    const char *answer;
    ssize_t n;
    int fd = accept4(r->control, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (run_pump(r, fd, 1000) > 0 && (n = recv(fd, request, sizeof request - 1, 0)) > 0) {
        request[n] = 0;
        answer = serve_request(r, request);
        send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    }
    close(fd);
}

static int ask_supervisor(const char *dir, const char *request)
{
    struct sockaddr_un addr;
    char answer[256];
    ssize_t n = -1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0 && control_address(dir, &addr) && !connect(fd, (struct sockaddr *)&addr, sizeof addr) &&
        send(fd, request, strlen(request), MSG_NOSIGNAL) > 0)
        n = recv(fd, answer, sizeof answer - 1, 0);
    if (n <= 0) {
        complain("the supervisor of %s does not answer: %s", dir, n == 0 ? "it is ending" : strerror(errno));
        return 1;
    }
    answer[n] = 0;
    if (!strcmp(answer, "ok"))
        return 0;
    complain("%s", answer);
    return 1;
}

static int print_pid(const char *dir)
{
    char path[PATH_MAX];
    int pid = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/opensm/opensm.pid", dir);
    f = fopen(path, "re");
    if (!f || fscanf(f, "%d", &pid) != 1)
        complain("no opensm is running in this fabric (simfab opensm restart starts one)");
    else
        printf("%d\n", pid);
    if (f)
        fclose(f);
    return pid ? 0 : 1;
}

int cmd_opensm(int argc, char **argv)
{
    const char *dir;

    if (argc != 1 || (strcmp(argv[0], "pid") && strcmp(argv[0], "wait") && strcmp(argv[0], "restart"))) {
        fputs(usage_opensm, stderr);
        return EXIT_USAGE;
    }
    dir = fabric_dir();
    if (!dir)
        return EXIT_USAGE;
    return strcmp(argv[0], "pid") ? ask_supervisor(dir, argv[0]) : print_pid(dir);
}
